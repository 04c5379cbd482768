"""What a server answers to an idempotency key (issue 3; the IETF draft on the Idempotency-Key header, 2.6 and 2.7)."""

from __future__ import annotations

from ..actions import RetryAction
from ..outcome import Outcome
from ..priority import RetryClassifierPriority

STILL_RUNNING = 409
OTHER_PAYLOAD = 422


class IdempotencyKeyClassifier:
    """With a key, 409 means that the first request is still running, and 422 that the key was used for another one.

    The first is a transient error; the second forbids a retry. Without a key, both mean what they always mean.
    """

    name = "IdempotencyKeyClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_after(
        RetryClassifierPriority.http_status_code_classifier()
    )

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        """Judge by the status, if the request had a key."""
        if outcome.resend is not None and outcome.resend.keyed:
            if outcome.status == STILL_RUNNING:
                return RetryAction.transient_error()
            if outcome.status == OTHER_PAYLOAD:
                return RetryAction.retry_forbidden("the idempotency key was used with another payload")
        return RetryAction.no_action_indicated()
