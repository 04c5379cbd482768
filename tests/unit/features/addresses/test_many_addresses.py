"""Names with several addresses (contract 14.5), by way of sessions: retries, kept connections, and what is recorded."""

from __future__ import annotations

import contextlib
import copy
import pickle
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import urllib3.util.connection
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import LocationParseError

from requests_smithy_retry import RetryAdapter, RetryListener, install, retry_history, uninstall
from requests_smithy_retry.features.addresses import AddressMemory, opening
from requests_smithy_retry.features.addresses.memory import Peer
from requests_smithy_retry.features.addresses.opening import AddressOpener
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.wire.pools import prepare, preparing, use_our_pools
from tests.faults import CloseAfterRequest, FaultServer, Reply, ResetAfterRequest, Stall, hanging_port, refusing_port
from tests.support import Guide
from tests.unit.wire.support import resolving, session

pytestmark = pytest.mark.real_time

NAME = "name.test:80"
URL = "http://name.test/"
A, B = "127.0.0.1", "127.0.0.2"


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[FaultServer, FaultServer]]:
    """The two servers of ``name.test``; the resolver names the first one first."""
    with FaultServer() as first, FaultServer(host=B) as second:
        resolving(monkeypatch, (A, first.port), (B, second.port))
        yield first, second


def adapter_of(made: requests.Session) -> Any:
    return made.get_adapter(URL)


def avoided(made: requests.Session) -> list[tuple[str, str, str]]:
    return [item[:3] for item in adapter_of(made).snapshot().addresses]


def counts(servers: tuple[FaultServer, FaultServer]) -> list[int]:
    return [len(server.requests) for server in servers]


def addresses(outcome: Any) -> list[str | None]:
    history = retry_history(outcome)
    assert history is not None
    return [attempt.address for attempt in history.attempts]


@pytest.mark.parametrize(
    ("fault", "why", "options"),
    [
        (Reply(503), "503", {}),
        (Reply(500), "500", {}),
        (ResetAfterRequest(), "ConnectionError", {}),
        (CloseAfterRequest(), "ConnectionError", {}),
        (Stall(), "ReadTimeout", {"timeout": 0.3}),
    ],
    ids=repr,
)
def test_a_retry_goes_to_an_address_that_was_not_tried(servers: Any, fault: Any, why: str, options: Any) -> None:
    """The address that failed is avoided from then on, and the history names both."""
    servers[0].script(lambda _: fault)
    with session(**options) as made:
        response = made.get(URL)
        assert ([A, B], [(NAME, A, why)]) == (addresses(response), avoided(made))
        assert re.search(rf"attempt 1: {why}( \(.*\))? at {A} in", retry_history(response).explain())
        adapter_of(made).poolmanager.clear()
        made.get(URL)
    assert [1, 2] == counts(servers)


@pytest.mark.parametrize(
    ("statuses", "expected", "is_single"),
    [((429, 200), [A, A], False), ((404,), [A], False), ((503, 200), [A, A], True)],
    ids=["throttling", "a fault of the request", "the only address"],
)
def test_what_is_not_held_against_an_address(servers: Any, statuses: Any, expected: Any, is_single: bool) -> None:
    """The connection is kept for a retry after throttling; the history names an only address all the same."""
    servers[0].script([Reply(status) for status in statuses])
    with session() as made:
        assert (expected, []) == (addresses(made.get(servers[0].url if is_single else URL)), avoided(made))


def test_a_kept_connection_that_breaks_is_not_held_against_its_address(servers: Any) -> None:
    """A server may close an idle connection just as the request goes out. The retry goes elsewhere all the same."""
    with session() as made:
        made.get(URL)
        servers[0].script([ResetAfterRequest()])
        assert ([A, B], []) == (addresses(made.get(URL)), avoided(made))


def test_a_kept_connection_to_an_avoided_address_is_not_used(servers: Any) -> None:
    """A kept connection to an avoided address is closed, and the request takes another address."""
    with session() as made:
        made.get(URL)
        adapter_of(made).addresses.failed(NAME, A, "reset")
        made.get(URL)
    assert ([1, 1], [1, 1]) == (counts(servers), [server.connections for server in servers])


