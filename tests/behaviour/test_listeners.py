"""Listeners (contract 12): who is told and what of, what a listener may be, and what a bug of it does."""

from __future__ import annotations

import io
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    AttemptRecord,
    RetryAdapter,
    RetryCancelled,
    RetryError,
    RetryLater,
    RetryListener,
    StandardRetryStrategy,
    StopReason,
    TokenBucket,
    retry_history,
    retry_options,
)
from requests_smithy_retry import events as events_module
from requests_smithy_retry.smithy import SdkHeaders
from requests_smithy_retry.testing import FakeClock, FaultServer, Reply, ScriptedReply
from tests.support import prepare, scripted, send, session_with


class Log(RetryListener):
    """Writes down the names of events."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def before_attempt(self, event: Any) -> None:
        self.events.append(event)

    after_attempt = retry_scheduled = throttled = gave_up = succeeded = before_attempt

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def of(self, kind: str) -> list[Any]:
        """The events of one name."""
        return [event for event in self.events if type(event).__name__ == kind]


class OnlyAfter:
    """A listener of the program's own, with one method and no base."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def after_attempt(self, event: Any) -> None:
        self.seen.append(event.number)


ATTEMPT = ["BeforeAttempt", "AfterAttempt"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ((200,), ATTEMPT),
        ((404,), ATTEMPT),
        ((503, 200), [*ATTEMPT, "RetryScheduled", *ATTEMPT, "Succeeded"]),
        ((429, 503), [*ATTEMPT, "Throttled", "RetryScheduled", *ATTEMPT, "GaveUp"]),
    ],
)
def test_each_ending_has_its_events(script: tuple[int, ...], expected: list[str]) -> None:
    """Every attempt has a before and an after; a retry, throttling, giving up and a mended operation are told."""
    log = Log()
    send(scripted(*script, listeners=[log], max_attempts=2))
    assert expected == log.names


def test_listeners_are_told_in_their_order() -> None:
    """Two listeners hear the same event objects, the first one first."""
    told: list[tuple[str, Any]] = []

    def named(name: str) -> Any:
        return SimpleNamespace(before_attempt=lambda event: told.append((name, event)))

    send(scripted(200, listeners=[named("a"), named("b")]))
    assert ["a", "b"] == [name for name, _ in told]
    assert told[0][1] is told[1][1]


def failing(error: BaseException) -> Any:
    """A listener that fails once an attempt has ended."""

    def fail(_: Any) -> None:
        raise error

    return SimpleNamespace(after_attempt=fail)


@pytest.mark.parametrize("script", [(200,), (503,)])
@pytest.mark.parametrize("error", [KeyError("first"), KeyboardInterrupt()])
def test_who_heard_of_an_attempt_hears_of_its_end(script: tuple[int, ...], error: BaseException) -> None:
    """A listener behind failing ones gets both events, and the caller gets the first one's exception."""
    log = Log()
    adapter = scripted(*script, listeners=[failing(error), failing(KeyError("second")), log])
    with session_with(adapter) as session, pytest.raises(type(error)) as caught:
        session.get("https://example.com")
    assert (ATTEMPT, error) == (log.names, caught.value)
    assert caught.value.__context__ is None


class OnlyLater:
    """Has no base, and no ear for a success at the first try."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def retry_scheduled(self, event: Any) -> None:
        self.told.append((type(event).__name__, event.number))

    throttled = gave_up = succeeded = retry_scheduled


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ((200,), []),
        ((503, 200), [("RetryScheduled", 1), ("Succeeded", 2)]),
        ((429, 503), [("Throttled", 1), ("RetryScheduled", 1), ("GaveUp", 2)]),
    ],
)
@pytest.mark.parametrize("options", [{}, {"operation_timeout": 60}])
def test_a_listener_without_an_ear_for_attempts_hears_of_all_else(
    script: tuple[int, ...], expected: list[tuple[str, int]], options: dict[str, Any]
) -> None:
    """A listener needs no base class, nor a method that it has no use for: it gets the other events as usual."""
    listener = OnlyLater()
    send(scripted(*script, listeners=[listener], max_attempts=2, **options))
    assert expected == listener.told


def test_what_is_not_overridden_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method of the base class costs nothing."""
    for name in [name for name in vars(RetryListener) if not name.startswith("_")]:
        monkeypatch.setattr(getattr(RetryListener, name), "__code__", (lambda self, event, /: 1 / 0).__code__)
    send(scripted(429, 503, listeners=[RetryListener()], max_attempts=2))
    send(scripted(503, 200, listeners=[RetryListener()]))


