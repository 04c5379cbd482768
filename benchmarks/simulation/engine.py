"""What makes virtual time: an event loop whose clock the strategies are given; nothing sleeps."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any


class VirtualClock:
    """Implements the library's ``Clock``; only the loop moves it."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        """Seconds since the beginning."""
        return self.time

    wall = now

    def sleep(self, seconds: float) -> None:
        """Refuse: in virtual time a wait is an event to schedule."""
        raise AssertionError(f"something slept {seconds} s in virtual time")


class Loop:
    """Runs what was scheduled, in order of time, and in order of scheduling where times are equal."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = itertools.count()

    def at(self, time: float, call: Callable[..., None], *arguments: Any) -> None:
        """Schedule a call."""
        now = self.clock.time
        heapq.heappush(self._events, (now if time < now else time, next(self._number), call, arguments))

    def run(self) -> None:
        """Until nothing is scheduled any more."""
        events, clock, pop = self._events, self.clock, heapq.heappop
        while events:
            clock.time, _, call, arguments = pop(events)
            call(*arguments)
