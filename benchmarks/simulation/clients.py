"""The clients: operations arrive whether or not the service is well, and each is carried to its end."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from .engine import Loop
from .policies import CLIENT_TIMEOUT
from .scenarios import STOP

if TYPE_CHECKING:
    from collections.abc import Callable

    from requests_smithy_retry import Clock

    from .policies import Policy
    from .scenarios import Scenario
    from .servers import Server

LONGEST_PERMIT_WAIT = 60.0


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
        self._next(0.0)

    def _next(self, now: float) -> None:
        # Thinning: candidates at three times the rate, so that every policy meets the very same arrivals.
        time = now
        warm_up = self.world.warm_up
        while time < STOP + warm_up:
            time += self.arrivals.expovariate(3 * self.world.rate)
            if self.arrivals.random() < self.world.scenario.load(time - warm_up) / 3:
                break
        if time < STOP + warm_up:
            self.world.loop.at(time, self._begin)

    def _begin(self) -> None:
        now = self.world.loop.clock.time
        self._next(now)
        self.world.begun += 1
        self._try(now, self.policy.begin(), 0, now)

    def _try(self, began: float, state: object, attempts: int, asked: float) -> None:
        world, now = self.world, self.world.loop.clock.time
        wait = self.policy.permit(state, now - asked)
        if wait is None or now - asked > LONGEST_PERMIT_WAIT:
            world.done(began, False, attempts)
        elif wait > 0:
            world.loop.at(now + wait, self._try, began, state, attempts, asked)
        else:
            world.attempts.append(now - world.warm_up)
            kind, at = world.server.answer(now - world.warm_up, world.random)
            took = at + world.warm_up - now
            if took > CLIENT_TIMEOUT:
                kind, took = "timeout", CLIENT_TIMEOUT
            world.loop.at(now + took, self._answered, began, state, attempts + 1, now, kind)

    def _answered(self, began: float, state: object, attempts: int, sent: float, kind: str) -> None:
        now = self.world.loop.clock.time
        if kind == "ok":
            self.policy.succeeded(state, now - sent)
            self.world.done(began, True, attempts)
            return
        again = self.policy.failed(state, kind)
        if again is None:
            self.world.done(began, False, attempts)
        else:
            at = now + again[0]
            self.world.loop.at(at, self._try, began, again[1], attempts, at)


class _World:
    """What all clients share."""

    def __init__(
        self,
        scenario: Scenario,
        server: Server,
        make: Callable[[Clock, Random], Policy],
        rate: float,
        seed: int,
        warm_up: float,
    ) -> None:
        self.loop = Loop()
        self.scenario = scenario
        self.server = server
        self.make = make
        self.rate = rate
        self.seed = seed
        self.warm_up = warm_up
        self.random = Random(f"{seed}/server")
        self.operations: list[Done] = []
        self.attempts: list[float] = []
        self.begun = 0

    def done(self, began: float, ok: bool, attempts: int) -> None:
        """An operation that began then, on the clock, has ended now."""
        self.operations.append(Done(began - self.warm_up, self.loop.clock.time - self.warm_up, ok, attempts))


def simulate(
    scenario: Scenario,
    make: Callable[[Clock, Random], Policy],
    *,
    clients: int,
    load: float,
    capacity: float,
    seed: int,
    warm_up: float = 0.0,
) -> Run:
    """Run one scenario with one policy.

    :param make: makes a client's policy.
    :param clients: how many there are.
    :param load: operations per second, of all together.
    :param capacity: requests per second that the service can do.
    :param seed: the same seed gives the same run.
    :param warm_up: seconds that everything is up before the scenario's time begins; what happens in them has
        negative times.
    """
    world = _World(scenario, scenario.server(capacity), make, load / clients, seed, warm_up)
    for number in range(clients):
        _Client(world, number)
    world.loop.run()
    return Run(world.operations, world.attempts, world.begun)
