"""The bound on retries in vain: what each quota may lose at first, for each success, and by the clock."""

import sys

import pytest

from requests_smithy_retry import PayoffTokenBucket, RetryConfig, TokenBucket
from requests_smithy_retry.config.report import InVain
from requests_smithy_retry.features.redis import RedisQuota

SHARED = "redis://127.0.0.1:1"
"""Nothing connects to it here."""


class Foreign:
    """A program's own quota, of which nothing is known but that it has these."""

    capacity = available = 5

    def acquire(self, amount, *, deadline=None):
        raise AssertionError

    release = snapshot = acquire


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, InVain(2, 4, 2)),
        ({"operation_timeout": 30}, InVain(2, 4, 2)),
        ({"quota": PayoffTokenBucket()}, InVain(2, 4, 2)),
        ({"mode": "adaptive"}, InVain(2, 4, 2)),
        ({"max_attempts": 2}, InVain(1, 3, 2)),
        ({"max_attempts": 7}, InVain(6, 12, 2)),
        ({"max_attempts": 1001}, InVain(1000, 2000, 1000 / 300)),
        ({"max_attempts": sys.maxsize}, InVain(36, 72, 2)),
        ({"patience": 0, "max_attempts": 2}, InVain(1, 2, 1 / 300)),
        ({"quota": 500}, InVain(100, 0.2, 0)),
        ({"quota": 500, "mode": "adaptive"}, InVain(100, 0.2, 0)),
        ({"retry_spec": "2.0"}, InVain(100, 0.2, 0)),
        ({"quota": TokenBucket(50, success_reward=5, refill_rate=10)}, InVain(10, 1, 2)),
        ({"quota": lambda _: TokenBucket(50)}, None),
        ({"quota": TokenBucket(50, refill_rate=5)}, InVain(10, 0.2, 1)),
        ({"quota": SHARED}, InVain(200, 28 / 5 + 28 / 5 + 2, 2 + 500 / 3600 / 5)),
        ({"quota": SHARED, "patience": 0}, InVain(200, 28 / 5 + 28 / 5, 500 / 3600 / 5)),
        ({"quota": SHARED, "max_attempts": 1}, InVain(0, 0, 0)),
        ({"quota": RedisQuota(SHARED, capacity=7200)}, InVain(1540, 28 / 5 + 28 / 5 + 2, 2.4)),
        ({"quota": RedisQuota(SHARED, capacity=10)}, InVain(4, 28 / 5 + 2 + 2, 2 + 10 / 3600 / 5)),
        ({"max_attempts": 1}, InVain(0, 0, 0)),
        ({"enabled": False}, InVain(0, 0, 0)),
        ({"quota": None}, None),
        ({"quota": Foreign()}, None),
    ],
)
def test_the_bound(options, expected):
    """It comes from the options by arithmetic; None where no quota, or one that nothing is known of, sets none."""
    found = RetryConfig(**options).worst_case().in_vain
    assert (found if expected is None else pytest.approx(expected)) == found
    assert (expected is None) is (found is None)
