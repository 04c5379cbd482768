"""The loop of the smithy-kotlin design on top of a Smithy strategy."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from requests_smithy_retry import (
    AdaptiveRetryStrategy,
    RetryConfigWarning,
    RetryError,
    StandardRetryStrategy,
    StopReason,
    TokenError,
    retry_options,
)
from requests_smithy_retry.policy import (
    Result,
    RetryDirective,
    RetryErrorType,
    RetryFailure,
    StandardRetryPolicy,
    acquire_token,
    directed,
    retry,
)
from requests_smithy_retry.testing import FakeClock
from tests.support import Guide
from tests.unit.classifiers.test_modeled import Info

AGAIN = RetryDirective.RetryError(RetryErrorType.ServerSide)


def block_of(*results: Any) -> Callable[[], Any]:
    """A block that gives these results in turn, raising the exceptions among them."""
    left = list(results)

    def block() -> Any:
        result = left.pop(0)
        if isinstance(result, BaseException):
            raise result
        return result

    return block


class Until:
    """A policy that wants one value, and retries anything else for one reason."""

    def __init__(self, wanted: Any, directive: RetryDirective = AGAIN) -> None:
        self.wanted = wanted
        self.directive = directive

    def evaluate(self, result: Result[Any], /) -> RetryDirective:
        return RetryDirective.TerminateAndSucceed if result.value == self.wanted else self.directive


def strategy_on(clock: FakeClock, **options: Any) -> StandardRetryStrategy:
    """A strategy without jitter, with the published numbers."""
    options.setdefault("quota", 500)
    return StandardRetryStrategy(jitter="none", clock=clock, **options)


@pytest.mark.parametrize(
    ("reason", "left", "delay"),
    [
        (RetryErrorType.ServerSide, 486, 0.05),
        (RetryErrorType.ClientSide, 486, 0.05),
        (RetryErrorType.Throttling, 495, 1.0),
        (RetryErrorType.Timeout, 486, 0.05),
    ],
)
def test_each_reason_has_its_price_and_its_pace(reason: RetryErrorType, left: int, delay: float) -> None:
    """Each reason has the strategy's price and pace; a success gives the price back."""
    clock = FakeClock()
    strategy = strategy_on(clock)
    seen = []

    def block() -> str:
        seen.append(strategy.bucket().available)
        return "done" if len(seen) == 2 else "pending"

    policy = Until("done", RetryDirective.RetryError(reason))
    assert retry(policy, block, strategy=strategy, clock=clock) == "done"
    assert (seen, clock.sleeps, strategy.bucket().available) == ([500, left], [delay], 500)


@pytest.mark.parametrize(
    ("reason", "quota", "least"),
    [(RetryErrorType.ServerSide, 28, 14), (RetryErrorType.Throttling, 500, 500 - 8 * 5)],
)
def test_who_waits_for_a_value_takes_one_price_at_a_time(reason: RetryErrorType, quota: int, least: int) -> None:
    """The next value gives it back: a waiter does not drain the quota; throttled values do."""
    clock = FakeClock()
    strategy = strategy_on(clock, quota=quota, max_attempts=9)
    seen = []

    def block() -> str:
        seen.append(strategy.bucket().available)
        return "done" if len(seen) == 9 else "pending"

    policy = Until("done", RetryDirective.RetryError(reason))
    assert (retry(policy, block, strategy=strategy, clock=clock), min(seen)) == ("done", least)


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_attempts": 1}, StopReason.MAX_ATTEMPTS),
        ({"enabled": False}, StopReason.DISABLED),
        ({"deadline": 1}, StopReason.DEADLINE),
    ],
)
def test_a_block_of_retry_options_around_the_loop_holds(options: Any, reason: StopReason, foreign: bool) -> None:
    """The block's options bound the loop with a built-in strategy and with one that does not know blocks."""
    clock = FakeClock()
    strategy: Any = Unbounded() if foreign else strategy_on(clock, backoff=10)
    tries = []
    with retry_options(**options, clock=clock), pytest.raises(RetryFailure) as caught:
        retry(Until("done"), lambda: tries.append(clock.now()), strategy=strategy, clock=clock)
    assert ([0], reason) == (tries, caught.value.stop_reason)


