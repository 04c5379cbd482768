"""Outages of every length: one service, seven ways to be down, and what an operation could make of it.

Trouble begins after a minute. An operation that begins in it could succeed if it may live beyond its end: that many
are the ceiling that policies are measured by.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from .metrics import measure
from .scenarios import BEGIN, Scenario, queue
from .servers import FailingServer, QueueServer, ThrottlingServer

if TYPE_CHECKING:
    from random import Random

    from .clients import Run
    from .servers import Answer

TAIL = 150.0
"""The seconds for which operations go on after the end; a client that needs longer has not recovered."""
KINDS = ("refused", "503", "hole", "throttle", "spike", "brownout")


class Brownout(QueueServer):
    """Does half of its rate from ``begin`` to ``end``; its queue stays as long as it was."""

    def __init__(self, rate: float, begin: float, end: float) -> None:
        super().__init__(rate, int(2 * rate))
        self.full, self.begin, self.end = rate, begin, end

    def answer(self, now: float, random: Random) -> Answer:
        """Queue it, or turn it away."""
        self.rate = self.full / 2 if self.begin <= now < self.end else self.full
        return super().answer(now, random)


def outage(kind: str, seconds: float) -> Scenario:
    """A service that is down for so long.

    :param kind: one of :data:`KINDS`.
    """
    begin, end = BEGIN, BEGIN + seconds

    def now_or(inside: float, outside: float) -> object:
        return lambda now: inside if begin <= now < end else outside

    failing = {"refused": "refused", "503": "error", "hole": "hole"}
    if kind in failing:
        make = lambda rate: FailingServer(queue(rate), now_or(1.0, 0.0), failing[kind])  # noqa: E731
    elif kind == "throttle":
        make = lambda rate: ThrottlingServer(queue(rate), now_or(rate * 0.35, rate), 5)  # noqa: E731
    elif kind == "brownout":
        make = lambda rate: Brownout(rate, begin, end)  # noqa: E731
    else:
        make = queue
    load = now_or(3.0 if kind == "spike" else 1.0, 1.0)
    return Scenario(make, load=load, begin=begin, end=end, stop=math.ceil(end) + TAIL)


class Figures(NamedTuple):
    """The figures that are read off one run: percentages, counts and seconds."""

    success: float
    """Of the operations begun in the outage."""
    of_ceiling: float
    """Of those that could live beyond its end."""
    sent: float
    """Attempts of an operation begun in it, while it lasts."""
    bound: float
    """``1 + 2 (1 - e^-n) / n`` of clients with n operations in it."""
    late: float
    """Seconds until it is over for good, after its end."""
    peak: float
    """Most attempts of a second in the first five after the end, over what the service can do."""
    held: float
    """Seconds that an operation begun in it took, on average."""


def figures(run: Run, scenario: Scenario, *, clients: int, load: float, capacity: float, patience: float) -> Figures:
    """Measure one run.

    :param patience: the seconds that an operation may live, which make the ceiling.
    """
    begin, end = scenario.begin, scenario.end
    inside = [done for done in run.operations if begin <= done.began < end]
    able = [done for done in inside if done.began + patience > end]
    n = load * scenario.load(begin) * (end - begin) / clients
    seconds = [0] * 5
    for sent in run.attempts:
        if end <= sent < end + 5:
            seconds[int(sent - end)] += 1
    return Figures(
        success=100 * sum(done.ok for done in inside) / max(1, len(inside)),
        of_ceiling=100 * sum(done.ok for done in able) / len(able) if able else math.nan,
        sent=sum(begin <= sent < end for sent in run.attempts) / max(1, len(inside)),
        bound=1 + 2 * (1 - math.exp(-n)) / n,
        late=measure(run, scenario)["recovery"],
        peak=max(seconds) / capacity,
        held=sum(done.ended - done.began for done in inside) / max(1, len(inside)),
    )
