"""The one place that knows the time (contract 8.5).

Everything that measures or waits is given a :class:`Clock`; nothing else in the package imports :mod:`time`.
"""

from __future__ import annotations

import time
from typing import Protocol


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


class SystemClock:
    """The machine's clocks. ``sleep`` is looked up at call time, so that gevent's patch (and a test's) is seen."""

    __slots__ = ()

    now = staticmethod(time.monotonic)

    def wall(self) -> float:
        """Read the wall clock."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Sleep for real."""
        time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()
"""The clock used where none is given."""
