"""Skipped waits in code that was given no clock (contract 8.5)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..clock import SystemClock, wait_on


class RetryClock:
    """The machine's clocks, on which a sleep takes no time: it moves the clock and is recorded.

    Real time passes here too, so that timeouts against a real server work. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._skipped = 0.0
        self._sleeps: list[float] = []
        self._lock = threading.Lock()

    @property
    def sleeps(self) -> list[float]:
        """The seconds of each wait so far, in order: a copy."""
        with self._lock:
            return list(self._sleeps)

    def now(self) -> float:
        """Return seconds on the clock that never goes back."""
        return time.monotonic() + self._skipped

    def wall(self) -> float:
        """Return seconds since the epoch."""
        return time.time() + self._skipped

    def sleep(self, seconds: float) -> None:
        """Skip the seconds, and record them.

        :param seconds: a number of 0 or more.
        :raises ValueError: for a negative number.
        """
        self.advance(seconds)
        with self._lock:
            self._sleeps.append(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass without a sleep.

        :param seconds: a number of 0 or more.
        :raises ValueError: for a negative number.
        """
        if not seconds >= 0:
            raise ValueError(f"seconds={seconds!r}: a number of seconds (0 or more) is allowed")
        with self._lock:
            self._skipped += seconds


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
    stand_ins: dict[str, Any] = {
        "now": clock.now,
        "wall": clock.wall,
        "sleep": clock.sleep,
        "wait": lambda condition, seconds: wait_on(clock, condition, seconds),
    }
    real = {name: SystemClock.__dict__[name] for name in stand_ins}
    for name, function in stand_ins.items():
        setattr(SystemClock, name, staticmethod(function))
    try:
        yield clock
    finally:
        for name, function in real.items():
            setattr(SystemClock, name, function)