class Busy(Exception):
    """An error with the three attributes of the smithy-python design, and no fourth."""

    is_retry_safe, retry_after, is_throttling_error = True, 7.0, False


def test_the_floor_of_an_error_of_the_older_design_is_kept() -> None:
    """An error of the older design, without ``is_timeout_error``, keeps its floor."""
    clock = FakeClock()
    assert retry(StandardRetryPolicy(), block_of(Busy(), "done"), strategy=strategy_on(clock), clock=clock) == "done"
    assert clock.sleeps == [7.0]


class Throttled(Busy):
    """Asks for fewer requests."""

    retry_after, is_throttling_error = None, True


def test_the_limiter_gives_leave_before_each_try() -> None:
    """Throttled, the loop goes as slowly as the limiter says: one try in two seconds."""
    clock = FakeClock()
    strategy = AdaptiveRetryStrategy(clock=clock, backoff=0, max_attempts=2, quota=None)
    for _ in range(10):
        with pytest.raises(Throttled):
            retry(StandardRetryPolicy(), block_of(Throttled(), Throttled()), strategy=strategy, clock=clock)
    assert clock.now() >= 2.0 * 18


def test_without_leave_in_time_there_is_no_try() -> None:
    """Without a permit in time there is neither a first nor a further try, and the last outcome is handed over."""
    clock = FakeClock()
    strategy = AdaptiveRetryStrategy(clock=clock, backoff=0, max_permit_wait=0)
    with pytest.raises(Throttled):
        retry(StandardRetryPolicy(), block_of(Throttled()), strategy=strategy, clock=clock)
    with pytest.raises(RetryError) as caught:
        retry(StandardRetryPolicy(), block_of(), strategy=strategy, clock=clock)
    assert StopReason.RATE_LIMITED is caught.value.stop_reason


def test_tries_count_as_in_the_adapter() -> None:
    """A service that comes back is waited for, while there is patience and while tries are left."""
    clock = FakeClock()
    strategy = strategy_on(clock, quota="payoff")

    tries: list[float] = []

    def block() -> str:
        tries.append(clock.now())
        if clock.now() < 3:
            raise Info(True)
        return "done"

    with retry_options(max_attempts=2), pytest.raises(Info):
        retry(StandardRetryPolicy(), block, strategy=strategy, clock=clock)
    assert 2 == len(tries)
    assert "done" == retry(StandardRetryPolicy(), block, strategy=strategy, clock=clock)
    assert 3 <= clock.now() < 5


def test_the_last_exception_comes_through_when_attempts_run_out() -> None:
    """The very one, without a RetryError in its context; what was taken is not given back."""
    clock = FakeClock()
    strategy = strategy_on(clock, max_attempts=2)
    last = Info(True)
    with pytest.raises(Info) as caught:
        retry(StandardRetryPolicy(), block_of(Info(True), last), strategy=strategy, clock=clock)
    assert caught.value is last
    assert caught.value.__context__ is None
    assert strategy.bucket().available == 486


def test_a_value_that_was_not_the_wanted_one_ends_in_a_failure_that_carries_it() -> None:
    """The failure carries the last value and the strategy's reason."""
    clock = FakeClock()
    with pytest.raises(RetryFailure) as caught:
        retry(Until("done"), block_of(1, 2, 3), strategy=strategy_on(clock), clock=clock)
    assert (caught.value.value, caught.value.stop_reason) == (3, StopReason.MAX_ATTEMPTS)


def test_terminate_and_fail_raises_at_once() -> None:
    """The exception, or a failure with the value."""
    clock = FakeClock()
    strategy = strategy_on(clock)
    with pytest.raises(RuntimeError, match="bug"):
        retry(StandardRetryPolicy(), block_of(RuntimeError("bug")), strategy=strategy, clock=clock)
    with pytest.raises(RetryFailure, match="the policy wants no retry") as caught:
        retry(Until("x", RetryDirective.TerminateAndFail), block_of("y"), strategy=strategy, clock=clock)
    assert caught.value.stop_reason is StopReason.FORBIDDEN


