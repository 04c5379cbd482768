"""Operations as tables of steps: the machine and the line, without an adapter, a socket, or a thread.

    python -m benchmarks.explore.steps [--operations 1000000] [--seed 1]

Each world has a service that fails in spells, and a few clients' threads that operate on one scope in virtual time,
with drawn methods, deadlines, caps, patience and hints. What must be true of every operation is in
:func:`violations`. A violation is printed with the seed of its world, and is the exit status.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

import requests
from requests.structures import CaseInsensitiveDict
from requests_smithy_retry.core.machine import Context, decide, operation
from requests_smithy_retry.core.steps import Ask, Join, Noted, Pause, Send, Stop, Wait

from requests_smithy_retry import RetryConfig
from requests_smithy_retry.classifiers.outcome import Outcome, ResendFacts
from requests_smithy_retry.config.retry_options import NOTHING
from requests_smithy_retry.core.payoff import MOST, PayoffQuota, PayoffTokenBucket
from requests_smithy_retry.core.policy import Policy

IDEMPOTENT, ONCE = ResendFacts("GET", idempotent=True), ResendFacts("POST")
REFUSALS = frozenset({408, 425, 429})
"""The statuses by which a server says that it did not act on a request."""
WORLD = 60
"""Operations of one world."""
MOST_EVENTS = 20_000
"""Events of a world after which it has an operation that never ends."""
SLACK = 1e-6
BACKOFF = 3.0
"""Seconds before the second and the third attempt of one that is throttled, at most."""
SLOWEST = 2.0
"""Seconds that an attempt may take."""
HINTS = (0, 1, 3, 20, 60)


@dataclass(eq=False)
class Run:
    """One operation: its steps, and what became of it."""

    steps: Any
    facts: ResendFacts
    began: float
    deadline: float
    cap: int | None
    patience: float | None
    sent: list[float] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)  # the status of each attempt; 0: none
    waits: list[float] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)  # seconds that the server asked for
    place: Any = None
    stop: Stop | None = None
    over: float = inf


class World:
    """A service, a scope, and operations on it."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        random.seed(seed)  # for the spread of backoff
        self.now = 0.0
        self.spells = sorted(self.draw.uniform(0, 60) for _ in range(2 * self.draw.randrange(4)))
        self.kind = self.draw.choice(("503", "429", "reset", "mixed"))
        self.quota = PayoffQuota(PayoffTokenBucket())
        self.due: list[tuple[float, int, Run, Any]] = []
        self.number = itertools.count()
        self.runs: list[Run] = []
        self.waiting: list[Run] = []

    def begin(self) -> None:
        """Draw one operation and schedule it."""
        draw, cap = self.draw, self.draw.choice((None, None, 1, 2, 5))
        began = draw.uniform(0, 60)
        patience = draw.choice((None, None, 0.0, 2.0, 15.0))
        given = {"max_attempts": cap, "patience": patience}
        config = RetryConfig(**{name: value for name, value in given.items() if value is not None})
        deadline = began + draw.choice((0.5, 5.0, 30.0)) if draw.random() < 0.4 else None
        policy = Policy.of(config)
        bounds = policy.bounds(NOTHING, deadline)
        context = Context(policy, self.quota, self.quota.succeeded, NOTHING, bounds)
        steps = operation(context, began, decide)
        facts = draw.choice((IDEMPOTENT, IDEMPOTENT, ONCE))
        run = Run(steps, facts, began, inf if deadline is None else deadline, bounds.max_attempts, patience)
        self.runs.append(run)
        self.later(began, run, None)

    def later(self, moment: float, run: Run, answer: Any) -> None:
        """Go on with an operation at a moment."""
        heapq.heappush(self.due, (moment, next(self.number), run, answer))

    def play(self) -> None:
        """Let time pass until every operation has ended."""
        for _ in range(WORLD):
            self.begin()
        for _ in range(MOST_EVENTS):
            if not (self.due or self.waiting):
                return
            moments = [(run.place[1], index) for index, run in enumerate(self.waiting)]
            until, index = min(moments, default=(inf, 0))
            if self.due and self.due[0][0] <= until:
                self.now, _, run, answer = heapq.heappop(self.due)
                self.go_on(run, answer)
            else:
                self.now = max(self.now, until)
                run = self.waiting[index]
            for waiter in [each for each in self.waiting if each is not run or each.place[1] <= self.now]:
                self.look(waiter)

    def look(self, run: Run) -> None:
        """Have one that waits look again."""
        place = run.place[0]
        with place.changed:
            seen = place.look(self.now)
        if isinstance(seen, Wait):
            run.place = place, max(seen.until, self.now + SLACK)
            return
        self.waiting.remove(run)
        self.go_on(run, seen)

    def go_on(self, run: Run, answer: Any) -> None:
        """Take steps until one takes time."""
        while True:
            try:
                step = run.steps.send(answer)
            except StopIteration as ended:
                run.stop, run.over = ended.value, self.now
                return
            answer = None
            if isinstance(step, Ask):
                answer = step.function(*step.arguments)
            elif isinstance(step, Send):
                self.send(run, step.number)
                return
            elif isinstance(step, Pause):
                run.waits.append(step.seconds)
                self.later(self.now + step.seconds, run, None)
                return
            elif isinstance(step, Join):
                run.place = step.place, self.now
                self.waiting.append(run)
                self.look(run)
                return
            else:
                assert isinstance(step, Noted), step

    def send(self, run: Run, number: int) -> None:
        """Make one attempt: what the service answers now."""
        run.sent.append(self.now)
        self.quota.began(self.now)
        ended = self.now + min(self.draw.uniform(0.001, SLOWEST), max(0.0, run.deadline - self.now))
        is_down = sum(moment <= self.now for moment in self.spells) % 2 == 1
        kind = self.draw.choice(("503", "429", "reset")) if self.kind == "mixed" else self.kind
        facts = {"resend": run.facts, "started": self.now, "ended": ended, "wall": ended, "attempt": number}
        if is_down and kind == "reset":
            run.ended.append(0)
            self.later(ended, run, Outcome(error=requests.ConnectionError(), **facts))
            return
        response = requests.Response()
        response.status_code, response._content = int(kind) if is_down else 200, b""
        hint = self.draw.choice(HINTS) if is_down and self.draw.random() < 0.5 else None
        response.headers = CaseInsensitiveDict({} if hint is None else {"Retry-After": str(hint)})
        run.ended.append(response.status_code)
        run.asked.append(hint or 0)
        self.later(ended, run, Outcome(response=response, **facts))


