"""The rows: seven clients of services, of each way in which SDKs make their sessions, with a short script each.

The table of the documentation has 75, measured with the rows that were here until 23 November 2026.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.faults import Reply

LIMIT = int(os.environ.get("SDK_TIMEOUT", "1"))
"""The time-out in seconds that a script gives its client, where the client takes one; more on a busy machine."""
Steps = Generator[Any, None, None]


@dataclass(frozen=True)
class Row:
    """One client.

    :param package: the distribution's name.
    :param script: a function of the service's URL that yields the client, and then a plain result of some operations.
    :param answers: by ``METHOD /path`` (with ``*``); a dict or list is sent as JSON, in which ``URL`` stands for the
        service, a string as text, bytes as they are.
    :param line: the statement that mounts ours, in terms of ``client``, ``mount``, ``RetryAdapter`` and ``requests``.
    """

    name: str
    package: str
    script: Callable[[str], Steps]
    answers: Mapping[str, Any]
    line: str


ROWS: dict[str, Row] = {}


def sdk(package: str, answers: Mapping[str, Any], line: str, *, name: str = "", **facts: str) -> Any:
    """Register a script as a row; see :class:`Row`."""

    def register(script: Callable[[str], Steps]) -> Callable[[str], Steps]:
        ROWS[name or package] = Row(name or package, package, script, answers, line, **facts)
        return script

    return register


LIONS = {"GET /lions": {"name": "Leo"}, "PUT /lions/1": {"id": 1}, "POST /lions": {"id": 2}}
DAY = "Sun, 22 Nov 2026 12:00:00 GMT"
AZURE_LINE = (
    "from azure.core.pipeline.transport import RequestsTransport\n"
    "client['transport'] = RequestsTransport(session=mount(requests.Session()), session_owner=False)"
)


def _bytes_of(body: bytes, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(200, tuple({"Content-Type": "application/octet-stream", **named}.items()), body)


class Anyone:
    """Credentials of Azure that need no service."""

    def get_token(self, *scopes: str, **options: object) -> Any:  # noqa: ARG002
        """Return a token for an hour."""
        import time

        from azure.core.credentials import AccessToken

        return AccessToken("token", int(time.time()) + 3600)


def _google(url: str) -> dict[str, Any]:
    from google.api_core.client_options import ClientOptions
    from google.auth.credentials import AnonymousCredentials

    return {"project": "zoo", "credentials": AnonymousCredentials(), "client_options": ClientOptions(api_endpoint=url)}


@sdk("requests", LIONS, "mount(client)")
def plain_requests(url: str) -> Steps:
    """GET, PUT and POST."""
    import requests

    client = requests.Session()
    yield client
    told = []
    for method, path in (("GET", "/lions"), ("PUT", "/lions/1"), ("POST", "/lions")):
        response = client.request(method, url + path, timeout=LIMIT)
        response.raise_for_status()
        told.append(response.json())
    yield told


@sdk("requests", {"GET /lions": {"name": "Leo"}}, "", name="requests.get")
def requests_get(url: str) -> Steps:
    """The function, without a session."""
    import requests

    yield None
    response = requests.get(f"{url}/lions", timeout=LIMIT)
    response.raise_for_status()
    yield response.json()


@sdk(
    "azure-storage-blob",
    {
        "GET /zoo/lions": _bytes_of(
            b"Leo", x_ms_blob_type="BlockBlob", Last_Modified=DAY, ETag='"1"', Content_Range="bytes 0-2/3"
        ),
        "PUT /zoo/bears": Reply(
            201, (("ETag", '"2"'), ("Last-Modified", DAY), ("Content-MD5", "myt4Az7PBAGi/qtbS6dGLg=="))
        ),
    },
    AZURE_LINE,
)
def azure_blob(url: str) -> Steps:
    """Read a blob; write one."""
    from azure.storage.blob import BlobServiceClient

    options: dict[str, Any] = {}
    yield options
    client = BlobServiceClient(
        url, credential=Anyone(), initial_backoff=0, increment_base=1, read_timeout=LIMIT, **options
    )
    container = client.get_container_client("zoo")
    read = container.get_blob_client("lions").download_blob().readall().decode()
    yield read, container.get_blob_client("bears").upload_blob(b"Bruno", overwrite=True)["etag"]


@sdk(
    "google-cloud-storage",
    {
        "GET /storage/v1/b/zoo/o/lions": {"name": "lions", "bucket": "zoo", "generation": "1", "size": "3"},
        "GET /download/storage/v1/b/zoo/o/lions": _bytes_of(b"Leo"),
        "POST /upload/storage/v1/b/zoo/o": {"name": "bears", "bucket": "zoo", "generation": "2"},
    },
    "mount(client._http)",
)
def google_storage(url: str) -> Steps:
    """Read an object; write one."""
    os.environ["DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA"] = "yes"  # its thread asks when it pleases
    from google.cloud.storage import Client

    client = Client(**_google(url))
    yield client
    bucket = client.bucket("zoo")
    read = bucket.get_blob("lions", timeout=LIMIT).download_as_bytes(timeout=LIMIT).decode()
    bears = bucket.blob("bears")
    bears.upload_from_string(b"Bruno", timeout=LIMIT)
    yield read, bears.generation


@sdk(
    "PyGithub",
    {
        "GET /repos/o/zoo": {"id": 1, "full_name": "o/zoo", "name": "zoo", "url": "URL/repos/o/zoo"},
        "GET /repos/o/zoo/issues/7": {
            "id": 7,
            "number": 7,
            "title": "a lion is out",
            "url": "URL/repos/o/zoo/issues/7",
        },
        "POST /repos/o/zoo/issues": {"id": 8, "number": 8, "title": "and a bear", "url": "URL/repos/o/zoo/issues/8"},
    },
    "mount(client.requester._Requester__createConnection().session)",
)
def github(url: str) -> Steps:
    """Read a repository and an issue; open one."""
    from github import Auth, Github

    client = Github(
        base_url=url,
        auth=Auth.Token("secret"),
        timeout=LIMIT,
        seconds_between_requests=None,
        seconds_between_writes=None,
    )
    yield client
    repository = client.get_repo("o/zoo")
    yield repository.full_name, repository.get_issue(7).title, repository.create_issue("and a bear").number


@sdk(
    "hvac",
    {
        "GET /v1/secret/data/zoo": {"data": {"data": {"lion": "Leo"}, "metadata": {"version": 1}}},
        "POST /v1/secret/data/zoo": {"data": {"version": 2}},
    },
    "mount(client.session)",
)
def hvac(url: str) -> Steps:
    """Read and write a secret."""
    import hvac

    client = hvac.Client(url=url, token="secret", timeout=LIMIT)
    yield client
    kv = client.secrets.kv.v2
    read = kv.read_secret_version(path="zoo", raise_on_deleted_version=False)["data"]["data"]
    yield read, kv.create_or_update_secret(path="zoo", secret={"lion": "Leo II"})["data"]["version"]


@sdk(
    "stripe",
    {
        "GET /v1/customers/leo": {"id": "leo", "object": "customer"},
        "POST /v1/customers": {"id": "bruno", "object": "customer"},
    },
    "client['session'] = mount(requests.Session())",
)
def stripe(url: str) -> Steps:
    """Read a customer; make one."""
    import stripe

    stripe.ca_bundle_path = os.environ["REQUESTS_CA_BUNDLE"]
    options: dict[str, Any] = {}
    yield options
    http_client = stripe.RequestsClient(timeout=LIMIT, **options)
    client = stripe.StripeClient("secret", base_addresses={"api": url}, http_client=http_client, max_network_retries=2)
    yield client.v1.customers.retrieve("leo").id, client.v1.customers.create({}).id
