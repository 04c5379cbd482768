"""Scenarios beside the table's: corners where a policy is known to be weak, and three that nothing was tuned on."""

from __future__ import annotations

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


CORNERS: dict[str, Scenario] = {
    "time-outs 10 %": Scenario(lambda rate: FailingServer(queue(rate), always(0.1), "hole"), lasts=True),
    "quick 503s": Scenario(lambda rate: FailingServer(queue(rate), during(1.0))),
    "errors 30 % near saturation": Scenario(lambda rate: FailingServer(queue(rate), always(0.3)), lasts=True),
}
"""Weak corners, by name. The last one has the usual load: with unrestricted retries, 97 % of the service's rate."""

HELD_OUT: dict[str, Scenario] = {
    "brownout": Scenario(lambda rate: Brownout(rate, int(2 * rate))),
    "blips": Scenario(lambda rate: FailingServer(queue(rate), blips, "hole")),
    "throttled, 5 % errors": Scenario(
        lambda rate: FailingServer(ThrottlingServer(queue(rate), during(rate * 0.5, rate), 5), always(0.05))
    ),
}
"""Written down after the constants were fixed, by name, and run once."""