def violations(world: World) -> Iterator[str]:
    """Yield the rules that the operations of a world that is over have broken, a phrase each."""
    for run in world.runs:
        wanted = "a success" if run.ended and run.ended[-1] == 200 else "a failure"
        got = "a success" if run.stop is not None and run.stop.reason.name == "SUCCESS" else "a failure"
        if run.stop is None or wanted != got:
            yield f"ended as {got}, and its last attempt was {wanted}"
        if run.cap is not None and len(run.sent) > run.cap:
            yield f"{len(run.sent)} requests, where {run.cap} are the most"
        if run.facts is ONCE and any(status not in REFUSALS for status in run.ended[:-1]):
            yield f"a POST was sent again after {run.ended}"
        if run.over > run.deadline + SLACK or any(sent > run.deadline + SLACK for sent in run.sent):
            yield f"ended {run.over - run.deadline:.3f} s after its deadline"
        patience = 5.0 if run.patience is None else run.patience
        most = 2 * patience + sum(run.waits) * (run.patience is None) + SLOWEST * len(run.sent) + max([0.0, *run.asked])
        if run.over - run.began > most + SLACK + BACKOFF:
            yield f"lasted {run.over - run.began:.1f} s, with a patience of {run.patience}"
        if any(later - sent < 0 for sent, later in itertools.pairwise(run.sent)):
            yield "went back in time"
    held = world.quota.snapshot(world.now)
    if held.waiting or not 0 <= held.available <= MOST:
        yield f"the scope is left with {held}"


def main() -> int:
    """Play worlds until so many operations are over."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began, sent, bad = time.process_time(), 0, 0
    for seed in range(options.seed, options.seed + options.operations // WORLD):
        world = World(seed)
        world.play()
        sent += sum(len(run.sent) for run in world.runs)
        for violation in violations(world):
            print(f"seed {seed} violates: {violation}")
            bad += 1
    took = time.process_time() - began
    print(f"{options.operations} operations, {sent} attempts, {bad} violations, {took:.0f} s of CPU")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
