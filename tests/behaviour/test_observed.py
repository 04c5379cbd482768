"""An operation as listeners see it: their copy of the request, their own data, and what a bug of theirs does."""

from __future__ import annotations

import io
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    RetryError,
    RetryListener,
    StandardRetryStrategy,
    StopReason,
    retry_history,
    retry_options,
)
from requests_smithy_retry.testing import FakeClock, FaultServer, Reply
from tests.support import prepare, scripted, send, session_with


class Signing(RetryListener):
    """Signs each attempt anew."""

    def before_attempt(self, event: Any) -> None:
        event.request.headers["Signature"] = f"signature {event.number}"
        event.request.url += f"?signed={event.number}"


class Remembering(RetryListener):
    def __init__(self) -> None:
        self.events: dict[str, list[Any]] = {}

    def before_attempt(self, event: Any) -> None:
        self.events.setdefault(type(event).__name__, []).append(event)

    after_attempt = retry_scheduled = throttled = gave_up = succeeded = before_attempt


class Raising(RetryListener):
    """Has a bug in one method, until it is mended."""

    is_mended = False

    def __init__(self, method: str, number: int = 1) -> None:
        def fail(event: Any) -> None:
            if event.number == number and not self.is_mended:
                raise ZeroDivisionError(method)

        setattr(self, method, fail)


@pytest.mark.parametrize("script", [(200,), (503, 200), (503, 503, 503)])
def test_an_attempt_sends_its_own_copy(script: tuple[int, ...]) -> None:
    """A listener's changes are sent with that attempt alone; the caller's request and response.request stay."""
    adapter = scripted(*script, listeners=[Signing()])
    request = prepare(headers={"X-Mine": "1"})
    before = dict(request.headers), request.url
    response = adapter.send(request)
    numbers = range(1, len(script) + 1)
    assert [f"signature {number}" for number in numbers] == [sent.headers["Signature"] for sent in adapter.sent]
    assert [f"{before[1]}?signed={number}" for number in numbers] == [sent.url for sent in adapter.sent]
    assert before == (dict(request.headers), request.url)
    assert response.request is request


def test_without_a_change_the_callers_request_is_sent_itself() -> None:
    """No copy is made for a listener that only looks."""
    adapter = scripted(200, 503, 200, listeners=[Remembering()])
    first, second = prepare(), prepare()
    adapter.send(first)
    adapter.send(second)
    assert [True, True, True] == [
        sent.request is request for sent, request in zip(adapter.sent, (first, second, second), strict=True)
    ]


def test_a_body_is_sent_whole_by_every_copy() -> None:
    """A file is rewound for the copy as for the request itself."""
    adapter = scripted(503, 200, listeners=[Signing()])
    send(adapter, "PUT", data=io.BytesIO(b"the whole body"))
    assert [b"the whole body", b"the whole body"] == [sent.body for sent in adapter.sent]
    assert ["signature 1", "signature 2"] == [sent.headers["Signature"] for sent in adapter.sent]


def test_all_events_of_an_operation_have_the_same_one() -> None:
    """Values that a listener keeps in ``data`` before an attempt are there at the end, with the operation's facts."""
    log = Remembering()
    send(scripted(429, 200, listeners=[log], max_attempts=3), url="https://u:p@api.example.com/things?key=secret")
    events = [event for kind in log.events.values() for event in kind]
    (operation,) = {event.operation for event in events}
    operation.data[log] = "kept"
    assert ("GET", "https://api.example.com:443/things", "https://api.example.com:443", 3, {log: "kept"}) == (
        operation.method,
        operation.url,
        operation.scope,
        operation.max_attempts,
        operation.data,
    )
    assert repr(operation) == "<ObservedOperation GET https://api.example.com:443/things attempt 2>"


