"""Polling: asking once more for what is not there yet, which is no failure (contract 6.2). Pure."""

from __future__ import annotations

from ..classifiers.actions import ErrorKind, RetryReason
from ..classifiers.outcome import Outcome
from ..config.urllib3_rules import Urllib3Rules

NOT_FOUND = 404


def is_poll(reason: RetryReason, outcome: Outcome, rules: Urllib3Rules | None) -> bool:
    """True if another attempt asks once more for what is not there yet, rather than after a failure.

    So it is where an attempt succeeded, and neither throttling nor a server's fault was found in what it brought; and
    after a 404 that a translated ``Retry`` lists, by which programs wait for a thing to appear.

    :param reason: the reason that the classifiers gave.
    :param outcome: the outcome of the attempt.
    :param rules: of a translated ``Retry``, or None.
    """
    if outcome.error is not None or reason.kind in (ErrorKind.THROTTLING, ErrorKind.SERVER):
        return False
    return outcome.is_success or (rules is not None and outcome.status == NOT_FOUND)


def is_value(reason: RetryReason, outcome: Outcome) -> bool:
    """True if a policy judged a value, other than one that means throttling: it waits for another one.

    Such a retry has its price, which the next value gives back: who waits takes no more than one price at a time.
    """
    is_nothing = outcome.error is None and outcome.response is None
    return is_nothing and reason.kind is not ErrorKind.THROTTLING
