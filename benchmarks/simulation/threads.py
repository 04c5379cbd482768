"""Threads of one client that make calls one after the other, in virtual time."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from .engine import Loop
from .policies import CLIENT_TIMEOUT, Parked, Policy
from .servers import Server

JITTER = 0.001
"""Seconds within which threads that are started together send their first request."""


class Called(NamedTuple):
    """One call: when it began and ended on the clock, and how."""

    began: float
    ended: float
    ok: bool


class Threads:
    """The threads of one client.

    :param random: when threads begin, and what the server draws.
    """

    def __init__(self, loop: Loop, server: Server, policy: Policy, random: Random) -> None:
        self.loop = loop
        self.server = server
        self.policy = policy
        self.random = random
        self.calls: list[Called] = []
        self.sent: list[float] = []

    def start(self, threads: int, *, each: int) -> None:
        """Start so many threads, of so many calls each."""
        for _ in range(threads):
            self.loop.at(self.loop.clock.time + JITTER * self.random.random(), self._call, each)

    def _call(self, left: int) -> None:
        if left:
            self._try(self.loop.clock.time, self.policy.begin(), left)

    def _try(self, began: float, state: Any, left: int) -> None:
        now = self.loop.clock.time
        self.sent.append(now)
        kind, at = self.server.answer(now, self.random)
        if at - now > CLIENT_TIMEOUT:
            kind, at = "timeout", now + CLIENT_TIMEOUT
        self.loop.at(at, self._answered, began, state, left, now, kind)

    def _answered(self, began: float, state: Any, left: int, sent: float, kind: str) -> None:
        if kind == "ok":
            self.policy.succeeded(state, self.loop.clock.time - sent)
            self._end(began, left, ok=True)
            return
        again = self.policy.failed(state, kind)
        if isinstance(again, Parked):
            again.changed = lambda: self.loop.at(self.loop.clock.time, self._look, again, began, left)
            self._look(again, began, left)
        else:
            self._go_on(again, began, left)

    def _look(self, parked: Parked, began: float, left: int) -> None:
        if not parked.is_over:
            seen = parked.look()
            if isinstance(seen, float):
                self.loop.at(seen, self._look, parked, began, left)
            else:
                parked.is_over = True
                self._go_on(seen, began, left)

    def _go_on(self, again: tuple[float, Any] | None, began: float, left: int) -> None:
        if again is None:
            self._end(began, left, ok=False)
        else:
            self.loop.at(self.loop.clock.time + again[0], self._try, began, again[1], left)

    def _end(self, began: float, left: int, *, ok: bool) -> None:
        self.calls.append(Called(began, self.loop.clock.time, ok))
        self._call(left - 1)
