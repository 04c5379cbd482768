"""A clock that a test moves (contract 8.5). Sleeping on it takes no time: it moves the clock and is recorded."""

from __future__ import annotations

import math
import threading


class FakeClock:
    """Implements :class:`~requests_smithy_retry.Clock`: ``sleep`` advances it and records the seconds.

    >>> clock = FakeClock()
    >>> clock.sleep(1.5); clock.advance(1)
    >>> clock.now(), clock.sleeps
    (2.5, [1.5])

    Safe to use from several threads, which share the time.

    :param now: the first value of :meth:`now`, in seconds.
    :param wall: the first value of :meth:`wall`, in seconds since the epoch.
    :raises ValueError: if either is not a finite number.
    """

    def __init__(self, now: float = 0.0, wall: float = 1_700_000_000.0) -> None:
        for name, value in (("now", now), ("wall", wall)):
            if not math.isfinite(value):
                raise ValueError(f"{name}={value!r}: a finite number of seconds is allowed")
        self._now = float(now)
        self._wall = float(wall)
        self._sleeps: list[float] = []
        self._lock = threading.Lock()

    @property
    def sleeps(self) -> list[float]:
        """The seconds of each sleep so far, in order: a copy."""
        with self._lock:
            return list(self._sleeps)

    def now(self) -> float:
        """Return seconds on the clock that never goes back."""
        with self._lock:
            return self._now

    def wall(self) -> float:
        """Return seconds since the epoch."""
        with self._lock:
            return self._wall

    def sleep(self, seconds: float) -> None:
        """Advance the clock and record the sleep; return at once.

        :param seconds: a finite number of 0 or more.
        :raises ValueError: for anything else.
        """
        self._move(seconds)
        with self._lock:
            self._sleeps.append(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass without a sleep.

        :param seconds: a finite number of 0 or more.
        :raises ValueError: for anything else.
        """
        self._move(seconds)

    def set_wall(self, seconds: float) -> None:
        """Set the wall clock, forward or back, as an operator may.

        :param seconds: since the epoch.
        """
        with self._lock:
            self._wall = float(seconds)

    def _move(self, seconds: float) -> None:
        if not 0 <= seconds < math.inf:
            raise ValueError(f"seconds={seconds!r}: a finite number of seconds (0 or more) is allowed")
        with self._lock:
            self._now += seconds
            self._wall += seconds

    def __reduce__(self) -> tuple[type[FakeClock], tuple[float, float]]:
        # A copy starts at the same time, with no sleeps and with a lock of its own.
        return type(self), (self.now(), self.wall())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} now={self.now():g}>"
