"""What may be sent again (contract 4 and 5). Pure: facts in, a verdict out.

The rule runs after every classifier, whatever a user added, and can only forbid.
"""

from __future__ import annotations

from typing import NamedTuple

from .actions import NO_ACTION, ErrorKind, RetryAction, RetryForbidden, RetryIndicated
from .outcome import Outcome
from .stop_reason import StopReason

IDEMPOTENT_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""RFC 9110 9.2.2."""

NOT_APPLIED_STATUSES = frozenset({408, 425, 429})
"""Statuses by which a server says that it did not act on the request."""


class ResendFacts(NamedTuple):
    """What the sender knows about the request that failed.

    :param method: its method.
    :param idempotent: the method is one that may always be sent again (``allowed_methods``).
    :param keyed: it carries an idempotency key.
    :param vouched: the caller, or a model, says that it may be sent again. False: the caller says that it may not,
        whatever its method and its key; None: nobody says anything.
    :param unwritten: no byte of it was written; False where nobody knows.
    :param strict: where the method is not idempotent, only what was not written may be sent again (urllib3's habit).
    :param replayable: its body can be sent again, whole.
    """

    method: str
    idempotent: bool = False
    keyed: bool = False
    vouched: bool | None = None
    unwritten: bool = False
    strict: bool = False
    replayable: bool = True


def resend_ruling(facts: ResendFacts, status: int | None, verdict: RetryAction) -> RetryForbidden | None:
    """Why the request may not be sent again, or None if it may.

    :param facts: about the request.
    :param status: of the response, or None.
    :param verdict: what the classifiers said; a throttling error and a modelled "safe" mean: not applied.
    """
    if not facts.replayable:
        return RetryForbidden("the body cannot be replayed: some of it was read", StopReason.BODY_NOT_REPLAYABLE)
    if facts.unwritten or _may_be_repeated(facts):
        return None
    if not facts.strict and (status in NOT_APPLIED_STATUSES or _says_not_applied(verdict)):
        return None
    why = "was declared not to be idempotent" if facts.vouched is False else "is not idempotent"
    return RetryForbidden(f"{facts.method} {why} and the server may have applied it", StopReason.NOT_RESENDABLE)


def _may_be_repeated(facts: ResendFacts) -> bool:
    """Whether doing it twice does no more than doing it once."""
    if facts.vouched is not None:
        return facts.vouched
    return facts.idempotent or (facts.keyed and not facts.strict)


def _says_not_applied(verdict: RetryAction) -> bool:
    """Whether the server let it be known that it did not act on the request."""
    if not isinstance(verdict, RetryIndicated):
        return False
    return verdict.reason.not_applied or verdict.reason.kind is ErrorKind.THROTTLING


class ResendRule:
    """The rule as the last classifier of every fold. It has no opinion where there is no HTTP request."""

    name = "resend rule"
    sees_successes = True

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Forbid a retry that was indicated, if the request may not be sent again."""
        if outcome.resend is None or not isinstance(previous, RetryIndicated):
            return NO_ACTION
        return resend_ruling(outcome.resend, outcome.status, previous) or NO_ACTION


RESEND_RULE = ResendRule()
"""The only one there needs to be."""
