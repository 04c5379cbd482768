"""Rows: databases, data, models, measurements."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from requests_smithy_retry.testing import Reply

from .row import LIMIT, sdk

Steps = Generator[Any, None, None]


@sdk(
    "zeep",
    {
        "GET /zoo.wsdl": """<?xml version="1.0"?>
<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"
 xmlns:x="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:zoo" targetNamespace="urn:zoo">
 <types><x:schema targetNamespace="urn:zoo" elementFormDefault="qualified">
  <x:element name="Ask" type="x:string"/><x:element name="Told" type="x:string"/></x:schema></types>
 <message name="In"><part name="p" element="t:Ask"/></message>
 <message name="Out"><part name="p" element="t:Told"/></message>
 <portType name="P"><operation name="Ask"><input message="t:In"/><output message="t:Out"/></operation></portType>
 <binding name="B" type="t:P"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/>
  <operation name="Ask"><soap:operation soapAction="Ask"/><input><soap:body use="literal"/></input>
  <output><soap:body use="literal"/></output></operation></binding>
 <service name="S"><port name="P" binding="t:B"><soap:address location="URL/soap"/></port></service>
</definitions>""",
        "POST /soap": '<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>'
        '<t:Told xmlns:t="urn:zoo">Leo</t:Told></e:Body></e:Envelope>',
    },
    "mount(client.session)",
)
def zeep(url: str) -> Steps:
    """Read a description of a service; call it."""
    import zeep

    client = zeep.Transport(timeout=LIMIT, operation_timeout=LIMIT)
    yield client
    yield zeep.Client(f"{url}/zoo.wsdl", transport=client).service.Ask("who")


@sdk(
    "influxdb",
    {
        "GET /query": {"results": [{"series": [{"name": "lions", "columns": ["value"], "values": [[3]]}]}]},
        "POST /write": Reply(204),
    },
    "mount(client._session)",
    why="It mounts an adapter of its own without retries, for socket options; it retries in a loop of its own.",
)
def influx(url: str) -> Steps:
    """Query; write a point."""
    from influxdb import InfluxDBClient

    host, port = url.split("//")[1].split(":")
    client = InfluxDBClient(host, int(port), database="zoo", ssl=True, verify_ssl=True, timeout=LIMIT)
    yield client
    points = list(client.query("select value from lions").get_points())
    yield points, client.write_points([{"measurement": "lions", "fields": {"value": 4}}])


@sdk(
    "opensearch-py",
    {
        "GET /zoo/_doc/1": {"_id": "1", "found": True, "_source": {"name": "Leo"}},
        "POST /zoo/_search": {"hits": {"hits": [{"_id": "1"}]}},
        "PUT /zoo/_doc/2": {"_id": "2", "result": "created"},
    },
    "mount(client.transport.get_connection().session)",
    why="It mounts an adapter for the size of the pool; it retries in a loop of its own.",
)
def opensearch(url: str) -> Steps:
    """Read, search, write; through requests, as for AWS."""
    from opensearchpy import OpenSearch, RequestsHttpConnection

    client = OpenSearch(
        [url], connection_class=RequestsHttpConnection, timeout=LIMIT, verify_certs=True, ca_certs=_bundle()
    )
    yield client
    read = client.get(index="zoo", id="1")["_source"]["name"]
    hits = len(client.search(index="zoo", body={})["hits"]["hits"])
    yield read, hits, client.index(index="zoo", id="2", body={"name": "Bruno"})["result"]


def _bundle() -> str:
    import os

    return os.environ["REQUESTS_CA_BUNDLE"]


@sdk(
    "trino",
    {
        "POST /v1/statement": {
            "id": "q",
            "infoUri": "URL/q",
            "nextUri": "URL/v1/statement/q/1",
            "stats": {"state": "QUEUED"},
        },
        "GET /v1/statement/q/1": {
            "id": "q",
            "infoUri": "URL/q",
            "columns": [{"name": "n", "type": "bigint", "typeSignature": {"rawType": "bigint", "arguments": []}}],
            "data": [[3]],
            "stats": {"state": "FINISHED"},
        },
    },
    "mount(client._http_session)",
)
def trino(url: str) -> Steps:
    """Run a query."""
    from trino.dbapi import connect

    host, port = url.split("//")[1].split(":")
    client = connect(host=host, port=int(port), user="leo", http_scheme="https", request_timeout=LIMIT)
    yield client
    cursor = client.cursor()
    cursor.execute("select 3")
    yield cursor.fetchall()


@sdk(
    "pysolr",
    {
        "GET /zoo/select/": {"response": {"docs": [{"id": "1"}], "numFound": 1}},
        "POST /zoo/update/": {"responseHeader": {}},
    },
    "mount(client.get_session())",
)
def solr(url: str) -> Steps:
    """Search; add."""
    from pysolr import Solr

    client = Solr(f"{url}/zoo", timeout=LIMIT, decoder=None)
    yield client
    found = [each["id"] for each in client.search("lions")]
    yield found, bool(client.add([{"id": "2"}]))


@sdk(
    "meilisearch",
    {
        "GET /indexes/zoo/documents/1": {"id": 1, "name": "Leo"},
        "POST /indexes/zoo/documents": {
            "taskUid": 1,
            "indexUid": "zoo",
            "status": "enqueued",
            "type": "documentAdditionOrUpdate",
            "enqueuedAt": "2026-11-22T12:00:00.0Z",
        },
    },
    "",
)
def meilisearch(url: str) -> Steps:
    """Read a document; add one."""
    from meilisearch import Client

    client = Client(url, "secret", timeout=LIMIT)
    yield client
    index = client.index("zoo")
    yield index.get_document(1).name, index.add_documents([{"id": 2}]).task_uid


@sdk(
    "hdfs",
    {
        "GET /webhdfs/v1/lions": {"FileStatus": {"type": "FILE", "length": 3}},
        "PUT /webhdfs/v1/zoo": {"boolean": True},
    },
    "mount(client._session)",
)
def hdfs(url: str) -> Steps:
    """Ask for a file's status; make a folder."""
    from hdfs import InsecureClient

    client = InsecureClient(url, user="leo", timeout=LIMIT)
    yield client
    length = client.status("/lions")["length"]
    client.makedirs("/zoo")
    yield length


