"""``backoff``: the program's own waits, as a number, an object or a function of the failed attempts and the outcome."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from urllib3.util.retry import Retry

from requests_smithy_retry import (
    Outcome,
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    RetryConfigWarning,
    StandardRetryStrategy,
    StopReason,
    retry_history,
)
from requests_smithy_retry.quotas import ExponentialRetryBackoffStrategy
from tests.support import Reply, ended, read_timeout, scripted, send


class Squares:
    """A backoff strategy as the protocol has it."""

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        return float(retry_attempt**2)


class Both(Squares):
    """A backoff strategy that can be called, too."""

    def __call__(self, attempt: int, outcome: Outcome) -> float:
        raise AssertionError("it has the method")


def by_status(attempt: int, outcome: Outcome) -> float:
    return 10 * attempt if outcome.status == 429 else 0.5


DOUBLING = ExponentialRetryBackoffStrategy(backoff_scale_value=3, max_backoff=5, jitter_type="none")
ASKS = Reply(503, {"Retry-After": "7"})


@pytest.mark.parametrize(
    ("backoff", "script", "expected"),
    [
        (2, [503, 429, 503], [2, 2, 2]),
        (0, [503, 429], []),
        (30, [503], [30]),  # no maximum is applied
        (0.25, [read_timeout(), 503], [0.25, 0.25]),
        (Squares(), [503, 429, 503], [1, 4, 9]),
        (Both(), [503, 429], [1, 4]),
        (DOUBLING, [503, 503, 503], [3, 5, 5]),
        (by_status, [503, 429, read_timeout(), 429], [0.5, 20, 0.5, 40]),
        (lambda attempt, outcome: outcome.attempt, [503, 503, 503], [1, 2, 3]),
        (2, [ASKS, 503], [7, 2]),  # what a server asks for is the least
        (lambda *_: 9, [ASKS], [9]),
    ],
)
def test_the_waits_are_just_those(backoff: Any, script: list[Any], expected: list[float]) -> None:
    """A number is waited before each retry, an object or a function is asked, and no jitter is added."""
    hints = "none" if ASKS in script else "full"  # of a hint itself, jitter makes a little more
    adapter = scripted(*script, 200, backoff=backoff, jitter=hints, max_attempts=9)
    assert 200 == send(adapter).status_code
    assert expected == adapter.clock.sleeps


def test_a_function_is_given_the_failed_attempts_and_what_came_of_the_last() -> None:
    """Attempts count from 1, and the outcome is the one that classifiers see."""
    seen: list[tuple[int, int, int | None, type]] = []

    def wait(attempt: int, outcome: Outcome) -> float:
        seen.append((attempt, outcome.attempt, outcome.status, type(outcome.error)))
        return 0

    send(scripted(503, read_timeout(), 429, 200, backoff=wait, max_attempts=4))
    assert [(1, 1, 503, type(None)), (2, 2, None, requests.ReadTimeout), (3, 3, 429, type(None))] == seen


def test_a_strategy_that_is_driven_by_hand_counts_as_well() -> None:
    """Without HTTP, the outcome has the error, and the attempts are those of the tokens."""
    strategy = StandardRetryStrategy(backoff=lambda attempt, outcome: attempt * len(outcome.error.args), quota=500)
    error = TimeoutError("a", "b")
    error.is_retry_safe = True  # type: ignore[attr-defined]
    token = strategy.acquire_initial_retry_token()
    delays = []
    for _ in range(2):
        token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
        delays.append(token.retry_delay)
    assert [2, 4] == delays


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"operation_timeout": 5}, StopReason.DEADLINE),
        ({"operation_timeout": 4}, StopReason.DEADLINE),  # the first wait would end at that very moment
        ({"max_attempts": 2}, StopReason.MAX_ATTEMPTS),
        ({"max_wait": 3}, StopReason.WAIT_TOO_LONG),
    ],
)
def test_it_lifts_no_bound(options: dict[str, Any], expected: StopReason) -> None:
    """Attempts, time and a single wait are bounded as with any other one."""
    adapter = scripted(503, 503, 200, backoff=lambda attempt, _: 4 * attempt, **options)
    assert expected is retry_history(ended(adapter)).stop_reason


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0, -0.5, "3", None, True, 1j])
@pytest.mark.parametrize("kind", ["function", "object"])
def test_what_is_no_number_of_seconds_is_named(kind: str, seconds: Any) -> None:
    """The error has the option, the object or function, its source, what it returned, and what is allowed."""

    def odd(*_: Any) -> Any:
        return seconds

    backoff: Any = SimpleNamespace(compute_next_backoff_delay=odd) if kind == "object" else odd
    with pytest.raises(TypeError) as caught:
        send(scripted(503, 200, backoff=backoff))
    said = f"backoff={backoff!r} (from code) returned {seconds!r}: a finite number of seconds, 0 or more, is allowed"
    assert said == str(caught.value)


def test_what_a_function_raises_reaches_the_caller() -> None:
    """A mistake in it is no failure of the server, and is not retried."""
    adapter = scripted(503, 200, backoff=lambda: 3)  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional arguments"):
        send(adapter)
    assert 1 == len(adapter.sent)


def test_a_maximum_of_the_other_backoff_is_none_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its default is no contradiction, and a variable that would do nothing is warned of."""
    assert 2 == RetryConfig(backoff=2, max_backoff=20.0).backoff
    monkeypatch.setenv("SMITHY_RETRY_MAX_BACKOFF", "3")
    with pytest.warns(RetryConfigWarning, match="backoff=2 .from code. wins"):
        assert 20.0 == RetryConfig.from_environment(backoff=2).max_backoff


