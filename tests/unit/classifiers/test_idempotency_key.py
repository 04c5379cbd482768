"""A server's answers to an idempotency key; end to end in tests/unit/sending/test_idempotency.py."""

from __future__ import annotations

import dataclasses

import pytest

from requests_smithy_retry import IdempotencyKeyClassifier, RetryAction
from requests_smithy_retry.classifiers.outcome import ResendFacts
from tests.unit.classifiers.test_http_status import outcome_of

NOTHING = RetryAction.no_action_indicated()
REUSED = RetryAction.retry_forbidden("the idempotency key was used with another payload")


@pytest.mark.parametrize(
    ("status", "keyed", "expected"),
    [
        (409, True, RetryAction.transient_error()),
        (422, True, REUSED),
        (400, True, NOTHING),
        (500, True, NOTHING),
        (409, False, NOTHING),
        (422, False, NOTHING),
    ],
)
def test_409_and_422_mean_something_with_a_key_alone(status: int, keyed: bool, expected: RetryAction) -> None:
    """With a key, 409 is transient and 422 forbids a retry; the classifier has no opinion on anything else."""
    outcome = dataclasses.replace(outcome_of(status), resend=ResendFacts("POST", keyed=keyed))
    assert IdempotencyKeyClassifier().classify_retry(outcome, NOTHING) == expected


def test_without_a_request_there_is_no_key() -> None:
    """Driven by hand, say."""
    assert IdempotencyKeyClassifier().classify_retry(outcome_of(409), NOTHING) == NOTHING
