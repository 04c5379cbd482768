"""Values that come from other people's code: a strategy's delays and permits, a policy's directives, a backoff."""

from __future__ import annotations

import dataclasses
import math
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    RetryAction,
    RetryAdapter,
    RetryConfigError,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    StopReason,
    TokenBucket,
    classifier,
    retry_history,
)
from requests_smithy_retry.events import RetryScheduled
from requests_smithy_retry.policy import Result, RetryDirective, RetryErrorType, acquire_token, retry
from requests_smithy_retry.testing import FakeClock, scripted
from tests.support import Guide, send


class PermitOfNever(Guide):
    """A foreign strategy whose limiter never gives a permit, and does not look at the deadline."""

    class Wait:
        def rest(self, clock: Any) -> None:
            clock.sleep(0.5)

    def send_permit(self, *, token: Any, deadline: float | None, waited: float) -> PermitOfNever.Wait:
        if waited > 60:
            raise AssertionError("waited past every deadline")
        return self.Wait()


def test_a_foreign_limiter_that_knows_no_deadline_is_cut_off_at_it() -> None:
    """No wait for a permit passes `operation_timeout`, whatever the strategy's own limiter does."""
    adapter = scripted(200, strategy=PermitOfNever(), operation_timeout=5)
    with pytest.raises(requests.ConnectTimeout) as caught:
        send(adapter)
    history = retry_history(caught.value)
    assert (history.stop_reason, sum(adapter.clock.sleeps)) == (StopReason.RATE_LIMITED, 4.5)


class PermitByAnotherClock(PermitOfNever):
    """Its waits go by another clock than that of the call."""

    def send_permit(self, **_: Any) -> Any:
        return RestOfASecond(self.clock)


class RestOfASecond:
    """A rest of a second."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def rest(self, clock: Any) -> None:
        """Advance the other clock."""
        self.own.advance(1)


def test_a_foreign_limiter_that_waits_by_another_clock_is_cut_off_at_the_deadline() -> None:
    """It is asked no more once the deadline has passed."""
    strategy: Any = PermitByAnotherClock()
    adapter = scripted(200, strategy=strategy, operation_timeout=5)
    strategy.clock = adapter.clock
    with pytest.raises(requests.ConnectTimeout) as caught:
        send(adapter)
    assert retry_history(caught.value).stop_reason is StopReason.RATE_LIMITED


class Undelayed(SimpleRetryStrategy):
    """A built-in strategy whose retries name no delay."""

    def refresh_retry_token_for_retry(self, **told: Any) -> Any:
        return dataclasses.replace(super().refresh_retry_token_for_retry(**told), retry_delay=None)


@pytest.mark.parametrize("strategy", [Guide(delay=None), Undelayed(clock=FakeClock())], ids=["foreign", "subclass"])
def test_a_retry_without_a_delay_is_one_after_no_wait_to_everybody(strategy: Any) -> None:
    """The clock, listeners, the history, and a loop by hand take a `retry_delay` of None for 0 s."""
    told: list[RetryScheduled] = []
    listener = SimpleNamespace(retry_scheduled=told.append)
    adapter = scripted(503, 200, strategy=strategy, listeners=[listener])
    history = retry_history(send(adapter))
    assert [each.delay for each in told] == [0.0]
    assert (adapter.clock.sleeps, [each.delay for each in history.attempts]) == ([], [0.0, 0.0])
    again = acquire_token(strategy).schedule_retry(RetryErrorType.ServerSide)
    assert again.retry_delay == 0.0


@pytest.mark.parametrize("delay", [math.nan, math.inf, "3", object()])
def test_a_foreign_delay_that_is_no_number_of_seconds_is_named(delay: Any) -> None:
    """A delay that cannot be slept is an error that names the strategy and the value, not a wait without end."""
    adapter = scripted(503, 200, strategy=Guide(delay=delay))
    with pytest.raises((TypeError, ValueError), match=r"retry_delay.*Guide"):
        send(adapter)


class Says:
    """A policy that says one thing of whatever happened."""

    def __init__(self, directive: Any) -> None:
        self.directive = directive

    def evaluate(self, result: Result[Any]) -> Any:
        return self.directive


@pytest.mark.parametrize("max_time", [0, -1, math.nan, math.inf, True, "3"])
def test_a_max_time_that_bounds_nothing_is_refused(max_time: Any) -> None:
    """`max_time` is None or a finite number of seconds above 0."""
    with pytest.raises(ValueError, match="max_time="):
        retry(Says(RetryDirective.TerminateAndSucceed), lambda: 1, strategy=StandardRetryStrategy(), max_time=max_time)


@pytest.mark.parametrize("reason", [None, "ServerSide", 3])
def test_a_retry_for_no_reason_is_refused_and_spends_no_token(reason: Any) -> None:
    """A reason that is not a ``RetryErrorType`` is refused, and the token can still be used."""
    token = acquire_token(StandardRetryStrategy())
    with pytest.raises(TypeError, match="RetryErrorType"):
        token.schedule_retry(reason)
    token.notify_success()


def test_a_wait_too_small_for_its_clock_is_over() -> None:
    """Where the clock cannot show the rest of a wait, the tokens are there: no loop without end."""
    clock = FakeClock(now=1_000_000_750.581162)
    bucket = TokenBucket(14, initial=9, refill_rate=1, on_empty="wait", clock=clock)
    assert bucket.acquire(10.299584443591518)


@classifier
def locked(outcome: Any) -> RetryAction | None:
    """Made as the guide makes one."""
    return RetryAction.transient_error() if outcome.status == 423 else None


@pytest.mark.parametrize(("option", "value"), [("backoff", "5"), ("backoff", object), ("config", 5)])
def test_a_strategy_is_not_made_of_what_cannot_work(option: str, value: Any) -> None:
    """A wrong part is refused when the strategy is made, not at the first retry."""
    with pytest.raises(RetryConfigError, match=f"{option}="):
        StandardRetryStrategy(**{option: value})


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_classifier_made_by_the_decorator_can_be_pickled(protocol: int) -> None:
    """The documented form of a classifier goes to another process with its adapter."""
    copied = pickle.loads(pickle.dumps(RetryAdapter(classifiers=[locked]), protocol))
    assert copied.retry_config.classifiers == (locked,)


@pytest.mark.parametrize("directive", [None, True, "retry", RetryErrorType.ServerSide, RetryDirective.RetryError])
def test_a_policy_that_returns_no_directive_is_told_so(directive: Any) -> None:
    """A policy that forgot its return does not turn a good value into a failure in silence."""
    with pytest.raises(TypeError, match=r"Says.*RetryDirective"):
        retry(Says(directive), lambda: 1, strategy=StandardRetryStrategy())
