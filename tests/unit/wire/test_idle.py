"""Connections that lie idle (contract 14.1): too old ones are not used, and the kernel probes those that are kept."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import time
from typing import Any

import pytest
import requests
import urllib3

from requests_smithy_retry import RetryAdapter, retry_options
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.wire import pools
from requests_smithy_retry.wire.pools import keep_alive_options
from tests.faults import DEFAULT_BODY, CloseAfterReply, FaultProxy, FaultServer, Forget, Reply, ResetBeforeRequest
from tests.faults.oracle import tls_contexts
from tests.support import session_with

from .support import SocksProxy, session


def raising(error: BaseException) -> Any:
    """A function that raises the error."""

    def stand_in(*_: Any, **__: Any) -> Any:
        raise error

    return stand_in


HEARD: dict[str, tuple[tuple[str, ...], float]] = {
    "apache": (("timeout=5, max=100",), 4),
    "node": (("timeout=5",), 4),
    "another order": (("max=100, timeout=5",), 4),
    "case and spaces": ((" Max=1 ,  TIMEOUT = 5 ",), 4),
    "quoted": (('timeout="5"',), 4),
    "semicolons": (("timeout=5; max=100",), 4),
    "two lines": (("max=100", "timeout=5"), 4),
    "the shortest of several": (("timeout=9", "timeout=5"), 4),
    "two seconds": (("timeout=2",), 1),
    "one second": (("timeout=1",), 0.5),
    "none": (("timeout=0",), 0.5),
    "longer than ours": (("timeout=120",), 55),
    "nothing": ((), 55),
    "another parameter": (("max=3",), 55),
    "malformed": (("timeout", "timeout=", "timeout=x", "timeout=-1", "timeout=5s", "timeout=1.5", "xtimeout=5"), 55),
    "endless": ((f"timeout={'9' * 5000}",), 55),
}


@pytest.mark.parametrize(("announced", "most"), HEARD.values(), ids=HEARD)
def test_a_connection_is_kept_for_less_than_its_server_keeps_it(announced: tuple[str, ...], most: float) -> None:
    """By the announcement of the last answer, less a second for the way; half a second in any case."""
    clock = FakeClock()
    with (
        FaultServer(Reply(headers=[("keep-alive", value) for value in announced])) as server,
        session(clock=clock) as made,
    ):
        counts = []
        for pause in (most - 0.1, most + 0.01):
            made.post(server.url, data=b"x")
            clock.advance(pause)
            counts.append(server.connections)
        made.post(server.url, data=b"x")
        assert [1, 1, 2] == [*counts, server.connections]


@pytest.mark.parametrize("announced", ["timeout=0", "timeout=1", "timeout=5, max=100"])
def test_a_busy_connection_goes_on_being_used(announced: str) -> None:
    """Requests in a row go over one connection, however short a pause its server allows."""
    clock = FakeClock()
    with FaultServer(Reply(headers={"Keep-Alive": announced})) as server, session(clock=clock) as made:
        for _ in range(20):
            made.post(server.url, data=b"x")
            clock.advance(0.4)
        assert 1 == server.connections


def test_the_last_announcement_counts() -> None:
    """A server that says another time, or none, is believed."""
    clock = FakeClock()
    replies = [Reply(headers={"Keep-Alive": value}) for value in ("timeout=2", "timeout=60", "max=9")]
    with FaultServer(replies) as server, session(clock=clock) as made:
        for pause in (0.9, 50, 54.9):
            made.post(server.url, data=b"x")
            clock.advance(pause)
        made.post(server.url, data=b"x")
        assert 1 == server.connections


@pytest.mark.parametrize(
    ("option", "counts"), [({}, [1, 1, 1]), ({"max_idle": 3}, [1, 1, 2]), ({"max_idle": 0.6}, [1, 2, 3])]
)
def test_the_option_says_for_how_long_a_connection_may_lie_idle(option: dict[str, Any], counts: list[int]) -> None:
    """One that lay for longer is closed, and the request goes over a new one; in a copy of the adapter, too."""
    for prepared in (lambda adapter: adapter, pickled):
        clock, found = FakeClock(), []
        with FaultServer() as server, session_with(prepared(RetryAdapter(clock=clock, **option))) as made:
            for pause in (1, 4, 0):
                made.post(server.url, data=b"x")
                found.append(server.connections)
                clock.advance(pause)
        assert counts == found


def test_a_server_that_drops_idle_connections_is_learnt_from(caplog: pytest.LogCaptureFixture) -> None:
    """Where a kept connection was dead after 4 s, none is kept for longer from then on; the log says so, once."""
    clock, dead = FakeClock(), ResetBeforeRequest()
    script = [Reply(), dead, Reply(), Reply(), Reply(), Reply()]
    with FaultServer(script) as server, session(clock=clock, max_attempts=1) as made, caplog.at_level("INFO"):
        made.get(server.url)
        clock.advance(4)
        with pytest.raises(requests.ConnectionError):
            made.post(server.url, data=b"x")  # what the server did with it nobody knows
        for pause in (3.9, 3.95, 0):  # a program that asks every four seconds is sometimes early
            made.post(server.url, data=b"x")
            clock.advance(pause)
        assert [0, 1, 1, 2] == [item.connection_id for item in server.requests]
    assert 1 == sum("lay idle for 4.0 s was dead" in record.getMessage() for record in caplog.records)


def test_a_new_connection_that_dies_teaches_nothing() -> None:
    """A restart of the server is no habit of it."""
    clock = FakeClock()
    with FaultServer([ResetBeforeRequest(), Reply(), Reply()]) as server, session(clock=clock) as made:
        made.get(server.url)
        clock.advance(50)
        made.get(server.url)
        assert 2 == server.connections


@pytest.mark.real_time
def test_a_post_is_not_sent_just_when_its_server_closes() -> None:
    """The end of the connection is under way when the program sends, and nobody can see it yet."""
    with FaultServer([CloseAfterReply(Reply(headers={"Keep-Alive": "timeout=1"}), after=1.4)]) as server:
        with session() as made:
            made.post(server.url, data=b"1")
            time.sleep(1.1)
            assert 200 == made.post(server.url, data=b"2", timeout=60).status_code
        assert 2 == server.connections


def pickled(adapter: RetryAdapter) -> RetryAdapter:
    pickle.dumps(adapter)
    other = RetryAdapter.__new__(RetryAdapter)
    other.__setstate__(adapter.__getstate__())  # as pickle does it, but with the same clock
    return other


@pytest.mark.parametrize(("announced", "most"), [({}, 55), ({"Keep-Alive": "timeout=5"}, 4)], ids=["", "announced"])
@pytest.mark.parametrize("pool_block", [False, True])
@pytest.mark.parametrize("made_by", [lambda adapter: adapter, pickled], ids=["made", "pickled"])
@pytest.mark.parametrize("way", ["direct", "proxy", "tunnel", "socks"])
@pytest.mark.filterwarnings("ignore:Unverified")
def test_each_kind_of_pool_goes_by_it(
    way: str, made_by: Any, pool_block: bool, announced: dict[str, str], most: float
) -> None:
    """Directly, by a proxy, through its tunnel, by SOCKS; after unpickling; and where callers wait for a connection."""
    if way == "socks":
        pytest.importorskip("socks")
    clock, tls = FakeClock(), tls_contexts()[0] if way == "tunnel" else None
    made = session_with(made_by(RetryAdapter(pool_block=pool_block, clock=clock)))
    reply = Reply(body=DEFAULT_BODY, headers=announced)
    with FaultServer(reply, tls=tls) as server, FaultProxy() as tunnels, SocksProxy() as socks, made:
        # The server stands in for a proxy: it answers every target.
        proxy = {"proxy": server.url, "tunnel": tunnels.url, "socks": f"socks5://127.0.0.1:{socks.port}"}.get(way)
        counts = []
        for pause in (most - 0.5, most - 0.5, most + 0.5, 0):
            answer = made.post(server.url, data=b"x", proxies={"http": proxy, "https": proxy}, verify=False)
            assert DEFAULT_BODY == answer.content
            clock.advance(pause)
            counts.append(server.connections)
        assert [1, 1, 1, 2] == counts


@pytest.mark.parametrize("announced", [{}, {"Keep-Alive": "timeout=5"}], ids=["", "announced"])
@pytest.mark.parametrize(
    ("options", "block", "connections"), [({}, {}, 2), ({"enabled": False}, {}, 1), ({}, {"enabled": False}, 1)]
)
def test_connections_are_kept_for_less_than_the_minute_of_load_balancers(
    options: Any, block: Any, connections: int, announced: dict[str, str]
) -> None:
    """Where retries are switched off, for an adapter or a block, urllib3's habit is left alone: for ever."""
    clock = FakeClock()
    with (
        FaultServer(Reply(headers=announced)) as server,
        session(clock=clock, **options) as made,
        retry_options(**block),
    ):
        for _ in range(2):
            made.get(server.url)
            clock.advance(56)
        assert connections == server.connections


