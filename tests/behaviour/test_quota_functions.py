"""A function as the option ``quota`` makes the bucket of each scope; what a bucket does is said by the bucket."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from requests_smithy_retry import RetryAdapter, RetryConfigError, RetryError, StopReason, TokenBucket, retry_history
from requests_smithy_retry.quotas import PayoffTokenBucket
from requests_smithy_retry.testing import FakeClock
from tests.support import scripted, send

A, B = "https://a.example.com/x", "https://b.example.com/x"


def test_each_scope_has_a_bucket_of_its_own() -> None:
    """The function is called with the name of a scope, once; a service that is down spends no other one's tokens."""
    asked: list[str] = []
    adapter = scripted(503, 503, 503, 200, quota=lambda scope: (asked.append(scope), TokenBucket(14))[1])
    why = retry_history(send(adapter, url=A)).why
    assert "the retry budget of https://a.example.com is empty (0 of 14, needs 14)" == why
    assert 200 == send(adapter, url=B).status_code
    assert ["https://a.example.com:443", "https://b.example.com:443"] == asked


def test_a_bucket_may_be_that_of_several_scopes() -> None:
    """A first-try success in one of them rewards it for all."""
    bucket = TokenBucket(20, success_reward=4)
    adapter = scripted(503, 200, 200, 503, quota=lambda scope: bucket if "example" in scope else TokenBucket())
    send(adapter, url=B)
    bucket.acquire(10)
    send(adapter, url=A)
    assert 14 == bucket.available


def test_a_bucket_that_waits_is_waited_for() -> None:
    """``on_empty="wait"`` and ``refill_rate`` belong to the bucket, and so does its clock."""
    clock = FakeClock()

    def make(scope: str) -> TokenBucket:
        return TokenBucket(14, initial=0, refill_rate=2, on_empty="wait", clock=clock)

    adapter = scripted(503, 200, quota=make, clock=clock, backoff=0)
    assert 200 == send(adapter).status_code
    assert 7 == clock.now() - 0
    adapter = scripted(503, quota=make, clock=clock, operation_timeout=6)
    assert StopReason.QUOTA_EXCEEDED is retry_history(send(adapter)).stop_reason


@pytest.mark.parametrize(
    ("made", "name"), [(None, "NoneType"), (500, "int"), ("payoff", "str"), (PayoffTokenBucket(), "PayoffTokenBucket")]
)
def test_what_is_no_bucket_of_tokens_is_refused(made: Any, name: str) -> None:
    """When it is first needed, with the type of what the function returned."""
    adapter = scripted(200, quota=lambda _: made)
    with pytest.raises(RetryConfigError, match=rf"^quota=<function .* \(from code\): its function returned a {name}: "):
        send(adapter)


def make(scope: str) -> TokenBucket:
    """Make a bucket of five tokens."""
    return TokenBucket(5)


def test_an_adapter_with_a_function_that_has_a_name_can_be_pickled() -> None:
    """One with a lambda cannot."""
    adapter = pickle.loads(pickle.dumps(RetryAdapter(quota=make)))
    assert 5 == adapter.strategy.bucket("a").capacity
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(RetryAdapter(quota=lambda _: TokenBucket()))


def test_its_own_exception_comes_through() -> None:
    """A bug of the program's own is not hidden, and no lock is left held."""
    bugs = iter([ZeroDivisionError])
    adapter = scripted(200, 200, quota=lambda _: TokenBucket(1 / 0 if next(bugs, None) else 5))
    with pytest.raises(ZeroDivisionError):
        send(adapter)
    assert 200 == send(adapter).status_code


@pytest.mark.parametrize("option", ["quota", "backoff"])
def test_a_retry_error_of_a_function_within_the_strategy_is_a_bug(option: str) -> None:
    """It would pass for the strategy's refusal, so it gets another name, as that of a classifier."""

    def fail(*_: Any) -> Any:
        raise error

    error, options = RetryError("from a loop of its own"), {"quota": None}
    adapter = scripted(503, 200, **(options | {option: fail}))
    with pytest.raises(RuntimeError, match=f"^the function of {option} raised a RetryError") as caught:
        send(adapter)
    assert error is caught.value.__cause__
