"""Waiting for retry tokens (contract 6.3): exact times on one fake clock, then real threads, then fork."""

from __future__ import annotations

import gc
import os
import random
import threading
import time

import pytest

from requests_smithy_retry import Outcome, RetryContext, RetryError, StandardRetryStrategy, StopReason, TokenBucket
from requests_smithy_retry.quotas import scope_quota
from requests_smithy_retry.smithy.buckets import Loan, loan_of
from requests_smithy_retry.core.line import Failure, Go, Refusal, Refused, Terms
from requests_smithy_retry.quotas.scope_quota import PricedQuota
from requests_smithy_retry.core.scope import FORGET_AFTER, MAX_SCOPES
from requests_smithy_retry.testing.clock import FakeClock
from tests.unit.core.test_strategy import Safe, refresh

GIVE_UP = 120.0
PAUSE = threading.Event()


class Director:
    """One fake clock for many threads: time moves on when all of them rest, to the end of the next rest."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._time = 0.0
        self._resting: dict[threading.Condition, tuple[float, int]] = {}
        self._number = 0
        self.busy = 0

    def now(self) -> float:
        return self._time

    wall = now

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps with the lock held")

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        with self._lock:
            self._number += 1
            self._resting[condition] = (self._time + seconds, self._number)
            self.busy -= 1
        condition.wait(GIVE_UP)
        with self._lock:
            del self._resting[condition]
            self.busy += 1

    def start(self, target, *arguments) -> threading.Thread:
        """Start a thread and wait until it rests or is done."""

        def run() -> None:
            try:
                target(*arguments)
            finally:
                with self._lock:
                    self.busy -= 1

        with self._lock:
            self.busy += 1
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.settle()
        return thread

    def settle(self) -> None:
        """Wait, in real time, until nobody is busy any more."""
        end = time.monotonic() + GIVE_UP
        calm = 0
        while calm < 3:
            assert time.monotonic() < end, "somebody hangs"
            PAUSE.wait(0.0005)
            with self._lock:
                calm = calm + 1 if self.busy == 0 and not self._woken() else 0

    def _woken(self) -> bool:
        """Return True if a thread was notified by another one and has not come back yet."""
        return not all(each._waiters for each in self._resting)

    def run_until(self, end: float) -> None:
        """Let time pass, stopping wherever a rest ends."""
        while True:
            self.settle()
            with self._lock:
                due = min(self._resting.items(), key=lambda item: item[1], default=None)
                if due is None or due[1][0] > end:
                    self._time = end
                    return
                self._time = max(self._time, due[1][0])
            with due[0]:
                due[0].notify()


@pytest.fixture
def director():
    return Director()


def begin(of, scope):
    return of.acquire_initial_retry_token(token_scope=scope)


def waiters(director, bucket, *wanted, deadline=None):
    """Start one thread for each amount, in order; the list of (amount, granted, when) that they fill."""
    said: list[tuple[float, bool, float]] = []

    def want(amount: float, until: float | None) -> None:
        granted = bucket.acquire(amount, deadline=until)
        said.append((amount, granted, director.now()))

    for each in wanted:
        amount, until = each if isinstance(each, tuple) else (each, deadline)
        director.start(want, amount, until)
    return said


def test_a_steady_refill_serves_the_line_at_exact_times(director):
    """At 2 tokens a second, wants of 4, 1 and 3 are served at 2, 2.5 and 4 s: in order, whatever they want."""
    bucket = TokenBucket(10, initial=0, refill_rate=2, on_empty="wait", clock=director)
    said = waiters(director, bucket, 4, 1, 3)
    director.run_until(10)
    assert said == [(4, True, 2.0), (1, True, 2.5), (3, True, 4.0)]
    assert bucket.available == 10


@pytest.mark.parametrize("count", [2, 8, 32])
def test_many_waiters_are_served_one_by_one(director, count):
    """N wants of 1 at 4 tokens a second: one every quarter of a second, first come, first served."""
    bucket = TokenBucket(100, initial=0, refill_rate=4, on_empty="wait", clock=director)
    order = []

    def want(number: int) -> None:
        assert bucket.acquire(1)
        order.append((number, director.now()))

    for number in range(count):
        director.start(want, number)
    director.run_until(count)
    assert order == [(number, (number + 1) / 4) for number in range(count)]


def test_returned_tokens_wake_the_first_in_line_at_once(director):
    """Without refill, waiters are served in turn at the moment of a return."""
    bucket = TokenBucket(10, on_empty="wait", clock=director)
    assert bucket.acquire(10)
    said = waiters(director, bucket, 4, 2)
    director.run_until(3.5)
    assert said == []
    bucket.release(4)
    director.run_until(5.25)
    assert said == [(4, True, 3.5)]
    bucket.release(3)
    director.run_until(6)
    assert said == [(4, True, 3.5), (2, True, 5.25)]
    assert bucket.available == 1


def test_nobody_is_overtaken_by_one_who_wants_less(director):
    """One token is there and wanted, but the first in line waits for five."""
    bucket = TokenBucket(5, on_empty="wait", clock=director)
    assert bucket.acquire(4)
    said = waiters(director, bucket, 5, 1)
    director.run_until(2)
    assert said == []
    bucket.release(4)
    director.run_until(3)
    assert said == [(5, True, 2.0)]
    bucket.release(5)
    director.run_until(4)
    assert said == [(5, True, 2.0), (1, True, 3.0)]


def test_a_wait_whose_known_end_lies_past_the_deadline_is_not_begun(director):
    """At 1 token a second, 5 tokens by 4.9 s cannot be had; by 5 s they can."""
    bucket = TokenBucket(10, initial=0, refill_rate=1, on_empty="wait", clock=director)
    assert waiters(director, bucket, (5, 4.9)) == [(5, False, 0.0)]
    said = waiters(director, bucket, (5, 5.0))
    director.run_until(5)
    assert said == [(5, True, 5.0)]


def test_the_known_end_counts_those_in_front(director):
    """Behind a waiter who wants 5, 1 token comes at 6 s."""
    bucket = TokenBucket(10, initial=0, refill_rate=1, on_empty="wait", clock=director)
    said = waiters(director, bucket, 5, (1, 5.5), (1, 6.0))
    director.run_until(7)
    assert said == [(1, False, 0.0), (5, True, 5.0), (1, True, 6.0)]


def test_a_wait_whose_end_nobody_knows_is_cut_off_at_the_deadline(director):
    """Tokens are out and may come back: the wait is begun, and ends at the deadline."""
    bucket = TokenBucket(5, on_empty="wait", clock=director)
    assert bucket.acquire(5)
    said = waiters(director, bucket, (3, 2.75))
    director.run_until(5)
    assert said == [(3, False, 2.75)]
    bucket.release(5)
    assert bucket.available == 5


def test_who_leaves_the_line_lets_the_next_one_forward(director):
    """The first is cut off at 1.5 s; what is there is enough for the second, who gets it then."""
    bucket = TokenBucket(5, on_empty="wait", clock=director)
    assert bucket.acquire(4)
    said = waiters(director, bucket, (5, 1.5), 1)
    director.run_until(2)
    assert said == [(5, False, 1.5), (1, True, 1.5)] or said == [(1, True, 1.5), (5, False, 1.5)]


def test_who_is_interrupted_lets_the_next_one_forward(director):
    """Interrupted at 1 s, the first leaves; the second, due at 8 s behind it, is served at 3 s."""
    bucket = TokenBucket(10, initial=0, refill_rate=1, on_empty="wait", clock=director)
    out = []

    def interrupted() -> None:
        try:
            bucket.acquire(5)
        except KeyboardInterrupt:
            out.append(director.now())

    usual = director.wait

    def wait(condition: threading.Condition, seconds: float) -> None:
        usual(condition, 1.0)
        raise KeyboardInterrupt

    director.wait = wait
    director.start(interrupted)
    director.wait = usual
    said = waiters(director, bucket, 3)
    assert not bucket.acquire(11)  # more than it can ever hold: refused, however long the line
    director.run_until(10)
    assert (out, said) == ([1.0], [(3, True, 3.0)])


@pytest.mark.parametrize(
    ("bucket", "amount"),
    [
        (TokenBucket(0, on_empty="wait", clock=FakeClock()), 1),
        (TokenBucket(10, initial=0, on_empty="wait", clock=FakeClock()), 1),
        (TokenBucket(10, initial=0, refill_rate=1, on_empty="wait", clock=FakeClock()), 11),
    ],
    ids=["no capacity", "nothing out and no refill", "more than it can ever hold"],
)
def test_where_nothing_could_ever_bring_the_tokens_waiting_is_refused_at_once(bucket, amount):
    """A wait that nothing could end is refused at once."""
    assert bucket.acquire(amount) is False
    assert bucket.clock.sleeps == []


def test_more_returned_than_taken_is_not_waited_for():
    """Tokens given back without having been taken are there, and no more are expected back."""
    bucket = TokenBucket(10, initial=0, on_empty="wait", clock=FakeClock())
    bucket.release(3)
    assert bucket.acquire(5) is False
    assert (bucket.available, bucket.clock.sleeps) == (3, [])


@pytest.mark.parametrize(
    ("amount", "rate"), [(0.1, 1), (0.1, 1.2), (0.1, 1.5), (1, 0.7), (1, 1.1), (100, 70), (100, 300), (100, 1100)]
)
def test_what_is_missing_by_rounding_alone_is_not_waited_for(amount, rate):
    """A clock that has run for weeks is too coarse to refill the very last of it."""
    clock = FakeClock(now=2.0**22 + 0.1)
    bucket = TokenBucket(amount, initial=0, refill_rate=rate, on_empty="wait", clock=clock)
    assert bucket.acquire(amount)
    assert clock.sleeps == [pytest.approx(amount / rate)]
    assert bucket.available >= 0


def test_who_comes_while_the_first_is_overdue_is_not_asked_to_wait_less_than_nothing(director):
    """There is enough for both waiters, and the first has not looked yet."""
    asked = []
    usual = director.wait

    def wait(condition: threading.Condition, seconds: float) -> None:
        asked.append(seconds)
        usual(condition, seconds)

    director.wait = wait
    bucket = TokenBucket(10, initial=0, refill_rate=1, on_empty="wait", clock=director)
    said = waiters(director, bucket, 5)
    director._time = 20.0
    said_later = waiters(director, bucket, 1)
    director.run_until(30)
    assert (said, said_later) == ([(5, True, 20.0)], [(1, True, 20.0)])
    assert min(asked) >= 0


def test_tokens_that_are_written_off_refuse_who_waits_for_nothing_else(director):
    """A waiter for whom the tokens that are left suffice is served."""
    bucket = TokenBucket(10, on_empty="wait", clock=director)
    assert bucket.acquire(8)
    said = waiters(director, bucket, 5, 2)
    director.run_until(1)
    bucket.write_off(8)
    director.run_until(2)
    assert sorted(said) == [(2, True, 1.0), (5, False, 1.0)]


def test_a_dropped_loan_is_noticed_before_long(director):
    """A token that is dropped without being settled delays nobody for more than a second."""
    bucket = TokenBucket(5, on_empty="wait", clock=director)
    assert bucket.acquire(5)
    loan = loan_of(bucket, 5)
    said = waiters(director, bucket, 3)
    director.run_until(0.5)
    del loan
    gc.collect()
    director.run_until(3)
    assert said == [(3, False, 1.0)]


def test_what_was_dropped_before_is_not_waited_for():
    """An operation that comes after the drop is refused at once."""
    bucket = TokenBucket(5, on_empty="wait", clock=FakeClock())
    assert bucket.acquire(5)
    loan = loan_of(bucket, 5)
    del loan
    gc.collect()
    assert not bucket.acquire(3, deadline=bucket.clock.now() + 9)
    assert bucket.clock.sleeps == []


def test_a_loan_comes_back_or_is_written_off_once():
    """Doing it again, or dropping it afterwards, changes nothing."""
    bucket = TokenBucket(5, on_empty="wait", clock=FakeClock())
    bucket.acquire(4)
    loan = loan_of(bucket, 2)
    assert isinstance(loan, Loan)
    loan.write_off()
    loan.write_off()
    assert bucket._line._outstanding == 2
    returned = loan_of(bucket, 2)
    returned.give_back()
    returned.give_back()
    assert (bucket._line._outstanding, bucket.available) == (0, 3)
    del loan, returned
    gc.collect()
    assert list(bucket._line._lost) == []
    assert loan_of(TokenBucket(5), 2) is None
    assert loan_of(object(), 2) is None  # a foreign bucket, which has no line either


def test_tokens_come_back_to_the_bucket_that_they_were_taken_from():
    """After a scope that shared the newcomers' bucket got its own, no token stays missing from the other one."""
    clock = FakeClock()
    of = StandardRetryStrategy(clock=clock, quota=lambda _: TokenBucket(20, on_empty="wait", clock=clock))
    for number in range(MAX_SCOPES):
        refresh(of, begin(of, f"gone {number}"), Safe())
    token = refresh(of, begin(of, "late"), Safe())
    overflow = of.bucket("late")
    clock.advance(FORGET_AFTER - 1)
    assert overflow is of.bucket("later")
    clock.advance(1)
    assert overflow is not of.bucket("late")
    of.record_success(token=token)
    assert (20, 20, 0) == (of.bucket("late").available, overflow.available, overflow._line._outstanding)


