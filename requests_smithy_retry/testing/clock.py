"""Clocks for tests (contract 8.5), on which a sleep takes no time: it advances the clock and is recorded."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest import mock

from ..clock import SystemClock, wait_on

REAL_NOW = SystemClock.now
"""The machine's clock, which :func:`skipped_waits` replaces."""


class _Skipping:
    """Records sleeps, and adds them up instead of waiting."""

    def __init__(self) -> None:
        self._now = self._wall = 0.0
        self._sleeps: list[float] = []
        self._lock = threading.Lock()

    @property
    def sleeps(self) -> list[float]:
        """The seconds of each sleep so far, in order: a copy."""
        return list(self._sleeps)

    def now(self) -> float:
        """Return seconds on the clock that never goes back."""
        return self._now

    def wall(self) -> float:
        """Return seconds since the epoch."""
        return self._wall

    def sleep(self, seconds: float) -> None:
        """Advance the clock and record the sleep; return at once.

        :param seconds: 0 or more.
        :raises ValueError: for anything else.
        """
        self.advance(seconds)
        self._sleeps.append(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass without a sleep.

        :param seconds: 0 or more.
        :raises ValueError: for anything else.
        """
        if not 0 <= seconds <= sys.float_info.max:
            raise ValueError(f"seconds={seconds!r}: a finite number of seconds (0 or more) is allowed")
        with self._lock:
            self._now += seconds
            self._wall += seconds


class FakeClock(_Skipping):
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
        super().__init__()
        for name, value in (("now", now), ("wall", wall)):
            if not math.isfinite(value):
                raise ValueError(f"{name}={value!r}: a finite number of seconds is allowed")
        self._now, self._wall = float(now), float(wall)

    def set_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator may.

        :param seconds: since the epoch.
        """
        with self._lock:
            self._wall = float(seconds)

    def __reduce__(self) -> tuple[type[FakeClock], tuple[float, float]]:
        # A copy starts at the same time, with no sleeps and with a lock of its own.
        return type(self), (self.now(), self.wall())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} now={self.now():g}>"


class RetryClock(_Skipping):
    """The machine's clocks, on which a sleep takes no time: it advances the clock and is recorded.

    Real time passes here too, so that timeouts against a real server work. Safe to use from several threads.
    """

    def now(self) -> float:
        return REAL_NOW() + super().now()

    def wall(self) -> float:
        return time.time() + super().wall()


@contextmanager
def skipped_waits() -> Iterator[RetryClock]:
    """Skip every wait of this library in the whole process inside the block.

    It reaches each adapter and strategy without a clock of its own, in every thread.

    >>> with skipped_waits() as clock:
    ...     clock.sleep(3600)
    >>> clock.sleeps
    [3600]
    """
    clock = RetryClock()
    with mock.patch.multiple(
        SystemClock,
        now=staticmethod(clock.now),
        wall=staticmethod(clock.wall),
        sleep=staticmethod(clock.sleep),
        wait=staticmethod(partial(wait_on, clock)),
    ):
        yield clock
