"""What the schedules explore: two or three threads over each object of the package that threads share."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from requests.structures import CaseInsensitiveDict

from requests_smithy_retry.classifiers.outcome import Outcome
from requests_smithy_retry.clock import SYSTEM_CLOCK, wait_in
from requests_smithy_retry.config.retry_config import RetryConfig
from requests_smithy_retry.config.retry_options import NOTHING
from requests_smithy_retry.core.attempt import AttemptFailed
from requests_smithy_retry.core.quota import Grant
from requests_smithy_retry.core.retry_budget import CAPACITY, MOST, PayoffTokenBucket, RetryBudget
from requests_smithy_retry.core.scope import Scopes
from requests_smithy_retry.core.wait_queue import Bounds, Failure, Progress
from requests_smithy_retry.core.waiting import CallClock
from requests_smithy_retry.features.addresses.memory import LONGEST_PERIOD, AddressMemory
from requests_smithy_retry.features.addresses.resolving import Late, Lookups, Question, Stuck
from requests_smithy_retry.features.rate_limits.announced import DIALECTS, announced_in
from requests_smithy_retry.features.rate_limits.limits import Limits, PlaceAtLimits
from requests_smithy_retry.smithy.buckets import TokenBucket
from requests_smithy_retry.smithy.rate_limiter import ClientRateLimiter

from .fakes import WALL
from .schedules import Program
from .tasks import tasks


class Bucket(Program):
    """A bucket gives out no token twice and loses none."""

    work = ("take_two", "take_and_return", "earn")

    def __init__(self) -> None:
        super().__init__()
        self.bucket = TokenBucket(28)
        self.out: list[float] = []

    def take_two(self) -> None:
        for _ in range(2):
            self.out.append(14 * self.take())

    def take_and_return(self) -> None:
        if self.take():
            self.bucket.release(14)

    def take(self) -> bool:
        granted = self.bucket.acquire(14)
        if self.bucket.available < 0:
            self.wrong.append("more is out than there was")
        return granted

    def earn(self) -> None:
        self.bucket.release(1)

    def check(self) -> None:
        level, out = self.bucket.available, sum(self.out)
        if not (28 - out <= level <= min(28, 29 - out)):
            self.wrong.append(f"{level} tokens are there and {out} out, of 28")


class WaitingBucket(Program):
    """Tokens that come back go to whoever waits first, at once; whoever gives up leaves nothing behind."""

    work = ("use", "use", "give_up")

    def __init__(self) -> None:
        super().__init__()
        self.bucket = TokenBucket(14, refill_rate=1e-9, on_empty="wait")
        self.got: list[tuple[bool, float]] = []

    def use(self) -> None:
        granted = self.bucket.acquire(14)
        self.got.append((granted, tasks.now))
        tasks.wait(0.3)
        if granted:
            self.bucket.release(14)

    def give_up(self) -> None:
        if self.bucket.acquire(14, deadline=tasks.now + 0.2):
            self.bucket.release(14)

    def check(self) -> None:
        self.expect(expected=14, actual=self.bucket.available, what="tokens")
        self.expect(expected=0, actual=len(self.bucket._places), what="waiting")
        self.expect(expected=[True, True], actual=[granted for granted, _ in self.got], what="granted")
        late = max(at for _, at in self.got) - 1000.0
        if late > 0.5 and not self.has_leapt:
            self.wrong.append(f"the last one waited {late} s")


class Payoff(Program):
    """The level stays in its range, whoever pays, is paid back, and tells of first-try successes."""

    work = ("pay", "count", "pay")

    def __init__(self) -> None:
        super().__init__()
        self.bucket = PayoffTokenBucket()

    def pay(self) -> None:
        self.bucket.succeeded(self.bucket.acquire(1) + self.bucket.acquire(1))

    def count(self) -> None:
        self.bucket.first_tries(2)

    def check(self) -> None:
        if not CAPACITY <= self.bucket.available <= MOST:
            self.wrong.append(f"{self.bucket.available} tokens")


class Spent(Program):
    """No more retries are granted than a payoff bucket holds, and what is granted is missing."""

    work = ("pay", "pay", "pay")

    def __init__(self) -> None:
        super().__init__()
        self.bucket = PayoffTokenBucket()
        self.granted: list[bool] = []

    def pay(self) -> None:
        self.granted.append(self.bucket.acquire(1))

    def check(self) -> None:
        self.expect(expected=(2, 0.0), actual=(sum(self.granted), self.bucket.available), what="granted, left")


class Held:
    """What the clock of a call wants of the call: it has a connection, which it lets go before it waits."""

    options, config, deadline = NOTHING, RetryConfig(trust_env=False), None

    def __init__(self) -> None:
        self.holds_a_connection = True
        self.clock = CallClock(self, SYSTEM_CLOCK)  # type: ignore[arg-type]

    def let_go_to_wait(self) -> None:
        self.holds_a_connection = False
        tasks.pause()


def failed_now() -> AttemptFailed:
    """Return an attempt that failed now, as a call shows it."""
    call: Any = Held()
    return AttemptFailed(Outcome(ended=tasks.now), clock=call.clock, call=call)


class Quota(Program):
    """Operations on one quota whose bucket is empty, until somebody succeeds."""

    may_be_interrupted = True

    def __init__(self) -> None:
        super().__init__()
        self.quota = RetryBudget(now=tasks.now)
        self.quota.bucket.acquire(CAPACITY)
        self.ended: list[Any] = []
        self.succeeded_at: float | None = None

    def fail(self) -> None:
        go = self.quota.acquire(Progress(tasks.now), Bounds(10, 3.0), Failure(), failed_now())
        self.ended.append((go, tasks.now))

    def succeed(self) -> None:
        tasks.wait(0.2)
        self.succeeded_at = tasks.now
        self.quota.first_try(tasks.now, 0.2, None)

    def check(self) -> None:
        line: Any = self.quota._queue
        self.expect(expected=[], actual=line.waiters, what="in line")


class FirstTries(Quota):
    """No first-try success is counted twice or lost."""

    work = ("first_try", "fail", "first_try")

    def __init__(self) -> None:
        super().__init__()
        self.told = 0
        self.quota.bucket.first_tries = self.tell  # type: ignore[method-assign]

    def first_try(self) -> None:
        self.quota.first_try(tasks.now, 0.0, None)

    def tell(self, number: int) -> None:
        self.told += number

    def check(self) -> None:
        super().check()
        if not self.was_interrupted:
            quota: Any = self.quota
            self.expect(expected=2, actual=self.told + quota._first_tries, what="first-try successes")


class Waiting(Quota):
    """Who waits in the line goes when another one succeeds, not later."""

    work = ("fail", "fail", "succeed")

    def check(self) -> None:
        super().check()
        for seen, at in self.ended:
            is_late = at != self.succeeded_at and not (self.has_leapt or self.was_interrupted)
            if isinstance(seen, Grant) and seen.why == "another request succeeded" and is_late:
                self.wrong.append(f"let go at {self.succeeded_at}, gone at {at}")


class WaitingAlone(Waiting):
    """An operation that waits alone goes when another one succeeds."""

    work = ("fail", "succeed")


class Asking(Quota):
    """Where nobody succeeds, the first in line asks half a second later, even if the one before it was interrupted."""

    work = ("fail", "fail")

    def check(self) -> None:
        super().check()
        if not self.has_leapt:
            self.expect(expected=1000.5, actual=min(at for _, at in self.ended), what="asked")


class Forgotten(Quota):
    """Who waits goes at once when what was known is forgotten."""

    work = ("fail", "fail", "forget")

    def forget(self) -> None:
        tasks.wait(0.2)
        self.succeeded_at = tasks.now
        self.quota.forget(tasks.now)

    def check(self) -> None:
        super().check()
        for _, at in self.ended:
            if at > 1000.2 and not (self.has_leapt or self.was_interrupted):
                self.wrong.append(f"forgotten at {self.succeeded_at}, gone at {at}")


class Limiter(Program):
    """Permits are given out as they come, one at a time, and whoever rests for one is woken."""

    work = ("throttled", "send", "send")
    may_be_interrupted = True

    def __init__(self) -> None:
        super().__init__()
        self.limiter = ClientRateLimiter()
        self.granted = 0

    def throttled(self) -> None:
        self.limiter.record_response(True)
        self.limiter.record_response(False)

    def send(self) -> None:
        while (wait := self.limiter.try_acquire()) is not None:
            wait.rest(SYSTEM_CLOCK)
        self.granted += 1
        self.limiter.record_response(False)

    def check(self) -> None:
        limiter: Any = self.limiter
        self.expect(expected=0, actual=len(limiter._waiting), what="waiting")
        if not self.was_interrupted:
            self.expect(expected=(2, 4), actual=(self.granted, limiter._clocker.count), what="permits and responses")
        if limiter._capacity < 0:
            self.wrong.append(f"{limiter._capacity} permits")


class Announced(Program):
    """Sends wait for a limit in turn, whatever is announced meanwhile, and none stays behind."""

    work = ("send", "send", "hear")
    may_be_interrupted = True

    def __init__(self) -> None:
        super().__init__()
        self.limits = Limits()
        self.waited: list[float] = []
        self.hear()

    def send(self) -> None:
        passed = wait_in(PlaceAtLimits(self.limits, 10.0), SYSTEM_CLOCK)
        self.waited.append(passed.waited)
        self.limits.answered(passed, (), 200, tasks.now)

    def hear(self) -> None:
        headers = {"RateLimit-Limit": "10", "RateLimit-Remaining": "0", "RateLimit-Reset": "2"}
        told = announced_in(CaseInsensitiveDict(headers), wall=WALL, dialects=DIALECTS)
        self.limits.answered(None, told, 429, tasks.now)

    def check(self) -> None:
        limits: Any = self.limits
        self.expect(expected=[], actual=list(limits.queue), what="waiting")
        if max(self.waited, default=0.0) > 5.0 and not self.has_leapt:
            self.wrong.append(f"waited {self.waited} s for a limit that was used up for 2 s")
        if not self.was_interrupted:
            self.expect(expected=0, actual=len(limits._in_flight), what="under way")


class Table(Program):
    """A name has one scope, whoever asks first, and none is given up on which somebody waits."""

    work = ("wait", "use", "use", "crowd")

    def __init__(self) -> None:
        super().__init__()
        self.table = Scopes(lambda _name, now: RetryBudget(PayoffTokenBucket(0), now), SYSTEM_CLOCK, 2)
        self.first = self.table.get("one")
        self.used: list[Any] = []
        self.kept = False

    def wait(self) -> None:
        self.first.quota.acquire(Progress(tasks.now), Bounds(10, 3.0), Failure(), failed_now())

    def use(self) -> None:
        self.used.append(self.table.get("two"))

    def crowd(self) -> None:
        tasks.wait(0.2)
        self.table.get("three")
        self.kept = dict(self.table).get("one") is self.first

    def check(self) -> None:
        self.expect(expected=2, actual=len(list(self.table)), what="scopes")
        if not self.has_leapt:
            self.expect(expected=(1, True), actual=(len(set(self.used)), self.kept), what="scopes of a name, kept")


class Addresses(Program):
    """The memory of addresses has no lock; what threads overwrite costs no more than a failure."""

    work = ("fail", "succeed", "choose")

    def __init__(self) -> None:
        super().__init__()
        self.memory = AddressMemory(SYSTEM_CLOCK)

    def fail(self) -> None:
        self.memory.failed("host", "a", "Reset")
        self.memory.failed("host", "b", "503", answers=True)

    def succeed(self) -> None:
        self.memory.begin_probe("host", "a")
        self.memory.succeeded("host", "a")

    def choose(self) -> None:
        ordered = self.memory.in_order("host", ("a", "b", "c"))
        self.expect(expected=["a", "b", "c"], actual=sorted(ordered), what="addresses")
        self.memory.is_avoided("host", "b", ("a", "b"))

    def check(self) -> None:
        for faults in self.memory.faults.values():
            for fault in faults.values():
                if not 0 < fault.period <= LONGEST_PERIOD:
                    self.wrong.append(f"{fault}")
        self.memory.snapshot()


class Names(Program):
    """A question is asked by one thread at a time, and its answer reaches all."""

    work = ("find_one", "find_one")
    may_be_interrupted = True
    late = (Late, Stuck)

    def __init__(self) -> None:
        super().__init__()
        self.lookups, self.asked = Lookups(1), 0

    def ask(self, host: str) -> str:
        self.asked += 1
        if self.asked > 1:
            self.wrong.append("two threads ask at a time")
        tasks.wait(0.1)
        self.asked -= 1
        return host

    def find_one(self) -> None:
        self.find("one")

    def find_two(self) -> None:
        self.find("two")

    def find(self, host: str) -> None:
        found = self.lookups.find(Question(self.ask, host, ()), lambda: 60.0)
        if not isinstance(found[1], socket.gaierror):  # who asked was interrupted
            self.expect(expected=(host, None), actual=found, what="answer")

    def check(self) -> None:
        self.expect(expected=({}, []), actual=(self.lookups._running, self.lookups._line), what="left")


class NamesInLine(Names):
    """The next question gets the thread."""

    work = ("find_one", "find_two")


class NamesOfThree(Names):
    """Two ask the same, and a third one is next."""

    work = ("find_one", "find_one", "find_two")


PROGRAMS: dict[str, Callable[[], Program]] = {
    "bucket": Bucket,
    "bucket on which others wait": WaitingBucket,
    "payoff bucket": Payoff,
    "payoff bucket that is spent": Spent,
    "first tries": FirstTries,
    "line": Waiting,
    "line of one": WaitingAlone,
    "line that asks": Asking,
    "line that is forgotten": Forgotten,
    "limiter": Limiter,
    "rate limit": Announced,
    "scope table": Table,
    "address table": Addresses,
    "names": Names,
    "names, one has to wait": NamesInLine,
    "names of three": NamesOfThree,
}
