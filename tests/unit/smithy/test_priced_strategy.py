"""The standard strategy: the simple one and a quota (contract 6)."""

from __future__ import annotations

import pytest

from requests_smithy_retry import Outcome, StandardRetryStrategy, TokenBucket
from requests_smithy_retry.quotas import TokenBucketSnapshot
from requests_smithy_retry.testing import FakeClock
from tests.support import read_timeout, reset_error
from tests.unit.core.test_strategy import Safe, in_context, refresh, refusal, response


def strategy(**options) -> StandardRetryStrategy:
    """Return a strategy with the published numbers; the quota that waits has tests of its own."""
    options.setdefault("quota", 500)
    return StandardRetryStrategy(clock=FakeClock(), **options)


def begin(of, scope="a"):
    return of.acquire_initial_retry_token(token_scope=scope)


@pytest.mark.parametrize(
    ("spec", "price", "errors"),
    [
        ("2.1", 14, [Safe(), Safe(timeout=True)]),
        ("2.1", 5, [Safe(throttling=True)]),
        ("2.0", 5, [Safe(), Safe(throttling=True), Safe(timeout=True, throttling=True), reset_error()]),
        ("2.0", 10, [Safe(timeout=True), read_timeout()]),
    ],
)
def test_prices(spec, price, errors):
    """A retry takes its price from the scope's bucket, and the token says what it took."""
    of = strategy(retry_spec=spec)
    for number, error in enumerate(errors, 1):
        assert (price, 500 - number * price) == (refresh(of, begin(of), error).acquired, of.bucket("a").available)


@pytest.mark.parametrize("reward", [0, 1, 7.5])
def test_a_first_try_success_gives_the_reward(reward):
    """``success_reward`` is what a clean first success gives, up to the capacity."""
    of = strategy(quota=TokenBucket(500, success_reward=reward))
    refresh(of, begin(of))
    of.record_success(token=begin(of))
    assert 486 + reward == of.bucket("a").available
    for _ in range(20):
        of.record_success(token=begin(of))
    assert min(500, 486 + 21 * reward) == of.bucket("a").available


@pytest.mark.parametrize(("quota", "trouble"), [(0, "empty"), (1, "too small"), (13.5, "too small"), (14, "empty")])
def test_a_refusal_says_whether_the_quota_could_ever_do(quota, trouble):
    """A bucket that never holds the price is too small, not empty; one of capacity 0 is called empty."""
    of = strategy(quota=quota)
    if quota == 14:
        refresh(of, begin(of))
    held = of.bucket("a").available
    assert f"the retry budget of a is {trouble} ({held:g} of {quota:g}, needs 14)" == str(refusal(of, begin(of)))


def test_a_success_that_was_only_looked_at_keeps_what_its_retry_took():
    """The tokens come back when the success is recorded, and not after a final failure."""
    of = strategy(quota=lambda _: TokenBucket(100))
    token = refresh(of, begin(of))
    refusal(of, token, in_context(KeyError(), outcome=Outcome(response=response(200))))
    assert 86 == of.bucket("a").available
    of.record_success(token=token)
    assert 100 == of.bucket("a").available
    refusal(of, refresh(of, begin(of)), KeyError())
    assert 86 == of.bucket("a").available


class Foreign:
    """A foreign bucket with the protocol's methods and a ``source``."""

    capacity, available, source = 100, 50, "far away"

    def __init__(self) -> None:
        self.released: list[float] = []

    def acquire(self, amount, *, deadline=None):
        return amount < 10

    def release(self, amount):
        self.released.append(amount)

    def snapshot(self):
        return TokenBucketSnapshot(self.capacity, self.available, self.source)


def test_a_bucket_of_ones_own_is_told_of_everything():
    """A foreign bucket gets the reward of first-try successes; tokens and refusals have its ``source``."""
    bucket = Foreign()
    of = strategy(quota=bucket)
    of.record_success(token=begin(of))
    assert [1] == bucket.released
    token = refresh(of, begin(of), Safe(throttling=True))
    assert 5 == token.acquired
    assert "the retry budget of a (far away) is empty (50 of 100, needs 14)" == str(refusal(of, begin(of)))
    assert "the retry budget of the service (far away) is empty (50 of 100, needs 14)" == str(
        refusal(of, begin(of, None))
    )
    of.record_success(token=token)
    assert [1, 5] == bucket.released


def test_a_refusal_costs_nothing():
    """After a refusal for any reason, the bucket is as before (contract 2.6)."""
    of = strategy(max_attempts=2, max_retry_after=1)
    for error in (KeyError(), Safe(safe=False), Safe(retry_after=5), in_context(deadline=0.0)):
        refusal(of, begin(of), error)
    assert 500 == of.bucket("a").available
