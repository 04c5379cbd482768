"""Long polling (the Retries 2.1 specification): the delay is waited though the quota refuses."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import (
    RetryError,
    SmithyModel,
    SmithyModelClassifier,
    StandardRetryStrategy,
    StopReason,
    retry_history,
    retry_options,
)
from tests.support import Reply, scripted, send
from tests.unit.smithy.asts import operation, service

URL = "https://api.example.com"
MODEL = SmithyModel.from_dict(
    service(operation("Wait", http="GET /wait", traits={"smithy.api#longPoll": {}}), operation("Get", http="GET /get"))
)


@pytest.mark.parametrize(
    ("failure", "waited"),
    [
        (500, 0.05),
        (429, 1.0),
        (Reply(503, {"Retry-After": "7"}), 7),
        (Reply(503, {"x-amz-retry-after": "9000"}), 5.05),
    ],
)
def test_the_delay_is_waited_before_the_outcome_is_handed_on(failure: Any, waited: float) -> None:
    """A long poll that finds the quota empty waits out its delay, and then hands over the outcome."""
    adapter = scripted(failure, quota=0)
    with retry_options(long_poll=True):
        response = send(adapter)
    assert adapter.clock.sleeps == [waited]
    assert retry_history(response).stop_reason is StopReason.QUOTA_EXCEEDED
    assert len(adapter.sent) == 1


def test_a_strategy_driven_by_hand_gives_the_delay_with_its_refusal() -> None:
    """The refusal carries the delay, so that the code that drives the strategy can wait."""
    strategy = StandardRetryStrategy(quota=0, jitter="none")
    token = strategy.acquire_initial_retry_token()
    with retry_options(long_poll=True), pytest.raises(RetryError) as caught:
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=TimeoutError())
    assert (caught.value.stop_reason, caught.value.delay) == (StopReason.QUOTA_EXCEEDED, 0.05)


@pytest.mark.parametrize(
    ("script", "options", "stop"),
    [
        ([200], {"quota": 0}, StopReason.SUCCESS),
        ([404], {"quota": 0}, StopReason.NOT_RETRYABLE),
        ([503], {"quota": 0, "max_attempts": 1}, StopReason.MAX_ATTEMPTS),
        ([Reply(503, {"Retry-After": "500"})], {"quota": 0}, StopReason.HINT_TOO_LONG),
    ],
)
def test_it_is_never_waited_where_the_quota_was_not_the_cause(script: Any, options: Any, stop: StopReason) -> None:
    """A success, a failure that is not retried, no attempts left, a hint too long."""
    adapter = scripted(*script, **options)
    with retry_options(long_poll=True):
        response = send(adapter)
    assert adapter.clock.sleeps == []
    assert retry_history(response).stop_reason is stop


def test_other_operations_are_not_delayed() -> None:
    """Neither an operation that is not a long poll nor one with ``long_poll=False`` is delayed."""
    adapter = scripted(503, 503, quota=0)
    send(adapter)
    with retry_options(long_poll=True), retry_options(long_poll=False):
        send(adapter)
    assert adapter.clock.sleeps == []


def test_a_model_marks_its_long_polls() -> None:
    """An operation that the model marks waits, unless the caller says that it is not a long poll."""
    adapter = scripted(503, 503, 503, quota=0, classifiers=[SmithyModelClassifier([MODEL.for_endpoint(URL)])])
    send(adapter, "GET", f"{URL}/get")
    assert adapter.clock.sleeps == []
    with retry_options(long_poll=False):
        send(adapter, "GET", f"{URL}/wait")
    assert adapter.clock.sleeps == []
    send(adapter, "GET", f"{URL}/wait")
    assert adapter.clock.sleeps == [0.05]
