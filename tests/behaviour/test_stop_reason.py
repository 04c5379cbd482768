"""Why an operation ended (contract 2.6)."""

from requests_smithy_retry import StopReason


def test_the_phrases_stay_as_they_are():
    """Programs that keep histories as JSON have them in their data."""
    assert {
        "SUCCESS": "it succeeded",
        "NOT_RETRYABLE": "no classifier asked for a retry",
        "FORBIDDEN": "a classifier forbade a retry",
        "NOT_RESENDABLE": "the request may have been applied and is not idempotent",
        "BODY_NOT_REPLAYABLE": "the body cannot be replayed",
        "REQUEST_FAULT": "the request itself is at fault",
        "MAX_ATTEMPTS": "no attempts are left",
        "HINT_TOO_LONG": "the server asked for too long a wait",
        "DEADLINE": "the wait would not end before the deadline",
        "QUOTA_EXCEEDED": "the retry budget is empty",
        "PATIENCE": "the service has been down for longer than patience allows",
        "LINE_FULL": "too many operations are waiting for the service already",
        "RATE_LIMITED": "no send permit in time",
        "CANCELLED": "the program cancelled the wait",
        "WAIT_TOO_LONG": "the wait would be longer than max_wait",
        "STRATEGY_REFUSED": "the retry strategy refused",
        "DISABLED": "retries are switched off",
    } == {reason.name: reason.value for reason in StopReason}
