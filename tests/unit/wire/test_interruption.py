"""Ctrl-C, SystemExit and user code that raises: nothing is leaked, nothing is stuck."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryAdapter, StandardRetryStrategy, classifier
from requests_smithy_retry.testing import FakeClock, retries_disabled
from requests_smithy_retry.wire.response import Reader
from tests.faults import FaultServer, Reply, ResetAfterRequest, Stall
from tests.support import session_with

from .support import nothing_left, session

RESET = ResetAfterRequest()
ONE = {"pool_block": True, "pool_maxsize": 1}


def is_usable(made: requests.Session, server: FaultServer) -> None:
    """The pool's only connection is free again."""
    server.script([])
    adapter: Any = made.get_adapter(server.url)
    pool = adapter.poolmanager.connection_from_url(server.url).pool
    assert pool.qsize() == 1
    assert made.get(server.url, timeout=60).status_code == 200


def raising(*_: Any, **__: Any) -> Any:
    """Stand for a program's function that has a bug, or is interrupted."""
    raise ProgramError


class ProgramError(BaseException):
    """A bug or an interruption."""


class InterruptedClock(FakeClock):
    """A clock whose sleep is interrupted."""

    sleep = raising


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("answers", "options"),
    [
        ((503, 429, RESET), {"strategy": StandardRetryStrategy(backoff=1, jitter="none", clock=InterruptedClock())}),
        ((200, 503), {"classifiers": [classifier(sees_successes=True)(raising)]}),
        ((200, 503, RESET), {"scope": raising}),
        ((200, 429), {"scope": raising, "mode": "adaptive"}),
    ],
    ids=["wait", "classifier", "scope", "adaptive scope"],
)
def test_who_raises_is_heard_and_leaves_no_connection(answers: Any, options: dict[str, Any], stream: bool) -> None:
    """What a wait, a classifier or a scope function raises comes through; the pool's only place is free."""
    quota = {} if "strategy" in options else {"quota": None}
    for answer in answers:
        fault = Reply(answer, body=b"x" * 100_000) if isinstance(answer, int) else answer
        made = session_with(RetryAdapter(**ONE, **options, **quota))
        with nothing_left(), FaultServer(fault) as server, made:
            with pytest.raises(ProgramError):
                made.get(server.url, stream=stream)
            with retries_disabled():
                is_usable(made, server)


def signalled(server: FaultServer, fault: Any, number: int) -> threading.Timer:
    """Send a signal to this process soon after a request has come, which the server answers by a fault."""
    timer = threading.Timer(0.1, os.kill, (os.getpid(), number))

    def answer(_: Any) -> Any:
        timer.start()
        return fault

    server.script(answer)
    return timer


class SoftTimeLimitExceeded(Exception):
    """As Celery's exception for a soft time limit: raised by a signal's handler, and a plain ``Exception``."""


SIGNALS: Any = {KeyboardInterrupt: signal.SIGINT, SoftTimeLimitExceeded: signal.SIGUSR1}


@contextlib.contextmanager
def handled(number: int, raised: BaseException | type[BaseException]) -> Iterator[None]:
    """Have the handler of a signal raise this; that of Ctrl-C is Python's own."""

    def over(*_: Any) -> None:
        raise raised

    before = signal.signal(number, signal.default_int_handler if raised is KeyboardInterrupt else over)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize("stall", ["status", "body"])
@pytest.mark.parametrize("options", [{}, {"operation_timeout": 30}], ids=str)
@pytest.mark.parametrize("raised", SIGNALS)
def test_a_signal_in_an_attempt(status: int, stall: Any, options: Any, raised: type[BaseException]) -> None:
    """Ctrl-C, or a time limit: it reaches the caller as it is; the connection goes, and nothing is sent again."""
    number, stalled = SIGNALS[raised], Stall(stall, reply=Reply(status, body=b"x" * 100))
    with handled(number, raised), nothing_left(), FaultServer() as server, session(**ONE, **options) as made:
        timer = signalled(server, stalled, number)
        with pytest.raises(raised):
            made.get(server.url)
        timer.join()
        assert len(server.requests) == 1
        is_usable(made, server)


@pytest.fixture(params=[TimeoutError, OSError, ValueError])
def raised_by_a_signal(request: pytest.FixtureRequest) -> Iterator[type[Exception]]:
    """An exception that a signal's handler raises, of a type that the network or a closed file raises as well."""
    with handled(signal.SIGUSR1, request.param("the time is up")):
        yield request.param


def interrupting(part: bytes = b"") -> bytes:
    """Stand in for a step over a socket during which a signal comes."""
    signal.raise_signal(signal.SIGUSR1)
    return part


def test_a_signal_while_bytes_are_fetched_ahead(raised_by_a_signal: type[Exception]) -> None:
    """The handler's exception propagates at once, and is not kept as a failure of the socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs, Reader(ours, "r") as reader:
        reader._sock = SimpleNamespace(  # type: ignore[attr-defined]
            gettimeout=lambda: None, settimeout=lambda _: None, recv=lambda _: interrupting(), _decref_socketios=int
        )
        with pytest.raises(raised_by_a_signal, match="the time is up"):
            reader.fetch_ahead(1)
        assert reader.failure is None


def test_a_signal_while_what_watches_a_body_is_closed(raised_by_a_signal: type[Exception]) -> None:
    """The socket is let go all the same."""
    ours, theirs = socket.socketpair()
    with theirs:
        reader = Reader(ours, "r")
        ours._io_refs += 1  # type: ignore[attr-defined]  # as makefile() does
        ours.close()
        reader.watch = SimpleNamespace(close=interrupting)  # type: ignore[assignment]
        with pytest.raises(raised_by_a_signal, match="the time is up"):
            reader.close()
        assert (True, -1) == (reader.closed, ours.fileno())


def test_a_signal_while_a_discarded_body_is_read_up(
    raised_by_a_signal: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler's exception goes up, and no retry follows."""
    server = FaultServer([Reply(429, body=b"x" * 70_000), Reply(200)])
    with nothing_left(), server, session(backoff=0.0, **ONE) as made:
        monkeypatch.setattr("http.client.HTTPResponse.read1", lambda *_: interrupting())
        with pytest.raises(raised_by_a_signal, match="the time is up"):
            made.get(server.url, stream=True)
        monkeypatch.undo()
        assert len(server.requests) == 1
        is_usable(made, server)
