"""The health of a service: what its attempts saw, whether or not a retry may follow them."""

from __future__ import annotations

from ..classifiers.actions import ErrorKind, RetryIndicated, RetryReason
from ..classifiers.fold import Classification
from ..classifiers.outcome import Outcome
from .rules import asks_again

KNOWN_FOR = 300.0
"""Seconds without an attempt after which the health of a service is unknown."""


class Health:
    """The last thing seen of one service: one value, replaced whole, so threads need no lock."""

    def __init__(self) -> None:
        self._failing: tuple[float, float] | None = None
        """The first failure after the last success, and the last one; None: the last thing seen was a success."""

    def saw(self, now: float, *, fails: bool | None) -> None:
        """Record the end of an attempt; None: it says nothing about the service."""
        if fails:
            known = None if self.down_for(now) is None else self._failing
            self._failing = (now if known is None else known[0]), now
        elif fails is False and self._failing is not None:
            self._failing = None

    def down_for(self, now: float) -> float | None:
        """Return the seconds since the first failure after the last success.

        None: the last thing seen was a success, or nothing was seen for :data:`KNOWN_FOR`.
        """
        failing = self._failing
        return None if failing is None or now - failing[1] > KNOWN_FOR else now - failing[0]

    def forget(self) -> None:
        """Start over."""
        self._failing = None


def shows_failure(outcome: Outcome, verdict: Classification | None, *, is_translated: bool) -> bool | None:
    """Return True if an attempt shows that its service fails, False if it shows that it works; None: neither.

    A classifier's verdict counts even if the resend rule forbids the retry.

    :param verdict: None: no classifier was asked.
    :param is_translated: the options come from a urllib3 ``Retry``.
    """
    if outcome.has_progressed:
        return False
    reason = _indicated(verdict)
    if reason is not None:
        polls = asks_again(outcome, reason, is_translated=is_translated)
        return not polls and (reason.kind is not ErrorKind.CLIENT or outcome.error is not None)
    if outcome.status is None:
        return None  # a fault of the request, or of the program
    return outcome.status >= 500


def _indicated(verdict: Classification | None) -> RetryReason | None:
    """Return the last reason for which a classifier wanted a retry, or None."""
    for vote in reversed(() if verdict is None else verdict.votes):
        if isinstance(vote.action, RetryIndicated):
            return vote.action.reason
    return None
