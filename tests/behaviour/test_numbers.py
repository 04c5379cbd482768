"""The values that count as a number (contract 10.1)."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    ErrorKind,
    ExponentialRetryBackoffStrategy,
    RetryAction,
    RetryAdapter,
    RetryConfig,
    RetryConfigError,
    TokenBucket,
    retry_options,
)
from requests_smithy_retry.testing import FakeClock
from tests.faults import FaultServer, Reply, try_later

PAST_FLOATS = (10**400, -(10**400), 10**5000)
NUMBERS = (
    "backoff",
    "max_backoff",
    "quota",
    "max_retry_after",
    "operation_timeout",
    "operation_attempt_timeout",
    "timeout",
)


@pytest.mark.parametrize("value", [0, 1.5, 10**300, sys.float_info.max, -0.0])
def test_ints_and_floats_are_numbers(value: float) -> None:
    """Every int and float is a number, even a very large one."""
    assert value == RetryConfig(max_retry_after=value).max_retry_after


@pytest.mark.parametrize(
    "value", [*PAST_FLOATS, True, float("nan"), float("inf"), None, "1", b"1", Decimal(1), 1j, [1]], ids=type
)
def test_what_is_none(value: Any) -> None:
    """A truth value, what is not finite, what no float can hold, and what is neither an int nor a float."""
    with pytest.raises(RetryConfigError, match=r"max_retry_after=.*a finite number of seconds"):
        RetryConfig(max_retry_after=value)


@pytest.mark.parametrize("value", PAST_FLOATS, ids=lambda value: value.bit_length())
@pytest.mark.parametrize("option", NUMBERS)
def test_an_option_refuses_what_no_float_can_hold(option: str, value: int) -> None:
    """The error names the option, as for any other bad value."""
    with pytest.raises(RetryConfigError, match=f"{option}=.* is allowed"):
        RetryAdapter(**{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda value: retry_options(deadline=value),
        lambda value: ExponentialRetryBackoffStrategy(max_backoff=value),
        lambda value: TokenBucket(value),
        lambda value: TokenBucket(5, initial=value),
        lambda value: TokenBucket(5, refill_rate=value),
        lambda value: TokenBucket(5, success_reward=value),
        lambda value: RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, value),
    ],
)
@pytest.mark.parametrize("value", [10**400, 10**5000, True], ids=["400", "5000", "True"])
def test_so_does_what_takes_numbers_by_itself(make: Any, value: int) -> None:
    """A ``ValueError`` says what is allowed."""
    with pytest.raises(ValueError, match="is allowed"):
        make(value)


def test_so_many_attempts_can_be_written_about() -> None:
    """Python refuses to turn a number of thousands of digits into text; a message names its type."""
    with pytest.raises(RetryConfigError, match="max_attempts=<int that cannot be shown>"):
        RetryAdapter(max_attempts=10**5000)


@pytest.mark.parametrize("option", ["operation_timeout", "operation_attempt_timeout"])
@pytest.mark.parametrize("seconds", [1e10, 1e308])
def test_a_bound_of_centuries_is_none_that_a_socket_complains_of(option: str, seconds: float) -> None:
    """A bound that is longer than a socket can wait is as good as no bound."""
    with FaultServer(Reply(body=b"fine")) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(**{option: seconds}))  # type: ignore[arg-type]
        assert session.post(server.url, data=b"x" * 100_000).content == b"fine"


def test_a_hint_of_centuries_is_slept_if_it_must_be() -> None:
    """With a large enough ``max_retry_after`` a hint of centuries is slept, and nothing overflows."""
    clock = FakeClock()
    with FaultServer([try_later(503, 10**12), Reply(body=b"fine")]) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(max_retry_after=1e300, jitter="none", clock=clock))
        assert session.get(server.url).content == b"fine"
    assert clock.sleeps == [1e12]