@pytest.mark.parametrize(
    ("foreign", "slept", "last"), [(False, [1, 2], 3), (True, [], 1)], ids=["ours", "one that knows no deadline"]
)
def test_max_time_bounds_all_tries_and_waits(foreign: bool, slept: list[int], last: int) -> None:
    """A wait that would not end in time is not begun."""
    clock = FakeClock()
    ours = strategy_on(clock, backoff=lambda attempt, _: attempt, max_attempts=10)
    strategy: Any = Unbounded() if foreign else ours
    with pytest.raises(RetryFailure) as caught:
        retry(Until("done"), block_of(1, 2, 3, 4), strategy=strategy, clock=clock, max_time=4)
    assert (clock.sleeps, caught.value.stop_reason, caught.value.value) == (slept, StopReason.DEADLINE, last)


class Unbounded(Guide):
    """A strategy of the program's that always allows one more attempt, in ten seconds."""

    max_attempts = 3

    def __init__(self, first: Any = 0.0) -> None:
        super().__init__(delay=10.0, first=first)


def test_a_foreign_strategy_is_told_in_the_words_of_error_retry_info() -> None:
    """Throttling, timeout, fault, and the exception's own floor."""
    strategy, clock = Unbounded(), FakeClock()
    policy = Until("done", RetryDirective.RetryError(RetryErrorType.Throttling))
    assert retry(policy, block_of(Info(None, 7), "done"), strategy=strategy, clock=clock) == "done"
    (error,) = strategy.shown
    told = (error.is_retry_safe, error.is_throttling_error, error.is_timeout_error, error.retry_after, error.fault)
    assert told == (True, True, False, 7, "server")
    client = directed(RetryErrorType.ClientSide, None, None, clock)
    assert (client.fault, client.retry_after) == ("client", None)
    assert directed(RetryErrorType.Timeout, None, None, clock).is_timeout_error is True


def test_ctrl_c_is_not_judged() -> None:
    """Ctrl-C propagates, and the token is dropped."""
    with pytest.raises(KeyboardInterrupt):
        retry(Until("done"), block_of(KeyboardInterrupt()), strategy=strategy_on(FakeClock()), clock=FakeClock())


@pytest.mark.parametrize("first", ["success", "failure", "schedule"])
@pytest.mark.parametrize("second", ["success", "failure", "schedule"])
def test_a_token_is_good_for_one_call(first: str, second: str) -> None:
    """After a call of any of its three methods, a token refuses further calls."""
    token = acquire_token(strategy_on(FakeClock()), "scope")

    def call(which: str) -> Any:
        if which == "schedule":
            return token.schedule_retry(RetryErrorType.ServerSide)
        return token.notify_success() if which == "success" else token.notify_failure()

    call(first)
    with pytest.raises(TokenError, match="good for one call"):
        call(second)


def test_what_the_token_does_to_the_quota() -> None:
    """A retry takes, a success gives that back, a failure gives nothing."""
    strategy = strategy_on(FakeClock())
    retried = acquire_token(strategy).schedule_retry(RetryErrorType.Throttling)
    assert (retried.retry_delay, strategy.bucket().available) == (1.0, 495)
    retried.notify_success()
    assert strategy.bucket().available == 500
    acquire_token(strategy).schedule_retry(RetryErrorType.ServerSide).notify_failure()
    assert strategy.bucket().available == 486


@pytest.mark.parametrize("ending", ["done", "pending"])
def test_without_a_first_token_there_is_one_try(ending: str) -> None:
    """Without a first token the block is tried once, whether the policy accepts its result or not."""
    strategy = Unbounded(RetryError("not today"))
    if ending == "done":
        assert retry(Until("done"), block_of("done"), strategy=strategy, clock=FakeClock()) == "done"
        return
    with pytest.raises(RetryFailure, match="not today"):
        retry(Until("done"), block_of("pending"), strategy=strategy, clock=FakeClock())


@pytest.mark.parametrize(
    ("options", "name"), [({"cancel": threading.Event()}, "cancel"), ({"max_wait": 1}, "max_wait")]
)
def test_a_block_that_cannot_end_its_waits_is_warned_of(options: dict[str, Any], name: str) -> None:
    """At the program's own line: the options that end the waits of requests do not end those of other code."""
    clock = FakeClock()
    with retry_options(**options), pytest.warns(RetryConfigWarning, match=f"{name}=...") as warned:
        assert 1 == retry(Until(1), block_of(0, 1), strategy=strategy_on(clock), clock=clock)
    assert [__file__] == [each.filename for each in warned]
