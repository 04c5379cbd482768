"""The rules for an indicated retry (contract 6.2): whether it counts, is the last one, or polls; and the sentence of a
refusal. Pure functions of values; the time is one of their arguments.
"""

from __future__ import annotations

from typing import NamedTuple

from ..classifiers.actions import ErrorKind, RetryReason
from ..classifiers.outcome import Outcome
from ..errors import RetryError, StopReason, seconds_text
from ..urls import display_scope
from .quota import Refused
from .server_hints import HINTS, Hint, until_text
from .wait_queue import Bounds

NOT_FOUND = 404
SERVER_ERROR = 500
OWN_RULE = "classifier"
"""The source of a wait that a classifier of the program asks for."""


def asks_again(outcome: Outcome, reason: RetryReason, *, is_translated: bool) -> bool:
    """Return True if the attempt did not fail, but polls for a result that is not there yet (contract 6.2).

    That is the case if it succeeded, and its response shows neither throttling nor a server's fault; after a 404 that
    a translated ``Retry`` lists, with which programs wait for something to appear; and if a policy judged a value.

    :param is_translated: the options come from a urllib3 ``Retry``.
    """
    if outcome.error is not None or reason.kind is ErrorKind.THROTTLING:
        return False
    if outcome.response is None:
        return True
    if reason.kind is ErrorKind.SERVER:
        return False
    return outcome.is_success or (is_translated and outcome.status == NOT_FOUND)


def named_wait(reason: RetryReason, *, heeds_hints: bool) -> Hint | None:
    """Return the seconds that a classifier named; None: it named none, so the backoff applies.

    :param heeds_hints: the waits that servers ask for count, too.
    """
    source = reason.retry_after_source or OWN_RULE
    is_heeded = heeds_hints or source not in HINTS
    return Hint(reason.retry_after, source) if reason.retry_after is not None and is_heeded else None


def no_poll(wait: float, bounds: Bounds, began: float, now: float, longest: float) -> str | None:
    """Return why the wait for the next poll is too long, as a phrase; None: it is not.

    :param longest: the most seconds of one wait, and of all polls of an operation that nothing else bounds.
    """
    if wait > longest:
        return f"max_retry_after is {longest:g} s"
    is_bounded = bounds.max_attempts is not None or bounds.deadline is not None
    if not is_bounded and now + wait > began + longest:
        return f"polls without a deadline or max_attempts end {longest:g} s after the call began (max_retry_after)"
    return None


def is_answer(outcome: Outcome, reason: RetryReason) -> bool:
    """Return True for a 500, or a rejected response below 400: the request may be at fault, and not the service."""
    is_bad = outcome.is_success or (outcome.error is None and outcome.status == SERVER_ERROR)
    return is_bad and reason.kind is not ErrorKind.THROTTLING


def is_free(outcome: Outcome, reason: RetryReason, *, polls: bool, counts_attempts: bool) -> bool:
    """Return True if a retry costs nothing: the service works, and has no result yet or refused this one request.

    :param polls: the attempt polls for a result, as :func:`asks_again` says.
    :param counts_attempts: the quota bounds the attempts itself.
    """
    if outcome.error is not None:
        return False
    has_answer = outcome.response is not None
    if not counts_attempts:
        return has_answer and polls
    return polls or (has_answer and reason.kind is ErrorKind.CLIENT)


class RetryKind(NamedTuple):
    """The kind of a retry.

    :param polls: the attempt before it did not fail, as :func:`asks_again` says.
    :param is_free: it costs nothing.
    :param wait: the wait that was named for it, if it is a poll; None: it waits for a backoff.
    """

    polls: bool = False
    is_free: bool = False
    wait: Hint | None = None


def kind_of(
    outcome: Outcome, reason: RetryReason, *, is_translated: bool, heeds_hints: bool, counts_attempts: bool
) -> RetryKind:
    """Return the kind of the retry that follows an attempt.

    :param is_translated: as for :func:`asks_again`; ``heeds_hints`` as for :func:`named_wait`, and ``counts_attempts``
        as for :func:`is_free`.
    """
    if outcome.has_progressed:
        return RetryKind(is_free=True)
    polls = asks_again(outcome, reason, is_translated=is_translated)
    free = is_free(outcome, reason, polls=polls, counts_attempts=counts_attempts)
    return RetryKind(polls, free, named_wait(reason, heeds_hints=heeds_hints) if free and polls else None)


def is_last(bounds: Bounds, kind: RetryKind, *, sent: int, retries: int, counts_attempts: bool) -> bool:
    """Return True if no attempt may follow.

    :param sent: the requests sent so far, which count against a cap.
    :param retries: the retries made so far, which count if there is no cap.
    :param counts_attempts: the quota bounds the attempts itself.
    """
    if bounds.max_attempts is not None:
        return sent >= bounds.max_attempts
    is_bounded_here = kind.is_free or not counts_attempts or bounds.patience <= 0
    return kind.wait is None and is_bounded_here and retries >= bounds.retries


def too_long(hint: Hint, why: str, wall: float) -> RetryError:
    """Return the refusal of a wait that a server asks for, but that is too long."""
    until = until_text(hint, wall)
    why = f"{hint.source} asks for {seconds_text(hint.seconds)}, {why}: allowed again at {until}"
    return RetryError(why, stop_reason=StopReason.HINT_TOO_LONG, unmade=hint)


def too_late(seconds: float, source: str, *, is_over: bool = False) -> RetryError:
    """Return the refusal of a wait that would not end before the deadline.

    :param is_over: the deadline has passed already.
    """
    why = f"the next wait of {seconds_text(seconds)} ({source}) would not end in time"
    why = "the deadline passed during the attempt" if is_over else why
    return RetryError(why, stop_reason=StopReason.DEADLINE, unmade=Hint(seconds, source))


def refusal(
    refused: Refused, bounds: Bounds, scope: str | None, seconds: float, *, is_throttled: bool = False
) -> RetryError:
    """Return a quota's refusal with a plain sentence that says why.

    :param scope: the scope of the service; None for operations without one.
    :param seconds: the seconds waited for the service in all.
    :param is_throttled: the service asked for fewer requests.
    """
    service, does = display_scope(scope), "limiting requests" if is_throttled else "failing"
    waited = f"waited {seconds_text(seconds)}: " if seconds else ""
    reason, why = refused.reason, refused.reason.value
    if refused.why:
        why = refused.why.format(service=service)
    elif reason in (StopReason.PATIENCE, StopReason.DEADLINE) and bounds.patience <= 0:
        reason, why = StopReason.QUOTA_EXCEEDED, f"the retry budget of {service} is empty, and patience is 0"
    elif reason is StopReason.PATIENCE:
        why = f"{waited}{service} has been {does} for longer than patience allows ({bounds.patience:g} s)"
    elif reason is StopReason.DEADLINE:
        why = f"{waited}{service} was {does} until the deadline"
    elif reason is StopReason.LINE_FULL:
        why = f"too many operations are waiting for {service} already"
    return RetryError(why, stop_reason=reason)
