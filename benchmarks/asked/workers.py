"""A queue of tasks: eight workers, a limit of 60 requests a minute, and an outage of ten minutes, on virtual time.

Each worker is a process of its own, with a clock of its own; the one that is the furthest behind goes next.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import requests

from requests_smithy_retry import RetryLater, retry_history
from requests_smithy_retry.testing import FakeClock, ScriptedAdapter, ScriptedReply

from ..command import Line

MINUTE, LIMIT = 60.0, 60
DOWN = (120.0, 720.0)
LATENCY = 0.05
UNKNOWN = 10.0, 160.0
"""Seconds for which a task is put back where nobody says how long: at first, and at most, doubled each time."""


@dataclass
class Service:
    """Counts by the minute, and says so."""

    used: dict[int, int] = field(default_factory=dict)
    in_vain: int = 0

    def answer(self, now: float) -> ScriptedReply:
        if DOWN[0] <= now < DOWN[1]:
            self.in_vain += 1
            return ScriptedReply(503)
        minute = int(now // MINUTE)
        reset = {"Retry-After": f"{(minute + 1) * MINUTE - now:.3f}"}
        if self.used.get(minute, 0) >= LIMIT:
            self.in_vain += 1
            return ScriptedReply(429, reset)
        self.used[minute] = self.used.get(minute, 0) + 1
        left = LIMIT - self.used[minute]
        return ScriptedReply(200, {"RateLimit-Remaining": str(left), "RateLimit-Reset": reset["Retry-After"]})


class Worker:
    """A process of a task queue."""

    def __init__(self, service: Service, options: dict[str, float]) -> None:
        self.clock = FakeClock()
        self.adapter = ScriptedAdapter(script=(), clock=self.clock, **options)  # type: ignore[arg-type]
        self.session = requests.Session()
        self.session.mount("https://", self.adapter)

        def step(_: object) -> ScriptedReply:
            self.adapter.script.append(step)
            self.clock.advance(LATENCY)
            return service.answer(self.clock.now())

        self.adapter.script.append(step)

    def do(self, tries: int) -> float | None:
        """Do a task that was put back so often; return the seconds for which it is again, or None: it is done."""
        try:
            response = self.session.get("https://api.example.com/")
            if response.ok:
                return None
            history = retry_history(response)
        except RetryLater as later:
            return later.seconds
        assert history is not None
        return min(UNKNOWN[1], UNKNOWN[0] * 2**tries) if history.retry_after is None else history.retry_after

    @property
    def slept(self) -> float:
        return sum(self.clock.sleeps)


@dataclass(frozen=True)
class Run:
    """The fate of the tasks, counted."""

    done: int
    seconds: float
    asleep: float
    in_vain: int


def run(tasks: int, **options: float) -> Run:
    """Work off a queue."""
    service = Service()
    workers = [Worker(service, options) for _ in range(8)]
    queue = [(0.0, number, 0) for number in range(tasks)]
    done, last = 0, 0.0
    while queue:
        worker = min(workers, key=lambda each: each.clock.now())
        ready, task, tries = heapq.heappop(queue)
        worker.clock.advance(max(0.0, ready - worker.clock.now()))  # it has nothing to do, or something else
        again = worker.do(tries)
        if again is None:
            done, last = done + 1, max(last, worker.clock.now())
        else:
            heapq.heappush(queue, (worker.clock.now() + again, task, tries + 1))
    seconds = max(last, 1.0)
    return Run(done, seconds, sum(worker.slept for worker in workers) / (8 * seconds), service.in_vain)


def bound(tasks: int) -> float:
    """The beginning of the minute in which the limit lets the last task pass."""
    before = int(DOWN[0] // MINUTE) * LIMIT
    left = max(0, tasks - before)
    return DOWN[1] + ((left - 1) // LIMIT) * MINUTE if left else DOWN[0]


def measure(quick: bool) -> list[Line]:
    """Compare with workers that sleep."""
    tasks = 200 if quick else 1000
    ours, sleepy = run(tasks, max_wait=0.5), run(tasks)
    least = bound(tasks)
    return [
        Line("workers asleep, of their time", "<= 1 %", f"{ours.asleep:.2%}", ours.asleep <= 0.01),
        Line("tasks lost", "0", str(tasks - ours.done), ours.done == tasks),
        Line("time, of the limit's own bound", "<= 1.05", f"{ours.seconds / least:.3f}", ours.seconds <= 1.05 * least),
        Line("requests in vain", "", str(ours.in_vain)),
        Line("asleep without max_wait", "", f"{sleepy.asleep:.2%}"),
        Line("its time, of the bound", "", f"{sleepy.seconds / least:.3f}"),
        Line("its requests in vain", "", str(sleepy.in_vain)),
    ]
