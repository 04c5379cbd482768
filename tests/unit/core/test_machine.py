"""A body that comes further, and why a quota refuses a retry. All else of the machine is told by tests/behaviour."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from requests_smithy_retry import Outcome, RetryConfig, StopReason
from requests_smithy_retry.classifiers.outcome import ResendFacts
from requests_smithy_retry.config.retry_options import NOTHING
from requests_smithy_retry.core.line import Bounds
from requests_smithy_retry.core.machine import Context, decide, operation, refusal
from requests_smithy_retry.core.policy import Policy
from requests_smithy_retry.core.quota import NO_QUOTA
from requests_smithy_retry.core.steps import Ask, Refused, Send


def test_an_attempt_that_brings_a_body_further_counts_as_a_first_one() -> None:
    """The service is up: of two attempts at the most, both are left, and what was spent comes back each time."""
    policy, came_back, sent = Policy.of(RetryConfig(max_attempts=2)), [], 0
    context = Context(policy, NO_QUOTA, lambda *_: came_back.append(sent), NOTHING, policy.bounds(NOTHING, None))
    steps = operation(context, 0.0, decide)

    def played() -> Any:
        nonlocal sent
        step: Any = next(steps)
        while True:
            reply = None
            if isinstance(step, Ask):
                reply = step.function(*step.arguments)
            elif isinstance(step, Send):
                sent += 1
                error, safe = requests.ConnectionError(), ResendFacts("GET", idempotent=True)
                reply = Outcome(error=error, resend=safe, attempt=sent, has_progressed=sent < 3)
            try:
                step = steps.send(reply)
            except StopIteration as ended:
                return ended.value.reason

    assert (StopReason.MAX_ATTEMPTS, 3, [1, 2]) == (played(), sent, came_back)


EMPTY = "the retry budget of the shop is empty, and patience is 0"
FAILING = "waited 2 s: the shop has been failing for longer than patience allows (5 s)"


@pytest.mark.parametrize(
    ("refused", "bounds", "expected"),
    [
        (Refused(StopReason.PATIENCE), Bounds(patience=0), EMPTY),
        (Refused(StopReason.DEADLINE), Bounds(patience=0), EMPTY),
        (Refused(StopReason.PATIENCE), Bounds(), FAILING),
        (Refused(StopReason.DEADLINE), Bounds(), "waited 2 s: the shop was failing until the deadline"),
        (Refused(StopReason.LINE_FULL), Bounds(), "too many operations are waiting for the shop already"),
        (Refused(StopReason.MAX_ATTEMPTS), Bounds(), StopReason.MAX_ATTEMPTS.value),
        (Refused(StopReason.QUOTA_EXCEEDED, 0, "{service} is out of tokens"), Bounds(), "the shop is out of tokens"),
    ],
)
def test_a_refusal_says_why(refused: Refused, bounds: Bounds, expected: str) -> None:
    """In one plain sentence."""
    assert expected == refusal(refused, bounds, "the shop", 2.0)[1]
