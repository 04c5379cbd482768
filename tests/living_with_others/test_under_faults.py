"""``pytest --under-faults``: a suite's tests run again with faults, and the report names what a reviewer would."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry.testing.under_faults import plugin
from requests_smithy_retry.testing.under_faults.runs import SEND_FAULTS, Finding

pytest_plugins = ["pytester"]

CLIENT = """
import time
import requests

class Client:
    def __init__(self, session=None, url="https://api.example.com/things", timeout=5):
        self.session, self.url, self.timeout = session or requests.Session(), url, timeout
    def get(self):
        return self.session.get(self.url, timeout=self.timeout).json()
    def text(self):
        return self.session.get(self.url, timeout=self.timeout).text
    def quiet(self):
        try:
            return self.get()
        except Exception:
            return None
    def order(self):
        for _ in range(3):
            try:
                answer = self.session.post(self.url, json={"a": 1}, timeout=self.timeout)
                if answer.ok:
                    return answer.json()
            except requests.RequestException:
                pass
        raise RuntimeError("not ordered")
    def wait(self):
        while True:
            try:
                return self.get()
            except requests.RequestException:
                time.sleep(10)
    def insist(self):
        while True:
            answer = self.session.put(self.url, data="{}", timeout=self.timeout)
            if answer.ok:
                return answer.json()
"""
TESTS = """
import pytest
import requests
import responses
from client import Client
from requests_smithy_retry import mount

URL = "https://api.example.com/things"

@pytest.fixture(autouse=True)
def service():
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        for method in "GET", "POST", "PUT":
            mock.add(method, URL, json={"name": "one two three"})
        yield

"""


def suite(pytester: pytest.Pytester, *tests: str) -> None:
    pytester.makepyfile(client=CLIENT, test_client=TESTS + "\n".join(tests))


def review(pytester: pytest.Pytester, *options: str) -> list[str]:
    """Run the suite under faults, and return the lines of the report."""
    run = pytester.runpytest_inprocess("--under-faults", "-p", "no:cacheprovider", "-p", "no:xdist", *options)
    assert run.ret == 0, run.stdout.str()
    lines = run.outlines
    start = next(at for at, line in enumerate(lines) if "= under faults =" in line)
    return [line for line in lines[start + 1 :] if line and " passed" not in line]


def test_a_careful_client_gives_nothing_to_report(pytester: pytest.Pytester) -> None:
    """With the adapter mounted, a read rides out what can be ridden out, and the rest is raised."""
    suite(
        pytester,
        'def test_get():\n    assert Client(mount(requests.Session())).get() == {"name": "one two three"}\n',
        "def test_nothing_is_sent():\n    pass\n",
        '@pytest.mark.xfail\ndef test_that_fails():\n    assert Client().get() == "two"\n',
    )
    assert [
        (
            "1 tests ran 11 times more, each time with a fault (seed 0); "
            "1 sent nothing through an adapter, 1 did not pass by themselves"
        ),
        "nothing to report",
    ] == review(pytester)


def test_the_report_names_each_fault_of_a_client_once(pytester: pytest.Pytester) -> None:
    """Errors swallowed, requests sent twice, parts taken for the whole, no bound and no time-out: one place each."""
    suite(
        pytester,
        "def test_quiet():\n    Client().quiet()\n",
        'def test_quiet_and_noticed():\n    assert Client().quiet() == {"name": "one two three"}\n',
        'def test_quiet_and_tripped():\n    assert Client().quiet()["name"]\n',
        "def test_did_not_raise():\n"
        "    with pytest.raises(ValueError):\n"
        "        if Client().quiet():\n"
        "            raise ValueError\n",
        "def test_text():\n    assert Client().text()\n",
        "def test_order():\n    assert Client().order()\n",
        "def test_wait():\n    assert Client().wait()\n",
        "def test_insist():\n    assert Client().insist()\n",
        "def test_no_time_out():\n    assert Client(timeout=None).get()\n",
    )
    lines = review(pytester)
    headings = [line.partition(":")[0] for line in lines[1:] if not line.startswith(" ")]
    assert ["error swallowed", "hang", "no bound", "sent twice", "wrong data accepted"] == headings
    places = {line.strip() for line in lines if line.startswith("  client:")}
    assert {
        "client:8 in get: 4 tests, 1 of which pass all the same",
        "client:8 in get: 1 tests, 0 of which pass all the same",
        "client:19 in order: 1 tests, 1 of which pass all the same",
        "client:10 in text: 1 tests, 1 of which pass all the same",
    } <= places
    assert any(line.startswith("client:33 in insist: 1 tests") for line in places)


def test_mounting_leaves_what_nobody_can_ride_out(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that swallows everything loses its answer to each fault; with the adapter, to the lasting ones."""
    found: dict[str, set[str]] = {}
    report = plugin.report

    def kept(findings: list[Finding], *others: Any) -> Any:
        for finding in findings:
            found.setdefault(finding.test.partition("::")[2], set()).add(finding.fault)
        return report(findings, *others)

    monkeypatch.setattr(plugin, "report", kept)
    suite(
        pytester,
        "def test_plain():\n    Client().quiet()\n",
        "def test_mounted():\n    Client(mount(requests.Session())).quiet()\n",
    )
    review(pytester)
    assert {f"{fault.name}, send 1" for fault in SEND_FAULTS} == found["test_plain"]
    assert {"connection refused for good, send 1", "503 for good, send 1"} == found["test_mounted"]