def test_after_its_period_an_address_has_its_turn_again(servers: Any) -> None:
    """An answer below 500 clears it."""
    clock = FakeClock()
    servers[0].script([Reply(503)])
    with session(clock=clock) as made:
        found = []
        for _ in range(3):
            made.get(URL)
            found.append((counts(servers), avoided(made)))
            adapter_of(made).poolmanager.clear()
            clock.advance(31)
    bad = [(NAME, A, "503")]
    assert [([1, 1], bad), ([2, 1], []), ([3, 1], [])] == found


def test_a_probe_that_answers_badly_clears_nothing(servers: Any) -> None:
    """The address is avoided for twice as long."""
    clock = FakeClock()
    servers[0].script(lambda _: Reply(503))
    with session(clock=clock) as made:
        made.get(URL)
        adapter_of(made).poolmanager.clear()
        clock.advance(31)
        made.get(URL)
        assert [(A, 60.0)] == [(item.address, item.period) for item in adapter_of(made).snapshot().addresses]
    assert [2, 2] == counts(servers)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("options", [{}, {"operation_attempt_timeout": 20}, {"operation_timeout": 20}])
def test_a_dead_first_address_costs_no_attempt(
    monkeypatch: pytest.MonkeyPatch, servers: Any, method: str, options: Any
) -> None:
    """One that does not answer, and one that refuses: the first attempt succeeds, whatever the method."""
    with (
        hanging_port("127.0.0.3") as hanging,
        refusing_port("127.0.0.4") as refusing,
        session(max_attempts=1, **options) as made,
    ):
        resolving(monkeypatch, ("127.0.0.3", hanging), ("127.0.0.4", refusing), (B, servers[1].port))
        assert 200 == made.request(method, URL).status_code
        expected = [(NAME, "127.0.0.3", "TimeoutError"), (NAME, "127.0.0.4", "ConnectionRefusedError")]
        assert expected == sorted(avoided(made))


def test_when_no_address_answers_all_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The history names those that were tried."""
    with refusing_port() as refusing, session(max_attempts=1) as made:
        resolving(monkeypatch, (A, refusing), (B, 9))
        with pytest.raises(requests.ConnectionError) as caught:
            made.get(URL)
        assert [f"{A}, {B}"] == addresses(caught.value)
        assert [A, B] == [address for _, address, _ in avoided(made)]


def test_a_handshake_that_stalls_is_held_against_its_address(servers: Any) -> None:
    """A server that accepts, and waits for a request instead of speaking TLS, is at fault, too."""
    with session(max_attempts=2) as made, pytest.raises(requests.exceptions.RequestException) as caught:
        made.get("https://name.test/", timeout=0.3)
    assert [A, B] == addresses(caught.value)


def test_with_a_proxy_it_is_the_proxys_addresses(servers: Any) -> None:
    """With a proxy, only the proxy's own addresses are known here."""
    servers[0].script([Reply(503)])
    with session() as made:
        response = made.get("http://elsewhere.test/", proxies={"http": "http://name.test:8080"})
        assert ([A, B], [("name.test:8080", A, "503")]) == (addresses(response), avoided(made))


class Listener(RetryListener):
    """Writes down where attempts went."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def after_attempt(self, event: Any, /) -> None:
        self.heard.append((event.address, event.record.address))


def test_a_listener_sees_the_address_of_each_attempt(servers: Any) -> None:
    """On a new connection and on a kept one; the history's dict has the addresses, too."""
    servers[0].script([Reply(503)])
    listener = Listener()
    with session(listeners=[listener]) as made:
        history = retry_history(made.get(URL))
        made.get(URL)
    assert [(A, A), (B, B), (B, B)] == listener.heard
    assert history is not None
    assert [A, B] == [row["address"] for row in history.to_dict()["attempts"]]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_has_a_memory_of_its_own(again: Any) -> None:
    """A copy's memory of addresses begins without failures, and its pools use it."""
    adapter = RetryAdapter()
    adapter.addresses.failed(NAME, A, "reset")
    other = again(adapter)
    pool = other.poolmanager.connection_from_url(URL)
    assert ((), other.addresses) == (other.addresses.snapshot(), pool.addresses)
    assert adapter.addresses is not other.addresses


def test_the_sessions_of_an_installation_share_one_memory(servers: Any) -> None:
    """``requests.get`` makes a session for each call, and would know nothing."""
    servers[0].script(lambda _: Reply(503))
    install(backoff=0, quota=None)
    try:
        for _ in range(2):
            assert 200 == requests.get(URL).status_code
    finally:
        uninstall()
    assert [1, 2] == counts(servers)


