"""What metrics are told apart by (contract 12)."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import pytest

from requests_smithy_retry import RetryAdapter, StandardRetryStrategy, TokenBucket
from requests_smithy_retry.metric_labels import Bounded, QuotaLevels
from requests_smithy_retry.observed import ObservedOperation

from .support import prepare


def operation(strategy: Any) -> ObservedOperation:
    return ObservedOperation(RetryAdapter(strategy=strategy), prepare())


def spent(scope: str | None, **options: Any) -> StandardRetryStrategy:
    """A strategy whose bucket of a scope was used."""
    strategy = StandardRetryStrategy(**options)
    bucket = strategy.bucket(scope)
    assert bucket is not None
    bucket.acquire(14)
    return strategy


@pytest.mark.parametrize(("most", "expected"), [(0, ["_OTHER"] * 4), (2, ["a", "b", "_OTHER", "a"])])
def test_the_first_values_are_let_through(most: int, expected: list[str]) -> None:
    """A value that was let through once stays."""
    bounded = Bounded(most)
    assert expected == [bounded(value) for value in "abca"]


def test_the_least_of_a_scope_is_shown() -> None:
    """Where two strategies have the same scope, the emptier bucket is what matters."""
    levels = QuotaLevels()
    kept = [spent("https://a:443"), spent("https://a:443", quota=100), spent("https://b:8443")]
    for strategy in kept:
        levels.watch(operation(strategy))
        levels.watch(operation(strategy))
    assert {"https://a": 86, "https://b:8443": 486} == levels.read()


def test_a_shared_bucket_is_shown_as_such() -> None:
    """It has no scope."""
    levels = QuotaLevels()
    strategy = StandardRetryStrategy(quota=TokenBucket(100))
    levels.watch(operation(strategy))
    assert {"shared": 100} == levels.read()


def test_levels_are_bounded_and_forgotten() -> None:
    """So many scopes are shown, and a strategy that is gone is gone from the gauge."""
    levels = QuotaLevels(most=1)
    strategy = spent("https://a:443")
    other = strategy.bucket("https://b:443")
    assert other is not None
    levels.watch(operation(strategy))
    assert ["https://a"] == list(levels.read())
    del strategy, other
    gc.collect()
    assert {} == levels.read()


def test_a_strategy_that_shows_nothing_is_left_out() -> None:
    """A foreign strategy need not have a snapshot, or buckets in it."""

    class Foreign:
        def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any: ...

        def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any: ...

        def record_success(self, *, token: Any) -> None: ...

    class Showing(Foreign):
        def snapshot(self) -> Any:
            return SimpleNamespace()

    levels = QuotaLevels()
    kept = [Foreign(), Showing()]
    for strategy in kept:
        levels.watch(operation(strategy))
    assert {} == levels.read()