def test_expected_exceptions_are_no_finding(pytester: pytest.Pytester) -> None:
    """A test that gets an exception of its client has been told, whether it expects one or catches it."""
    suite(
        pytester,
        "def test_expected():\n    with pytest.raises(ValueError):\n        Client().get()\n        raise ValueError\n",
        "def test_masked():\n"
        "    with responses.RequestsMock() as mock:\n"
        "        mock.get(URL, json={'name': 'one two three'})\n"
        "        Client().get()\n",
        "def test_caught():\n    try:\n        Client().get()\n    except requests.RequestException:\n        pass\n",
    )
    assert review(pytester)[1:] == ["nothing to report"]


def test_a_server_on_a_socket_is_a_service_too(pytester: pytest.Pytester) -> None:
    """Where nothing is mocked, the fault comes after the real answer; urllib3's own retries ride it out."""
    pytester.makepyfile(
        client=CLIENT,
        test_client="""
import requests
from client import Client
from requests.adapters import HTTPAdapter
from urllib3.util import Retry
from requests_smithy_retry.testing import Reply

def test_get(fault_server):
    fault_server.script([Reply(body=b'{"name": "one two three"}')] * 9)
    session = requests.Session()
    session.mount("http://", HTTPAdapter(max_retries=Retry(2, status_forcelist=[429, 503, 504])))
    client = Client(session, fault_server.url)
    assert client.get() == client.get()

def test_upload(fault_server, tmp_path):
    fault_server.script([Reply(body=b'{"name": "one two three"}')] * 9)
    (tmp_path / "upload").write_bytes(b"12345")
    session = requests.Session()
    session.mount("http://", HTTPAdapter(max_retries=Retry(2, status_forcelist=[429, 503, 504])))
    with open(tmp_path / "upload", "rb") as file:
        session.put(fault_server.url, data=file, timeout=5)
    assert {request.body for request in fault_server.requests} == {b"12345"}
""",
    )
    assert review(pytester)[1:] == ["nothing to report"]


def test_an_adapter_of_the_suite_is_a_service(pytester: pytest.Pytester) -> None:
    """An adapter that is not built on that of requests answers by itself; the fault comes between it and the client."""
    pytester.makepyfile(
        client=CLIENT,
        test_client="""
import requests
from client import Client
from requests.adapters import BaseAdapter

class Stand(BaseAdapter):
    def send(self, request, **options):
        response = requests.Response()
        response.status_code, response._content, response.url = 200, b"one two three", request.url
        return response
    def close(self):
        pass

class Stood(Stand):
    pass

def test_get():
    session = requests.Session()
    session.mount("https://", Stood())
    Client(session).quiet()
""",
    )
    assert review(pytester, "--under-faults-runs=2", "--under-faults-seed=3")[0].startswith("1 tests ran 2 times more")


def test_a_run_that_comes_to_no_end_is_ended(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that spins after a fault is stopped, and what is not sent again meets no fault."""
    monkeypatch.setattr(plugin, "REAL_SECONDS", 0.3)
    suite(
        pytester,
        "SENT = []\n"
        "def test_spin():\n"
        "    if not SENT:\n"
        "        SENT.append(requests.get(URL, timeout=5))\n"
        "def test_spins():\n"
        "    while not Client().quiet():\n"
        "        while True:\n"
        "            pass\n",
    )
    assert "hang: the test came to no end" in review(pytester, "--under-faults-runs=1")


def test_the_same_seed_chooses_the_same_faults() -> None:
    """The choice depends on the seed and the test alone, and tries each fault once before any comes again."""
    from requests_smithy_retry.testing.under_faults.runs import Run, Sent

    plain = Run()
    plain.sends = [Sent("GET", "http://a/", False, "client:1", False) for _ in range(3)]
    plans = plugin.UnderFaults(20, 1)._plans("test", plain)
    assert plans == plugin.UnderFaults(20, 1)._plans("test", plain)
    assert plans != plugin.UnderFaults(20, 2)._plans("test", plain)
    names = [fault.name for _, fault in plans]
    assert len(set(names[:8])) == 8 == len(set(names))


def test_findings_of_workers_reach_the_report() -> None:
    """A worker of pytest-xdist hands on what it found, and the controller takes it over."""
    from types import SimpleNamespace
    from typing import cast

    worker, controller = plugin.UnderFaults(1, 0), plugin.UnderFaults(1, 0)
    worker.findings.append(Finding("hang", "client:1", "test", "503"))
    worker.counts["reviewed"] += 2
    node: Any = SimpleNamespace(workeroutput={})
    worker.pytest_sessionfinish(cast(pytest.Session, SimpleNamespace(config=node)))
    controller.pytest_sessionfinish(cast(pytest.Session, SimpleNamespace(config=SimpleNamespace())))
    controller.pytest_testnodedown(node)
    controller.pytest_testnodedown(SimpleNamespace())
    assert worker.findings == controller.findings
    assert worker.counts == controller.counts
