"""The label values of metrics (contract 12)."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryAdapter, StandardRetryStrategy, TokenBucket
from requests_smithy_retry.events import AfterAttempt, ObservedOperation
from requests_smithy_retry.features.telemetry import MetricsListener, QuotaLevels, method_of
from tests.support import prepare


def operation(strategy: Any) -> ObservedOperation:
    return ObservedOperation(RetryAdapter(strategy=strategy), prepare(), None, "https://api.example.com:443")


def spent(scope: str | None, **options: Any) -> StandardRetryStrategy:
    """A strategy whose bucket of a scope was used."""
    strategy = StandardRetryStrategy(**options)
    bucket = strategy.bucket(scope)
    assert bucket is not None
    bucket.acquire(14)
    return strategy


def test_known_methods_are_told_apart() -> None:
    """The methods of RFC 9110, PATCH (RFC 5789) and QUERY are labels; any other method is not."""
    known = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"]
    found, request = [], prepare()
    for request.method in [*known, "BREW", None]:
        found.append(method_of(ObservedOperation(RetryAdapter(), request, None, "https://api.example.com:443")))
    assert [*known, "_OTHER", "_OTHER"] == found


@pytest.mark.parametrize(
    ("status", "expected"), [(99, "_OTHER"), (100, "100"), (204, "204"), (599, "599"), (600, "_OTHER"), (799, "_OTHER")]
)
def test_a_status_is_told_if_it_is_one(status: int, expected: str) -> None:
    """A server may answer with any number."""
    response = requests.Response()
    response.status_code = status
    event = AfterAttempt(
        ObservedOperation(RetryAdapter(), prepare(), None, "https://api.example.com:443"), 1, response, None, 0.5
    )
    found = []

    class Noting(MetricsListener):
        def add_for(self, common: tuple[str, str], metric: str, amount: float, **own: str) -> None:
            found.append((metric, own["outcome"]))

    Noting(1).after_attempt(event)
    assert [("attempts", expected), ("attempt.duration", expected)] == found


def test_the_least_of_a_scope_is_shown() -> None:
    """If two strategies have the same scope, the gauge shows the emptier bucket."""
    levels = QuotaLevels()
    kept = [spent("https://a:443", quota=500), spent("https://a:443", quota=100), spent("https://b:8443", quota=500)]
    for strategy in kept:
        for _ in range(2):
            levels.observe(operation(strategy))
    assert {"https://a": 86, "https://b:8443": 486} == levels.read()


def test_who_waits_is_added_up() -> None:
    """A quota without a line has no number of waiters."""

    class Waiting:
        def __init__(self, scope: str | None, count: int) -> None:
            self.scope, self.waiting = scope, count

        def snapshot(self) -> Any:
            published = SimpleNamespace(available=500)
            return SimpleNamespace(buckets={self.scope: self, "https://published": published})

    levels = QuotaLevels(most=2)
    kept = [Waiting("https://a:443", 2), Waiting("https://a:443", 3), Waiting(None, 4), Waiting("b", 1)]
    for strategy in kept:
        levels.observe(SimpleNamespace(adapter=SimpleNamespace(strategy=strategy)))  # type: ignore[arg-type]
    assert {"https://a": 5, "default": 4} == levels.waiting()


@pytest.mark.parametrize("kind", ["no hash", "no weak reference"])
def test_any_strategy_goes_with_metrics(kind: str) -> None:
    """A strategy without a hash, as of a dataclass, or with slots and no weak references, can be observed."""

    class Slots:
        __slots__ = ()

        def snapshot(self) -> Any:
            return SimpleNamespace(buckets={"a": TokenBucket(7).snapshot()})

    class Equal(Slots):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    levels = QuotaLevels()
    strategy = SimpleNamespace(adapter=SimpleNamespace(strategy=Equal() if kind == "no hash" else Slots()))
    for _ in range(2):
        levels.observe(strategy)  # type: ignore[arg-type]
    is_shown = kind == "no hash" or sys.implementation.name == "pypy"  # there slots rule out no weak reference
    assert levels.read() == ({"a": 7} if is_shown else {})


def test_levels_are_bounded_and_forgotten() -> None:
    """No more than ``most`` scopes are shown, and a strategy that is gone is gone from the gauge."""
    levels = QuotaLevels(most=1)
    strategy = spent("https://a:443")
    other = strategy.bucket("https://b:443")
    assert other is not None
    levels.observe(operation(strategy))
    assert ["https://a"] == list(levels.read())
    del strategy, other
    gc.collect()
    assert {} == levels.read()