def test_a_factor_beside_it_is_refused() -> None:
    """One of the two would do nothing; a ``Retry`` without a factor may stand beside it."""
    with pytest.raises(RetryConfigError, match="only one of it and a backoff_factor in max_retries"):
        RetryAdapter(max_retries=Retry(3, backoff_factor=1), backoff=2)
    assert 2 == RetryAdapter(max_retries=Retry(3), backoff=2).retry_config.backoff


def test_the_factor_of_a_retry_goes_before_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``Retry`` is the program's own word; one without a factor leaves the waits to the variable."""
    monkeypatch.setenv("SMITHY_RETRY_BACKOFF", "3")
    assert 3 == RetryAdapter(max_retries=Retry(3)).retry_config.backoff
    with pytest.warns(RetryConfigWarning, match="SMITHY_RETRY_BACKOFF"):
        adapter = scripted(
            503, 503, 200, max_retries=Retry(3, backoff_factor=1, status_forcelist=[503]), trust_env=True
        )
    shown = ExponentialRetryBackoffStrategy(backoff_scale_value=1, max_backoff=120, jitter_type="none")
    assert repr(shown) in adapter.retry_config.explain(all=False)
    send(adapter)
    assert [1, 2] == adapter.clock.sleeps


@pytest.mark.parametrize(
    ("backoff", "shown", "unchanged"),
    [(3, 3, [3, 3]), (DOUBLING, 3, [3, 5]), (by_status, 0.05, [0.5, 0.5]), (Squares(), 0.05, [1, 4])],
)
@pytest.mark.parametrize(("factor", "expected"), [(None, None), (4, [4, 8]), (0, None)])
def test_a_factor_that_is_assigned_takes_its_place(
    backoff: Any, shown: float, unchanged: list[float], factor: float | None, expected: list[float] | None
) -> None:
    """``max_retries`` shows the nearest factor; put back as it is, or with a factor of 0, it changes nothing."""
    adapter = scripted(503, 503, 200, backoff=backoff)
    retry = adapter.max_retries
    assert shown == retry.backoff_factor
    adapter.max_retries = retry if factor is None else retry.new(backoff_factor=factor)
    send(adapter)
    assert (expected or unchanged) == adapter.clock.sleeps
