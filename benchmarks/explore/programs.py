"""What the schedules explore: two or three threads over each object of the package that threads share."""

from __future__ import annotations

import queue
import socket
from collections.abc import Callable
from typing import Any

from requests.structures import CaseInsensitiveDict

from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.pacing.announced import DIALECTS
from requests_smithy_retry.pacing.gate import Gate, Gates
from requests_smithy_retry.pacing.rate_limiter import ClientRateLimiter
from requests_smithy_retry.quotas.bucket import TokenBucket
from requests_smithy_retry.quotas.line import Failure, Go, Terms
from requests_smithy_retry.quotas.payoff import MOST, ROOM, PatientQuota, PayoffTokenBucket
from requests_smithy_retry.quotas.scope_quota import DO_NOTHING, PricedQuota
from requests_smithy_retry.quotas.scopes import ScopeTable
from requests_smithy_retry.wire.addresses import LONGEST_PERIOD, AddressMemory
from requests_smithy_retry.wire.pools import KeptConnections
from requests_smithy_retry.wire.resolving import Late, Lookups, Question, Stuck

from .schedules import Program
from .tasks import tasks


class Bucket(Program):
    """A bucket gives out no token twice and loses none."""

    def __init__(self) -> None:
        super().__init__()
        self.bucket = TokenBucket(28)
        self.out: list[float] = []
        self.threads = [self.take_two, self.take_and_return, self.earn]

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
        self.bucket.reward(1)

    def check(self) -> None:
        level, out = self.bucket.available, sum(self.out)
        if not (28 - out <= level <= min(28, 29 - out)):
            self.wrong.append(f"{level} tokens are there and {out} out, of 28")


class WaitingBucket(Program):
    """Tokens that come back go to whoever waits first, at once; whoever gives up leaves nothing behind."""

    def __init__(self) -> None:
        super().__init__()
        self.bucket = TokenBucket(14, on_empty="wait")
        self.got: list[tuple[bool, float]] = []
        self.threads = [self.use, self.use, self.give_up]

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
        line: Any = self.bucket._line
        self.expect(expected=(0, 0.0), actual=(len(line._line), line._outstanding), what="waiting, out")
        self.expect(expected=[True, True], actual=[granted for granted, _ in self.got], what="granted")
        late = max(at for _, at in self.got) - 1000.0
        if late > 0.5 and not self.has_leapt:
            self.wrong.append(f"the last one waited {late} s")


class Payoff(Program):
    """No first-try success is counted twice or lost, and the level stays in its range."""

    def __init__(self) -> None:
        super().__init__()
        self.bucket = PayoffTokenBucket()
        self.threads = [self.pay, self.count, self.pay]

    def pay(self) -> None:
        spent = self.bucket.take() + self.bucket.take()
        self.bucket.succeeded(spent)

    def count(self) -> None:
        next(self.bucket.first_tries)
        self.bucket.settle()
        next(self.bucket.first_tries)

    def check(self) -> None:
        self.expect(expected=2, actual=self.bucket.settle(), what="first-try successes")
        if not ROOM <= self.bucket.available <= MOST:
            self.wrong.append(f"{self.bucket.available} tokens")


class Spent(Program):
    """No more retries are granted than a payoff bucket holds, and what is granted is missing."""

    def __init__(self) -> None:
        super().__init__()
        self.bucket = PayoffTokenBucket()
        self.granted: list[bool] = []
        self.threads = [self.pay, self.pay, self.pay]

    def pay(self) -> None:
        self.granted.append(self.bucket.take())

    def check(self) -> None:
        self.expect(expected=(2, 0.0), actual=(sum(self.granted), self.bucket.available), what="granted, left")


class Hook(Program):
    """While a token is missing, first-try successes are told to the bucket."""

    def __init__(self) -> None:
        super().__init__()
        self.quota = PricedQuota(TokenBucket(28))
        self.threads = [self.fail, self.succeed, self.first]

    def fail(self) -> None:
        self.quota.failed(self.quota.begin(), Terms(), Failure(14))

    def succeed(self) -> None:
        gone = self.quota.failed(self.quota.begin(), Terms(), Failure(14))
        if isinstance(gone, Go):
            self.quota.succeeded(gone.standing, Terms())

    def first(self) -> None:
        self.quota.first_try((0.0, None))

    def check(self) -> None:
        if self.quota.plain.available < 28 and self.quota.first_try is DO_NOTHING:
            self.wrong.append("a token is missing, and first-try successes bring nothing")


