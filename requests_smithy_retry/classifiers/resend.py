"""The resend rule (contract 4 and 5). Pure. It runs after every classifier and can only forbid."""

from __future__ import annotations

from ..errors import StopReason
from .actions import NO_ACTION, ErrorKind, RetryAction, RetryForbidden, RetryIndicated
from .outcome import Outcome, ResendFacts

IDEMPOTENT_METHODS = frozenset(
    {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY", "LIST", "PROPFIND", "REPORT", "SEARCH"}
)
"""RFC 9110 9.2.2, QUERY of RFC 10008, and methods that only read: LIST of Vault, the safe ones of WebDAV and CalDAV."""

NOT_APPLIED_STATUSES = frozenset({408, 421, 425, 429})


def resend_ruling(facts: ResendFacts, status: int | None, verdict: RetryAction) -> RetryForbidden | None:
    """Return the reason why the request may not be sent again, or None if it may."""
    obstacle = facts.obstacle()
    if obstacle is not None:
        return RetryForbidden(f"the body cannot be replayed: {obstacle}", StopReason.BODY_NOT_REPLAYABLE)
    if facts.strict and facts.is_cut and not _is_harmless(facts):
        # By then urllib3 has handed over the response, whatever its Retry allows.
        return RetryForbidden(f"the server has answered, so the {facts.method} was applied", StopReason.NOT_RESENDABLE)
    if facts.unwritten or _may_be_repeated(facts):
        return None
    if not facts.strict and says_not_applied(status, verdict):
        return None
    why = "was declared not to be idempotent" if facts.vouched is False else "is not idempotent"
    return RetryForbidden(f"{facts.method} {why} and the server may have applied it", StopReason.NOT_RESENDABLE)


def may_be_applied(outcome: Outcome, verdict: RetryAction) -> bool:
    """Return True unless the server is known not to have acted on an attempt that failed."""
    unwritten = outcome.resend is not None and outcome.resend.unwritten
    return not unwritten and not says_not_applied(outcome.status, verdict)


def _may_be_repeated(facts: ResendFacts) -> bool:
    if facts.vouched is not None:
        return facts.vouched
    return facts.idempotent or (facts.keyed and not facts.strict)


def _is_harmless(facts: ResendFacts) -> bool:
    """Return True if doing it twice is the same as doing it once, whatever methods the caller allows."""
    return facts.method in IDEMPOTENT_METHODS or facts.keyed or facts.vouched is True


def says_not_applied(status: int | None, verdict: RetryAction) -> bool:
    """Return True if the server indicated that it did not act on the request: throttling and a modelled "safe" do."""
    if status in NOT_APPLIED_STATUSES:
        return True
    if not isinstance(verdict, RetryIndicated):
        return False
    return verdict.reason.not_applied or verdict.reason.kind is ErrorKind.THROTTLING


class ResendRule:
    """The rule as the last classifier of every fold. Without an HTTP request it has no opinion."""

    name = "resend rule"
    sees_successes = True

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        if outcome.resend is None or not isinstance(previous, RetryIndicated):
            return NO_ACTION
        return resend_ruling(outcome.resend, outcome.status, previous) or NO_ACTION


RESEND_RULE = ResendRule()