@pytest.mark.filterwarnings("ignore:Unverified")
@pytest.mark.parametrize(("pause", "works"), [(54, False), (56, True)])
def test_a_path_that_was_forgotten_is_not_used(pause: float, works: bool) -> None:
    """Over a forgotten path a POST fails, which nobody may send again; over a new one it works, 10 times of 10."""
    clock, nat = FakeClock(), Forget()
    with FaultServer(tls=tls_contexts()[0]) as server, FaultProxy(nat) as proxy, session(clock=clock) as made:
        how: Any = {"proxies": {"https": proxy.url}, "verify": False}
        made.post(server.url, data=b"x", **how)
        came = []
        for _ in range(10 if works else 1):
            nat.forget()
            clock.advance(pause)
            try:
                made.post(server.url, data=b"x", timeout=60 if works else 0.2, **how)
                came.append(True)
            except requests.exceptions.ReadTimeout:
                came.append(False)
        assert [works] * len(came) == came


def options_of(made: requests.Session, url: str, **how: Any) -> list[int]:
    """Return a connection's socket options: whether it is probed, after which silence, and how often."""
    names = ("TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE", "TCP_KEEPINTVL")
    with made.get(url, stream=True, **how) as response:
        sock = response.raw._connection.sock
        said = [sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names]
        return [int(sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0), *said]


