"""Twelve kinds of trouble, thirty seconds each, for the map of harm: to add one, add a line to :data:`TROUBLES`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .scenarios import Scenario, queue
from .servers import LATENCY, Answer, FailingServer, ThrottlingServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from .servers import Server

    During = Callable[[float], float]

BEFORE, LASTS, AFTER = 20.0, 30.0, 60.0
"""Seconds of health, of trouble, and of health again."""
HINT = 2.0
"""Seconds that a server with a hint asks for."""
ENDPOINT = 0.2
"""The part of all operations that goes to the broken endpoint."""


class SlowServer:
    """Answers later by 0.5 to 1.5 s, for clients that wait for a second: half of them have gone.

    :param server: does the work.
    :param is_on: 1 in the trouble, else 0.
    """

    def __init__(self, server: Server, is_on: During) -> None:
        self.server, self.is_on = server, is_on

    def answer(self, now: float, random: Random) -> Answer:
        """Do it, and answer late."""
        more = (0.5 + random.random()) * self.is_on(now)
        answer = self.server.answer(now, random)
        return answer._replace(at=answer.at + more)


class LossyServer:
    """Does the work, and loses the reply with some probability.

    :param server: does the work.
    :param probability: of losing it, at a moment.
    """

    def __init__(self, server: Server, probability: During) -> None:
        self.server, self.probability = server, probability

    def answer(self, now: float, random: Random) -> Answer:
        """Do it; one number is drawn for each attempt."""
        is_lost = random.random() < self.probability(now)
        answer = self.server.answer(now, random)
        return answer._replace(kind="error") if is_lost else answer


class HintingServer:
    """Says with each throttled answer when to come again.

    :param server: throttles.
    """

    def __init__(self, server: Server) -> None:
        self.server = server

    def answer(self, now: float, random: Random) -> Answer:
        """Add the hint."""
        answer = self.server.answer(now, random)
        return answer._replace(hint=HINT) if answer.kind == "throttled" else answer


class WeakServer:
    """Does a part of its rate while the trouble lasts; what has queued by its end is then done at the whole rate.

    :param rate: requests per second.
    :param part: of it, at a moment.
    """

    def __init__(self, rate: float, part: During) -> None:
        self.rate, self.part = rate, part
        self.queued, self.at = 0.0, 0.0

    def answer(self, now: float, random: Random) -> Answer:  # noqa: ARG002
        """Queue it, or turn it away beyond two seconds' worth of the whole rate."""
        rate = self.rate * self.part(now)
        self.queued, self.at = max(0.0, self.queued - (now - self.at) * rate), now
        if self.queued > 2 * self.rate:
            return Answer("error", now + LATENCY)
        self.queued += 1
        return Answer("ok", now + self.queued / rate + LATENCY)


class EndpointServer:
    """Fails all attempts of some operations: those that go to a broken endpoint.

    :param server: answers the others.
    :param part: of the operations, at a moment.
    """

    began = 0.0

    def __init__(self, server: Server, part: During) -> None:
        self.server, self.part = server, part

    def answer(self, now: float, random: Random) -> Answer:
        """Tell by the moment at which it began where an operation goes."""
        if goes_to_endpoint(self.began, self.part(now)):
            return Answer("error", now + LATENCY)
        return self.server.answer(now, random)


def goes_to_endpoint(began: float, part: float = ENDPOINT) -> bool:
    """Return True for a part of all operations, whichever moment they begin at."""
    return (began * 7919) % 1 < part


def troubles(begin: float = BEFORE, lasts: float = LASTS, after: float = AFTER) -> dict[str, Scenario]:
    """The scenarios by name, for troubles of that length."""
    end = begin + lasts

    def on(value: float = 1.0, usual: float = 0.0, *, period: float = lasts, down: float = lasts) -> During:
        return lambda now: value if begin <= now < end and (now - begin) % period < down else usual

    def throttled(rate: float) -> Server:
        return ThrottlingServer(queue(rate), on(0.35 * rate, 100 * rate), 5)

    makers: dict[str, Callable[[float], Server]] = {
        "503 at once": lambda rate: FailingServer(queue(rate), on()),
        "refused": lambda rate: FailingServer(queue(rate), on(), "refused"),
        "silent": lambda rate: FailingServer(queue(rate), on(), "hole"),
        "flapping": lambda rate: FailingServer(queue(rate), on(period=lasts / 3, down=lasts / 6), "hole"),
        "slow": lambda rate: SlowServer(queue(rate), on()),
        "half of the replies lost": lambda rate: LossyServer(queue(rate), on(0.5)),
        "throttled to 35 %": throttled,
        "throttled, with a hint": lambda rate: HintingServer(throttled(rate)),
        "brownout to 30 %": lambda rate: WeakServer(rate, on(0.3, 1.0)),
        "1 of 4 servers silent": lambda rate: FailingServer(queue(rate), on(0.25), "hole"),
        "rolling restart": lambda rate: FailingServer(
            queue(rate), on(0.25, period=lasts / 4, down=lasts / 6), "refused"
        ),
        "one endpoint broken": lambda rate: EndpointServer(queue(rate), on(ENDPOINT)),
    }
    return {name: Scenario(make, begin=begin, end=end, stop=end + after) for name, make in makers.items()}


TROUBLES = troubles()
