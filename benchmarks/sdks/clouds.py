"""Rows: clouds, and who one is there."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

from requests_smithy_retry.testing import Reply

from .row import LIMIT, sdk

Steps = Generator[Any, None, None]
DAY = "Sun, 22 Nov 2026 12:00:00 GMT"
HASH = "a" * 64
AZURE_LINE = (
    "from azure.core.pipeline.transport import RequestsTransport\n"
    "client['transport'] = RequestsTransport(session=mount(requests.Session()), session_owner=False)"
)
AZURE_WHY = "It mounts an adapter of its own with `Retry(False)`, and retries in a policy of its own."


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
    shown="BlobServiceClient(..., transport=RequestsTransport(session=mount(requests.Session()), session_owner=False))",
    why=AZURE_WHY,
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
    "azure-core",
    {"GET /lions": {"name": "Leo"}, "POST /lions": {"id": 2}},
    AZURE_LINE,
    shown="PipelineClient(..., transport=RequestsTransport(session=mount(requests.Session()), session_owner=False))",
    why=AZURE_WHY,
)
def azure_core(url: str) -> Steps:
    """The pipeline of every client of Azure."""
    from azure.core import PipelineClient
    from azure.core.pipeline.policies import RetryPolicy
    from azure.core.rest import HttpRequest

    options: dict[str, Any] = {}
    yield options
    client = PipelineClient(url, policies=[RetryPolicy(backoff_factor=0.1)], **options)
    told = [
        client.send_request(HttpRequest(method, f"{url}/lions"), read_timeout=LIMIT, connection_timeout=LIMIT)
        for method in ("GET", "POST")
    ]
    for each in told:
        each.raise_for_status()
    yield [each.json() for each in told]


@sdk(
    "msal",
    {
        "GET /zoo/v2.0/.well-known/openid-configuration": {
            "authorization_endpoint": "URL/zoo/authorize",
            "token_endpoint": "URL/zoo/token",
            "issuer": "URL/zoo/v2.0",
        },
        "POST /zoo/token": {"access_token": "token", "expires_in": 3600, "token_type": "Bearer"},
        "GET /common/discovery/instance": {"tenant_discovery_endpoint": "URL/zoo", "metadata": []},
    },
    "client['http_client'] = mount(requests.Session())",
    shown="ConfidentialClientApplication(..., http_client=mount(requests.Session()))",
    host="login.microsoftonline.com",
    why="It mounts adapters with `Retry(1)`.",
)
def msal(url: str) -> Steps:
    """Get a token for an application."""
    from msal import ConfidentialClientApplication

    options: dict[str, Any] = {}
    yield options
    client = ConfidentialClientApplication(
        "me", "secret", authority=f"{url}/zoo", timeout=LIMIT, instance_discovery=False, **options
    )
    told = client.acquire_token_for_client(["https://graph/.default"])
    if "access_token" not in told:
        raise PermissionError(told)
    yield told["access_token"]


@sdk(
    "google-auth",
    {"POST /token": {"access_token": "token", "expires_in": 3600}, "GET /lions": {"name": "Leo"}},
    "mount(client)\nmount(client._auth_request_session)",
    why="It mounts an adapter with `Retry(3)` for fetching tokens; for all else, `run` reaches it.",
)
def google_auth(url: str) -> Steps:
    """Fetch a token, and something with it."""
    from google.auth.transport.requests import AuthorizedSession
    from google.oauth2.credentials import Credentials

    client = AuthorizedSession(Credentials(None, "refresh", None, f"{url}/token", "me", "secret"))
    yield client
    response = client.get(f"{url}/lions", timeout=LIMIT)
    response.raise_for_status()
    yield response.json()


def _google(url: str) -> dict[str, Any]:
    from google.api_core.client_options import ClientOptions
    from google.auth.credentials import AnonymousCredentials

    return {"project": "zoo", "credentials": AnonymousCredentials(), "client_options": ClientOptions(api_endpoint=url)}


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
    "google-cloud-bigquery",
    {
        "GET /bigquery/v2/projects/zoo/datasets/d/tables/t": {
            "tableReference": {"projectId": "zoo", "datasetId": "d", "tableId": "t"},
            "numRows": "3",
        },
        "POST /bigquery/v2/projects/zoo/datasets": {"datasetReference": {"projectId": "zoo", "datasetId": "e"}},
    },
    "mount(client._http)",
)
def google_bigquery(url: str) -> Steps:
    """Read a table's facts; make a dataset."""
    from google.cloud.bigquery import Client

    client = Client(**_google(url))
    yield client
    rows = client.get_table("zoo.d.t", timeout=LIMIT).num_rows
    yield rows, client.create_dataset("zoo.e", timeout=LIMIT).dataset_id


