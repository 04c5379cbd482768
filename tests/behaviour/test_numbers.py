"""Numbers beyond what a float or a socket holds (contract 10.1); those of the options are in ``test_options.py``."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from requests_smithy_retry import ErrorKind, RetryAction, RetryAdapter, TokenBucket, retry_options
from requests_smithy_retry.quotas import ExponentialRetryBackoffStrategy
from requests_smithy_retry.testing import FakeClock
from tests.faults import FaultServer, Reply, try_later


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
def test_what_takes_numbers_by_itself_refuses_what_is_none(make: Any, value: int) -> None:
    """A ``ValueError`` says what is allowed."""
    with pytest.raises(ValueError, match="is allowed"):
        make(value)


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
