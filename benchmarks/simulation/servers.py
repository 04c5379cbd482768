"""The services of the simulation: a queue, a rate limit, failures.

An answer is worked out when the attempt arrives: what it will be, and when. A client that gave up by then does not
undo the work; that is how overload feeds on retries.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple, Protocol

NEVER = float("inf")
LATENCY = 0.02


class Answer(NamedTuple):
    """The end of an attempt: ``ok``, ``error``, ``throttled`` or ``refused``, and its time; NEVER: no answer."""

    kind: str
    at: float


class Server(Protocol):
    """A model of the service."""

    def answer(self, now: float, random: Random) -> Answer:
        """Return the end of an attempt that arrives now."""
        ...


class QueueServer:
    """Works off one request after the other at a finite rate; a full queue is answered with an error at once.

    :param rate: requests per second.
    :param queue: the most requests that may wait.
    """

    def __init__(self, rate: float, queue: int) -> None:
        self.rate = rate
        self.queue = queue
        self.free_at = -NEVER

    def answer(self, now: float, random: Random) -> Answer:
        """Queue it, or turn it away."""
        begin = max(now, self.free_at)
        if (begin - now) * self.rate > self.queue:
            return Answer("error", now + LATENCY)
        self.free_at = begin + 1 / self.rate
        return Answer("ok", self.free_at + LATENCY)


class ThrottlingServer:
    """Has a token bucket for all clients together, and throttles beyond it.

    :param server: answers what is let through.
    :param rate: requests per second that are let through, at a moment.
    :param burst: the most requests that are let through at once.
    """

    def __init__(self, server: Server, rate: Callable[[float], float], burst: float) -> None:
        self.server = server
        self.rate = rate
        self.burst = burst
        self.tokens = burst
        self.at = -NEVER

    def answer(self, now: float, random: Random) -> Answer:
        """Let it through, or throttle."""
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate(now))
        self.at = now
        if self.tokens < 1:
            return Answer("throttled", now + LATENCY)
        self.tokens -= 1
        return self.server.answer(now, random)


class FailingServer:
    """Fails with some probability, in its own way, and else is what it is.

    :param server: answers what does not fail.
    :param probability: of failing, at a moment.
    :param kind: ``error``, ``refused``, or ``hole`` for no answer at all.
    """

    def __init__(self, server: Server, probability: Callable[[float], float], kind: str = "error") -> None:
        self.server = server
        self.probability = probability
        self.kind = kind

    def answer(self, now: float, random: Random) -> Answer:
        """Fail or not. One number is drawn for each attempt, whatever the probability."""
        if random.random() >= self.probability(now):
            return self.server.answer(now, random)
        return Answer("error", NEVER) if self.kind == "hole" else Answer(self.kind, now + LATENCY / 10)
