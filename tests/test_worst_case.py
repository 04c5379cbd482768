"""What one operation can cost at most, in closed form (issue part 6)."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import RetryConfig, StandardRetryStrategy
from requests_smithy_retry.urllib3_rules import Urllib3Rules
from requests_smithy_retry.worst_case import WorstCase


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
        ({"initial_backoff": 0, "throttling_backoff": 0, "max_retry_after": 0}, WorstCase(3, 0, 10.0, None)),
        ({"on_empty": "wait", "refill_rate": 1}, WorstCase(3, None, None, None)),
        ({"on_empty": "wait", "refill_rate": 1, "operation_timeout": 9}, WorstCase(3, 9, 9, 9)),
        ({"mode": "adaptive"}, WorstCase(3, None, None, None)),
        ({"mode": "simple", "on_empty": "wait"}, WorstCase(3, 3.0, 240.0, None)),
        ({"urllib3_rules": Urllib3Rules(respect_retry_after=False, backoff_jitter=1.0)}, WorstCase(3, 5.0, 5.0, None)),
    ],
)
def test_the_worst_case(options, expected):
    """Attempts, backoff, sleep and wall time come from the options by arithmetic; None where nothing bounds them."""
    assert expected == RetryConfig(**options).worst_case()


def test_unlimited_attempts_are_summed_at_once():
    """The sum is closed: a config without a limit on attempts is not counted through."""
    worst = RetryConfig(max_attempts=sys.maxsize).worst_case()
    assert (sys.maxsize, True) == (worst.attempts, worst.sleep > 1e20)


@given(
    attempts=st.integers(1, 12),
    base=st.floats(0, 50),
    most=st.floats(0, 50),
    jitter=st.sampled_from(["full", "equal", "none", "decorrelated"]),
)
def test_no_backoff_is_longer(attempts, base, most, jitter):
    """Whatever the jitter throws, an operation's delays sum up to no more than the worst case says."""
    options = {"initial_backoff": base, "throttling_backoff": base, "max_backoff": most, "jitter": jitter}
    config = RetryConfig(max_attempts=attempts, **options)
    strategy = StandardRetryStrategy(config=config)
    strategy.backoff_strategy.random = lambda: 1 - 2**-53
    total, previous = 0.0, None
    for retry in range(1, attempts):
        previous = strategy.backoff_strategy.compute_next_backoff_delay(retry, previous)
        total += previous
    assert total <= config.worst_case().backoff * (1 + 1e-9)
    assert math.isfinite(config.worst_case().sleep)
