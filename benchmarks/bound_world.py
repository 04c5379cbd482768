"""What the bound's search stands on: the real quota, stopped wherever another thread could come between.

Each operation is a greenlet that runs the quota's own code. It rests wherever another thread could come between: before
an answer, before each use of the bucket, and while it waits. The scheduler is asked what happens next; the lock of a
line is never held while it is. So the same choices give the same run, and every interleaving is a list of choices.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

from greenlet import greenlet

from requests_smithy_retry.classifiers.actions import ErrorKind, RetryReason
from requests_smithy_retry.clock import wait_in
from requests_smithy_retry.config.report import InVain
from requests_smithy_retry.core.quota import Grant
from requests_smithy_retry.core.retry_budget import RetryBudget
from requests_smithy_retry.core.wait_queue import (
    ATTEMPTS,
    LATER,
    LEAST_GAP,
    LONGEST_GAP,
    PAUSE,
    Bounds,
    Failure,
    Progress,
)
from requests_smithy_retry.features.redis import RedisTokenBucket
from requests_smithy_retry.smithy.buckets import PricedQuota

from .simulation.engine import VirtualClock

REASONS = {"failure": RetryReason(ErrorKind.TRANSIENT), "throttling": RetryReason(ErrorKind.THROTTLING)}
ANSWERS = ("success", *REASONS)
ASKED = "nobody had asked for a while"
"""The line's reason for letting the next one go without a success."""


class SteppingClock(VirtualClock):
    """The clock of a world: who waits on it rests until the scheduler lets time pass."""

    def sleep(self, seconds: float) -> None:
        """Rest until then."""
        until = self.time + seconds
        while self.time < until:
            rest("sleep", (until, None))

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Rest until then, or until notified, without the lock."""
        bell = threading.Lock()
        bell.acquire()
        condition._waiters.append(bell)
        condition.release()
        try:
            rest("wait", (self.time + seconds, bell))
        finally:
            condition.acquire()
            if bell.locked():
                condition._waiters.remove(bell)


def rest(place: str, detail: Any = None) -> Any:
    """Let the scheduler go on; return what it says."""
    current = greenlet.getcurrent()
    return None if current.parent is None else current.parent.switch((place, detail))


class Stepping:
    """A bucket of which each use is a step of its own, as where threads come between."""

    STEPS = frozenset({"acquire", "first_tries", "release", "succeeded", "available"})

    def __init__(self, bucket: Any) -> None:
        self._bucket = bucket

    @property
    def __class__(self) -> Any:
        return type(self._bucket)

    def __getattr__(self, name: str) -> Any:
        if name in self.STEPS:
            rest(name)
        return getattr(self._bucket, name)


class Rules(NamedTuple):
    """The behaviour of the operations of a world, and the bound that they are to keep.

    :param make: makes the quota of each process on a clock.
    :param bounds: of an operation that begins at 0, its deadline included.
    :param price: the least tokens of a retry.
    :param bound: on the retries in vain of all processes together.
    """

    make: Callable[[SteppingClock], tuple[Any, ...]]
    bounds: Bounds
    price: float
    bound: InVain


class Questions:
    """The questions of one line since the last success, or since it was last left alone for a while."""

    def __init__(self) -> None:
        self.asked, self.operations, self.since, self.last_answer = 0, 0, 0.0, 0.0

    def note_answer(self, now: float, *, is_success: bool, is_first: bool) -> None:
        """Begin anew after a success, or a pause."""
        if is_success or now - self.last_answer > PAUSE:
            self.asked, self.operations, self.since = 0, 0, now
        self.operations += is_first
        self.last_answer = now

    def slack(self, now: float) -> float:
        """Those still allowed: as many as gaps of a quarter of the age have room for, one, and a last one of each
        operation.
        """
        seconds = now - self.since
        grown = math.log(max(1.0, LATER * seconds / LEAST_GAP), 1 + LATER)
        gaps = min(seconds / LEAST_GAP, 1 / LATER) + grown + seconds / LONGEST_GAP
        return 1 + gaps + self.operations - self.asked


IN_HAND: dict[Any, tuple[str, ...]] = {
    RetryBudget.acquire.__code__: ("progress", "delay", "price", "now"),
    RetryBudget._take.__code__: ("number",),
    RetryBudget.succeeded.__code__: ("is_alone",),
    PricedQuota.acquire.__code__: ("price", "is_taken", "began"),
}
"""The variables of code that rests which decide about its future. A waiter's are those of its line."""


TIMES = ("now", "began")
"""Those of them that are moments."""


class _Shown:
    """A failed attempt as a quota is shown it."""

    def __init__(self, clock: SteppingClock) -> None:
        self.clock = clock
        self.outcome = SimpleNamespace(ended=clock.time)

    def wait_in(self, place: Any, what: str) -> Any:
        """Wait by the clock of the world."""
        return wait_in(place, self.clock)


