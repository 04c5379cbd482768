"""One fake clock for many threads."""

from __future__ import annotations

import threading
import time

GIVE_UP = 60.0
"""Seconds of real time after which a test that hangs fails."""
PAUSE = threading.Event()


class Director:
    """One fake clock for many threads: time moves on when all of them rest, to the end of the next rest."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._time = 0.0
        self._resting: dict[threading.Condition, tuple[float, int]] = {}
        self._number = 0
        self.busy = 0

    def now(self) -> float:
        return self._time

    wall = now

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps with the lock held")

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        with self._lock:
            self._number += 1
            self._resting[condition] = (self._time + seconds, self._number)
            self.busy -= 1
        condition.wait(GIVE_UP)
        with self._lock:
            del self._resting[condition]
            self.busy += 1

    def start(self, target, *arguments) -> threading.Thread:
        """Start a thread and wait until it rests or is done."""

        def run() -> None:
            try:
                target(*arguments)
            finally:
                with self._lock:
                    self.busy -= 1

        with self._lock:
            self.busy += 1
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.settle()
        return thread

    def settle(self) -> None:
        """Wait, in real time, until nobody is busy any more."""
        end = time.monotonic() + GIVE_UP
        calm = 0
        while calm < 3:
            assert time.monotonic() < end, "somebody hangs"
            PAUSE.wait(0.0005)
            with self._lock:
                calm = calm + 1 if self.busy == 0 and not self._woken() else 0

    def _woken(self) -> bool:
        """Return True if a thread was notified by another one and has not come back yet."""
        return not all(each._waiters for each in self._resting)

    def run_until(self, end: float) -> None:
        """Let time pass, stopping wherever a rest ends."""
        while True:
            self.settle()
            with self._lock:
                due = min(self._resting.items(), key=lambda item: item[1], default=None)
                if due is None or due[1][0] > end:
                    self._time = end
                    return
                self._time = max(self._time, due[1][0])
            with due[0]:
                due[0].notify()