def test_a_listener_survives_pickling_where_it_can() -> None:
    """An adapter that is unpickled tells its listeners."""
    adapter = pickle.loads(pickle.dumps(RetryAdapter(listeners=[OnlyAfter(), SdkHeaders()])))
    with FaultServer() as server, session_with(adapter) as made:
        made.get(server.url)
        assert server.requests[0].header("amz-sdk-request") is not None
    assert [1] == adapter.retry_config.listeners[0].seen


def test_a_wait_for_tokens_comes_between_an_attempt_and_its_retry() -> None:
    """A listener hears of the attempt at once, and of the price of its retry once that was paid."""
    times: list[tuple[str, float]] = []

    class Timed(Log):
        def before_attempt(self, event: Any) -> None:
            times.append((type(event).__name__, adapter.clock.now()))

        after_attempt = retry_scheduled = before_attempt

    clock = FakeClock()
    bucket = TokenBucket(20, refill_rate=2, on_empty="wait", clock=clock)
    adapter = scripted(503, 503, 200, listeners=[Timed()], clock=clock, quota=bucket, backoff=0)
    history = retry_history(send(adapter))
    retry = ["AfterAttempt", "RetryScheduled", "BeforeAttempt"]
    assert ["BeforeAttempt", *retry, *retry, "AfterAttempt"] == [name for name, _ in times]
    assert [0, 0, 0, 0, 0, 4, 4, 4] == [at for _, at in times]
    assert history is not None
    assert [(20, 6), (6, 0), (None, None)] == [(row.quota_before, row.quota_after) for row in history.attempts]


FIELDS: dict[str, tuple[str, ...]] = {
    "BeforeAttempt": ("operation", "number"),
    "AfterAttempt": ("operation", "number", "response", "error", "duration", "noted", "peer"),
    "WaitBegan": ("operation", "number", "what", "seconds"),
    "RetryScheduled": ("operation", "number", "delay", "delay_source", "record", "line_wait", "line_why"),
    "Throttled": ("operation", "number", "record"),
    "GaveUp": ("operation", "number", "history"),
    "Succeeded": ("operation", "number", "history"),
    "BodyProgress": ("operation", "received", "total", "resumes"),
}


def test_an_event_has_these_fields_and_cannot_be_changed() -> None:
    """The operation comes first, then the attempt's number where there is one; no other attribute can be added."""
    public = [getattr(events_module, name) for name in events_module.__all__]
    events = [kind for kind in public if "operation" in getattr(kind, "_fields", ())]
    assert FIELDS == {kind.__name__: kind._fields for kind in events}
    for kind in events:
        event = kind(*kind._fields)
        for name in (*kind._fields, "other"):
            with pytest.raises(AttributeError):
                setattr(event, name, 1)


def test_the_function_of_the_scope_is_asked_once_for_a_call() -> None:
    """A listener reads what the call goes by."""
    asked: list[Any] = []
    listener = Log()
    send(scripted(503, 200, listeners=[listener], scope=lambda request: asked.append(request) or "service"))
    assert ({"service"}, 1) == ({event.operation.scope for event in listener.events}, len(asked))


class Signing(RetryListener):
    """Signs each attempt anew."""

    def before_attempt(self, event: Any) -> None:
        event.request.headers["Signature"] = f"signature {event.number}"
        event.request.url += f"?signed={event.number}"


class Raising(RetryListener):
    """Has a bug in one method, until it is mended."""

    is_mended = False

    def __init__(self, method: str, number: int = 1, error: Exception | None = None) -> None:
        def fail(event: Any) -> None:
            if event.number == number and not self.is_mended:
                raise error or ZeroDivisionError(method)

        setattr(self, method, fail)