def test_a_reward_is_no_return(director):
    """A first-try success adds a token while all that were taken may still come back."""
    bucket = TokenBucket(5, on_empty="wait", clock=director)
    assert bucket.acquire(5)
    said = waiters(director, bucket, 2)
    for _ in range(2):
        bucket.reward(1)
    director.run_until(1)
    assert said == [(2, True, 0.0)]
    assert bucket._line._outstanding == 7


def test_on_a_clock_that_only_sleeps_the_wait_is_slept():
    """A test's clock need not know conditions; the lock is free meanwhile."""
    clock = FakeClock()
    bucket = TokenBucket(10, initial=0, refill_rate=2, on_empty="wait", clock=clock)
    assert bucket.acquire(5)
    assert clock.sleeps == [2.5]


class Interrupting(FakeClock):
    """Ctrl-C in the middle of each wait."""

    before = staticmethod(lambda: None)

    def wait(self, condition, seconds):
        self.before()
        raise KeyboardInterrupt


def test_an_interrupt_leaves_the_line_in_order():
    """An interrupted waiter leaves the line; tokens that came at that very moment are still there."""
    clock = Interrupting()
    bucket = TokenBucket(10, initial=0, refill_rate=1, on_empty="wait", clock=clock)
    with pytest.raises(KeyboardInterrupt):
        bucket.acquire(5)
    assert not bucket._line._line
    clock.before = lambda: clock.advance(7)
    with pytest.raises(KeyboardInterrupt):
        bucket.acquire(5)
    assert not bucket._line._line
    assert bucket._line._outstanding == 0
    assert bucket.available == 7


