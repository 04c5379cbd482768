"""The one place that knows the time (contract 8.5).

Everything that measures or waits is given a :class:`Clock`; nothing else in the package imports :mod:`time`.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Protocol, runtime_checkable

LONGEST_SLEEP = 1e9
"""Seconds (31 years). A server may ask for any number of them; what exceeds a platform's clock is an error there."""


class Clock(Protocol):
    """Time, as the library sees it."""

    def now(self) -> float:
        """Seconds on a clock that never goes back; its zero means nothing."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch, for dates that a server sends and for logs; it may be set back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait. Interruptible by a signal's exception."""
        ...


@runtime_checkable
class WaitingClock(Clock, Protocol):
    """A clock whose waits can be cut short from another thread. Optional: :func:`wait_on` makes do without it."""

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait until the condition is notified, at most so long. The caller holds the condition's lock."""
        ...


class SystemClock:
    """The machine's clocks. ``sleep`` is looked up at call time, so that gevent's patch (and a test's) is seen."""

    __slots__ = ()

    now: staticmethod[[], float] = staticmethod(time.monotonic)

    def wall(self) -> float:
        """Read the wall clock."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Sleep for real, 31 years at most."""
        time.sleep(min(seconds, LONGEST_SLEEP))

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait for real, with the lock released."""
        condition.wait(min(seconds, threading.TIMEOUT_MAX))


def wait_on(clock: Clock, condition: threading.Condition, seconds: float) -> None:
    """Wait on a condition whose lock is held, by the clock's own ``wait``, or else by its ``sleep``.

    A clock that can only sleep is not woken early: whoever waits looks again when the time is over.

    :param seconds: at most so long.
    """
    own: Any = getattr(clock, "wait", None)
    if own is not None:
        own(condition, seconds)
        return
    condition.release()
    try:
        clock.sleep(seconds)
    finally:
        condition.acquire()


SYSTEM_CLOCK = SystemClock()
"""The clock used where none is given."""