def test_a_snapshot_shows_the_strategy_as_well() -> None:
    """The snapshot has the strategy's own, if the strategy gives one."""
    adapter = RetryAdapter()
    assert adapter.strategy.snapshot() == adapter.snapshot().strategy
    assert RetryAdapter(strategy=Guide()).snapshot() == (None, ())


def test_while_retries_are_off_urllib3_connects(monkeypatch: pytest.MonkeyPatch, servers: Any) -> None:
    """With retries off the adapter is a plain one, and urllib3 connects."""
    monkeypatch.setattr(opening, "Race", None)
    servers[1].script([Reply(503)])
    resolving(monkeypatch, (B, servers[1].port), (A, servers[0].port))
    with session(enabled=False) as made:
        assert (503, []) == (made.get(URL).status_code, avoided(made))


@pytest.mark.parametrize("options", [{}, {"operation_timeout": 60}], ids=str)
def test_somebody_elses_way_to_connect_is_used(monkeypatch: pytest.MonkeyPatch, servers: Any, options: Any) -> None:
    """A patched ``create_connection`` gets the name, and the address that it used is not known."""
    real, asked = urllib3.util.connection.create_connection, []

    def own(address: Any, *rest: Any, **more: Any) -> Any:
        asked.append(address)
        return real((B, servers[1].port), *rest, **more)

    monkeypatch.setattr(urllib3.util.connection, "create_connection", own)
    servers[1].script([Reply(503)])
    with session(**options) as made:
        assert ([None, None], []) == (addresses(made.get(URL)), avoided(made))
    assert [("name.test", 80)] * 2 == asked


PATCHED = """
import functools, sys, urllib3.connection, urllib3.util.connection

holder = {"create_connection": urllib3.util.connection, "_new_conn": urllib3.connection.HTTPConnection}[sys.argv[1]]
real, called = getattr(holder, sys.argv[1]), []

@functools.wraps(real)
def own(*arguments, **named):
    called.append(sys.argv[1])
    return real(*arguments, **named)

setattr(holder, sys.argv[1], own)

import requests
from requests_smithy_retry import mount
from requests_smithy_retry.testing import FaultServer, Reply

with FaultServer([Reply(200)]) as server:
    mount(requests.Session()).get(server.url)
print(*called)
"""


@pytest.mark.parametrize("name", ["create_connection", "_new_conn"])
def test_what_was_patched_before_the_library_was_imported_is_used(name: str) -> None:
    """A program's function in the place of urllib3's is called, even one that bears all of its names."""
    done = subprocess.run([sys.executable, "-c", PATCHED, name], capture_output=True, text=True, timeout=60, check=True)
    assert name == done.stdout.strip()


UNRESOLVABLE: dict[str, list[Any]] = {
    "error": [OSError("no resolver")],
    "gaierror": [socket.gaierror(-2, "Name or service not known")],
    "empty": [],
}
"""What the resolver answers: an exception, which it raises, or the addresses that it found."""


def resolver(answer: list[Any]) -> Any:
    def resolve(*_: Any, **__: Any) -> list[Any]:
        for error in answer:
            raise error
        return answer

    return resolve


@pytest.mark.parametrize("kind", [*UNRESOLVABLE, "label", "family", "refused", "silent"])
@pytest.mark.parametrize("options", [{}, {"operation_timeout": 20}])
def test_failures_to_connect_are_those_of_urllib3(monkeypatch: pytest.MonkeyPatch, kind: str, options: Any) -> None:
    """A failure to connect has urllib3's exception types, causes included, and its texts."""
    with contextlib.ExitStack() as stack:
        url = {"label": f"http://{'a' * 70}.test/", "family": "http://[::1]:9/"}.get(kind, URL)
        if kind in UNRESOLVABLE:
            monkeypatch.setattr(socket, "getaddrinfo", resolver(UNRESOLVABLE[kind]))
        elif kind == "family":
            monkeypatch.setattr(urllib3.util.connection, "allowed_gai_family", lambda: socket.AF_INET)
        elif kind != "label":
            url = f"http://{A}:{stack.enter_context(refusing_port() if kind == 'refused' else hanging_port())}/"
        told = []
        for adapter in (HTTPAdapter(), RetryAdapter(max_attempts=1, **options)):
            made = stack.enter_context(requests.Session())
            made.mount("http://", adapter)
            with pytest.raises((requests.RequestException, LocationParseError)) as caught:
                made.get(url, timeout=0.25)
            told.append((types(caught.value), re.sub(r"0x[0-9a-f]+|connect timeout=[\d.]+", "", str(caught.value))))
    assert told[0] == told[1]


