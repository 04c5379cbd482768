"""``down_for`` of a snapshot says since when a service fails, by all that was sent to it."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import requests

from requests_smithy_retry import ErrorKind, RetryAction, RetryError, StandardRetryStrategy, classifier, retry_options
from requests_smithy_retry.testing import FakeClock
from tests.support import Reply, ended, read_timeout, scripted, send


def down_for(adapter: Any) -> float | None:
    """What the snapshot of the adapter's one service says."""
    (bucket,) = adapter.strategy.snapshot().buckets.values()
    return bucket.down_for


def fails_for_10s(**options: Any) -> Any:
    """An adapter whose service fails from now on, each attempt 10 s after the one before."""
    clock = FakeClock()

    def failing(status: Any) -> Any:
        clock.advance(10)
        return status

    return scripted(200, *[lambda request: failing(503)] * 9, clock=clock, **options)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("GET", {"patience": 0}),
        ("GET", {"max_attempts": 1}),
        ("POST", {}),
        ("POST", {"max_attempts": 1, "quota": 500}),
        ("PATCH", {"quota": 500}),
        ("GET", {"retry_spec": "2.1", "backoff": 0}),
        ("GET", {"mode": "adaptive", "max_attempts": 1}),
        ("GET", {"operation_timeout": 15, "max_attempts": 9}),
        ("GET", {"retry_status_codes": [], "max_attempts": 1}),
        ("GET", {"max_retries": 0}),
    ],
)
def test_each_failure_counts_whether_or_not_a_retry_could_follow(method: str, options: dict[str, Any]) -> None:
    """A POST without a key, a call of one attempt, and one without time or quota see that the service is down."""
    adapter = fails_for_10s(**options)
    send(adapter, method)
    assert down_for(adapter) is None
    send(adapter, method)
    assert down_for(adapter) is not None
    began = adapter.clock.now()
    send(adapter, method)
    seen = down_for(adapter)
    assert seen is not None
    assert seen >= adapter.clock.now() - began


def test_attempts_of_minutes_follow_one_another() -> None:
    """A service that lets each attempt hang for 400 s has been asked all the time."""
    clock = FakeClock()

    def hangs(answer: Any) -> Any:
        clock.advance(400)
        return answer

    bad, good = (lambda request: hangs(503)), (lambda request: hangs(200))
    adapter = scripted(bad, bad, bad, good, 503, clock=clock, max_attempts=1)
    for seconds in (0, 400, 800, None, 0):
        send(adapter)
        assert seconds == down_for(adapter)


ANSWERS: dict[str, tuple[Any, bool]] = {
    "200": (200, False),
    "404": (404, False),
    "401": (401, False),
    "409 and its like": (409, False),
    "500": (500, True),
    "501": (501, True),
    "503": (503, True),
    "429": (429, True),
    "a time-out": (read_timeout(), True),
    "a cut body": (Reply(200, cut=True), True),
    "a fault of the request": (ValueError("bad"), True),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_shows_that_the_service_works(name: str) -> None:
    """One that refuses a request as well; after a fault of the request, what was seen before stands."""
    answer, is_down = ANSWERS[name]
    adapter = scripted(503, answer, max_attempts=1)
    send(adapter)
    assert down_for(adapter) == 0
    try:
        ended(adapter)
    except ValueError:
        pass
    assert is_down == (down_for(adapter) is not None)


def test_a_poll_and_a_lock_are_no_failures() -> None:
    """The service works, and has no result yet or refuses this request for now."""
    adapter = scripted(*[200] * 3, validate=lambda response: len(adapter.sent) == 3 or 1.0)
    send(adapter)
    assert down_for(adapter) is None
    locked = classifier(lambda outcome: RetryAction.retryable_error_with_explicit_delay(ErrorKind.CLIENT, 1.0))
    adapter = scripted(423, max_attempts=1, classifiers=[locked])
    send(adapter)
    assert down_for(adapter) is None


@pytest.mark.parametrize(
    ("answered_in", "allowed", "is_down"),
    [
        (None, 0.05, False),
        (None, 1.0, True),  # nobody knows how long it takes
        (0.2, 0.05, False),
        (0.2, 1.0, True),
    ],
)
def test_a_time_out_at_a_callers_own_deadline_is_a_failure_if_the_service_could_have_answered(
    answered_in: float | None, allowed: float, is_down: bool
) -> None:
    """It could if it answered as fast the last time, or in a second where no time is known."""
    clock = FakeClock()

    def takes(seconds: float, answer: Any) -> Any:
        clock.advance(seconds)
        return answer

    adapter = scripted(clock=clock)
    if answered_in is not None:
        adapter.script.append(lambda request: takes(answered_in, 200))
        send(adapter)
    adapter.script.append(lambda request: takes(allowed, read_timeout()))
    with retry_options(deadline=allowed):
        ended(adapter)
    assert is_down == (down_for(adapter) is not None)


def test_a_time_out_before_a_callers_own_deadline_is_a_failure() -> None:
    """The time was that of the configuration, so the service did not use it."""
    adapter = scripted(read_timeout(), operation_attempt_timeout=0.6, max_attempts=1)
    with retry_options(deadline=1.8):
        ended(adapter)
    assert 0 == down_for(adapter)


def test_a_time_out_of_the_configuration_is_a_failure() -> None:
    """It says how long the program thinks that an answer may take."""
    adapter = scripted(read_timeout(), operation_timeout=2, max_attempts=1)
    ended(adapter)
    assert 0 == down_for(adapter)


def test_a_single_failure_is_not_told_for_ever() -> None:
    """Five minutes after the last attempt nobody knows how the service is; the next failure begins anew."""
    adapter = scripted(503, 503, 503, max_attempts=1)
    send(adapter)
    adapter.clock.advance(200)
    assert down_for(adapter) == 200
    send(adapter)
    adapter.clock.advance(300)
    assert down_for(adapter) == 500
    adapter.clock.advance(1)
    assert down_for(adapter) is None
    send(adapter)
    assert down_for(adapter) == 0


def test_a_strategy_that_forgets_knows_nothing() -> None:
    """``forget`` includes it."""
    adapter = scripted(503, max_attempts=1)
    send(adapter)
    adapter.forget()
    assert down_for(adapter) is None


def test_an_exception_that_says_nothing_of_the_service_changes_nothing() -> None:
    """A program that drives the strategy by hand may show it any."""
    strategy = StandardRetryStrategy(clock=FakeClock())
    for error, seen in (ValueError("bad"), None), (requests.exceptions.ConnectionError(), 0), (ValueError("bad"), 0):
        with contextlib.suppress(RetryError):
            token = strategy.acquire_initial_retry_token(token_scope="x")
            strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
        assert seen == strategy.snapshot().buckets["x"].down_for
