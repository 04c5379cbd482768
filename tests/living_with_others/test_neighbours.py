"""Libraries that change sockets, clocks, TLS or HTTP for a whole process: retries work beside them (contract 11.2).

Each test is a program of its own. `tox -e neighbours` installs the libraries; without one its test is skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import CloseAfterRequest, FaultProxy, FaultServer, Reply
from tests.faults.oracle import tls_contexts
from tests.support import python

pytestmark = [pytest.mark.real_time, pytest.mark.once, pytest.mark.untraced]

BEGIN = """\
import sys, threading, requests
from requests_smithy_retry import RetryAdapter, mount, retry_history

def session(**options):
    made = mount(requests.Session(), **{"jitter": "none", "backoff": 0.01, **options})
    made.trust_env = False
    return made
"""
GET = """\
response = session().get(URL, timeout=60)
print(response.status_code, len(retry_history(response).attempts))
"""


def told(tmp_path: Path, script: str, **names: object) -> list[str]:
    """Run a program with these names, and return the lines that it printed."""
    given = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    done = python("-c", given + script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


NEIGHBOURS = {
    "aws_xray_sdk": """
import os; os.environ["AWS_XRAY_SDK_ENABLED"] = "true"
from aws_xray_sdk.core import patch, xray_recorder
xray_recorder.configure(sampling=False, context_missing="IGNORE_ERROR")
patch(["requests", "httplib"])
""",
    "ddtrace": 'import os; os.environ["DD_TRACE_ENABLED"] = "false"\nimport ddtrace; ddtrace.patch(requests=True)\n',
    "elasticapm": "import elasticapm; elasticapm.instrument()\n",
    "eventlet": "import eventlet; eventlet.monkey_patch()\n",
    "freezegun": "from freezegun import freeze_time; freeze_time('2030-01-01').start()\n",
    "gevent": "from gevent import monkey; monkey.patch_all()\n",
    "newrelic": "import newrelic.agent; newrelic.agent.initialize()\n",
    "requests_mock": "import requests_mock\n",
    "sentry_sdk": "import sentry_sdk; sentry_sdk.init('http://k@127.0.0.1:9/1', transport=print)\n",
    "time_machine": "import time_machine; time_machine.travel('2030-01-01', tick=False).start()\n",
    "truststore": "import truststore; truststore.inject_into_ssl()\n",
}
"""How each is switched on, before requests is imported."""


@pytest.mark.parametrize("name", NEIGHBOURS)
@pytest.mark.parametrize("fault", [Reply(503), Reply(429, {"Retry-After": "1"}), CloseAfterRequest()], ids=repr)
def test_a_retry_beside_a_neighbour(name: str, fault: Reply, tmp_path: Path) -> None:
    """A fault is retried once, and the program gets the answer that follows."""
    pytest.importorskip(name)
    with FaultServer([fault]) as server:
        said = told(tmp_path, NEIGHBOURS[name] + BEGIN + GET, URL=server.url)
    assert "200 2" in said
    assert 2 == len(server.requests)


@pytest.mark.parametrize("name", ["freezegun", "time_machine"])
def test_an_outage_ends_though_time_stands_still(name: str, tmp_path: Path) -> None:
    """A wait for a service that is down is over after its patience, whatever the clocks of the process say."""
    pytest.importorskip(name)
    script = NEIGHBOURS[name] + BEGIN + "print(session(patience=0.5).get(URL, timeout=60).status_code)"
    with FaultServer(Reply(503)) as server:
        assert ["503"] == told(tmp_path, script, URL=server.url)


@pytest.mark.parametrize("name", ["eventlet", "gevent"])
def test_green_threads_wait_side_by_side(name: str, tmp_path: Path) -> None:
    """While one waits for what its server asks, the others send: all have begun before one has ended."""
    pytest.importorskip(name)
    script = """
def fetch(number):
    print("begin")
    made = session(pacing="off", quota=None).get(URL, timeout=60)
    print("end", made.status_code)
