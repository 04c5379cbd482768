"""Scenarios beside the table's: corners where a policy is known to be weak, and six that nothing was tuned on."""

from __future__ import annotations

from math import pi, sin
from typing import TYPE_CHECKING

from .scenarios import BEGIN, END, Scenario, always, during, queue
from .servers import FailingServer, QueueServer, ThrottlingServer

if TYPE_CHECKING:
    from random import Random

    from .servers import Answer


class Brownout(QueueServer):
    """Does half of its rate while the trouble lasts; its queue stays as long as it was."""

    def answer(self, now: float, random: Random) -> Answer:
        """Queue it, or turn it away."""
        self.rate = self.queue / (4 if BEGIN <= now < END else 2)
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


def wave(now: float) -> float:
    """Load that swings between a tenth and nearly twice the usual, once a minute."""
    return 1.0 + 0.9 * sin(2 * pi * now / 60)


CORNERS: dict[str, Scenario] = {
    "time-outs 10 %": Scenario(lambda rate: FailingServer(queue(rate), always(0.1), "hole"), lasts=True),
    "quick 503s": Scenario(lambda rate: FailingServer(queue(rate), during(1.0))),
    "errors 30 % near saturation": Scenario(lambda rate: FailingServer(queue(rate), always(0.3)), lasts=True),
    "black hole, 1 % errors": Scenario(
        lambda rate: FailingServer(FailingServer(queue(rate), during(1.0), "hole"), always(0.01))
    ),
}
"""Weak corners, by name. Near saturation is the usual load: with unrestricted retries, 97 % of the service's rate. The
last one is a black hole for clients whose retries have paid now and then before it."""

HELD_OUT: dict[str, Scenario] = {
    "brownout": Scenario(lambda rate: Brownout(rate, int(2 * rate))),
    "blips": Scenario(lambda rate: FailingServer(queue(rate), blips, "hole")),
    "throttled, 5 % errors": Scenario(
        lambda rate: FailingServer(ThrottlingServer(queue(rate), during(rate * 0.5, rate), 5), always(0.05))
    ),
    "two holes": Scenario(lambda rate: FailingServer(queue(rate), two_holes, "hole")),
    "rising errors": Scenario(lambda rate: FailingServer(queue(rate), rising)),
    "hole in a wave": Scenario(lambda rate: FailingServer(queue(2 * rate), during(1.0), "hole"), load=wave),
}
"""By name. The first three were written down after the constants were fixed, the others before the rules for buckets
that are hours old; nothing was changed after they were run."""
