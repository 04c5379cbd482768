"""A wait that ends close to the deadline, or a thread that wakes late: the caller gets the answer that there is."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import requests.exceptions

from requests_smithy_retry import SimpleRetryStrategy, StopReason, TokenBucket, retry_history, retry_summary
from requests_smithy_retry.core.policy import LEAST_TIME, leaves_time
from requests_smithy_retry.policy import RetryDirective, RetryErrorType, RetryFailure, retry
from requests_smithy_retry.testing import FakeClock
from tests.behaviour.test_listeners import Log
from tests.support import Guide, Reply, ended, read_timeout, scripted, send, session_with


class Drowsy(FakeClock):
    """Wakes 0.1 s late, as the thread of a busy machine does."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds + 0.1)


LIMITS: dict[str, Any] = {"operation_timeout": 0.2, "max_attempts": 9, "quota": None, "backoff": 0.15}


def drowsy(*script: Any, **options: Any) -> Any:
    """An adapter whose wait of 0.15 s has room before the deadline, and whose thread sleeps past it."""
    return scripted(*script, clock=Drowsy(), **{**LIMITS, **options})


@pytest.mark.parametrize("stream", [False, True])
def test_who_wakes_late_gets_the_answer_that_there_is(stream: bool) -> None:
    """It is the server's 503, with its body; no attempt is made or counted after the deadline."""
    adapter = drowsy(Reply(503, body=b"busy"))
    response = send(adapter, stream=stream)
    history = retry_history(response)
    assert (503, b"busy", 1) == (response.status_code, response.content, len(adapter.sent))
    assert (1, StopReason.DEADLINE) == (len(history.attempts), history.stop_reason)
    assert "the deadline had passed before the request was sent" in history.explain()


def test_who_wakes_late_gets_the_error_that_there_is() -> None:
    """The last attempt's own exception is raised, not one of an attempt that sends nothing."""
    error = read_timeout()
    adapter = drowsy(error)
    assert ended(adapter) is error
    assert 1 == len(retry_history(error).attempts)


def test_a_status_is_raised_where_that_is_asked_for() -> None:
    """``raise_on_status`` raises for this ending as for any that gives up."""
    error = ended(drowsy(503, raise_on_status=True))
    assert isinstance(error, requests.exceptions.RetryError)
    assert 503 == error.response.status_code


def test_listeners_and_the_summary_count_one_attempt() -> None:
    """One was begun and ended, the call gave up, and nothing was retried."""
    log = Log()
    adapter = drowsy(503, listeners=[log])
    send(adapter)
    assert ["BeforeAttempt", "AfterAttempt", "RetryScheduled", "GaveUp"] == log.names
    summary = retry_summary(session_with(adapter))
    assert (1, 0, 0, 1) == (summary.operations, summary.retries, summary.saved, summary.lost)


def test_what_the_retry_paid_comes_back() -> None:
    """A retry that is not sent costs nothing."""
    bucket = TokenBucket(20)
    send(drowsy(503, quota=bucket))
    assert 20 == bucket.snapshot().available


def test_a_strategy_of_ones_own_wakes_late_too() -> None:
    """The rule is the adapter's, whatever the strategy."""
    adapter = scripted(503, clock=Drowsy(), strategy=Guide(delay=0.15), operation_timeout=0.2)
    assert 503 == send(adapter).status_code
    assert 1 == len(adapter.sent)


def test_credentials_that_come_too_late_leave_the_401() -> None:
    """A function that takes longer than the time that is left gets nothing sent."""
    adapter = drowsy(401, on_unauthorized=lambda response: adapter.clock.advance(1) or {"Authorization": "new"})
    assert 401 == send(adapter, headers={"Authorization": "old"}).status_code
    assert 1 == len(adapter.sent)


USED_UP = Reply(200, {"RateLimit-Limit": "1", "RateLimit-Remaining": "0", "RateLimit-Reset": "1"})


def test_a_first_attempt_that_is_let_in_too_late_is_not_counted() -> None:
    """A call that waits for a rate limit until after the deadline has sent nothing, and says so."""
    adapter = scripted(USED_UP, clock=Drowsy(), operation_timeout=1.05)
    send(adapter)
    error = ended(adapter)
    assert isinstance(error, requests.exceptions.ConnectTimeout)
    assert ((), StopReason.DEADLINE) == (retry_history(error).attempts, retry_history(error).stop_reason)
    assert 1 == len(adapter.sent)


@pytest.mark.parametrize(
    ("backoff", "sleeps"), [(0.15, [0.15]), (0.197, [0.197]), (0.199, []), (0.2, []), (0.25, [])], ids=str
)
def test_a_wait_that_ends_too_close_to_the_deadline_is_not_made(backoff: float, sleeps: list[float]) -> None:
    """A retry needs 2 ms at least; with less, its failure would take the place of the last answer."""
    adapter = scripted(503, 503, **{**LIMITS, "max_attempts": 2, "backoff": backoff})
    assert 503 == send(adapter).status_code
    assert sleeps == adapter.clock.sleeps


@pytest.mark.parametrize(
    ("moment", "deadline", "is_first", "expected"),
    [
        (5.0, None, False, True),
        (5.0, 5.5, False, True),
        (5.0, 5.0 + LEAST_TIME / 2, False, False),
        (5.0, 5.0 + LEAST_TIME / 2, True, True),
        (5.0, 5.0, True, False),
        (5.0, 5.0, False, False),
        (5.0, 4.0, False, False),
        (5.0, 4.0, True, False),
    ],
)
def test_the_rule(moment: float, deadline: float | None, is_first: bool, expected: bool) -> None:
    """A first attempt needs any time at all, a retry a little."""
    assert expected == leaves_time(moment, deadline, is_first=is_first)


class Never:
    """A policy that wants another try whatever comes."""

    def evaluate(self, result: Any, /) -> RetryDirective:
        return RetryDirective.RetryError(RetryErrorType.ServerSide)


def test_a_block_is_not_run_again_after_its_time() -> None:
    """The loop around any block of code, which wakes late, ends with the last value."""
    clock, runs = Drowsy(), []
    strategy = SimpleRetryStrategy(max_attempts=9, backoff=0.15, clock=clock)
    with pytest.raises(RetryFailure) as caught:
        retry(Never(), lambda: runs.append(clock.now()), strategy=strategy, max_time=0.2, clock=clock)
    assert (1, StopReason.DEADLINE) == (len(runs), caught.value.stop_reason)