@sdk(
    "gspread",
    {
        "GET /v4/spreadsheets/key": {
            "spreadsheetId": "key",
            "properties": {"title": "zoo"},
            "sheets": [
                {
                    "properties": {
                        "sheetId": 0,
                        "title": "lions",
                        "index": 0,
                        "sheetType": "GRID",
                        "gridProperties": {"rowCount": 9, "columnCount": 9},
                    }
                }
            ],
        },
        "GET /v4/spreadsheets/key/values/*": {"range": "lions!A1", "majorDimension": "ROWS", "values": [["Leo"]]},
        "POST /v4/spreadsheets/key/values/*": {"updates": {"updatedRows": 1}},
    },
    "mount(client.http_client.session)",
    host="sheets.googleapis.com",
)
def gspread(url: str) -> Steps:
    """Read a cell; append a row."""
    import gspread
    from google.oauth2.credentials import Credentials

    client = gspread.authorize(Credentials("token"))
    client.http_client.timeout = LIMIT
    yield client
    sheet = client.open_by_key("key").sheet1
    yield url, sheet.acell("A1").value, sheet.append_row(["Bruno"])["updates"]["updatedRows"]


@sdk(
    "databricks-sdk",
    {
        "GET /api/2.0/clusters/get": {"cluster_id": "1", "cluster_name": "zoo"},
        "GET /api/2.1/clusters/get": {"cluster_id": "1", "cluster_name": "zoo"},
        "GET /.well-known/databricks-config": {},
        "POST /api/2.0/token/create": {"token_value": "x"},
    },
    "mount(client.api_client._api_client._session)",
    why="It mounts an adapter without retries on `https://`, and retries in a loop of its own.",
)
def databricks_sdk(url: str) -> Steps:
    """Read a cluster; make a token."""
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.config import Config

    client = WorkspaceClient(config=Config(host=url, token="secret", http_timeout_seconds=LIMIT, auth_type="pat"))
    yield client
    yield client.clusters.get("1").cluster_name, client.tokens.create(comment="x").token_value


@sdk(
    "databricks-cli",
    {"GET /api/2.0/clusters/get": {"cluster_name": "zoo"}, "POST /api/2.0/clusters/start": {}},
    "mount(client.session)",
    host="zoo.cloud.databricks.com",
    why="It mounts an adapter of its own with a `Retry`, for TLS 1.2.",
)
def databricks_cli(url: str) -> Steps:
    """Read a cluster; start it."""
    from databricks_cli.sdk.api_client import ApiClient
    from databricks_cli.sdk.service import ClusterService

    client = ApiClient(host=url, token="secret")
    yield client
    clusters = ClusterService(client)
    yield clusters.get_cluster("1")["cluster_name"], clusters.start_cluster("1")


@sdk(
    "keystoneauth1",
    {"GET /lions": {"name": "Leo"}, "POST /lions": {"id": 2}},
    "mount(client.session)",
    why="It mounts an adapter of its own without retries, for socket options.",
)
def keystone(url: str) -> Steps:
    """The session of every client of OpenStack."""
    from keystoneauth1.session import Session

    client = Session(timeout=LIMIT)
    yield client
    read = client.get(f"{url}/lions", authenticated=False).json()["name"]
    yield read, client.post(f"{url}/lions", json={}, authenticated=False).json()["id"]


@sdk(
    "openstacksdk",
    {
        "GET /": {
            "versions": [
                {
                    "id": "v2.1",
                    "status": "CURRENT",
                    "version": "2.90",
                    "min_version": "2.1",
                    "links": [{"rel": "self", "href": "URL/v2.1/"}],
                }
            ]
        },
        "GET /v2.1*": {
            "version": {"id": "v2.1", "status": "CURRENT", "version": "2.90", "min_version": "2.1", "links": []}
        },
    },
    "mount(client.session.session)",
    why="It uses keystoneauth's session, which mounts an adapter of its own.",
)
def openstack(url: str) -> Steps:
    """Ask which version of a service there is."""
    import openstack

    client = openstack.connect(
        auth_type="none",
        endpoint=url,
        compute_endpoint_override=url,
        load_yaml_config=False,
        load_envvars=False,
        api_timeout=LIMIT,
    )
    yield client
    yield client.session.get(f"{url}/", authenticated=False).json()["versions"][0]["id"]


