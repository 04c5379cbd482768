"""The rules that only a urllib3 ``Retry`` has, by hand (contract 4.2); how one is translated: test_urllib3_retry.py."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import urllib3.exceptions

from requests_smithy_retry import ExponentialRetryBackoffStrategy, Outcome
from requests_smithy_retry.features.urllib3_retry.rules import (
    FailureKind,
    JitteredBackoff,
    Urllib3Rules,
    kind_of,
)
from tests.support import config_of

CONNECT, READ, STATUS, OTHER = FailureKind
EACH = Urllib3Rules(limits=((CONNECT, 0), (READ, 1), (STATUS, 2), (OTHER, 3)))


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((CONNECT,), "0 retries after connect failures are allowed by the urllib3 Retry"),
        ((READ,), None),
        ((READ, READ), "1 retries after read failures are allowed by the urllib3 Retry"),
        ((READ, STATUS), None),
        ((STATUS, STATUS, READ), None),
        ((STATUS, READ, STATUS, STATUS), "2 retries after status failures are allowed by the urllib3 Retry"),
        ((STATUS, STATUS, STATUS, OTHER), None),
        ((OTHER, OTHER, OTHER), None),
        ((OTHER, OTHER, OTHER, OTHER), "3 retries after other failures are allowed by the urllib3 Retry"),
    ],
)
def test_a_kind_of_failure_is_retried_so_often(kinds: tuple[FailureKind, ...], expected: str | None) -> None:
    """The last failure is judged, by how many of its kind there were; the sentence names the kind and its limit."""
    assert expected == EACH.exceeded(kinds)


def test_a_kind_without_a_limit_is_retried_as_often_as_it_comes() -> None:
    """A kind of failure without a limit of its own is never exceeded."""
    assert Urllib3Rules(limits=((READ, 0),)).exceeded((OTHER,) * 9) is None
    assert Urllib3Rules().exceeded((OTHER,) * 9) is None


def test_what_is_not_said_is_as_urllib3_has_it() -> None:
    """No limits, no jitter, hints are heeded, and no status is retried for its hint alone."""
    rules = Urllib3Rules()
    assert ((), True, 0.0, frozenset()) == (
        rules.limits,
        rules.respect_retry_after,
        rules.backoff_jitter,
        rules.hinted_status_codes,
    )


def outcome(error: Exception | None = None) -> Outcome:
    return Outcome(error=error)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, STATUS),
        (requests.ConnectTimeout(urllib3.exceptions.ConnectTimeoutError()), CONNECT),
        (requests.ConnectionError(urllib3.exceptions.NewConnectionError(None, "refused")), CONNECT),  # type: ignore[arg-type]
        (requests.ReadTimeout(urllib3.exceptions.ReadTimeoutError(None, None, "")), READ),  # type: ignore[arg-type]
        (requests.ConnectionError(urllib3.exceptions.ProtocolError("")), READ),
        (requests.exceptions.SSLError(), OTHER),
        (OSError(), OTHER),
    ],
)
def test_a_failure_is_counted_under_its_kind(error: Exception | None, expected: FailureKind) -> None:
    """The types of the causes decide."""
    assert expected is kind_of(outcome(error))


@pytest.mark.parametrize(
    ("rules", "expected"),
    [(None, True), (Urllib3Rules(), True), (Urllib3Rules(respect_retry_after=False), False)],
)
def test_hints_are_heeded(rules: Urllib3Rules | None, expected: bool) -> None:
    """Hints are heeded, unless a ``Retry`` forbids it."""
    assert expected is config_of(rules=rules).heeds_hints


def backoff(**options: Any) -> ExponentialRetryBackoffStrategy:
    return ExponentialRetryBackoffStrategy(**{"jitter_type": "none", "random": lambda: 0.5, **options})


@pytest.mark.parametrize("rules", [None, Urllib3Rules(), Urllib3Rules(backoff_jitter=0)])
def test_without_jitter_a_backoff_stays_what_it_is(rules: Urllib3Rules | None) -> None:
    """Without ``backoff_jitter`` the backoff is not wrapped."""
    assert isinstance(config_of(rules=rules).backoff(1.0), ExponentialRetryBackoffStrategy)


@pytest.mark.parametrize(("retry", "delay"), [(-1, 0.0), (0, 0.0), (1, 2.0), (2, 3.0), (3, 5.0), (4, 8.0), (5, 8.0)])
def test_jitter_comes_on_top_within_the_longest_delay(retry: int, delay: float) -> None:
    """Half of two seconds here; the first attempt waits for nothing."""
    jittered = JitteredBackoff(backoff(backoff_scale_value=1, max_backoff=8), jitter=2)
    assert delay == jittered.compute_next_backoff_delay(retry)