class Waiting(Program):
    """Who waits in the line goes when another one succeeds, not later."""

    may_be_interrupted = True

    def __init__(self) -> None:
        super().__init__()
        self.quota = PatientQuota(None)
        self.quota.bucket.take()
        self.quota.bucket.take()
        self.ended: list[Any] = []
        self.succeeded_at: float | None = None
        self.threads = [self.fail, self.fail, self.succeed]

    def fail(self) -> None:
        seen = self.quota.failed(self.quota.begin(), Terms(10, 3.0), Failure())
        self.ended.append((seen, tasks.now))

    def succeed(self) -> None:
        started = tasks.now
        tasks.wait(0.2)
        self.succeeded_at = tasks.now
        self.quota.first_try((started, None))

    def check(self) -> None:
        line: Any = self.quota._line
        self.expect(expected=[], actual=line.waiters, what="in line")
        if not self.was_interrupted:
            self.expect(expected=1, actual=self.quota.bucket.settle(), what="first-try successes")
        for seen, at in self.ended:
            is_late = at != self.succeeded_at and not (self.has_leapt or self.was_interrupted)
            if isinstance(seen, Go) and seen.why == "another request succeeded" and is_late:
                self.wrong.append(f"let go at {self.succeeded_at}, gone at {at}")


class WaitingAlone(Waiting):
    """An operation that waits alone goes when another one succeeds."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = [self.fail, self.succeed]


class Asking(Waiting):
    """Where nobody succeeds, the first in line asks after a second, even if the one before it was interrupted."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = [self.fail, self.fail]

    def check(self) -> None:
        line: Any = self.quota._line
        self.expect(expected=[], actual=line.waiters, what="in line")
        if not self.has_leapt:
            self.expect(expected=1001.0, actual=min(at for _, at in self.ended), what="asked")


class Limiter(Program):
    """Permits are given out as they come, one at a time, and whoever rests for one is woken."""

    may_be_interrupted = True

    def __init__(self) -> None:
        super().__init__()
        self.limiter = ClientRateLimiter()
        self.granted = 0
        self.threads = [self.throttled, self.send, self.send]

    def throttled(self) -> None:
        self.limiter.record_response(True)
        self.limiter.record_response(False)

    def send(self) -> None:
        while True:
            wait = self.limiter.try_acquire()
            if wait is None:
                break
            wait.rest(SYSTEM_CLOCK)
            limiter: Any = self.limiter
            if limiter._resting and limiter._changed is None:
                self.wrong.append("somebody rests and will not be woken")
        self.granted += 1
        self.limiter.record_success()

    def check(self) -> None:
        limiter: Any = self.limiter
        self.expect(expected=(0, None), actual=(limiter._resting, limiter._changed), what="resting")
        if not self.was_interrupted:
            self.expect(expected=(2, 5), actual=(self.granted, limiter._count()), what="permits, responses and one")
        if limiter._capacity < 0:
            self.wrong.append(f"{limiter._capacity} permits")


class Announced(Program):
    """Sends pass a gate in turn, whatever is announced meanwhile, and none stays behind."""

    may_be_interrupted = True

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate(Gates(SYSTEM_CLOCK, DIALECTS, set(), {}))
        self.threads = [self.send, self.send, self.hear]
        self.waited: list[float] = []
        self.hear()

    def send(self) -> None:
        waited, _ = self.gate.enter(None, 10.0)
        self.waited.append(waited)
        self.gate.lost()

    def hear(self) -> None:
        headers = {"RateLimit-Limit": "10", "RateLimit-Remaining": "0", "RateLimit-Reset": "2"}
        self.gate.hear(CaseInsensitiveDict(headers), 1_700_000_000.0, refused=True)

    def check(self) -> None:
        self.expect(expected=0, actual=len(self.gate._waiters), what="waiting")
        if max(self.waited, default=0.0) > 4.0 and not self.has_leapt:
            self.wrong.append(f"waited {self.waited} s at a gate that was closed for 2 s")
        if not self.was_interrupted:
            self.expect(expected=0, actual=self.gate._pace._on_their_way, what="on their way")