class _Operation:
    """One place for operations, one after the other."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.quota = world.quotas[number % len(world.quotas)]
        self.questions = world.questions[number % len(world.quotas)]
        # A quota that counts by itself needs no cap.
        self.most = world.rules.bounds.max_attempts or (None if self.quota.counts_attempts else ATTEMPTS)
        self.place, self.detail = "idle", None
        self.progress: Any = None
        self.attempts = 0
        self.run: Any = None

    def go_on(self, said: Any = None) -> None:
        """Run to the next place of rest."""
        if self.run is None:
            self.run = greenlet(self._operate)
        self.place, self.detail = self.run.switch(said) or ("idle", None)
        if self.place == "idle":
            self.run, self.progress = None, None

    def _operate(self, _: Any = None) -> None:
        world, quota, bounds, clock = self.world, self.quota, self.world.rules.bounds, self.world.clock
        quota.began(clock.time)
        self.attempts, self.progress = 0, Progress(clock.time)
        if bounds.deadline is not None:
            bounds = bounds._replace(deadline=clock.time + bounds.deadline)
        while True:
            answer = rest("answer")
            self.attempts += 1
            is_first = self.attempts == 1
            self.questions.note_answer(clock.time, is_success=answer == "success", is_first=is_first)
            if answer == "success":
                world.successes += 1
                if is_first:
                    quota.first_try(clock.time, 0.0, None)
                else:
                    quota.succeeded(self.progress, clock.time)
                return
            world.in_vain += self.attempts > 1
            failure = Failure(throttled=answer == "throttling", reason=REASONS[answer])
            decision = None
            if self.most is None or self.attempts < self.most:
                decision = quota.acquire(self.progress, bounds, failure, _Shown(clock))
            if not isinstance(decision, Grant):
                return
            self.progress = decision.progress
            self.questions.asked += decision.why == ASKED

    def state(self, now: float) -> Hashable:
        """Everything that decides about its future."""
        if self.progress is None:
            return self.place
        attempts = bool(self.attempts) if self.most is None else self.attempts
        until = None
        if self.detail is not None:
            due, bell = self.detail
            until = (round(due - now, 9), bell is not None and bell.locked())
        progress = progress_state(self.progress, self.quota, now)
        return (self.place, until, attempts, progress, *self._in_hand(now))

    def _in_hand(self, now: float) -> Iterator[Hashable]:
        """The values that the code at which it rests has worked out already."""
        frame = self.run.gr_frame
        while frame is not None:
            for name in IN_HAND.get(frame.f_code, ()):
                value = frame.f_locals.get(name)
                if isinstance(value, Progress):
                    value = progress_state(value, self.quota, now)
                yield round(value - now, 9) if name in TIMES and value is not None else value
            frame = frame.f_back


class World:
    """The quotas, the operations, and the count of what was in vain.

    :param rules: of this world.
    :param places: the number of operations at a time.
    """

    def __init__(self, rules: Rules, places: int = 2) -> None:
        self.rules = rules
        self.clock = SteppingClock()
        self.quotas = rules.make(self.clock)
        self.questions = [Questions() for _ in self.quotas]
        self.operations = [_Operation(self, number) for number in range(places)]
        self.successes = self.in_vain = 0

    @property
    def slack(self) -> float:
        """The retries in vain that the bound still allows; a negative number refutes it."""
        at_first, per_success, per_second = self.rules.bound
        return at_first + per_success * self.successes + per_second * self.clock.time - self.in_vain

    @property
    def slack_of_questions(self) -> float:
        """The same for the questions of each line alone."""
        return min(each.slack(self.clock.time) for each in self.questions)

    def choices(self) -> Iterator[tuple[int, str]]:
        """The next possible events: an operation and its answer, or -1 and the seconds that pass."""
        dues = []
        for number, each in enumerate(self.operations):
            if each.place == "answer":
                yield from ((number, answer) for answer in ANSWERS)
            elif each.place in ("sleep", "wait"):
                due, bell = each.detail
                dues.append(due)
                if due <= self.clock.time or (bell is not None and not bell.locked()):
                    yield number, ""
            else:
                yield number, ""
        later = [due for due in dues if due > self.clock.time]
        if later:
            yield -1, repr(min(later) - self.clock.time)

    def step(self, choice: tuple[int, str]) -> None:
        """Let it happen."""
        number, what = choice
        if number < 0:
            self.clock.time += float(what)
        else:
            self.operations[number].go_on(what)

    def state(self) -> Hashable:
        """Everything that decides about the future, times as they are seen from now."""
        now = self.clock.time
        states = [each.state(now) for each in self.operations]
        if len(self.quotas) == 1:
            states.sort(key=hash)
        return (tuple(state_of(quota, now) for quota in self.quotas), tuple(states))

    def close(self) -> None:
        """End the operations that are under way."""
        for each in self.operations:
            if each.run is not None:
                each.run.throw()


def state_of(quota: Any, now: float) -> Hashable:
    """Everything in a quota that decides about its future, times as they are seen from now."""
    line = getattr(quota, "_queue", None)
    if line is None:
        return bucket_state(quota.bucket)
    times = (line.down_since, line.answered_at, line._last, line._touched)
    waiters = [
        (progress_state(each.progress, quota, now), each.earliest - now, each.released is None) for each in line.waiters
    ]
    return (
        bucket_state(quota.bucket),
        quota._first_tries,
        round(line.usual(now), 9),
        line.is_throttled,
        round(line._credit, 9),
        tuple(None if time is None else round(time - now, 9) for time in times),
        tuple(waiters),
    )


def bucket_state(bucket: Any) -> Hashable:
    """The tokens, and for a bucket that processes share what this one knows of it."""
    plain = inner(bucket)
    known = [round(plain.available, 9)]
    if isinstance(plain, RedisTokenBucket):
        known += [plain._local.available, plain._level, plain.quota.levels.get(plain.name, plain.capacity)]
    return tuple(known)


def inner(bucket: Any) -> Any:
    """The bucket itself."""
    return bucket._bucket if type(bucket) is Stepping else bucket


def progress_state(progress: Progress, quota: Any, now: float) -> Hashable:
    """Everything in a progress that decides about its future."""
    line = getattr(quota, "_queue", None)
    is_past = progress.failed_at is not None and line is not None and line.well_at > progress.failed_at
    age = round(now - progress.began, 9)
    known = (progress.counted, progress.spent, progress.acquired, progress.probes)
    return (age, progress.failed_at is None, is_past, known)
