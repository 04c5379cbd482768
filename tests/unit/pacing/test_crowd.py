"""Crowds that share one announced limit (contract 7.4), in virtual time: processes that know only what headers tell."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter, deque
from typing import Any

import pytest

from requests_smithy_retry.pacing.announced import Announced
from requests_smithy_retry.pacing.pace import Pace

pytestmark = pytest.mark.once

LIMIT = 100
"""Requests in a window of one second."""
WAY, SERVICE = 0.001, 0.004
"""Seconds that a request is on its way, and that an answer takes."""


class FixedWindow:
    """A window of the clock."""

    def __init__(self) -> None:
        self.used, self.ends = 0, 0.0

    def ask(self, now: float) -> bool:
        """Let one through, or not."""
        if now >= self.ends:
            self.used, self.ends = 0, float(int(now) + 1)
        granted = self.used < LIMIT
        self.used += granted
        return granted

    def announce(self, now: float) -> Announced:
        """Return what is left until the window ends."""
        return Announced(LIMIT - self.used, self.ends - now, LIMIT, None, "fixed")

    def wait(self, now: float) -> float:
        """Return the wait that a refusal asks for."""
        return self.ends - now


class SlidingWindow:
    """Any second."""

    def __init__(self) -> None:
        self.passed: deque[float] = deque()

    def ask(self, now: float) -> bool:
        """Let one through, or not."""
        while self.passed and self.passed[0] <= now - 1:
            self.passed.popleft()
        granted = len(self.passed) < LIMIT
        if granted:
            self.passed.append(now)
        return granted

    def announce(self, now: float) -> Announced:
        """Return what is left until the oldest one leaves the window."""
        return Announced(LIMIT - len(self.passed), self.wait(now), LIMIT, 1.0, "sliding")

    def wait(self, now: float) -> float:
        """Return the wait that a refusal asks for."""
        return self.passed[0] + 1 - now


class Bucket:
    """A burst of half a second."""

    size = LIMIT / 2

    def __init__(self) -> None:
        self.tokens, self.at = self.size, 0.0

    def ask(self, now: float) -> bool:
        """Let one through, or not."""
        self.tokens, self.at = min(self.size, self.tokens + (now - self.at) * LIMIT), now
        granted = self.tokens >= 1
        self.tokens -= granted
        return granted

    def announce(self, now: float) -> Announced:
        """Return what is left until the bucket is full."""
        return Announced(int(self.tokens), (self.size - self.tokens) / LIMIT, self.size, None, "bucket")

    def wait(self, now: float) -> float:
        """Return the wait that a refusal asks for."""
        return (1 - self.tokens) / LIMIT


class Process:
    """The threads of one process and their gate, without locks."""

    def __init__(self) -> None:
        self.pace = Pace(0.0)
        self.waiting: deque[int] = deque()
        self.is_limited = False
        self.looks_at = 0.0


class Crowd:
    """So many processes of so many threads; each asks again as soon as it has its answer.

    :param later: seconds by which each process begins after the one before.
    """

    def __init__(self, server: Any, processes: int, threads: int, seconds: float, later: float = 0.0) -> None:
        self.server, self.seconds = server, seconds
        self.processes = [Process() for _ in range(processes)]
        self.events: list[Any] = []
        self.order = itertools.count()
        self.random = random.Random(1)
        self.seen: list[tuple[float, bool, int]] = []
        self.began: dict[tuple[int, int], float] = {}
        self.waits: list[float] = []
        for who in itertools.product(range(processes), range(threads)):
            self.at(who[0] * later + self.random.random() * 0.01, self.arrive, *who)

    def at(self, when: float, what: Any, *arguments: Any) -> None:
        """Have something happen."""
        heapq.heappush(self.events, (when, next(self.order), what, arguments))

    def run(self) -> dict[str, float]:
        """Return the figures from the second window on."""
        while self.events[0][0] <= self.seconds:
            now, _, what, arguments = heapq.heappop(self.events)
            what(now, *arguments)
        late = [(ok, process) for when, ok, process in self.seen if when >= 1]
        passed = Counter(process for ok, process in late if ok)
        through = sum(passed.values())
        return {
            "refused": sum(not ok for ok, _ in late) / len(late),
            "used": through / (LIMIT * (self.seconds - 1)),
            "p99": sorted(self.waits)[int(0.99 * (len(self.waits) - 1))],
            "least": min(passed[each] for each in range(len(self.processes))) * len(self.processes) / through,
        }

    def arrive(self, now: float, number: int, thread: int) -> None:
        """A thread wants to send."""
        process = self.processes[number]
        self.began[number, thread] = now
        if process.is_limited:
            process.waiting.append(thread)
            self.look(now, number)
        else:
            self.send(now, number, thread)

    def look(self, now: float, number: int) -> None:
        """Let those go whose turn it is."""
        process = self.processes[number]
        while process.waiting:
            due = process.pace.due(now, len(process.waiting))
            if due - now >= 1e-6:
                if process.looks_at != due:
                    process.looks_at = due
                    self.at(due + self.random.random() * 0.001, self.look, number)
                return
            process.pace.sent(now, due)
            self.send(now, number, process.waiting.popleft())
        process.is_limited = process.is_limited and not process.pace.relax(now)

    def send(self, now: float, number: int, thread: int) -> None:
        """It is on its way."""
        self.waits.append(now - self.began[number, thread])
        self.at(now + WAY, self.serve, number, thread)

    def serve(self, now: float, number: int, thread: int) -> None:
        """It is there."""
        ok = self.server.ask(now)
        self.seen.append((now, ok, number))
        told = self.server.announce(now), None if ok else self.server.wait(now)
        self.at(now + WAY + SERVICE * ok, self.answer, number, thread, *told)

    def answer(self, now: float, number: int, thread: int, limit: Announced, hint: float | None) -> None:
        """Its answer is there."""
        process = self.processes[number]
        process.pace.hear([limit], now, refused=hint is not None)
        if hint is not None:
            process.pace.throttled(hint, now, "hint")
        process.is_limited = bool(process.waiting) or not process.pace.relax(now)
        self.look(now, number)
        self.at(now, self.arrive, number, thread)


@pytest.mark.parametrize(
    ("server", "processes", "threads", "refused", "used", "p99"),
    [
        (FixedWindow, 1, 1, 0.0, 0.97, 0.1),
        (FixedWindow, 1, 16, 0.01, 0.97, 0.6),
        (FixedWindow, 4, 4, 0.01, 0.97, 0.6),
        (FixedWindow, 8, 16, 0.01, 0.97, 2.3),
        (SlidingWindow, 1, 1, 0.0, 0.95, 0.1),
        (SlidingWindow, 1, 16, 0.01, 0.96, 0.7),
        (SlidingWindow, 4, 4, 0.01, 0.94, 0.6),
        (SlidingWindow, 8, 16, 0.03, 0.9, 3.0),
        (Bucket, 1, 1, 0.0, 0.97, 0.15),
        (Bucket, 1, 16, 0.01, 0.97, 0.6),
        (Bucket, 4, 4, 0.01, 0.97, 0.6),
        (Bucket, 8, 16, 0.01, 0.97, 2.0),
    ],
)
def test_a_crowd_is_hardly_ever_refused_and_uses_what_is_allowed(
    server: Any, processes: int, threads: int, refused: float, used: float, p99: float
) -> None:
    """From the second window on. 128 threads wait for the rest of the first window, and then for 1.28 windows."""
    found = Crowd(server(), processes, threads, 12.0).run()
    assert found["refused"] <= refused, found
    assert found["used"] >= used, found
    assert found["p99"] <= p99, found


def test_processes_have_much_the_same() -> None:
    """Each at least six tenths of its share."""
    assert Crowd(FixedWindow(), 8, 16, 12.0).run()["least"] > 0.8
    assert Crowd(SlidingWindow(), 8, 16, 12.0).run()["least"] > 0.6
    assert Crowd(Bucket(), 4, 4, 12.0).run()["least"] > 0.9


@pytest.mark.parametrize("later", [0.02, 0.05])
def test_who_came_too_late_for_the_first_window_gets_its_share(later: float) -> None:
    """In a sliding window the first processes do not keep what they took, though they hear nothing of the others."""
    assert Crowd(SlidingWindow(), 8, 16, 12.0, later=later).run()["least"] > 0.6
