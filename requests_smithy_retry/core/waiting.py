"""The waits of a call (contract 8): each releases the connection first, and ends when the call has to."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import requests.exceptions
from requests import PreparedRequest, Request, Response

from ..clock import Clock, Place, Wait, take_back, wait_in, wait_on
from ..errors import StopReason, seconds_text
from .policy import leaves_time
from .rules import too_late

if TYPE_CHECKING:
    from .call import Call

LOOK_EVERY = 0.05
"""Seconds after which a wait looks at the event: no thread can wait for an event and for others at the same time."""


class WaitEnded(Exception):
    """Raised to end a call instead of a wait. Callers get its subclasses.

    :param stop_reason: for the history; the message is its phrase.
    """

    stop_reason: StopReason
    seconds: float | None = None
    """Seconds after which a new call is worthwhile; None: unknown."""
    request: Request | PreparedRequest | None = None
    response: Response | None = None


class RetryLater(WaitEnded, requests.exceptions.RetryError):
    """Raised instead of a wait that is longer than ``max_wait``; the message says which wait.

    Its ``response`` is the last answer, if there was one and it could be kept, and its ``__cause__`` the last attempt's
    exception. :func:`retry_history` has the attempts.

    :param seconds: the rest of the wait, after which a new call is worthwhile. If the end of the wait is not known, as
        with a service that is down, the seconds after which the call would have asked again.
    """

    stop_reason = StopReason.WAIT_TOO_LONG

    def __init__(self, message: str = "", seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds: float = seconds


class RetryCancelled(WaitEnded, requests.exceptions.RetryError):
    """Raised instead of a wait, or during one, because the event of ``retry_options(cancel=...)`` is set.

    Its ``response`` is the last answer, if there was one and it could be kept, and its ``__cause__`` the last attempt's
    exception. :func:`retry_history` has the attempts.
    """

    stop_reason = StopReason.CANCELLED


class CallClock:
    """The clock of one call. A wait on it holds no connection, and ends in time.

    :param call: the call whose ``max_wait``, ``cancel`` and deadline apply.
    """

    what: str = "the strategy"
    """What is waited for, as a phrase."""
    waited: float = 0.0
    """Seconds waited since the last attempt, for any reason."""
    expected: float | None = None
    """The moment at which a wait in a place is likely to be over; None: its end."""
    _is_unreported = False

    def __init__(self, call: Call, clock: Clock) -> None:
        self._call = call
        self._clock = clock

    def now(self) -> float:
        """Return the seconds of the adapter's clock."""
        return self._clock.now()

    def wall(self) -> float:
        """Return the seconds since the epoch."""
        return self._clock.wall()

    def begin(self, what: str) -> None:
        """Report the next wait to listeners as soon as it begins."""
        self.what, self._is_unreported = what, True

    def _report(self, seconds: float) -> None:
        self._is_unreported = False
        self._call.history.wait_begins(self._call.number_shown, self.what, seconds)

    def check(self, seconds: float, what: str) -> float:
        """End the call instead of a wait that is too long or cancelled.

        :param seconds: of the coming wait, as far as is known, or of one that another bound forbids.
        :returns: the seconds after which to look again.
        :raises WaitEnded: to end the call.
        """
        self.what, options = what, self._call.options
        event, most = options.cancel, options.max_wait
        most = self._call.config.max_wait if most is None else most
        if event is not None and event.is_set():
            raise RetryCancelled(f"cancelled before or during the wait for {what}")
        if most is not None and self.waited + seconds > most:
            raise RetryLater(
                f"the wait for {what} takes {seconds_text(seconds)} more, and max_wait is {most:g} s", seconds
            )
        return seconds if event is None else min(seconds, LOOK_EVERY)

    def sleep(self, seconds: float) -> None:
        """Wait.

        :raises RetryError: at once, if the wait would not end before the deadline.
        """
        if seconds <= 0:
            return
        if not leaves_time(self.now() + seconds, self._call.deadline):
            raise too_late(seconds, self.what)
        self._call.let_go_to_wait()
        left = seconds
        while left > 0:
            part = self.check(left, self.what)
            if self._is_unreported:
                self._report(left)
            self._clock.sleep(part)
            self.waited += part
            left -= part

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait on a held condition with its lock released, perhaps for less time."""
        if self._call.holds_a_connection or self._is_unreported:
            condition.release()
            try:
                self._prepare(seconds)
            finally:
                take_back(condition)
            return
        began = self.now()
        part = min(seconds, max(LOOK_EVERY, self._check_left(seconds)))
        wait_on(self._clock, condition, part)
        self.waited += self.now() - began

    def wait_in(self, place: Place, what: str) -> Any:
        """Wait in a place and return its answer; end the call if the wait would last too long."""
        self.what = what
        try:
            with place.changed:
                seen = place.look(self.now())
            if isinstance(seen, Wait):
                self._expect(seen)
                self._prepare(max(0.0, seen.until - self.now()))
                seen = wait_in(place, self, self._expect)
            return seen
        except BaseException:
            with place.changed:
                place.leave(self.now())
            raise
        finally:
            self.expected = None

    def _expect(self, wait: Wait) -> None:
        self.expected = wait.expected

    def _prepare(self, seconds: float) -> None:
        """Release the connection and notify listeners before a wait, without holding a lock that others need."""
        self._call.let_go_to_wait()
        if self._is_unreported:
            self._check_left(seconds)
            self._report(self._seconds_left(seconds))

    def _seconds_left(self, seconds: float) -> float:
        """Return the seconds that a wait is likely to take, given those to the next look."""
        return seconds if self.expected is None else max(0.0, self.expected - self.now())

    def _check_left(self, seconds: float) -> float:
        return self.check(self._seconds_left(seconds), self.what)
