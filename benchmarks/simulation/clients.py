"""What comes of operations in virtual time: they arrive whether or not the service is well, each has its end."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from .engine import Loop
from .policies import CLIENT_TIMEOUT, Make, Parked
from .scenarios import Scenario
from .servers import Server


class Done(NamedTuple):
    """One operation: when it began and ended in the scenario's time, how, and after how many attempts."""

    began: float
    ended: float
    ok: bool
    attempts: int


class Run(NamedTuple):
    """Everything that happened in one simulation."""

    operations: list[Done]
    attempts: list[float]
    begun: int


class _Client:
    def __init__(self, world: _World, number: int) -> None:
        self.world = world
        self.arrivals = Random(f"{world.seed}/{number}/arrivals")
        self.policy = world.make(world.loop.clock, Random(f"{world.seed}/{number}/policy"))
        self.free = world.threads
        self.queue: deque[float] = deque()
        self._next(0.0)

    def _next(self, now: float) -> None:
        # Thinning: candidates at three times the rate, so that every policy meets the very same arrivals.
        time = now
        stop = self.world.scenario.stop
        while time < stop:
            time += self.arrivals.expovariate(3 * self.world.rate)
            if self.arrivals.random() < self.world.scenario.load(time) / 3:
                break
        if time < stop:
            self.world.loop.at(time, self._begin)

    def _begin(self) -> None:
        now = self.world.loop.clock.time
        self._next(now)
        self.world.begun += 1
        self.queue.append(now)
        self._start()

    def _start(self) -> None:
        """Begin what waits for a thread, as far as there are free ones; it counts from when it was wanted."""
        while self.free and self.queue:
            self.free -= 1
            self._try(self.queue.popleft(), self.policy.begin(), 0)

    def _done(self, began: float, ok: bool, attempts: int) -> None:
        self.world.done(began, ok, attempts)
        self.free += 1
        self._start()

    def _try(self, began: float, state: object, attempts: int) -> None:
        world, now = self.world, self.world.loop.clock.time
        world.attempts.append(now)
        kind, at = world.server.answer(now, world.random)
        took = at - now
        if took > CLIENT_TIMEOUT:
            kind, took = "timeout", CLIENT_TIMEOUT
        world.loop.at(now + took, self._answered, began, state, attempts + 1, now, kind)

    def _answered(self, began: float, state: object, attempts: int, sent: float, kind: str) -> None:
        now = self.world.loop.clock.time
        if kind == "ok":
            self.policy.succeeded(state, now - sent)
            self._done(began, True, attempts)
            return
        again = self.policy.failed(state, kind)
        if isinstance(again, Parked):
            again.changed = lambda: self.world.loop.at(self.world.loop.clock.time, self._look, again, began, attempts)
            self._look(again, began, attempts)
        else:
            self._go_on(again, began, attempts)

    def _look(self, parked: Parked, began: float, attempts: int) -> None:
        """See what came of one who waits; a look that is no longer due finds it gone."""
        if not parked.is_over:
            seen = parked.look()
            if isinstance(seen, float):
                self.world.loop.at(seen, self._look, parked, began, attempts)
            else:
                parked.is_over = True
                self._go_on(seen, began, attempts)

    def _go_on(self, again: tuple[float, object] | None, began: float, attempts: int) -> None:
        if again is None:
            self._done(began, False, attempts)
        else:
            at = self.world.loop.clock.time + again[0]
            self.world.loop.at(at, self._try, began, again[1], attempts)


@dataclass
class _World:
    """The parts that all clients share.

    :param rate: operations per second of each client.
    """

    scenario: Scenario
    server: Server
    make: Make
    rate: float
    seed: int
    threads: float
    loop: Loop = field(default_factory=Loop)
    operations: list[Done] = field(default_factory=list)
    attempts: list[float] = field(default_factory=list)
    begun: int = 0

    def __post_init__(self) -> None:
        self.random = Random(f"{self.seed}/server")

    def done(self, began: float, ok: bool, attempts: int) -> None:
        """An operation that began then, on the clock, has ended now."""
        self.operations.append(Done(began, self.loop.clock.time, ok, attempts))


def simulate(
    scenario: Scenario,
    make: Make,
    *,
    clients: int,
    load: float,
    capacity: float,
    seed: int,
    threads: float = math.inf,
) -> Run:
    """Run one scenario with one policy.

    :param make: makes a client's policy.
    :param clients: the number of clients.
    :param load: operations per second, of all together.
    :param capacity: requests per second that the service can do.
    :param seed: the same seed gives the same run.
    :param threads: of each client; operations for which none is free wait for one.
    """
    world = _World(scenario, scenario.server(capacity), make, load / clients, seed, threads)
    for number in range(clients):
        _Client(world, number)
    world.loop.run()
    return Run(world.operations, world.attempts, world.begun)