def test_events_carry_what_the_history_says() -> None:
    """Delay, votes, quota and stop reason are those of the record."""
    log = Remembering()
    response = send(scripted(429, 503, listeners=[log], max_attempts=2))
    history = retry_history(response)
    assert history is not None
    (scheduled,) = log.events["RetryScheduled"]
    assert (1.0, "backoff", history.attempts[0]) == (scheduled.delay, scheduled.delay_source, scheduled.record)
    assert [history] == [event.history for event in log.events["GaveUp"]]
    assert list(history.attempts) == [event.record for event in log.events["AfterAttempt"]]
    assert [history.attempts[0]] == [event.record for event in log.events["Throttled"]]


def test_a_first_try_success_has_a_record_when_asked() -> None:
    """The event of a first-try success makes a record from its own data."""
    log = Remembering()
    response = send(scripted(200, listeners=[log]))
    (after,) = log.events["AfterAttempt"]
    assert (1, 200, None, 0.0) == (after.record.number, after.record.status, after.record.error, after.record.duration)
    assert (200, response) == (after.status, after.response)


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
        adapter = _quick(method, number)
        session = session_with(adapter)
        [listener] = adapter.retry_config.listeners
        with pytest.raises(ZeroDivisionError, match=method):
            session.get(server.url, stream=stream)
        listener.is_mended = True
        assert requests.codes.ok == session.get(server.url, timeout=60).status_code


def _quick(method: str, number: int) -> Any:
    from requests_smithy_retry import RetryAdapter

    return RetryAdapter(
        pool_maxsize=1,
        pool_block=True,
        listeners=[Raising(method, number)],
        backoff=0,
        quota=500,
    )


@pytest.mark.parametrize("timeout", [None, 5])
@pytest.mark.parametrize("script", [(KeyboardInterrupt(),), (503, KeyboardInterrupt())])
def test_an_attempt_that_is_interrupted_is_told_to_its_end(script: tuple[Any, ...], timeout: int | None) -> None:
    """After Ctrl-C every before has its after, with the interruption as its error."""
    log = Remembering()
    with pytest.raises(KeyboardInterrupt):
        send(scripted(*script, listeners=[log], timeout=timeout))
    assert len(log.events["BeforeAttempt"]) == len(log.events["AfterAttempt"])
    last = log.events["AfterAttempt"][-1]
    assert (len(script), "KeyboardInterrupt") == (last.number, last.record.error)


@pytest.mark.parametrize("number", [1, 2])
def test_a_before_that_fails_halfway_is_ended_too(number: int) -> None:
    """Where a later listener raises before an attempt, the earlier one hears that the attempt is over."""
    log = Remembering()
    with pytest.raises(ZeroDivisionError):
        send(scripted(503, 200, listeners=[log, Raising("before_attempt", number)]))
    assert number == len(log.events["BeforeAttempt"])
    assert number == len(log.events["AfterAttempt"])
    assert isinstance(log.events["AfterAttempt"][-1].error, ZeroDivisionError)


def test_switched_off_nothing_is_told() -> None:
    """With retries off the adapter is a plain one, and tells nobody."""
    log = Remembering()
    with retry_options(enabled=False):
        assert send(scripted(503, listeners=[log])).status_code == 503
    assert send(scripted(503, listeners=[log], enabled=False)).status_code == 503
    assert {} == log.events


def test_an_operation_that_was_never_sent_is_given_up_at_attempt_0() -> None:
    """If no permit comes in time, the operation gives up without an attempt."""

    class Stingy(StandardRetryStrategy):
        def send_permit(self, *, token: Any, deadline: float | None, waited: float) -> None:
            raise RetryError("no permit", stop_reason=StopReason.RATE_LIMITED)

    log = Remembering()
    with pytest.raises(requests.exceptions.ConnectTimeout):
        send(scripted(strategy=Stingy(clock=FakeClock()), listeners=[log]))
    assert ["GaveUp"] == list(log.events)
    assert [(0, StopReason.RATE_LIMITED)] == [
        (event.number, event.history.stop_reason) for event in log.events["GaveUp"]
    ]