def types(error: Any) -> list[type]:
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return [type(error), *(type(item) for item in error.args), type(reason)]


class KeptConnection:
    """A connection that a pool keeps, to an address that is avoided."""

    def __init__(self, auto_open: int) -> None:
        memory = AddressMemory(FakeClock())
        memory.failed(NAME, A, "reset")
        self.auto_open, self.closed, self.is_connected, self.sock = auto_open, False, True, None
        self.connect = SimpleNamespace(peer=Peer(memory, NAME, A, (A, B), 0.0))

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("auto_open", "expected"), [(1, "kept"), (0, "new")])
def test_a_tunnel_that_cannot_open_itself_is_replaced(
    monkeypatch: pytest.MonkeyPatch, auto_open: int, expected: str
) -> None:
    """As urllib3 1.26 does with one that was dropped."""
    kept = KeptConnection(auto_open)
    with preparing(HTTPConnectionPool)(NAME) as pool:
        monkeypatch.setattr(type(pool), "_new_conn", lambda _: "new")
        pool.pool.get()
        pool.pool.put(kept)
        given: Any = pool._get_conn()
        assert (True, expected) == (kept.closed, "kept" if given is kept else given)
        kept.close()


def test_a_pool_of_somebody_elses_is_left_alone() -> None:
    """A manager may make pools of another kind."""

    class Manager:
        connection_pool_kw: Any = {}
        pool_classes_by_scheme: Any = {}

        def _new_pool(self, scheme: str) -> str:
            return f"a pool for {scheme}"

    manager: Any = Manager()
    use_our_pools(manager, AddressMemory(FakeClock()))
    assert "a pool for http" == manager._new_pool("http")


def test_a_connection_without_a_timeout_has_the_default() -> None:
    """That of the ``socket`` module, whose mark urllib3 1.26 leaves to the connection."""
    default: Any = socket._GLOBAL_DEFAULT_TIMEOUT  # type: ignore[attr-defined]
    with FaultServer() as server, contextlib.closing(HTTPConnection(A, server.port)) as connection:
        prepare(connection, AddressOpener(FakeClock())).timeout = default
        connection.connect()
        assert connection.sock.gettimeout() is None


AUDITED = """
import sys, requests
from requests_smithy_retry import mount
events = []
sys.addaudithook(lambda name, args: events.append(args[1:]) if name == "http.client.connect" else None)
mount(requests.Session()).get(sys.argv[1])
print(events)
"""


def test_connecting_is_audited() -> None:
    """Connecting raises the audit event of ``http.client`` and urllib3 2."""
    with FaultServer() as server:
        done = subprocess.run([sys.executable, "-c", AUDITED, server.url], capture_output=True, text=True, check=True)
        assert f"[('127.0.0.1', {server.port})]" == done.stdout.strip()


GEVENT = """
from gevent import monkey; monkey.patch_all()
import gevent, requests, socket, sys
from requests_smithy_retry import mount
from requests_smithy_retry.features.addresses import racing

hanging, port = map(int, sys.argv[1:])
found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", at) for at in (("127.0.0.2", hanging), ("127.0.0.1", port))]
socket.getaddrinfo = lambda *_, **__: found
racing.FIRST_DELAY = 0.5
ticks = []

def tick():
    while True:
        gevent.sleep(0.05)
        ticks.append(1)

other = gevent.spawn(tick)
session = mount(requests.Session(), **({"operation_timeout": 30} if hanging % 2 else {}))
jobs = [gevent.spawn(session.get, "http://name.test/") for _ in range(5)]
gevent.joinall(jobs)
other.kill()
print([job.value.status_code for job in jobs], len(ticks) > 2, [item.address for item in session.get_adapter("http://").snapshot().addresses])
"""


@pytest.mark.once
def test_greenlets_race_side_by_side() -> None:
    """While they wait for an address that does not answer, others run."""
    pytest.importorskip("gevent")
    with FaultServer() as server, hanging_port("127.0.0.2") as hanging:
        command = [sys.executable, "-c", GEVENT, f"{hanging}", f"{server.port}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ("[200, 200, 200, 200, 200] True ['127.0.0.2']\n", 0) == (done.stdout, done.returncode), done.stderr