@sdk(
    "ibm-cloud-sdk-core",
    {"GET /lions": {"name": "Leo"}, "POST /lions": {"id": 2}},
    "mount(client.http_client)",
    why="It mounts an adapter of its own without retries, for TLS.",
)
def ibm(url: str) -> Steps:
    """The base of every client of IBM's cloud."""
    from ibm_cloud_sdk_core import BaseService
    from ibm_cloud_sdk_core.authenticators import NoAuthAuthenticator

    client = BaseService(service_url=url, authenticator=NoAuthAuthenticator())
    client.set_http_config({"timeout": LIMIT})
    yield client
    yield [client.send(client.prepare_request(method, "/lions")).get_result() for method in ("GET", "POST")]


@sdk(
    "oss2",
    {
        "GET /lions": _bytes_of(b"Leo"),
        "PUT /bears": Reply(200, (("ETag", '"2"'), ("x-oss-request-id", "1"))),
    },
    "mount(client.session.session)",
    host="zoo.oss-cn-hangzhou.aliyuncs.com",
    why="It mounts adapters without retries, for the size of the pool.",
)
def oss(url: str) -> Steps:
    """Read an object; write one."""
    import oss2

    client = oss2.Bucket(
        oss2.Auth("me", "secret"), url.replace("zoo.", ""), "zoo", connect_timeout=LIMIT, enable_crc=False
    )
    yield client
    yield client.get_object("lions").read().decode(), client.put_object("bears", b"Bruno").etag


@sdk(
    "auth0-python",
    {"GET /api/v2/users/leo": {"user_id": "leo"}, "POST /api/v2/users": {"user_id": "bruno"}},
    "",
)
def auth0(url: str) -> Steps:
    """Read a user; make one."""
    from auth0.management import Auth0
    from auth0.rest import RestClientOptions

    client = Auth0(url.split("//")[1], "token", RestClientOptions(timeout=LIMIT))
    yield client
    yield client.users.get("leo")["user_id"], client.users.create({"email": "bruno@zoo"})["user_id"]


@sdk(
    "requests-oauthlib",
    {
        "POST /token": {"access_token": "token", "expires_in": 3600, "token_type": "Bearer"},
        "GET /lions": {"name": "Leo"},
    },
    "mount(client)",
)
def oauthlib(url: str) -> Steps:
    """Fetch a token, and something with it."""
    from oauthlib.oauth2 import BackendApplicationClient
    from requests_oauthlib import OAuth2Session

    client = OAuth2Session(client=BackendApplicationClient("me"))
    yield client
    client.fetch_token(f"{url}/token", client_secret="secret", timeout=LIMIT)
    response = client.get(f"{url}/lions", timeout=LIMIT)
    response.raise_for_status()
    yield response.json()


@sdk(
    "python-digitalocean",
    {
        "GET /v2/account/": {"account": {"email": "leo@zoo", "status": "active"}},
    },
    "",
    host="api.digitalocean.com",
)
def digitalocean(url: str) -> Steps:
    """Read the account."""
    from digitalocean import Manager

    os.environ["DIGITALOCEAN_ACCESS_TOKEN"] = "secret"
    client = Manager(token="secret")
    yield client
    yield url, client.get_account().email


@sdk(
    "linode-api4",
    {"GET /profile": {"username": "leo", "email": "leo@zoo"}, "POST /linode/instances": {"id": 1, "label": "lion"}},
    "mount(client.session)",
    why="It mounts adapters with a subclass of `Retry`, `LinearRetry`.",
)
def linode(url: str) -> Steps:
    """Read the profile; make a machine."""
    from linode_api4 import LinodeClient

    client = LinodeClient("secret", base_url=url, retry_rate_limit_interval=1)
    yield client
    yield client.profile().username, client.linode.instance_create("g6", "eu", image=None).label


@sdk(
    "cloudflare",
    {
        "GET /zones": {"success": True, "result": [{"id": "1", "name": "zoo"}]},
        "POST /zones": {"success": True, "result": {"id": "2"}},
    },
    "",
)
def cloudflare(url: str) -> Steps:
    """List zones; make one."""
    import CloudFlare

    client = CloudFlare.CloudFlare(token="secret", base_url=url)
    yield client
    yield client.zones.get()[0]["name"], client.zones.post(data={"name": "sea"})["id"]
