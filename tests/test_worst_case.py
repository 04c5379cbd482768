"""What one operation can cost at most, in closed form (issue 6.6)."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import PayoffTokenBucket, RetryConfig, StandardRetryStrategy, TokenBucket
from requests_smithy_retry.urllib3_rules import Urllib3Rules
from requests_smithy_retry.worst_case import WorstCase

NO_BACKOFF = {"initial_backoff": 0, "throttling_backoff": 0, "max_retry_after": 0}
JITTERED = {"urllib3_rules": Urllib3Rules(backoff_jitter=2.0)}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, WorstCase(3, 3.0, 240.0, None)),
        ({"max_attempts": 1}, WorstCase(1, 0, 0, None)),
        ({"enabled": False}, WorstCase(1, 0.0, 0.0, None)),
        ({"max_attempts": 7, "max_retry_after": 0}, WorstCase(7, 1 + 2 + 4 + 8 + 16 + 20, 51 + 6 * 5, None)),
        ({"operation_timeout": 30}, WorstCase(3, 3.0, 30, 30)),
        ({"operation_attempt_timeout": 10, "max_retry_after": 0}, WorstCase(3, 3.0, 13.0, 43.0)),
        ({"operation_attempt_timeout": 10, "operation_timeout": 20}, WorstCase(3, 3.0, 20, 20)),
        ({"jitter": "decorrelated", "max_retry_after": 0}, WorstCase(3, 40.0, 50.0, None)),
        ({"max_backoff": 0, "max_retry_after": 0}, WorstCase(3, 0, 10.0, None)),
        (NO_BACKOFF, WorstCase(3, 0, 10.0, None)),
        ({"initial_backoff": 4, "max_retry_after": 0}, WorstCase(3, 4 + 8, 12 + 2 * 5, None)),
        ({"throttling_backoff": 9, "max_backoff": 10, "max_retry_after": 0}, WorstCase(3, 19, 19 + 2 * 5, None)),
        ({"throttling_backoff": 20, "max_attempts": 2, "max_retry_after": 0}, WorstCase(2, 20, 25, None)),
        ({"on_empty": "wait", "refill_rate": 1}, WorstCase(3, None, None, None)),
        ({"on_empty": "wait", "operation_attempt_timeout": 10}, WorstCase(3, None, None, None)),
        ({"on_empty": "wait", "quota": None}, WorstCase(3, 3.0, 240.0, None)),
        ({"quota": TokenBucket(5, on_empty="wait")}, WorstCase(3, None, None, None)),
        ({"on_empty": "wait", "refill_rate": 1, "operation_timeout": 9}, WorstCase(3, 9, 9, 9)),
        ({"mode": "adaptive"}, WorstCase(3, None, None, None)),
        ({"mode": "adaptive", "max_permit_wait": 5}, WorstCase(3, 3.0 + 3 * 5, 240.0 + 3 * 5, None)),
        ({"mode": "adaptive", "max_permit_wait": 0}, WorstCase(3, 3.0, 240.0, None)),
        ({"mode": "standard", "max_permit_wait": 5}, WorstCase(3, 3.0, 240.0, None)),
        ({"mode": "simple", "on_empty": "wait"}, WorstCase(3, 3.0, 240.0, None)),
        ({"urllib3_rules": Urllib3Rules()}, WorstCase(3, 3.0, 240.0, None)),
        ({"urllib3_rules": Urllib3Rules(respect_retry_after=False, backoff_jitter=1.0)}, WorstCase(3, 5.0, 5.0, None)),
        ({**NO_BACKOFF, **JITTERED}, WorstCase(3, 2 * 2.0, 2 * 7.0, None)),
        ({**NO_BACKOFF, **JITTERED, "max_backoff": 1.5}, WorstCase(3, 2 * 1.5, 2 * 6.5, None)),
        ({"max_backoff": 2.5, **JITTERED, "max_retry_after": 0}, WorstCase(3, 2 * 2.5, 2 * 7.5, None)),
        ({**NO_BACKOFF, **JITTERED, "jitter": "decorrelated"}, WorstCase(3, 2 * 20.0, 2 * 25.0, None)),
        ({**NO_BACKOFF, "jitter": "decorrelated"}, WorstCase(3, 0, 10.0, None)),
    ],
)
def test_the_worst_case(options, expected):
    """Attempts, backoff, sleep and wall time come from the options by arithmetic; None where nothing bounds them."""
    assert expected == RetryConfig(**options).worst_case()


@pytest.mark.parametrize("quota", [TokenBucket(5), PayoffTokenBucket(), "payoff"])
def test_a_bucket_of_the_programs_own_goes_by_its_own_rule(quota):
    """A fleet's variable that says otherwise does nothing."""
    config = RetryConfig(quota=quota).replace_from({"on_empty": "a variable"}, on_empty="wait")
    assert WorstCase(3, 3.0, 240.0, None) == config.worst_case()


def test_unlimited_attempts_are_summed_at_once():
    """The sum is closed: a config without a limit on attempts is not counted through."""
    worst = RetryConfig(max_attempts=sys.maxsize).worst_case()
    assert (sys.maxsize, True) == (worst.attempts, worst.sleep > 1e20)


@pytest.mark.parametrize("attempts", [1000, 3000])
def test_delays_may_double_as_often_as_a_float_holds(attempts):
    """From the smallest number to the largest cap; the bound is the sum of what is computed."""
    config = RetryConfig(max_attempts=attempts, initial_backoff=5e-324, throttling_backoff=0, max_backoff=1e300)
    backoff = StandardRetryStrategy(config=config.replace(jitter="none")).backoff_strategy
    assert sum(map(backoff.compute_next_backoff_delay, range(attempts))) == pytest.approx(config.worst_case().backoff)


@given(
    attempts=st.integers(1, 12),
    base=st.floats(0, 50),
    most=st.floats(0, 50),
    jitter=st.sampled_from(["full", "equal", "none", "decorrelated"]),
    rules=st.none() | st.builds(Urllib3Rules, backoff_jitter=st.floats(0, 5)),
)
def test_no_backoff_is_longer(attempts, base, most, jitter, rules):
    """Whatever the jitter throws, an operation's delays sum up to no more than the worst case says."""
    options = {"initial_backoff": base, "throttling_backoff": base, "max_backoff": most, "jitter": jitter}
    config = RetryConfig(max_attempts=attempts, urllib3_rules=rules, **options)
    strategy = StandardRetryStrategy(config=config)
    getattr(strategy.backoff_strategy, "inner", strategy.backoff_strategy).random = lambda: 1 - 2**-53
    total, previous = 0.0, None
    for retry in range(1, attempts):
        previous = strategy.backoff_strategy.compute_next_backoff_delay(retry, previous)
        total += previous
    assert total <= config.worst_case().backoff * (1 + 1e-9)
    assert math.isfinite(config.worst_case().sleep)
