"""Rows: the tools of developers and of operations."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from requests_smithy_retry.testing import Reply

from .row import LIMIT, sdk
from .service import JSON

Steps = Generator[Any, None, None]
SESSION = "mount(client.session)"


@sdk(
    "python-gitlab",
    {
        "GET /api/v4/projects/1": {"id": 1, "name": "zoo"},
        "GET /api/v4/projects/1/issues": [{"id": 7, "iid": 7, "title": "a lion is out"}],
        "POST /api/v4/projects/1/issues": {"id": 8, "iid": 8, "title": "and a bear"},
    },
    SESSION,
)
def gitlab(url: str) -> Steps:
    """Read a project and its issues; open one."""
    from gitlab import Gitlab

    client = Gitlab(url, private_token="secret", timeout=LIMIT)
    yield client
    project = client.projects.get(1)
    titles = [each.title for each in project.issues.list(get_all=False)]
    yield project.name, titles, project.issues.create({"title": "and a bear"}).iid


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
    why="It mounts an adapter with a subclass of `Retry`, `GithubRetry`, on `https://`.",
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
    "jira",
    {
        "GET /rest/api/2/issue/ZOO-7": {"id": "7", "key": "ZOO-7", "fields": {"summary": "a lion is out"}},
        "GET /rest/api/2/project": [{"id": "1", "key": "ZOO", "name": "zoo"}],
        "POST /rest/api/2/issue/ZOO-7/comment": {"id": "70", "body": "it is back"},
    },
    "mount(client._session)",
)
def jira(url: str) -> Steps:
    """Read an issue and the projects; comment."""
    from jira import JIRA

    client = JIRA(url, token_auth="secret", get_server_info=False, timeout=LIMIT, max_retries=1)
    yield client
    titles = [each.key for each in client.projects()]
    yield client.issue("ZOO-7").fields.summary, titles, client.add_comment("ZOO-7", "it is back").id


@sdk(
    "atlassian-python-api",
    {
        "GET /rest/api/content/7": {"id": "7", "title": "lions"},
        "POST /rest/api/content": {"id": "8", "title": "bears"},
    },
    "mount(client._session)",
)
def atlassian(url: str) -> Steps:
    """Read a page; write one."""
    from atlassian import Confluence

    client = Confluence(url, token="secret", timeout=LIMIT)
    yield client
    yield client.get_page_by_id("7")["title"], client.create_page("ZOO", "bears", "<p/>")["id"]


@sdk(
    "python-jenkins",
    {
        "GET /job/zoo/api/json": {"name": "zoo", "nextBuildNumber": 8},
        "GET /crumbIssuer/api/json": {"crumbRequestField": "Jenkins-Crumb", "crumb": "x"},
        "POST /job/zoo/disable": "",
    },
    "mount(client._session)",
)
def jenkins(url: str) -> Steps:
    """Read a job; disable it."""
    from jenkins import Jenkins

    client = Jenkins(url, "me", "secret", timeout=LIMIT)
    yield client
    info = client.get_job_info("zoo")
    client.disable_job("zoo")
    yield info["name"], info["nextBuildNumber"]


@sdk(
    "docker",
    {
        "GET /v1.44/containers/json": [{"Id": "abc", "Image": "lion"}],
        "GET /v1.44/info": {"Containers": 1, "Name": "zoo"},
        "POST /v1.44/containers/create": {"Id": "def", "Warnings": []},
    },
    "mount(client)",
    name="docker, TCP",
    scheme="http",
)
def docker_tcp(url: str) -> Steps:
    """List containers; make one."""
    import docker

    client = docker.APIClient(base_url=url.replace("http", "tcp"), version="1.44", timeout=LIMIT)
    yield client
    ids = [each["Id"] for each in client.containers()]
    yield ids, client.info()["Name"], client.create_container("lion")["Id"]


@sdk(
    "docker",
    {
        "GET /v1.44/containers/json": [{"Id": "abc", "Image": "lion"}],
        "GET /v1.44/info": {"Containers": 1, "Name": "zoo"},
        "POST /v1.44/containers/create": {"Id": "def", "Warnings": []},
    },
    "unix = client.adapters['http+docker://']\n"
    "kind = type('Retrying', (type(unix), RetryAdapter), {})\n"
    "client.mount('http+docker://', kind('http+unix://' + unix.socket_path, unix.timeout))",
    name="docker, unix socket",
    scheme="unix",
    why="It mounts an adapter of its own for `http+docker://`, with no retries.",
)
def docker_unix(url: str) -> Steps:
    """The same on the socket that is the default."""
    import docker

    client = docker.APIClient(base_url=url, version="1.44", timeout=LIMIT)
    yield client
    ids = [each["Id"] for each in client.containers()]
    yield ids, client.info()["Name"], client.create_container("lion")["Id"]


@sdk(
    "twine",
    {"POST /legacy/": "", "GET /pypi/zoo/json": {"releases": {}}},
    SESSION,
    why="It mounts adapters with `Retry(total=10)`, which send no POST again.",
)
def twine(url: str) -> Steps:
    """Upload a distribution."""
    import tempfile
    import zipfile
    from pathlib import Path

    from twine.package import PackageFile
    from twine.repository import Repository

    client = Repository(f"{url}/legacy/", "me", "secret", disable_progress_bar=True)
    yield client
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(folder) / "zoo-1-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("zoo-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: zoo\nVersion: 1\n")
            archive.writestr("zoo-1.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        response = client.upload(PackageFile.from_filename(str(wheel), None))
    response.raise_for_status()
    yield response.status_code


@sdk(
    "hvac",
    {
        "GET /v1/secret/data/zoo": {"data": {"data": {"lion": "Leo"}, "metadata": {"version": 1}}},
        "POST /v1/secret/data/zoo": {"data": {"version": 2}},
    },
    SESSION,
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
    "python-consul",
    {
        "GET /v1/kv/zoo": Reply(200, (*JSON, ("X-Consul-Index", "1")), b'[{"Key": "zoo", "Value": "TGVv"}]'),
        "PUT /v1/kv/zoo": "true",
    },
    "mount(client.http.session)",
)
def consul(url: str) -> Steps:
    """Read and write a key."""
    from consul import Consul

    host, port = url.split("//")[1].split(":")
    client = Consul(host, int(port), scheme="https")
    yield client
    yield client.kv.get("zoo")[1]["Value"].decode(), client.kv.put("zoo", "Leo II")


@sdk(
    "pynetbox",
    {
        "GET /api/dcim/sites/1/": {"id": 1, "name": "zoo", "url": "URL/api/dcim/sites/1/"},
        "POST /api/dcim/sites/": {"id": 2, "name": "aquarium", "url": "URL/api/dcim/sites/2/"},
    },
    "mount(client.http_session)",
)
def pynetbox(url: str) -> Steps:
    """Read a site; make one."""
    import pynetbox

    client = pynetbox.api(url, token="secret")
    yield client
    sites = client.dcim.sites
    yield sites.get(1).name, sites.create(name="aquarium", slug="aquarium").id


@sdk(
    "python-keycloak",
    {
        "POST /realms/zoo/protocol/openid-connect/token": {"access_token": "x", "expires_in": 300},
        "GET /realms/zoo/protocol/openid-connect/userinfo": {"sub": "leo"},
    },
    "mount(client.connection._s)",
    why="It mounts adapters with `Retry(1)`, for POST, too.",
)
def keycloak(url: str) -> Steps:
    """Log in and ask who one is."""
    from keycloak import KeycloakOpenID

    client = KeycloakOpenID(f"{url}/", "zoo", "me", client_secret_key="secret", timeout=LIMIT)
    yield client
    token = client.token("leo", "secret")["access_token"]
    yield token, client.userinfo(token)["sub"]


@sdk(
    "prometheus-api-client",
    {
        "GET /api/v1/query": {"data": {"result": [{"metric": {}, "value": [1, "3"]}]}},
        "GET /api/v1/label/__name__/values": {"data": ["lions"]},
    },
    "mount(client._session, at=client.url)",
    why="It mounts an adapter with a `Retry` at the server's URL.",
)
def prometheus(url: str) -> Steps:
    """Ask for a value and for the names of metrics."""
    from prometheus_api_client import PrometheusConnect

    client = PrometheusConnect(url, timeout=LIMIT)
    yield client
    yield client.get_current_metric_value("lions"), client.all_metrics()


@sdk(
    "pywinrm",
    {"POST /wsman": "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'><s:Body/></s:Envelope>"},
    "mount(client.protocol.transport.build_session())",
)
def winrm(url: str) -> Steps:
    """Send a message of WS-Management."""
    import winrm

    client = winrm.Session(f"{url}/wsman", auth=("me", "secret"), transport="basic", server_cert_validation="ignore")
    yield client
    yield client.protocol.transport.send_message("<a/>").decode()


@sdk(
    "opentelemetry-exporter-otlp-proto-http",
    {"POST /v1/traces": b""},
    "client['session'] = mount(requests.Session(), allowed_methods=None)",
    shown="OTLPSpanExporter(..., session=mount(requests.Session(), allowed_methods=None))",
)
def otlp(url: str) -> Steps:
    """Export a span."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    options: dict[str, Any] = {}
    yield options
    client = OTLPSpanExporter(f"{url}/v1/traces", timeout=4, **options)
    results = []
    export, client.export = client.export, lambda spans: results.append(export(spans))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(client))
    provider.get_tracer("zoo").start_span("lion").end()
    if results[0].name != "SUCCESS":
        raise ConnectionError(results[0].name)
    yield results[0].name


