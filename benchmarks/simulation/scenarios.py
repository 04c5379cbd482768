"""The scenarios: the troubles of the service and their times. To add one, add a line to :data:`SCENARIOS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .servers import FailingServer, QueueServer, Server, ThrottlingServer

if TYPE_CHECKING:
    from collections.abc import Callable

BEGIN, END, STOP = 60.0, 90.0, 180.0
"""Trouble lasts from BEGIN to END, operations are begun until STOP, in seconds."""


def during(value: float, usual: float = 0.0) -> Callable[[float], float]:
    """A value in the time of trouble, another one outside."""
    return lambda now: value if BEGIN <= now < END else usual


def always(value: float) -> Callable[[float], float]:
    """Return a function of time that is constant."""
    return lambda _now: value


def flapping(now: float) -> float:
    """Down and up every five seconds."""
    return 1.0 if BEGIN <= now < END and (now - BEGIN) % 10 < 5 else 0.0


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
    load: Callable[[float], float] = always(1.0)
    lasts: bool = False
    begin: float = BEGIN
    end: float = END
    stop: float = STOP


def queue(rate: float) -> QueueServer:
    """A healthy service with two seconds' worth of queue: longer than clients wait."""
    return QueueServer(rate, int(2 * rate))


SCENARIOS: dict[str, Scenario] = {
    "black hole": Scenario(lambda rate: FailingServer(queue(rate), during(1.0), "hole")),
    "refused": Scenario(lambda rate: FailingServer(queue(rate), during(1.0), "refused")),
    "spike x3": Scenario(queue, load=during(3.0, 1.0)),
    "throttling": Scenario(lambda rate: ThrottlingServer(queue(rate), during(rate * 0.35, rate), 5)),
    "errors 1 %": Scenario(lambda rate: FailingServer(queue(rate), always(0.01)), lasts=True),
    "errors 10 %": Scenario(lambda rate: FailingServer(queue(rate), always(0.1)), lasts=True),
    "errors 30 %": Scenario(lambda rate: FailingServer(queue(rate), always(0.3)), always(5 / 7), lasts=True),
    "bad 1 of 4": Scenario(lambda rate: FailingServer(queue(rate), during(0.25), "hole")),
    "flapping": Scenario(lambda rate: FailingServer(queue(rate), flapping, "hole")),
}
"""By name, in the order of the table. 30 % errors come at half of the service's rate."""
