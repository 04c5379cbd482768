"""Polling: repeating a request until its result is there, which is not a failure (contract 6.2). Pure."""

from __future__ import annotations

from ..classifiers.actions import ErrorKind, RetryReason
from ..classifiers.outcome import Outcome
from ..config.urllib3_rules import Urllib3Rules

NOT_FOUND = 404


def is_poll(reason: RetryReason, outcome: Outcome, rules: Urllib3Rules | None) -> bool:
    """Return True if another attempt polls for a result, rather than following a failure.

    That is the case if the attempt succeeded, and its response shows neither throttling nor a server's fault; and
    after a 404 that a translated ``Retry`` lists, by which programs wait for a thing to appear.
    """
    if outcome.error is not None or reason.kind in (ErrorKind.THROTTLING, ErrorKind.SERVER):
        return False
    return outcome.is_success or (rules is not None and outcome.status == NOT_FOUND)


def is_value(reason: RetryReason, outcome: Outcome) -> bool:
    """Return True if a policy judged a value, other than one that means throttling: it waits for another value.

    Such a retry has its price, which the next value gives back: who waits takes no more than one price at a time.
    """
    is_nothing = outcome.error is None and outcome.response is None
    return is_nothing and reason.kind is not ErrorKind.THROTTLING