@pytest.mark.parametrize("script", [(200,), (503, 200), (503, 503, 503)])
def test_an_attempt_sends_its_own_copy(script: tuple[int, ...]) -> None:
    """A listener's changes are sent with that attempt alone, a file whole; the caller's and response's request stay."""
    adapter = scripted(*script, listeners=[Signing()])
    request = prepare("PUT", data=io.BytesIO(b"the whole body"), headers={"X-Mine": "1"})
    before = dict(request.headers), request.url
    response = adapter.send(request)
    for number, sent in enumerate(adapter.sent, 1):
        signed = sent.headers["Signature"], sent.url, sent.body
        assert (f"signature {number}", f"{before[1]}?signed={number}", b"the whole body") == signed
    assert len(script) == len(adapter.sent)
    assert before == (dict(request.headers), request.url)
    assert response.request is request


def test_without_a_change_the_callers_request_is_sent_itself() -> None:
    """No copy is made for a listener that only looks."""
    adapter = scripted(200, 503, 200, listeners=[Log()])
    first, second = prepare(), prepare()
    adapter.send(first)
    adapter.send(second)
    assert all(sent.request is request for sent, request in zip(adapter.sent, (first, second, second), strict=True))


def test_all_events_of_an_operation_have_the_same_one() -> None:
    """Values that a listener keeps in ``data`` before an attempt are there at the end, with the operation's facts."""
    log, origin = Log(), "https://api.example.com:443"
    send(scripted(429, 200, listeners=[log], max_attempts=3), url="https://u:p@api.example.com/things?key=secret")
    (operation,) = {event.operation for event in log.events}
    operation.data[log] = "kept"
    assert ("GET", f"{origin}/things", origin) == (operation.method, operation.url, operation.scope)
    assert (3, {log: "kept"}) == (operation.max_attempts, operation.data)
    assert repr(operation) == f"<ObservedOperation GET {origin}/things attempt 2>"


def test_events_carry_what_the_history_says() -> None:
    """Delay, votes, quota and stop reason are those of the record."""
    log = Log()
    response = send(scripted(429, 503, listeners=[log], max_attempts=2))
    history = retry_history(response)
    assert history is not None
    (scheduled,) = log.of("RetryScheduled")
    assert (1.0, "backoff", history.attempts[0]) == (scheduled.delay, scheduled.delay_source, scheduled.record)
    assert [history] == [event.history for event in log.of("GaveUp")]
    assert list(history.attempts) == [event.record for event in log.of("AfterAttempt")]
    assert [history.attempts[0]] == [event.record for event in log.of("Throttled")]


def test_a_first_try_success_has_a_record_when_asked() -> None:
    """The event of a first-try success makes a record from its own data."""
    log = Log()
    response = send(scripted(200, listeners=[log]))
    (after,) = log.of("AfterAttempt")
    assert (200, response) == (after.status, after.response)
    assert AttemptRecord(1, after.record.started, 0.0, 200) == after.record