@sdk(
    "pystac-client",
    {
        "GET /": {
            "type": "Catalog",
            "id": "zoo",
            "stac_version": "1.0.0",
            "description": "x",
            "conformsTo": ["https://api.stacspec.org/v1.0.0/core", "https://api.stacspec.org/v1.0.0/item-search"],
            "links": [{"rel": "search", "href": "URL/search", "method": "GET", "type": "application/geo+json"}],
        },
        "GET /search": {"type": "FeatureCollection", "features": [], "links": []},
    },
    "mount(client.session)",
    why="It mounts adapters with `Retry(5)`.",
)
def pystac(url: str) -> Steps:
    """Open a catalogue; search."""
    from pystac_client import Client
    from pystac_client.stac_api_io import StacApiIO

    client = StacApiIO(timeout=LIMIT / 2)
    yield client
    catalogue = Client.open(f"{url}/", stac_io=client)
    yield catalogue.id, len(list(catalogue.search(method="GET").items()))


@sdk(
    "huggingface-hub",
    {
        "GET /api/models/o/zoo": {"_id": "1", "id": "o/zoo", "modelId": "o/zoo", "sha": "a" * 40},
        "POST /api/repos/create": {"url": "URL/o/sea"},
    },
    "from huggingface_hub import configure_http_backend\nconfigure_http_backend(lambda: mount(requests.Session()))",
    why="It mounts an adapter of its own, which numbers requests; without retries.",
)
def huggingface(url: str) -> Steps:
    """Read a model's facts; make a repository."""
    from huggingface_hub import HfApi

    client = HfApi(url, token="secret")
    yield client
    yield client.model_info("o/zoo", timeout=LIMIT).sha, client.create_repo("o/sea").repo_id


@sdk(
    "langsmith",
    {
        "GET /sessions*": {
            "id": "7a1b6c1e-0000-4000-8000-000000000001",
            "name": "zoo",
            "start_time": "2026-11-22T12:00:00",
            "tenant_id": "7a1b6c1e-0000-4000-8000-000000000002",
            "reference_dataset_id": None,
        },
        "POST /datasets": {
            "id": "7a1b6c1e-0000-4000-8000-000000000003",
            "name": "lions",
            "created_at": "2026-11-22T12:00:00",
            "data_type": "kv",
        },
    },
    "mount(client.session)",
    why="It mounts an adapter of its own with a `Retry` for every method, and retries in a loop, too.",
)
def langsmith(url: str) -> Steps:
    """Read a project; make a data set."""
    from langsmith import Client

    client = Client(url, api_key="secret", timeout_ms=LIMIT * 1000, auto_batch_tracing=False, info={})
    yield client
    name = client.read_project(project_id="7a1b6c1e-0000-4000-8000-000000000001").name
    yield name, client.create_dataset("lions").name


@sdk(
    "web3",
    {
        "POST /": lambda request: {
            "jsonrpc": "2.0",
            "id": __import__("json").loads(request.body)["id"],
            "result": "0x10" if b"blockNumber" in request.body else "0x1",
        }
    },
    "client['session'] = mount(requests.Session(), allowed_methods=None)",
    shown="HTTPProvider(..., session=mount(requests.Session(), allowed_methods=None))",
)
def web3(url: str) -> Steps:
    """Ask a node for its last block and its chain."""
    from web3 import HTTPProvider, Web3

    options: dict[str, Any] = {}
    yield options
    client = Web3(HTTPProvider(url, request_kwargs={"timeout": LIMIT}, **options))
    yield client.eth.block_number, client.eth.chain_id