threads = [threading.Thread(target=fetch, args=(n,)) for n in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    with FaultServer([Reply(429, {"Retry-After": "1"})] * 4) as server:
        said = told(tmp_path, NEIGHBOURS[name] + BEGIN + script, URL=server.url)
    assert ["begin"] * 4 + ["end 200"] * 4 == said


def test_where_sockets_are_forbidden(tmp_path: Path) -> None:
    """Importing and mounting opens no socket, and a call ends with the plugin's own error, unretried."""
    pytest.importorskip("pytest_socket")
    script = """
import pytest_socket
pytest_socket.disable_socket()
""" + BEGIN + """
made = session()
try:
    made.get("http://127.0.0.1:9/")
except pytest_socket.SocketBlockedError as error:
    print("blocked", len(retry_history(error).attempts))
"""  # fmt: skip
    assert ["blocked 1"] == told(tmp_path, script)


MIXED = {
    "before": "class Mixed(requests_mock.Adapter, RetryAdapter): pass",
    "behind": "class Mixed(RetryAdapter, requests_mock.Adapter): pass",
    "beside HTTPAdapter": "class Mixed(requests_mock.Adapter, requests.adapters.HTTPAdapter): pass\ninstall()",
}


@pytest.mark.parametrize("how", MIXED)
def test_a_class_with_a_mock_reaches_no_network(how: str, tmp_path: Path) -> None:
    """What is mounted as a mock answers from the mock, mixed with ours by its author or by `install`."""
    pytest.importorskip("requests_mock")
    script = "import requests_mock\n" + BEGIN + f"from requests_smithy_retry import install\n{MIXED[how]}" + """
made, adapter = requests.Session(), Mixed()
adapter.register_uri("GET", URL, [{"status_code": 503}, {"text": "mocked"}])
made.mount("http://", adapter)
print([made.get(URL).text, made.get(URL).text][-1])
"""  # fmt: skip
    with FaultServer() as server:
        said = told(tmp_path, script, URL=server.url)
        assert [] == server.requests
    assert ["mocked"] == said


@pytest.mark.parametrize("name", ["httpretty", "pook", "requests_mock"])
def test_mocks_of_the_process(name: str, tmp_path: Path) -> None:
    """A mock that is switched on for the process answers, and the network is not reached."""
    pytest.importorskip(name)
    script = (
        BEGIN
        + {
            "httpretty": """
import httpretty
httpretty.enable()
httpretty.register_uri("GET", URL, responses=[httpretty.Response("", status=503), httpretty.Response("mocked")])
print(session().get(URL).text)
""",
            "pook": """
import pook
pook.on(); pook.get(URL).times(1).reply(503); pook.get(URL).times(1).reply(200).body("mocked")
print(session().get(URL).text)
""",
            "requests_mock": """
import requests_mock
with requests_mock.Mocker() as mock:
    mock.get(URL, text="mocked")
    print(session().get(URL).text)
""",
        }[name]
    )
    assert ["mocked"] == told(tmp_path, script, URL="http://nowhere.invalid/x")


def test_a_socks_proxy_for_the_whole_process(tmp_path: Path) -> None:
    """Where `socket.socket` is that of PySocks, each attempt goes by the proxy."""
    pytest.importorskip("socks")
    script = """
import socket, socks
socks.set_default_proxy(socks.HTTP, "127.0.0.1", PORT)
socket.socket = socks.socksocket
""" + BEGIN + GET  # fmt: skip
    with FaultServer([Reply(503)]) as server, FaultProxy() as proxy:
        assert ["200 2"] == told(tmp_path, script, URL=server.url, PORT=proxy.port)
        assert 2 == proxy.tunnels


TRACED = {
    "aws_xray_sdk": """
def spans(call):
    segment = xray_recorder.begin_segment("all")
    call()
    xray_recorder.clear_trace_entities()
    return [part.name for part in segment.subsegments]
""",
    "elasticapm": """
client = elasticapm.Client(service_name="s", disable_send=True, central_config=False, cloud_provider=False)
def spans(call):
    queued = []
    client.tracer.queue_func = lambda kind, data, **_: queued.append(data["name"])
    client.begin_transaction("t")
    call()
    client.end_transaction("t")
    return queued
""",
    "sentry_sdk": """
ended = []
sentry_sdk.init("http://k@127.0.0.1:9/1", traces_sample_rate=1.0, before_send_transaction=lambda e, _: ended.append(e))
def spans(call):
    with sentry_sdk.start_transaction(name="t"):
        call()
    return [span["description"] for span in ended.pop()["spans"]]
""",
}


@pytest.mark.parametrize("name", TRACED)
def test_a_trace_is_that_of_urllib3s_retries(name: str, tmp_path: Path) -> None:
    """Of two attempts, a tracer shows what it shows where urllib3 makes the retry."""
    pytest.importorskip(name)
    script = """
import os, urllib3
plain = requests.Session()
plain.trust_env = False
plain.mount("http://", requests.adapters.HTTPAdapter(max_retries=urllib3.Retry(3, status_forcelist=[503])))
seen = [spans(lambda: made.get(URL, timeout=60)) for made in (plain, session())]
print(seen[0] == seen[1], len(seen[0]) > 0, flush=True)
os._exit(0)
"""
    with FaultServer([Reply(503), Reply(200), Reply(503)]) as server:
        assert "True True" in told(tmp_path, NEIGHBOURS[name] + BEGIN + TRACED[name] + script, URL=server.url)
        assert 4 == len(server.requests)


@pytest.mark.parametrize("verify", [True, False])
def test_truststore_judges_certificates(verify: bool, tmp_path: Path) -> None:
    """An untrusted certificate is an error at once; without verification a fault is retried."""
    pytest.importorskip("truststore")
    pytest.importorskip("trustme")
    script = NEIGHBOURS["truststore"] + BEGIN + """
import warnings; warnings.simplefilter("ignore")
try:
    response = session().get(URL, timeout=60, verify=VERIFY)
    print(response.status_code, len(retry_history(response).attempts))
except requests.exceptions.SSLError as error:
    print("SSLError", len(retry_history(error).attempts))
"""  # fmt: skip
    with FaultServer([Reply(503)], tls=tls_contexts()[0]) as server:
        assert [["200 2"], ["SSLError 1"]][verify] == told(tmp_path, script, URL=server.url, VERIFY=verify)
