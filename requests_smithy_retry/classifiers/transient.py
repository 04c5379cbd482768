"""Passing faults on the wire (contract 3.4)."""

from __future__ import annotations

from ..actions import ErrorKind, RetryAction, RetryReason
from ..outcome import Outcome
from ..priority import RetryClassifierPriority
from ..transport_faults import is_timeout, is_transient


class TransientErrorClassifier:
    """Timeouts, resets, refused and closed connections, DNS, proxies, cut or undecodable bodies: a transient error."""

    name = "TransientErrorClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.transient_error_classifier()

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        """Judge by the exception's type."""
        if outcome.error is None or not is_transient(outcome.error):
            return RetryAction.no_action_indicated()
        return RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, timeout=is_timeout(outcome.error)))