@sdk(
    "posthog",
    {
        "POST /batch/": {"status": 1},
        "POST /flags/": {"flags": {}, "featureFlags": {"lions": True}, "featureFlagPayloads": {}},
    },
    "from posthog import request\nmount(request._session)",
    why="It mounts an adapter of its own with `Retry(2)` when it is imported.",
)
def posthog(url: str) -> Steps:
    """Send an event."""
    from posthog.request import batch_post

    yield None
    yield batch_post("key", url, timeout=LIMIT, batch=[{"event": "a lion is out"}]).status_code


@sdk(
    "datadog",
    {"GET /api/v1/monitor/1": {"id": 1, "name": "lions"}, "POST /api/v1/events": {"status": "ok"}},
    "from datadog.api.http_client import RequestClient\nRequestClient._session = mount(requests.Session())",
    why="It mounts an adapter with `Retry(3)` on `https://`.",
)
def datadog(url: str) -> Steps:
    """Read a monitor; send an event."""
    import datadog

    datadog.initialize("key", "secret", api_host=url, hostname_from_config=False, mute=False)
    datadog.api._timeout = LIMIT
    yield datadog
    yield datadog.api.Monitor.get(1)["name"], datadog.api.Event.create(title="x", text="y")["status"]


@sdk(
    "mixpanel",
    {"POST /track": {"status": 1, "error": ""}},
    "mount(client._consumer._session)",
    host="api.mixpanel.com",
    why="It mounts an adapter with `Retry(4)`, for POST only.",
)
def mixpanel(url: str) -> Steps:
    """Send an event."""
    from mixpanel import Consumer, Mixpanel

    client = Mixpanel("token", Consumer(request_timeout=LIMIT))
    yield client
    yield client.track("leo", "a lion is out"), url


@sdk(
    "arxiv",
    {
        "GET /api/query": '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom" '
        'xmlns:o="http://a9.com/-/spec/opensearch/1.1/"><o:totalResults>1</o:totalResults><entry>'
        "<id>http://arxiv.org/abs/1v1</id><title>Lions</title><published>2026-11-22T12:00:00Z</published>"
        "<updated>2026-11-22T12:00:00Z</updated><summary>x</summary></entry></feed>"
    },
    "mount(client._session)",
    host="export.arxiv.org",
)
def arxiv(url: str) -> Steps:
    """Search."""
    import arxiv

    client = arxiv.Client(delay_seconds=0)
    yield client
    yield url, [each.title for each in client.results(arxiv.Search("lions", max_results=1))]


@sdk(
    "geopy",
    {"GET /search": [{"lat": "1", "lon": "2", "display_name": "zoo"}]},
    "from geopy.adapters import RequestsHTTPWithSSLContextAdapter as Theirs\n"
    "import ssl\n"
    "kind = type('Retrying', (Theirs, RetryAdapter), {})\n"
    "client.adapter.session.mount('https://', kind(ssl_context=ssl.create_default_context()))",
    why="It mounts an adapter of its own for TLS, with `Retry(2)`.",
)
def geopy(url: str) -> Steps:
    """Find a place; through requests."""
    from geopy.adapters import RequestsAdapter
    from geopy.geocoders import Nominatim

    client = Nominatim(domain=url.split("//")[1], user_agent="zoo", timeout=LIMIT, adapter_factory=RequestsAdapter)
    yield client
    yield client.geocode("zoo").latitude


@sdk(
    "mwclient",
    {
        "GET /w/api.php": {
            "query": {
                "general": {"generator": "MediaWiki 1.40", "case": "first-letter"},
                "namespaces": {"0": {"id": 0, "*": "", "canonical": ""}},
                "userinfo": {"name": "leo", "groups": [], "rights": ["read"]},
                "pages": {
                    "1": {
                        "pageid": 1,
                        "ns": 0,
                        "title": "Lions",
                        "lastrevid": 1,
                        "length": 3,
                        "touched": "2026-11-22T12:00:00Z",
                        "revisions": [
                            {"slots": {"main": {"*": "roar"}}, "*": "roar", "timestamp": "2026-11-22T12:00:00Z"}
                        ],
                    }
                },
            }
        },
    },
    "client['pool'] = mount(requests.Session())",
    shown="mwclient.Site(..., pool=mount(requests.Session()))",
)
def mwclient(url: str) -> Steps:
    """Open a wiki; read a page."""
    import mwclient

    options: dict[str, Any] = {}
    yield options
    client = mwclient.Site(
        url.split("//")[1], max_retries=2, retry_timeout=0, connection_options={"timeout": LIMIT}, **options
    )
    yield client.pages["Lions"].text()
