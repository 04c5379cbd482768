"""Polling (contract 6.2): an answer that is not there yet is no failure, and is asked for again. Pure.

Who names the seconds, the program's own rule or a 202, is asked so many seconds later, however often: no backoff is
computed, nothing is paid, and no attempt is counted but against a given ``max_attempts``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .server_hints import HINTS, Hint

if TYPE_CHECKING:
    from ..classifiers.actions import RetryReason
    from .wait_queue import Bounds

OWN_RULE = "classifier"
"""The source of a wait for which the program itself asks, by a classifier."""

PAUSE = "pause"
"""The source of a pause that a default classifier makes before it asks again: a failure, which is counted."""


def named_wait(reason: RetryReason, *, heeds_hints: bool) -> Hint | None:
    """Return the seconds that were named for the next poll; None: nobody named any, so it has a backoff.

    :param heeds_hints: the waits that servers ask for count, too.
    """
    source = reason.retry_after_source or OWN_RULE
    is_heeded = source != PAUSE and (heeds_hints or source not in HINTS)
    return Hint(reason.retry_after, source) if reason.retry_after is not None and is_heeded else None


def no_poll(wait: float, bounds: Bounds, began: float, now: float, longest: float) -> str | None:
    """Return the reason why nobody waits so long for the next poll, as a phrase; None: the wait is made.

    :param longest: seconds of one wait; and of all polls of an operation that nothing else bounds.
    """
    if wait > longest:
        return f"max_retry_after is {longest:g} s"
    is_bounded = bounds.max_attempts is not None or bounds.deadline is not None
    if not is_bounded and now + wait > began + longest:
        return f"polls without a deadline or max_attempts end {longest:g} s after the call began (max_retry_after)"
    return None