@sdk(
    "mlflow-skinny",
    {
        "GET /api/2.0/mlflow/runs/get": {"run": {"info": {"run_id": "a", "experiment_id": "1", "status": "RUNNING"}}},
        "POST /api/2.0/mlflow/runs/log-parameter": {},
    },
    "",
    why="It mounts adapters with `Retry(7)`, for every method, on sessions that it keeps to itself.",
)
def mlflow(url: str) -> Steps:
    """Read a run; log a parameter."""
    from mlflow import MlflowClient

    client = MlflowClient(url)
    yield client
    status = client.get_run("a").info.status
    client.log_param("a", "lions", 3)
    yield status


@sdk(
    "internetarchive",
    {
        "GET /metadata/zoo": {
            "metadata": {"identifier": "zoo", "title": "lions"},
            "files": [],
            "server": "x",
            "dir": "/",
        },
        "GET /metadata/sea": {
            "metadata": {"identifier": "sea", "title": "bears"},
            "files": [],
            "server": "x",
            "dir": "/",
        },
    },
    "mount(client, at='https://archive.org')",
    host="archive.org",
    why="It mounts an adapter with `Retry(total=3)` at `https://archive.org`, and again for each search and upload.",
)
def archive(url: str) -> Steps:
    """Read two items."""
    from internetarchive import get_session

    client = get_session({"cookies": {}}, "/nowhere")
    yield client
    yield url, [client.get_item(name).metadata["title"] for name in ("zoo", "sea")]
