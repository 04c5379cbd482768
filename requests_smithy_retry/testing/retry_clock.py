"""Waits that take no time, in code that was given no clock (contract 8.5): the machine's clock, with sleeps skipped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..clock import SystemClock, wait_on


class RetryClock:
    """Runs as the machine's clocks do, but a sleep is over at once: it moves the clock on and is written down.

    Time that really passes (on a socket, say) passes here too, so that timeouts against a real server go on working.
    Safe to use from several threads.
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
        """Seconds on the clock that never goes back."""
        return time.monotonic() + self._skipped

    def wall(self) -> float:
        """Seconds since the epoch."""
        return time.time() + self._skipped

    def sleep(self, seconds: float) -> None:
        """Skip so many seconds, and write them down.

        :param seconds: a number from 0 on.
        :raises ValueError: for a negative one.
        """
        self.advance(seconds)
        with self._lock:
            self._sleeps.append(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass that nobody waited for.

        :param seconds: a number from 0 on.
        :raises ValueError: for a negative one.
        """
        if not seconds >= 0:
            raise ValueError(f"{seconds!r} s: a clock does not go back")
        with self._lock:
            self._skipped += seconds


@contextmanager
def skipped_waits() -> Iterator[RetryClock]:
    """Let every wait of this library be over at once, in the whole process, inside the block.

    It reaches each adapter and strategy that was given no clock of its own, whoever made it and when, in every thread.

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
