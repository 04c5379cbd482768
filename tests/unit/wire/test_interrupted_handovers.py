"""Interruptions between the owners of a connection, a look-up or a scope: somebody lets go of it (contract 2, 8.5)."""

from __future__ import annotations

import functools
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import EmptyPoolError

from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.features.addresses import opening, racing
from requests_smithy_retry.features.addresses.resolving import Lookups, Question
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.wire import connect, pools
from requests_smithy_retry.wire.pools import preparing
from requests_smithy_retry.wire.state import this_thread
from tests.faults import FaultServer, Reply, hanging_port, refusing_port
from tests.unit.core.test_interrupted import Limit, interrupted_at

from .support import session


class Closable:
    """Stands in for a socket or a connection."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def interrupted(*_: Any, **__: Any) -> Any:
    raise Limit


def test_a_place_too_many_fails_no_request() -> None:
    """A connection for which there is no room is closed, and its request has gone well."""
    pool: Any = preparing(HTTPConnectionPool, waits=True)("name.test", maxsize=1, block=True)
    connection = Closable()
    pool._put_conn(connection)
    assert ([None], True) == (list(pool.pool.queue), connection.is_closed)


def test_a_socket_that_no_connection_has_yet_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption arrives when the address is connected, but its connection has not got the socket."""
    made: list[Any] = []
    monkeypatch.setattr(opening, "connect_socket", lambda sock, *_: interrupted(made.append(sock)))
    with session() as client, pytest.raises(Limit):
        client.get("http://127.0.0.1:9/")
    assert [-1] == [sock.fileno() for sock in made]


BELOW = "requests_smithy_retry/wire/", "requests_smithy_retry/features/addresses/"


def interrupted_at_line(number: int, within: frozenset[str], function: Callable[[], None]) -> bool:
    """Run a function with an interruption before the line of that number that some functions below an adapter come to.

    It has a thread of its own: after an exception of a trace function, Python 3.11 may go on taking another exception
    for the one that the thread is handling, and each later one would have that as its context.
    """
    lines, before = 0, None

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal lines
        code = frame.f_code
        if code.co_name not in within or not any(room in code.co_filename for room in BELOW):
            return None
        lines += event == "line"
        if lines == number:
            sys.settrace(before)
            raise Limit
        return trace

    def run() -> bool:
        nonlocal before
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            function()
        except Limit:
            return True
        finally:
            sys.settrace(before)
        return False

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()


CONNECTING = frozenset(
    name
    for owner in (racing.Race, opening.AddressOpener, connect.Connect)
    for name, member in vars(owner).items()
    if callable(member) and name not in ("__init__", "__call__", "close")
)


@pytest.mark.parametrize("first", [refusing_port, hanging_port], ids=lambda port: port.__name__)
def test_an_interruption_at_any_line_of_a_race_leaves_no_socket(monkeypatch: pytest.MonkeyPatch, first: Any) -> None:
    """Until the connection has the winner, an interruption closes every socket that was opened."""
    made: list[Any] = []
    real = racing.connect_socket

    def recorded(sock: Any, *rest: Any) -> None:
        made.append(sock)
        real(sock, *rest)

    monkeypatch.setattr(racing, "FIRST_DELAY", 0.001)
    monkeypatch.setattr(racing, "connect_socket", recorded)
    with first("127.0.0.2") as failing, FaultServer() as server:
        found = [(socket.AF_INET, 1, 6, "", at) for at in (("127.0.0.2", failing), ("127.0.0.1", server.port))]
        monkeypatch.setattr(opening, "resolve", lambda *_: found)
        for number in range(1, 1000):
            connection = pools.prepare(HTTPConnection("name.test", 80), opening.AddressOpener(FakeClock()))
            was_interrupted = interrupted_at_line(number, CONNECTING, connection.connect)
            connection.close()
            assert {-1} >= {sock.fileno() for sock in made}, f"interrupted at line {number}"
            if not was_interrupted:
                break
        assert (number > 20, 2) == (True, len(set(made[-2:])))