@pytest.mark.parametrize(
    ("method", "number", "script"),
    [
        ("before_attempt", 1, (200,)),
        ("before_attempt", 2, (503, 200)),
        ("after_attempt", 1, (200,)),
        ("after_attempt", 1, (503,)),
        ("retry_scheduled", 1, (503,)),
        ("throttled", 1, (429,)),
        ("succeeded", 2, (503, 200)),
        ("gave_up", 3, (503, 503, 503)),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.real_time
def test_a_bug_in_a_listener_comes_through_and_leaks_nothing(
    method: str, number: int, script: tuple[int, ...], stream: bool
) -> None:
    """The caller gets the exception; the only connection of the pool is free for the next request."""
    with FaultServer([Reply(status, body=b"x" * 1000) for status in script]) as server:
        listener = Raising(method, number)
        session = session_with(
            RetryAdapter(pool_maxsize=1, pool_block=True, listeners=[listener], backoff=0, quota=500)
        )
        with pytest.raises(ZeroDivisionError, match=method):
            session.get(server.url, stream=stream)
        listener.is_mended = True
        assert requests.codes.ok == session.get(server.url, timeout=60).status_code


OF_OTHERS = [RetryError, RetryLater, RetryCancelled]
"""The exceptions of this library that a listener may raise, from ``policy.retry`` or another session."""
LIMITED = ScriptedReply(503, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"})


@pytest.mark.parametrize("kind", OF_OTHERS)
@pytest.mark.parametrize(
    ("method", "number", "script"),
    [
        ("before_attempt", 1, (200,)),
        ("before_attempt", 2, (503, 200)),
        ("after_attempt", 1, (200,)),
        ("after_attempt", 1, (503, 200)),
        ("throttled", 1, (429, 200)),
        ("retry_scheduled", 1, (503, 200)),
        ("wait_began", 1, (LIMITED, 200)),
        ("succeeded", 2, (503, 200)),
        ("gave_up", 3, (503, 503, 503)),
    ],
)
def test_what_a_listener_raises_does_not_decide_about_the_call(
    method: str, number: int, script: tuple[Any, ...], kind: type[Exception]
) -> None:
    """Its RetryError is no refusal of the strategy, and its RetryLater ends no wait of this call."""
    error = kind("mine")
    with pytest.raises(kind) as caught:
        send(scripted(*script, listeners=[Raising(method, number, error)], backoff=0))
    assert (error, None) == (caught.value, retry_history(error))


@pytest.mark.parametrize("kind", OF_OTHERS)
def test_what_body_progress_raises_does_not_unmake_the_request(kind: type[Exception]) -> None:
    """The server had it: nobody says that nothing was sent, and nothing is sent again."""

    def fail(event: Any) -> None:
        raise error

    error = kind("mine")
    with FaultServer([Reply(200, body=b"applied")]) as server:
        session = session_with(RetryAdapter(listeners=[SimpleNamespace(body_progress=fail)]))
        with pytest.raises(kind) as caught:
            session.post(server.url, data=b"pay")
        assert (error, 1) == (caught.value, len(server.requests))


@pytest.mark.parametrize("timeout", [None, 5])
@pytest.mark.parametrize("script", [(KeyboardInterrupt(),), (503, KeyboardInterrupt())])
def test_an_attempt_that_is_interrupted_is_told_to_its_end(script: tuple[Any, ...], timeout: int | None) -> None:
    """After Ctrl-C every before has its after, with the interruption as its error."""
    log = Log()
    with pytest.raises(KeyboardInterrupt):
        send(scripted(*script, listeners=[log], timeout=timeout))
    assert len(log.of("BeforeAttempt")) == len(log.of("AfterAttempt"))
    last = log.of("AfterAttempt")[-1]
    assert (len(script), "KeyboardInterrupt") == (last.number, last.record.error)


@pytest.mark.parametrize("number", [1, 2])
def test_a_before_that_fails_halfway_is_ended_too(number: int) -> None:
    """Where a later listener raises before an attempt, the earlier one hears that the attempt is over."""
    log = Log()
    with pytest.raises(ZeroDivisionError):
        send(scripted(503, 200, listeners=[log, Raising("before_attempt", number)]))
    assert number == len(log.of("BeforeAttempt")) == len(log.of("AfterAttempt"))
    assert isinstance(log.of("AfterAttempt")[-1].error, ZeroDivisionError)


def test_switched_off_nothing_is_told() -> None:
    """With retries off the adapter is a plain one, and tells nobody."""
    log = Log()
    with retry_options(enabled=False):
        assert send(scripted(503, listeners=[log])).status_code == 503
    assert send(scripted(503, listeners=[log], enabled=False)).status_code == 503
    assert [] == log.events


def test_an_operation_that_was_never_sent_is_given_up_at_attempt_0() -> None:
    """If no permit comes in time, the operation gives up without an attempt."""

    class Stingy(StandardRetryStrategy):
        def send_permit(self, *, token: Any, deadline: float | None, waited: float) -> None:
            raise RetryError("no permit", stop_reason=StopReason.RATE_LIMITED)

    log = Log()
    with pytest.raises(requests.exceptions.ConnectTimeout):
        send(scripted(strategy=Stingy(clock=FakeClock()), listeners=[log]))
    assert ["GaveUp"] == log.names
    assert [(0, StopReason.RATE_LIMITED)] == [(event.number, event.history.stop_reason) for event in log.of("GaveUp")]