def test_new_connections_are_probed() -> None:
    """Directly, and to a proxy, for which urllib3 has no options of its own."""
    with FaultServer() as server, session() as made:
        said = [options_of(made, server.url), options_of(made, "http://x.test/", proxies={"http": server.url})]
    assert [[1, 30, 10]] * 2 == said


def test_probes_do_not_replace_the_usual_options() -> None:
    """Small packets go out at once, as ever."""
    with FaultServer() as server, session() as made, made.get(server.url, stream=True) as response:
        raw: Any = response.raw
        assert raw._connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_a_callers_own_socket_options_win() -> None:
    """Options that a caller set itself are not added to, so there is no probe."""

    class OwnOptions(RetryAdapter):
        """Has socket options of its own, as in the recipe of many a page."""

        def init_poolmanager(self, *args: Any, **options: Any) -> None:
            super().init_poolmanager(*args, **options, socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)])

    with FaultServer() as server, session_with(OwnOptions()) as made:
        assert options_of(made, server.url)[0] == 0


@pytest.mark.parametrize("own", [[(socket.IPPROTO_TCP, 5, 7)], [], None])
def test_a_programs_own_default_wins(own: Any) -> None:
    """The program's default options come after ours, so they win."""
    connection = urllib3.connection.HTTPConnection("127.0.0.1", 9, socket_options=own)
    pools.prepare(connection, pools.PreparingPool.addresses, probes=True)
    assert [*keep_alive_options(), *(own or [])] == connection.socket_options


def test_without_retries_sockets_are_as_ever() -> None:
    """Where they are switched off, for an adapter or a block, urllib3's options are left alone."""
    with FaultServer() as server, session(enabled=False) as made:
        assert options_of(made, server.url)[0] == 0
    with FaultServer() as server, session() as made, retry_options(enabled=False):
        assert options_of(made, server.url)[0] == 0


@pytest.mark.parametrize(
    ("present", "expected"), [((), 1), (("TCP_KEEPALIVE",), 2), (("TCP_KEEPIDLE", "TCP_KEEPINTVL"), 3)]
)
def test_a_platform_takes_what_it_has(monkeypatch: pytest.MonkeyPatch, present: Any, expected: int) -> None:
    """Apple has another name for the first of the two numbers."""
    number = getattr(socket, "TCP_KEEPIDLE", getattr(socket, "TCP_KEEPALIVE", None))
    for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL"):
        monkeypatch.delattr(socket, name, raising=False)
    for name in present:
        monkeypatch.setattr(socket, name, number, raising=False)
    assert expected == len(pools._taken_options.__wrapped__())


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), RuntimeError("no socket in a unit test")])
def test_where_no_socket_can_be_made_there_are_no_options_for_now(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """That ends nothing, and is not remembered."""
    pools._taken_options.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(socket, "socket", raising(error))
        assert () == keep_alive_options()
    assert keep_alive_options()


def test_a_handlers_exception_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that a signal's handler raises while the options are tried ends the call."""
    pools._taken_options.cache_clear()
    monkeypatch.setattr(socket, "socket", lambda *arguments: os.kill(os.getpid(), signal.SIGUSR1))
    outer = signal.signal(signal.SIGUSR1, lambda *arguments: raising(TimeoutError("a limit of its own"))())
    try:
        with pytest.raises(TimeoutError, match="a limit of its own"):
            keep_alive_options()
    finally:
        signal.signal(signal.SIGUSR1, outer)


def test_an_option_that_the_kernel_refuses_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection must not fail for it."""
    monkeypatch.setattr(socket, "TCP_KEEPINTVL", 9999, raising=False)
    options = pools._taken_options.__wrapped__()
    assert 9999 not in [number for _, number, _ in options]
    assert (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1) in options


def test_the_shortest_idle_time_that_was_found_dead_counts() -> None:
    """A longer one later, which says nothing new, is not learnt; a shorter one is, without another line in the log."""
    pool = pools.PreparingPool("api.example.com")
    for lay in (6.0, 9.0, 4.0):
        pool._learn_idle_limit(lay)
    assert 3.92 == pytest.approx(pool.learnt_idle_limit)
