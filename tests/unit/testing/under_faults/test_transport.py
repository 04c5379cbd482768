"""The way of a send under faults: to its service, or over the virtual wire; and the verdict about it."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
import requests
from requests import PreparedRequest
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.util import Retry

from requests_smithy_retry import RetryAdapter
from requests_smithy_retry.testing import FaultServer
from requests_smithy_retry.testing.under_faults.plugin import _catches
from requests_smithy_retry.testing.under_faults.runs import (
    SEND_FAULTS,
    SWALLOWED,
    TWICE,
    WRONG_DATA,
    Run,
    SendFault,
    judge,
)
from requests_smithy_retry.testing.under_faults.transport import Detour, watched_sends
from requests_smithy_retry.testing.under_faults.virtual_wire import ENDLESS, NO_BOUND, STUCK, RunEnded

FAULTS = {fault.name: fault for fault in SEND_FAULTS}


@pytest.fixture
def detour(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delitem(sys.modules, "responses", raising=False)
    detour = Detour()
    detour.install()
    detour.install()
    yield
    detour.remove()


def test_sends_outside_of_a_run_pass(detour: None, fault_server: FaultServer) -> None:
    """Until a run is under way, a send goes its way and is not counted."""
    assert requests.get(fault_server.url, timeout=10).ok
    assert len(fault_server.requests) == 1


def test_the_detour_is_removed() -> None:
    """Afterwards the adapter of requests is the one of before."""
    before = HTTPAdapter.send
    detour = Detour()
    detour.install()
    assert HTTPAdapter.send is not before
    detour.remove()
    assert HTTPAdapter.send is before


def test_a_send_of_a_thread_has_no_place_in_the_client(detour: None, fault_server: FaultServer) -> None:
    """Where no frame of the client is below the send, the report says so."""
    run = Run()
    session = requests.Session()
    request = requests.Request("GET", fault_server.url).prepare()
    with watched_sends(run):
        thread = threading.Thread(target=session.send, args=(request,), kwargs={"timeout": 10})
        thread.start()
        thread.join()
    assert [sent.where for sent in run.sends] == ["a thread"]


def test_an_error_names_the_clients_own_request(detour: None) -> None:
    """A request to an address of https meets the fault without TLS, and its error shows the address as it was."""
    run = Run(FAULTS["connection refused"])
    with watched_sends(run), pytest.raises(requests.ConnectionError) as caught:
        requests.get("https://api.example.com/", timeout=10)
    assert caught.value.request.url == "https://api.example.com/"  # type: ignore[union-attr]


def test_an_adapter_with_a_way_of_its_own_meets_no_fault(detour: None, fault_server: FaultServer) -> None:
    """Where no connection of urllib3 is made, nothing was struck, and there is no verdict."""

    class Elsewhere(HTTPAdapter):
        def get_connection_with_tls_context(self, *_: Any, **__: Any) -> Any:
            raise requests.exceptions.InvalidURL("there is no connection")

        get_connection = get_connection_with_tls_context

    run, session = Run(FAULTS["connection refused"]), requests.Session()
    session.mount("http://", Elsewhere())
    with watched_sends(run), pytest.raises(requests.exceptions.InvalidURL):
        session.get(fault_server.url, timeout=10)
    assert judge("test", run, run) is None


class Stand(BaseAdapter):
    """Answers by itself, as the adapter of requests-mock does."""

    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> requests.Response:  # type: ignore[override]
        response = requests.Response()
        response.status_code, response._content, response.url = 200, b"well", str(request.url)
        return response

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("adapter", [RetryAdapter(), HTTPAdapter(max_retries=Retry(2, status_forcelist=[503]))])
def test_the_adapter_behind_a_stand_in_takes_part(
    detour: None, monkeypatch: pytest.MonkeyPatch, adapter: HTTPAdapter
) -> None:
    """Under a fault, the mounted adapter retries again, although a mock has taken its place."""
    run, session = Run(FAULTS["503"]), requests.Session()
    session.mount("https://", adapter)
    monkeypatch.setattr(session, "get_adapter", lambda **_: Stand())
    with watched_sends(run), run.clock.in_force():
        assert session.get("https://api.example.com/", timeout=5).content == b"well"
    assert [sent.struck for sent in run.sends] == [True, False]


def test_a_mounted_stand_in_has_nothing_behind_it(detour: None) -> None:
    """What answers is what the program mounted, or is asked without a session: it gets the fault as it is."""
    run, session = Run(FAULTS["503 for good"]), requests.Session()
    session.mount("https://", Stand())
    with watched_sends(run):
        assert session.get("https://api.example.com/", timeout=5).status_code == 503
        request = requests.Request("GET", "https://api.example.com/").prepare()
        assert Stand().send(request, timeout=5).status_code == 503


@pytest.mark.parametrize(
    ("name", "method", "sends", "changes", "expected"),
    [
        ("connection refused", "GET", 1, {}, SWALLOWED),
        ("connection refused", "GET", 1, {"has_raised": True}, None),
        ("connection refused", "GET", 2, {}, None),
        ("503", "GET", 1, {"passed": True}, SWALLOWED),
        ("503", "GET", 1, {"passed": False}, None),
        ("body cut", "GET", 1, {}, WRONG_DATA),
        ("body cut", "POST", 1, {}, None),
        ("body cut", "POST", 2, {}, TWICE),
        ("reset after the request", "PATCH", 2, {}, TWICE),
        ("reset after the request", "PUT", 2, {}, None),
        ("connection refused", "POST", 2, {}, None),
        ("503", "GET", 1, {"ending": RunEnded(ENDLESS, "")}, ENDLESS),
        ("503", "GET", 1, {"ending": RunEnded(NO_BOUND, "")}, NO_BOUND),
        ("503", "GET", 1, {"ending": RunEnded(STUCK, "")}, STUCK),
    ],
)
def test_verdicts(name: str, method: str, sends: int, changes: dict[str, Any], expected: str | None) -> None:
    """What the service did and what reached the test decide; sends after the fault are answered well."""

    def made(fault: SendFault | None, count: int) -> Run:
        run = Run(fault)
        for _ in range(count):
            sent = run.begin(requests.Request(method, "http://localhost/").prepare())
            sent.asked = sent.is_well = not sent.struck or FAULTS[name].applied
        return run

    run = made(FAULTS[name], sends)
    run.clock.ending = changes.pop("ending", None)
    for attribute, value in changes.items():
        setattr(run, attribute, value)
    found = judge("test", made(None, 1), run)
    assert expected == (found and found.what)


def test_a_key_makes_a_post_repeatable() -> None:
    """A request with an idempotency key may be sent twice."""
    runs = []
    for fault, count in ((None, 1), (FAULTS["reset after the request"], 2)):
        run = Run(fault)
        for _ in range(count):
            request = requests.Request("POST", "http://localhost/", headers={"Idempotency-Key": "1"}).prepare()
            sent = run.begin(request)
            sent.asked = sent.is_well = True
        runs.append(run)
    assert judge("test", *runs) is None


def test_only_python_functions_can_be_read() -> None:
    """A test without source is taken to catch nothing by itself."""
    assert not _catches(len)
