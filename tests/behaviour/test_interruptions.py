"""Exceptions of signal handlers and other interruptions in the middle of a send (contract 2, 6.1, 8)."""

from __future__ import annotations

import functools
import io
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from requests_smithy_retry import Outcome, RetryAction, RetryAdapter, StopReason, classifier, retry_history
from tests.faults import FaultServer, Reply, Stall, Wire
from tests.support import ScriptedAdapter, prepare, scripted, send, session_with
from tests.unit.wire.support import session

RAISED = [Exception, RuntimeError, ValueError, TimeoutError, OSError, ConnectionResetError]


class Limit(Exception):
    """Stands in for Celery's soft time limit."""


@pytest.fixture
def handled() -> Iterator[Callable[..., Any]]:
    """Installs a handler of SIGTERM, or of another signal, for the time of a test."""
    before: dict[int, Any] = {}

    def install(handler: Any, number: int = signal.SIGTERM) -> None:
        before.setdefault(number, signal.signal(number, handler))

    yield install
    for number, handler in before.items():
        signal.signal(number, handler)


def raising(error: type[BaseException]) -> Callable[..., None]:
    def handler(*_: object) -> None:
        raise error("end of time")

    return handler


def interrupt(*_: Any, **__: Any) -> int:
    """A step of a script: a signal arrives while it is sent."""
    signal.raise_signal(signal.SIGTERM)
    return 200


@pytest.mark.parametrize("error", RAISED)
def test_what_a_signals_handler_raises_ends_the_operation(handled: Any, error: type[Exception]) -> None:
    """An exception of a signal's handler ends the operation, whatever its type: the alarm will not fire again."""
    handled(raising(error))
    adapter = scripted(interrupt, 200)
    with pytest.raises(error) as caught:
        send(adapter)
    history = retry_history(caught.value)
    assert history is not None
    assert (1, StopReason.NOT_RETRYABLE) == (len(adapter.sent), history.stop_reason)
    assert "the handler of a signal raised it" in history.sentence


def raise_alarm_where_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the alarm fire while a client waits for what comes after a server's stall, however late both are."""
    stalls = threading.Event()
    usual_stall, usual_receive = Wire.stall, socket.socket.recv_into

    def stall(wire: Wire, seconds: float) -> None:
        if seconds > 0:
            stalls.set()
        usual_stall(wire, seconds)

    def receive(sock: socket.socket, *arguments: Any) -> int:
        while True:
            over = stalls.is_set()  # all that comes before it is there
            if select.select([sock], [], [], 0)[0]:
                break
            if over:
                signal.setitimer(signal.ITIMER_REAL, 0.005)
                break
            time.sleep(0.001)
        return usual_receive(sock, *arguments)

    monkeypatch.setattr(Wire, "stall", stall)
    monkeypatch.setattr(socket.socket, "recv_into", receive, raising=False)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers of signals here")
@pytest.mark.real_time
@pytest.mark.parametrize("stage", ["status", "header", "body"])
@pytest.mark.parametrize("error", RAISED)
def test_an_alarm_ends_the_operation_where_it_is_waiting(
    handled: Any, monkeypatch: pytest.MonkeyPatch, error: type[Exception], stage: Any
) -> None:
    """With the exception of a plain adapter, which urllib3 and requests may have wrapped."""
    handled(raising(error), signal.SIGALRM)
    kinds = []
    for adapter in (requests.adapters.HTTPAdapter(), RetryAdapter(max_attempts=3, backoff=0)):
        stall = Stall(stage, reply=Reply(200, body=b"0123456789"))
        with FaultServer([stall]) as server, session_with(adapter) as client, monkeypatch.context() as patch:
            raise_alarm_where_it_waits(patch)
            try:
                with pytest.raises(Exception) as caught:  # noqa: PT011 - that of the plain adapter
                    client.get(server.url, timeout=120)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            kinds.append(type(caught.value))
            assert 1 == len(server.requests)
    assert kinds[0] is kinds[1]


def test_no_classifier_is_asked_about_an_interruption(handled: Any) -> None:
    """No classifier is asked about an interruption, not even one that has everything retried."""
    handled(raising(Limit))
    always = classifier(lambda outcome, previous: RetryAction.retryable_error())
    with pytest.raises(Limit):
        send(scripted(interrupt, 200, classifiers=[always]))


class Handlers:
    """Can be called, and has a method."""

    def method(self, *_: object) -> None:
        raise OSError("late")

    __call__ = method


@pytest.mark.parametrize("handler", [Handlers().method, Handlers(), functools.partial(Handlers.method, Handlers())])
def test_a_handler_of_any_kind_is_known(handled: Any, handler: Any) -> None:
    """A method, a partial function, an object that can be called."""
    handled(handler)
    adapter = scripted(interrupt, 200)
    with pytest.raises(OSError, match="late"):
        send(adapter)
    assert 1 == len(adapter.sent)


def test_what_the_caller_is_handling_is_no_interruption(handled: Any) -> None:
    """Code that handles an alarm has retries as usual, although each exception has the alarm's as its context."""
    handled(raising(TimeoutError))
    adapter = scripted(requests.ConnectionError("refused"), 200)
    try:
        interrupt()
    except TimeoutError:
        assert 200 == send(adapter).status_code
    assert 2 == len(adapter.sent)


def test_a_handler_that_raised_is_found_behind_what_hides_it(handled: Any) -> None:
    """urllib3 1.26 raises its own timeout without a cause: the handler's is its context alone."""
    handled(raising(TimeoutError))

    def hidden(_: Any) -> int:
        try:
            return interrupt()
        except TimeoutError:
            raise requests.ReadTimeout from None

    adapter = scripted(hidden, 200)
    with pytest.raises(requests.ReadTimeout):
        send(adapter)
    assert 1 == len(adapter.sent)