def test_who_is_interrupted_before_it_is_in_line_leaves_nothing_there():
    """The next one is served at once."""

    class Interrupted(list):
        def append(self, waiter):
            raise KeyboardInterrupt

    bucket = TokenBucket(10, on_empty="wait", clock=FakeClock())
    line = bucket._line
    usual, line._line = line._line, Interrupted()
    with pytest.raises(KeyboardInterrupt):
        bucket.acquire(5)
    line._line = usual
    assert bucket.acquire(10)


def test_tokens_put_back_after_an_interrupt_do_not_overfill_the_bucket():
    """Tokens that are put back are dropped if others have filled the bucket meanwhile."""

    class Filling(FakeClock):
        def wait(self, condition, seconds):
            condition.release()
            bucket.release(5)
            bucket.reward(10)
            condition.acquire()
            raise KeyboardInterrupt

    bucket = TokenBucket(10, on_empty="wait", clock=Filling())
    assert bucket.acquire(10)
    with pytest.raises(KeyboardInterrupt):
        bucket.acquire(5)
    assert bucket.available == 10


def test_real_threads_all_get_through_and_nobody_is_overtaken():
    """Sixteen threads, real time, some 200 tokens a second: served in the order in which they came."""
    bucket = TokenBucket(50, initial=0, refill_rate=200, on_empty="wait")
    served: list[float] = []

    class Line(list):
        def remove(self, waiter):  # what threads say of themselves may come late on a busy machine
            super().remove(waiter)
            served.append(waiter.amount)

    bucket._line._line = Line()
    amounts = [2 + number / 100 for number in range(16)]
    said: list[bool] = []
    threads = []
    for number, amount in enumerate(amounts):
        thread = threading.Thread(target=lambda amount=amount: said.append(bucket.acquire(amount)))
        thread.start()
        threads.append(thread)
        while len(bucket._line._line) + len(served) <= number:
            PAUSE.wait(0.0001)
    for thread in threads:
        thread.join(GIVE_UP)
    assert said == [True] * 16
    assert served == amounts