class Scopes(Program):
    """An item that is in use is not given up, and a scope has one item at a time."""

    may_be_interrupted = True

    def __init__(self) -> None:
        super().__init__()
        self.table: ScopeTable[object] = ScopeTable(lambda _: object(), lambda _: True, 1)
        self.threads = [self.use, self.use, self.touch]

    def use(self) -> None:
        with self.table.use("one") as item:
            tasks.pause()
            if "one" in self.table and self.table.get("one") is not item:
                self.wrong.append("the item was given up while it was in use")

    def touch(self) -> None:
        self.table.get("two")
        self.table.get("three")

    def check(self) -> None:
        self.expect(expected={}, actual=self.table._pins, what="in use")
        if len(self.table) > 1:
            self.wrong.append(f"{len(self.table)} items")


class Addresses(Program):
    """The memory of addresses has no lock; what threads overwrite costs no more than a failure."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = AddressMemory(SYSTEM_CLOCK)
        self.threads = [self.fail, self.succeed, self.choose]

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


class Kept(Program):
    """A pool of one place gives its connection to one at a time, and whoever waits gets it."""

    late = (queue.Empty,)

    def __init__(self) -> None:
        super().__init__()
        self.kept = KeptConnections(1, SYSTEM_CLOCK.now)
        self.kept.put("connection")
        self.users = 0
        self.threads = [self.use, self.use, self.use]

    def use(self) -> None:
        taken = self.kept.get(block=True, timeout=5)
        self.users += 1
        if self.users > 1:
            self.wrong.append("two have the connection")
        tasks.wait(0.01)
        self.users -= 1
        self.kept.put(taken)

    def check(self) -> None:
        self.expect(expected=(["connection"], 0), actual=(self.kept.queue, self.kept._waiters), what="kept, waiting")


class Connection(str):
    """A connection that may be closed because it lay for long, where a time-out expired early."""

    __slots__ = ()

    def close(self) -> None:
        pass


class KeptTwo(Program):
    """A pool of two places lets everybody who waits have one as soon as it is there."""

    late = (queue.Empty,)

    def __init__(self) -> None:
        super().__init__()
        self.kept = KeptConnections(2, SYSTEM_CLOCK.now)
        self.kept.put(Connection("one"))
        self.kept.put(Connection("two"))
        self.threads = [self.use_both, self.use, self.use]
        self.waited: list[float] = []

    def use_both(self) -> None:
        both = self.kept.get(block=True), self.kept.get(block=True)
        tasks.wait(0.01)
        for each in both:
            self.kept.put(each)

    def use(self) -> None:
        tasks.wait(0.005)  # both are out by now, unless somebody is preempted
        began = tasks.now
        taken = self.kept.get(block=True, timeout=60)
        self.waited.append(tasks.now - began)
        tasks.wait(0.1)
        self.kept.put(taken)

    def check(self) -> None:
        self.expect(
            expected=(["one", "two"], 0), actual=(sorted(self.kept.queue), self.kept._waiters), what="kept, waiting"
        )
        if max(self.waited, default=0.0) > 0.2 and not self.has_leapt:
            self.wrong.append(f"waited {self.waited} s beside a free connection")


class Names(Program):
    """A question is asked by one thread at a time, and its answer reaches all."""

    may_be_interrupted = True
    late = (Late, Stuck)

    def __init__(self) -> None:
        super().__init__()
        self.lookups, self.asked = Lookups(1), 0
        self.threads = [self.find_one, self.find_one]

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

    def __init__(self) -> None:
        super().__init__()
        self.threads = [self.find_one, self.find_two]


class NamesOfThree(Names):
    """Two ask the same, and a third one is next."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = [self.find_one, self.find_one, self.find_two]


PROGRAMS: dict[str, Callable[[], Program]] = {
    "bucket": Bucket,
    "bucket on which others wait": WaitingBucket,
    "payoff bucket": Payoff,
    "payoff bucket that is spent": Spent,
    "first-try hook": Hook,
    "line": Waiting,
    "line of one": WaitingAlone,
    "line that asks": Asking,
    "limiter": Limiter,
    "gate": Announced,
    "scope table": Scopes,
    "address table": Addresses,
    "kept connections": Kept,
    "kept connections, two": KeptTwo,
    "names": Names,
    "names, one has to wait": NamesInLine,
    "names of three": NamesOfThree,
}