def reset_after_an_unknown_enum_member(*_: Any, **__: Any) -> int:
    """A step of a script: a reset whose context led through the code of an enum."""
    try:
        return signal.Signals(-1)
    except ValueError:
        raise ConnectionResetError(104, "reset")


@pytest.mark.parametrize("failure", [ConnectionResetError(104, "reset"), reset_after_an_unknown_enum_member])
@pytest.mark.parametrize("default", [signal.SIG_DFL, signal.default_int_handler])
def test_an_error_of_the_system_without_any_handler_is_retried(
    monkeypatch: pytest.MonkeyPatch, failure: Any, default: Any
) -> None:
    """Neither an enum member for a default action nor Python's own handler is a handler of the program."""
    monkeypatch.setattr(signal, "getsignal", lambda _: default)
    adapter = scripted(failure, 200)
    assert 200 == send(adapter).status_code


@pytest.mark.parametrize("error", [Limit, *RAISED])
def test_an_interruption_while_a_file_goes_back_comes_out(handled: Any, error: type[Exception]) -> None:
    """An exception of the signal handler propagates; it is not taken for a fault of the file."""
    handled(raising(error))

    class File(io.BytesIO):
        is_ready = False

        def seek(self, *where: int) -> int:
            if self.is_ready:
                interrupt()
            return super().seek(*where)

    body = File(b"part")
    request, body.is_ready = prepare("PUT", data=body), True
    with pytest.raises(error, match="end of time"):
        scripted(503, 200).send(request)


@pytest.mark.parametrize("options", [{}, {"operation_timeout": 60}], ids=str)
@pytest.mark.parametrize("failing", ["getaddrinfo", "connect"])
def test_an_interruption_while_connecting_is_not_taken_for_an_address_that_fails(
    handled: Any, monkeypatch: pytest.MonkeyPatch, failing: str, options: dict[str, Any]
) -> None:
    """The next address is not tried, and no text says that connecting failed."""
    handled(raising(OSError))
    resolved = []

    def resolve(*_: Any) -> Any:
        resolved.append(1)
        if failing == "getaddrinfo":
            interrupt()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))] * 3

    def connect(*_: Any, **__: Any) -> Any:
        resolved.append(2)
        interrupt()

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket.socket, "connect", connect)
    # A KeyError or RuntimeError comes of Thread.start itself, if the signal comes within it, once the thread has begun.
    expected = pytest.raises((OSError, requests.ConnectionError, KeyError, RuntimeError))
    with session(**options) as client, expected as caught:
        client.get("http://name.test/")
    assert ([1] if failing == "getaddrinfo" else [1, 2]) == resolved
    assert "Failed to establish" not in str(caught.value)


@pytest.mark.parametrize("error", [TimeoutError, OSError])
def test_an_interrupted_timeout_of_connecting_is_final(
    handled: Any, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """An interruption that is wrapped as a time-out of connecting, as it is with a deadline, is recognized."""
    handled(raising(error))
    with FaultServer() as server, session(operation_timeout=60) as client:
        monkeypatch.setattr(socket.socket, "connect", interrupt)
        with pytest.raises((OSError, requests.ConnectionError)) as caught:
            client.get(server.url)
        history = retry_history(caught.value)
        assert history is not None
        assert 1 == len(history.attempts)


def test_an_interruption_within_the_start_of_a_thread_is_not_taken_for_none_that_can_be_had(
    handled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of ``Thread.start`` cannot be released then, which is a RuntimeError: no name is looked up in place."""
    handled(raising(OSError))
    asked = []

    def start(_: threading.Thread) -> None:
        try:
            interrupt()
        finally:
            threading.Lock().release()

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: asked.append(1))
    with session(operation_timeout=60) as client, pytest.raises(RuntimeError):
        client.get("http://name.test/")
    assert [] == asked


class Late(requests.Response):
    """Its status is there at the second look."""

    @property
    def status_code(self) -> int:
        looks = vars(self).setdefault("looks", [])
        looks.append(1)
        if len(looks) == 1:
            raise Limit
        return vars(self)["status_code"]  # type: ignore[no-any-return]

    @status_code.setter
    def status_code(self, status: int) -> None:
        vars(self)["status_code"] = status


@pytest.mark.parametrize("status", [200, 404, 503])
def test_an_exception_between_a_head_and_its_body_is_not_lost(status: int) -> None:
    """An exception between head and body may be a handler's, so reading the body does not clear it."""

    class Adapter(ScriptedAdapter):
        def build_response(self, *parts: Any) -> Any:
            response = super().build_response(*parts)
            response.__class__ = Late
            return response

    with pytest.raises(Limit):
        send(Adapter(script=[status, 200]))


def test_an_interruption_while_a_classifier_reads_a_body_comes_out(handled: Any) -> None:
    """It is not taken for a body that cannot be read, which has an empty prefix."""
    handled(raising(OSError))

    class Reading(requests.Response):
        content = property(interrupt)

    with pytest.raises(OSError, match="end of time"):
        _ = Outcome(response=Reading()).body_prefix


def test_a_long_chain_of_exceptions_is_not_followed_for_ever(handled: Any) -> None:
    """The search ends after a bounded number of exceptions, and in a chain that leads back to itself."""
    handled(raising(OSError))
    error = last = ConnectionResetError("first")
    for number in range(40):
        last.__context__ = ConnectionResetError(number)
        last = last.__context__
    assert 200 == send(scripted(error, 200)).status_code
    last.__context__ = error
    assert 200 == send(scripted(error, 200)).status_code