def test_real_threads_that_take_and_return_never_hang_nor_invent_tokens():
    """Thirty-two threads, a thousand takes each way, no refill: all end, and the bucket is full again."""
    bucket = TokenBucket(10, on_empty="wait")
    took = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(30):
            amount = chance.randint(1, 4)
            if bucket.acquire(amount):
                assert 0 <= bucket.available <= 10
                bucket.release(amount)
                took.append(amount)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GIVE_UP)
    assert not any(thread.is_alive() for thread in threads)
    assert bucket.available == 10
    assert len(took) == 32 * 30


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_inherits_neither_the_lock_nor_the_line():
    """Forked while a thread waits, the child finds nobody in line, takes what is there, and is refused the rest."""
    bucket = TokenBucket(10, on_empty="wait")
    assert bucket.acquire(8)
    thread = threading.Thread(target=bucket.acquire, args=(10,))
    thread.start()
    while not bucket._line._line:
        PAUSE.wait(0.001)
    with bucket._lock:
        pid = os.fork()
        if pid == 0:
            # 2 are there; what the parent's threads hold never comes back here.
            os._exit(0 if not bucket.acquire(3) and bucket.acquire(2) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    bucket.release(8)
    thread.join(GIVE_UP)
    assert not thread.is_alive()


class Broken(Exception):
    """A passing fault of plain code."""

    is_retry_safe = True
    retry_after = None
    is_throttling_error = False
    is_timeout_error = False


def fail(strategy, token=None):
    """Fail one more attempt of an operation, and return its next token."""
    token = token or strategy.acquire_initial_retry_token()
    return strategy.refresh_retry_token_for_retry(token_to_renew=token, error=Broken())


def test_token_refresh_waits_on_the_bucket():
    """The second retry finds 6 of 14 tokens, and waits in the strategy for the refill."""
    clock = FakeClock()
    strategy = StandardRetryStrategy(clock=clock, quota=TokenBucket(20, refill_rate=4, on_empty="wait", clock=clock))
    fail(strategy)
    token = fail(strategy)
    assert clock.sleeps == [2.0]
    assert token.acquired == 14


def test_a_retry_does_not_wait_for_what_it_holds_itself():
    """An operation's last acquisition is lost when it asks for another; then nothing is out, and it is refused."""
    clock = FakeClock()
    strategy = StandardRetryStrategy(clock=clock, quota=TokenBucket(14, on_empty="wait", clock=clock))
    first = fail(strategy)
    with pytest.raises(RetryError) as caught:
        fail(strategy, first)
    assert caught.value.stop_reason is StopReason.QUOTA_EXCEEDED
    assert clock.sleeps == []


def test_a_final_failure_refuses_who_waited_for_its_tokens(director):
    """A final failure refuses the waiter, and a success serves it."""
    bucket = TokenBucket(14, on_empty="wait", clock=director)
    strategy = StandardRetryStrategy(clock=director, quota=bucket, max_attempts=2)
    said = []

    def other() -> None:
        try:
            said.append(fail(strategy).acquired)
        except RetryError as refusal:
            said.append(refusal.stop_reason)

    holder = fail(strategy)
    director.start(other)
    assert said == []
    with pytest.raises(RetryError, match="no attempts are left"):
        fail(strategy, holder)
    director.settle()
    assert said == [StopReason.QUOTA_EXCEEDED]
    bucket = TokenBucket(14, on_empty="wait", clock=director)
    strategy = StandardRetryStrategy(clock=director, quota=bucket, max_attempts=2)
    holder = fail(strategy)
    director.start(other)
    strategy.record_success(token=holder)
    director.settle()
    assert said[1:] == [14]


def test_first_try_rewards_serve_the_line(director):
    """Rewards of operations that hold no tokens add to the tokens that are there."""
    bucket = TokenBucket(14, on_empty="wait", success_reward=7, clock=director)
    strategy = StandardRetryStrategy(clock=director, quota=bucket)
    said = []
    holder = fail(strategy)
    director.start(lambda: said.append(fail(strategy).acquired))
    for _ in range(2):
        strategy.record_success(token=strategy.acquire_initial_retry_token())
    director.settle()
    assert said == [14]
    assert holder.acquired == 14


def test_the_wait_for_tokens_leaves_time_for_the_backoff():
    """2 s for tokens and 2 s of backoff do not fit into 3.5 s: refused at once; into 4 s they do."""
    for left, granted in ((3.5, False), (4.1, True)):
        clock = FakeClock()
        bucket = TokenBucket(20, refill_rate=4, on_empty="wait", clock=clock)
        strategy = StandardRetryStrategy(clock=clock, quota=bucket, jitter="none", initial_backoff=1)
        token = fail(strategy)
        error = Broken()
        error.retry_context = RetryContext(Outcome(error=error), deadline=clock.now() + left)
        if granted:
            strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
        else:
            with pytest.raises(RetryError):
                strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
        assert clock.sleeps == ([2.0] if granted else [])


@pytest.mark.parametrize(
    ("price", "initial", "refill_rate", "out", "deadline", "expected"),
    [
        (10, 10, 0, 0, None, (0, 0.0, None)),
        (10, 4, 2, 0, None, (1, 3.0, None)),
        (10, 4, 2, 0, 3, (1, 3.0, None)),
        (10, 4, 2, 0, 2.9, (0, 0.0, Refusal.EMPTY)),
        (10, 4, 0, 0, None, (0, 0.0, Refusal.EMPTY)),
        (30, 20, 2, 0, None, (0, 0.0, Refusal.EMPTY)),
        (10, 10, 0, 10, 5, (1, 5.0, Refusal.EMPTY)),
        (10, 10, 0, 10, 0, (0, 0.0, Refusal.EMPTY)),
    ],
    ids=["enough", "refill", "just in time", "too late", "hopeless", "too large", "others have it", "no time"],
)
def test_what_an_operation_holds_is_let_go_only_where_it_waits(
    price: float,
    initial: float,
    refill_rate: float,
    out: float,
    deadline: float | None,
    expected: tuple[int, float, Refusal | None],
) -> None:
    """It is let go before the wait, since who has the tokens may need it; a refusal at once leaves it."""
    clock = FakeClock()
    bucket = TokenBucket(20, initial=initial, refill_rate=refill_rate, on_empty="wait", clock=clock)
    assert not out or bucket.acquire(out)
    asked: list[float] = []

    def let_go() -> bool:
        asked.append(clock.now())
        return True

    quota, began = PricedQuota(bucket), clock.now()
    terms = Terms(deadline=None if deadline is None else began + deadline)
    seen = quota.failed(quota.begin(), terms, Failure(price=price), before_waiting=let_go)
    reason = seen.reason if isinstance(seen, Refused) else None
    assert expected == (len(asked), pytest.approx(clock.now() - began), reason)
    assert [began] * len(asked) == asked


def test_what_cannot_be_let_go_is_not_waited_with() -> None:
    """The operation ends with its response, as before the line of the payoff quota, and takes nothing."""
    clock = FakeClock()
    bucket = TokenBucket(20, initial=4, refill_rate=2, on_empty="wait", clock=clock)
    quota = PricedQuota(bucket)
    assert Refused(Refusal.HELD) == quota.failed(quota.begin(), Terms(), Failure(10), before_waiting=lambda: False)
    assert (4, []) == (bucket.available, clock.sleeps)


def test_tokens_that_come_back_while_a_response_is_let_go_are_taken_at_once() -> None:
    """Nobody's tokens are out any more then, so nobody would be waited for."""
    clock = FakeClock()
    bucket = TokenBucket(20, initial=10, on_empty="wait", clock=clock)
    assert bucket.acquire(10)
    quota = PricedQuota(bucket)

    def let_go() -> bool:
        bucket.release(10)
        return bucket.may_come(10, clock.now())

    assert isinstance(quota.failed(quota.begin(), Terms(), Failure(10), before_waiting=let_go), Go)
    assert (False, False) == (bucket.may_come(10, None), TokenBucket(20).may_come(10, None))


@pytest.mark.parametrize("where", ["loan_of", "replace"])
def test_tokens_that_an_interrupted_operation_has_not_got_yet_are_written_off(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Otherwise those who come next wait for them, as long as the exception is kept or even for ever."""
    clock = FakeClock()
    bucket = TokenBucket(20, on_empty="wait", clock=clock)
    quota = PricedQuota(bucket)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(scope_quota, where, interrupted)
        with pytest.raises(KeyboardInterrupt) as kept:
            quota.failed(quota.begin(), Terms(), Failure(20))
    assert (False, [], KeyboardInterrupt) == (bucket.acquire(20, deadline=clock.now() + 60), clock.sleeps, kept.type)
    Loan.__new__(Loan).__del__()  # one that was interrupted while it was made


def test_an_interruption_before_a_payment_writes_nothing_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens that other operations have taken are still out."""
    bucket = TokenBucket(20, on_empty="wait", clock=FakeClock())
    assert bucket.acquire(20)
    quota = PricedQuota(bucket)

    def interrupted() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quota.failed(quota.begin(), Terms(), Failure(20), before_waiting=interrupted)
    assert bucket.may_come(20, None)
