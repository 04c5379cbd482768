"""What a retry answers, as far as its price goes."""

from __future__ import annotations

import pytest

from requests_smithy_retry.actions import ErrorKind, RetryReason
from requests_smithy_retry.outcome import Outcome
from requests_smithy_retry.payoff_quota import RetryCause
from requests_smithy_retry.resend import ResendFacts
from requests_smithy_retry.strategies.retry_cause import cause_of

TRANSIENT = RetryReason(ErrorKind.TRANSIENT)


@pytest.mark.parametrize(
    ("reason", "outcome", "cause"),
    [
        (RetryReason(ErrorKind.THROTTLING, timeout=True), Outcome(), RetryCause.THROTTLING),
        (RetryReason(ErrorKind.TRANSIENT, timeout=True), Outcome(error=OSError()), RetryCause.TIMEOUT),
        (RetryReason(ErrorKind.SERVER), Outcome(), RetryCause.ERROR),
        (TRANSIENT, Outcome(error=OSError()), RetryCause.ERROR),
        (TRANSIENT, Outcome(error=ConnectionRefusedError()), RetryCause.CONNECT),
        (TRANSIENT, Outcome(error=OSError(), resend=ResendFacts("GET", unwritten=True)), RetryCause.CONNECT),
        (TRANSIENT, Outcome(error=OSError(), resend=ResendFacts("GET")), RetryCause.ERROR),
        (TRANSIENT, Outcome(resend=ResendFacts("GET")), RetryCause.ERROR),
        (TRANSIENT, Outcome(resend=ResendFacts("GET", unwritten=True)), RetryCause.ERROR),
    ],
)
def test_the_cause(reason, outcome, cause):
    """Throttling first, then time-outs, then connections that were never made."""
    assert cause == cause_of(reason, outcome)
