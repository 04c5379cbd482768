"""Long polling (the Retries 2.1 specification): the delay is waited though the quota refuses."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from requests_smithy_retry import RetryError, StandardRetryStrategy, StopReason, retry_history, retry_options
from requests_smithy_retry.smithy import SmithyModel, SmithyModelClassifier
from tests.support import Reply, scripted, send
from tests.unit.smithy.asts import operation, service

URL = "https://api.example.com"
MODEL = SmithyModel.from_dict(
    service(operation("Wait", http="GET /wait", traits={"smithy.api#longPoll": {}}), operation("Get", http="GET /get"))
)


EMPTY = StopReason.QUOTA_EXCEEDED


@pytest.mark.parametrize(
    ("answer", "options", "blocks", "sleeps", "stop"),
    [
        (500, {}, [True], [0.05], EMPTY),
        (429, {}, [True], [1.0], EMPTY),
        (Reply(503, {"Retry-After": "7"}), {}, [True], [7], EMPTY),
        (Reply(503, {"x-amz-retry-after": "9000"}), {}, [True], [5.05], EMPTY),
        # No long poll.
        (503, {}, [], [], EMPTY),
        (503, {}, [True, False], [], EMPTY),
        # The quota was not the cause: a success, a failure that is not retried, no attempts left, a hint too long.
        (200, {}, [True], [], StopReason.SUCCESS),
        (404, {}, [True], [], StopReason.NOT_RETRYABLE),
        (503, {"max_attempts": 1}, [True], [], StopReason.MAX_ATTEMPTS),
        (Reply(503, {"Retry-After": "500"}), {}, [True], [], StopReason.HINT_TOO_LONG),
    ],
)
def test_a_long_poll_that_finds_the_quota_empty_waits(answer, options, blocks, sleeps, stop):
    """It waits out its delay, and then hands over the outcome."""
    adapter = scripted(answer, quota=0, **options)
    with ExitStack() as stack:
        for long_poll in blocks:
            stack.enter_context(retry_options(long_poll=long_poll))
        response = send(adapter)
    assert (sleeps, stop) == (adapter.clock.sleeps, retry_history(response).stop_reason)
    assert len(adapter.sent) == 1


def test_a_strategy_driven_by_hand_gives_the_delay_with_its_refusal():
    """The refusal carries the delay, so that the code that drives the strategy can wait."""
    strategy = StandardRetryStrategy(quota=0, jitter="none")
    token = strategy.acquire_initial_retry_token()
    with retry_options(long_poll=True), pytest.raises(RetryError) as caught:
        strategy.refresh_retry_token_for_retry(token_to_renew=token, error=TimeoutError())
    assert (caught.value.stop_reason, caught.value.delay) == (StopReason.QUOTA_EXCEEDED, 0.05)


def test_a_model_marks_its_long_polls():
    """An operation that the model marks waits, unless the caller says that it is not a long poll."""
    adapter = scripted(503, 503, 503, quota=0, classifiers=[SmithyModelClassifier([MODEL.for_endpoint(URL)])])
    send(adapter, "GET", f"{URL}/get")
    with retry_options(long_poll=False):
        send(adapter, "GET", f"{URL}/wait")
    assert adapter.clock.sleeps == []
    send(adapter, "GET", f"{URL}/wait")
    assert adapter.clock.sleeps == [0.05]
