"""The health of a service as its attempts show it, whether or not a retry may follow them."""

from __future__ import annotations

import threading
from math import inf
from typing import NamedTuple

from ..classifiers.actions import ErrorKind
from ..classifiers.fold import Classification, reason_wanted
from ..classifiers.outcome import Outcome
from ..config.retry_options import OperationOptions
from ..forksafe import renew_lock_after_fork
from .policy import leaves_time
from .rules import asks_again

KNOWN_FOR = 300.0
"""Seconds without an attempt after which the health of a service is unknown."""
LATE = 2
"""The number of an operation that gave up late, after its service was back: not the first one."""
SOON = 1.0
"""Seconds in which a service is assumed to answer while nothing else is known."""


class Failing(NamedTuple):
    """The failures since a service last answered successfully.

    :param since: the first failure; or, if nothing failed, the first operation that gave up.
    :param until: the last one.
    :param attempt_failed: at least one attempt failed; otherwise operations gave up before they sent anything.
    :param gave_up: the number of operations that gave up.
    """

    since: float
    until: float
    attempt_failed: bool = False
    gave_up: int = 0


class Health:
    """The last state seen of one service. Threads share it as one value, which is only replaced as a whole."""

    def __init__(self) -> None:
        self._failing: Failing | None = None
        """None: the last thing seen was a success."""
        self._back_at: float = -inf
        """The moment at which the attempt was sent that ended the last outage in which operations gave up."""
        self.latency: float | None = None
        """Seconds that the last success took; None before the first."""
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Replace the lock, after a fork."""
        self._lock = threading.Lock()

    def failed(self, began: float, now: float) -> None:
        """Record an attempt that shows that the service fails; ``began`` is when it was sent."""
        if began < self._back_at:
            return  # it belongs to the outage before
        with self._lock:
            known = self._known(began) or Failing(now, now)
            since = known.since if known.attempt_failed else now
            self._failing = Failing(since, now, True, known.gave_up)

    def answered(self, began: float) -> Failing | None:
        """Record an answer that shows that the service works, and return what failed before; None: nothing did.

        :param began: when the attempt was sent.
        """
        if self._failing is None:
            return None
        with self._lock:
            past, self._failing = self._known(began), None
            if past is not None and past.gave_up:
                self._back_at = began
            return past

    def gave_up(self, began: float | None, now: float) -> int:
        """Count an operation that gave up, and return its number since the service last answered successfully.

        :param began: when its last attempt was sent; None: nothing was. One sent before the service was back belongs to
            the outage before: it is not counted, and its number is :data:`LATE`.
        """
        if began is not None and began < self._back_at:
            return LATE
        with self._lock:
            known = self._known(now) or Failing(now, now)
            self._failing = known._replace(until=now, gave_up=known.gave_up + 1)
            return known.gave_up + 1

    def down_for(self, now: float) -> float | None:
        """Return the seconds since the first failure after the last success.

        None: the last thing seen was a success, or nothing was seen for :data:`KNOWN_FOR`.
        """
        known = self._known(now)
        return now - known.since if known is not None and known.attempt_failed else None

    def _known(self, now: float) -> Failing | None:
        failing = self._failing
        return None if failing is None or now - failing.until > KNOWN_FOR else failing

    def forget(self) -> None:
        """Start over."""
        self._failing = self.latency = None
        self._back_at = -inf


def had_time(outcome: Outcome, options: OperationOptions, deadline: float | None, usual: float | None) -> bool:
    """Return False if the deadline of a block ended an attempt before its service usually answers.

    :param deadline: of the call, on its clock; it may be that of the block.
    :param usual: seconds that the service's last success took; None: that is not known, so :data:`SOON` applies.
    """
    if options.deadline is None or leaves_time(outcome.ended, deadline):
        return True
    return outcome.ended - outcome.started >= (SOON if usual is None else usual)


def shows_failure(
    outcome: Outcome,
    verdict: Classification | None,
    *,
    is_translated: bool,
    had_time: bool,
) -> bool | None:
    """Return True if an attempt shows that its service fails, False if it shows that it works; None: neither.

    A classifier's verdict counts even if the resend rule forbids the retry.

    :param verdict: None: no classifier was asked.
    :param is_translated: the options come from a urllib3 ``Retry``.
    :param had_time: the result of :func:`had_time`.
    """
    if outcome.has_progressed:
        return None  # it answered before it broke off
    reason = None if verdict is None else reason_wanted(verdict.votes)
    if reason is not None:
        if reason.timeout and not had_time:
            return None  # no answer could come so soon
        polls = asks_again(outcome, reason, is_translated=is_translated)
        return not polls and (reason.kind is not ErrorKind.CLIENT or outcome.error is not None)
    if outcome.status is None:
        return None  # a fault of the request, or of the program
    return outcome.status >= 500
