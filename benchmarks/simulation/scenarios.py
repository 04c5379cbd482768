"""The troubles of a service and their times: those of the goals, and outages of any length."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from .servers import Answer, FailingServer, QueueServer, Server, ThrottlingServer

BEGIN, END, STOP = 60.0, 90.0, 180.0
"""Trouble lasts from BEGIN to END, operations are begun until STOP, in seconds."""
TAIL = 150.0
"""The seconds for which operations go on after an outage; a client that needs longer has not recovered."""


class Scenario(NamedTuple):
    """A service and how much it is asked for.

    :param server: makes the model, from the service's rate.
    :param load: the factor of the usual arrival rate, at a moment.
    :param lasts: it is the same all the time: there is no recovery to measure.
    :param begin: when trouble begins.
    :param end: when it ends.
    :param stop: until when operations are begun.
    """

    server: Callable[[float], Server]
    load: Callable[[float], float] = lambda _now: 1.0
    lasts: bool = False
    begin: float = BEGIN
    end: float = END
    stop: float = STOP


def during(value: float, usual: float = 0.0, begin: float = BEGIN, end: float = END) -> Callable[[float], float]:
    """A value in the time of trouble, another one outside."""
    return lambda now: value if begin <= now < end else usual


def always(value: float) -> Callable[[float], float]:
    """Return a function of time that is constant."""
    return lambda _now: value


def queue(rate: float) -> QueueServer:
    """A healthy service with two seconds' worth of queue: longer than clients wait."""
    return QueueServer(rate, int(2 * rate))


class Brownout(QueueServer):
    """Does half of its rate from ``begin`` to ``end``; its queue stays as long as it was."""

    def __init__(self, rate: float, begin: float = BEGIN, end: float = END) -> None:
        super().__init__(rate, int(2 * rate))
        self.full, self.begin, self.end = rate, begin, end

    def answer(self, now: float, random: Random) -> Answer:
        """Queue it, or turn it away."""
        self.rate = self.full / 2 if self.begin <= now < self.end else self.full
        return super().answer(now, random)


def blips(now: float) -> float:
    """Down for one second in ten."""
    return 1.0 if BEGIN <= now < END and now % 10 < 1 else 0.0


def two_holes(now: float) -> float:
    """Down for ten seconds, up for ten, down for ten."""
    return 1.0 if BEGIN <= now < END and not 10 <= now - BEGIN < 20 else 0.0


def rising(now: float) -> float:
    """From no errors to 60 % of all."""
    return 0.6 * (now - BEGIN) / (END - BEGIN) if BEGIN <= now < END else 0.0


SCENARIOS: dict[str, Scenario] = {
    "black hole": Scenario(lambda rate: FailingServer(queue(rate), during(1.0), "hole")),
    "refused": Scenario(lambda rate: FailingServer(queue(rate), during(1.0), "refused")),
    "spike x3": Scenario(queue, load=during(3.0, 1.0)),
    "brownout": Scenario(Brownout),
    "throttling": Scenario(lambda rate: ThrottlingServer(queue(rate), during(rate * 0.35, rate), 5)),
    "errors 10 %": Scenario(lambda rate: FailingServer(queue(rate), always(0.1)), lasts=True),
    "errors 30 %": Scenario(lambda rate: FailingServer(queue(rate), always(0.3)), always(5 / 7), lasts=True),
    "bad 1 of 4": Scenario(lambda rate: FailingServer(queue(rate), during(0.25), "hole")),
    "blips": Scenario(lambda rate: FailingServer(queue(rate), blips, "hole")),
    "two holes": Scenario(lambda rate: FailingServer(queue(rate), two_holes, "hole")),
    "rising errors": Scenario(lambda rate: FailingServer(queue(rate), rising)),
}
"""By name. 30 % errors come at half of the service's rate. Of the goals, "blips" and what is below were held out: no
constant was tuned on them."""

KINDS = ("refused", "503", "hole", "throttle", "spike", "brownout")


def outage(kind: str, seconds: float) -> Scenario:
    """A service that is down for so long, after a minute.

    :param kind: one of :data:`KINDS`.
    """
    begin, end = BEGIN, BEGIN + seconds
    failing = {"refused": "refused", "503": "error", "hole": "hole"}
    make: Callable[[float], Server] = queue
    if kind in failing:
        make = lambda rate: FailingServer(queue(rate), during(1.0, 0.0, begin, end), failing[kind])  # noqa: E731
    elif kind == "throttle":
        make = lambda rate: ThrottlingServer(queue(rate), during(rate * 0.35, rate, begin, end), 5)  # noqa: E731
    elif kind == "brownout":
        make = lambda rate: Brownout(rate, begin, end)  # noqa: E731
    load = during(3.0 if kind == "spike" else 1.0, 1.0, begin, end)
    return Scenario(make, load=load, begin=begin, end=end, stop=math.ceil(end) + TAIL)