def test_an_interruption_at_any_line_leaves_the_deadline_of_its_thread() -> None:
    """A body is read under a deadline of its own: what the thread does later goes by the one that it had before."""
    outer, inner, found = Deadline(5.0), Deadline(1.0), []

    def read() -> None:
        this_thread.deadline = outer
        try:
            with this_thread.under(inner):
                pass
        finally:
            found.append(this_thread.deadline)

    until_it_is_put_back = range(1, 5)
    assert all(interrupted_at_line(number, frozenset({"under"}), read) for number in until_it_is_put_back)
    assert [outer] * 4 == found


@pytest.mark.parametrize("taken", [Closable(), None], ids=["taken", "not taken"])
def test_a_connection_that_was_taken_out_is_closed(monkeypatch: pytest.MonkeyPatch, taken: Any) -> None:
    """An interruption arrives while it is examined; urllib3 has not got it yet."""
    pool: Any = preparing(HTTPConnectionPool)("name.test")
    monkeypatch.setattr(HTTPConnectionPool, "_get_conn", lambda *_: taken or interrupted())
    monkeypatch.setattr(pools, "is_stale", interrupted)
    with pytest.raises(Limit):
        pool._get_conn(None)
    assert taken is None or taken.is_closed


def test_a_connection_is_closed_until_it_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption arrives just before urllib3 gets it."""
    pool: Any = preparing(HTTPConnectionPool)("name.test")
    for number in range(1, 100):
        connection: Any = Closable()
        monkeypatch.setattr(HTTPConnectionPool, "_get_conn", lambda *_, kept=connection: kept)
        if not interrupted_at_line(number, frozenset({"_get_conn"}), pool._get_conn):
            break
        assert connection.is_closed or number < 4, f"interrupted at line {number}"
    assert (False, True) == (connection.is_closed, number > 4)


@pytest.mark.parametrize("was_asked", [False, True])
def test_a_look_up_that_was_interrupted_is_asked_again(monkeypatch: pytest.MonkeyPatch, was_asked: bool) -> None:
    """It was taken down, but no thread asks it: the next caller would wait for ever."""
    lookups = Lookups()
    question = Question(lambda host: f"the address of {host}", "name.test", ())

    def interrupted_start(asked: Question, lookup: Any) -> None:
        if was_asked:
            lookups._ask(asked, lookup)
        raise Limit

    with monkeypatch.context() as patch:
        patch.setattr(lookups, "_start", interrupted_start)
        with pytest.raises(Limit):
            lookups.find(question, lambda: 60.0)
    assert ("the address of name.test", None) == lookups.find(question, lambda: 60.0)


def test_who_waits_for_a_look_up_that_was_interrupted_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its waiters get an error at once, which a retry follows."""
    lookups, errors = Lookups(), []
    question = Question(interrupted, "name.test", ())

    def second() -> None:
        errors.append(lookups.find(question, lambda: 60.0)[1])

    def interrupted_start(_: Question, lookup: Any) -> None:
        waiter.start()
        while lookup.waiters < 2:
            pass
        raise Limit

    waiter = threading.Thread(target=second)
    monkeypatch.setattr(lookups, "_start", interrupted_start)
    with pytest.raises(Limit):
        lookups.find(question, lambda: 60.0)
    waiter.join()
    assert isinstance(errors[0], socket.gaierror)


@pytest.mark.parametrize(
    "function", ["look_at", "_described", "shown", "__renewed", "note", "give_up", "hand_over", "_fill_retries"]
)
@pytest.mark.parametrize("options", [{}, {"operation_timeout": 60}], ids=["plain", "deadline"])
def test_a_response_between_two_owners_is_closed(function: str, options: dict[str, Any]) -> None:
    """An interruption between an attempt and what judges it, or hands it over, gives the connection back."""
    ones: dict[str, Any] = {"pool_block": True, "pool_maxsize": 1, "max_attempts": 1, **options}
    with FaultServer([Reply(503, body=b"whole")]) as server, session(**ones) as client:
        get = functools.partial(client.get, server.url, stream=True)
        assert interrupted_at(lambda name, file: name == function and "requests_smithy_retry" in file, get)
        try:
            assert 200 == client.get(server.url, timeout=60).status_code
        except EmptyPoolError:  # pragma: no cover - it would wait for ever
            pytest.fail("the connection was lost")
