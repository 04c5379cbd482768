"""A bucket with its line on threads, clocks, forks and interrupts: nobody is stranded, and nothing is held or lost."""

from __future__ import annotations

import faulthandler
import heapq
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from requests_smithy_retry import TokenBucket
from requests_smithy_retry.quotas.line import UNLIMITED, Failure, Go, Refusal, Refused, Standing, Terms, Wait, Waiter
from requests_smithy_retry.quotas.payoff import CountedQuota, LineSnapshot, PatientQuota, PayoffTokenBucket
from requests_smithy_retry.testing import FakeClock
from tests.unit.quotas.test_waiting import Director

PLAIN = Terms()


def fail(quota: PatientQuota, terms: Terms = PLAIN, standing: Standing | None = None, **how):
    return quota.failed(quota.begin() if standing is None else standing, terms, Failure(**how))


def emptied(clock, **options) -> tuple[PatientQuota, Standing]:
    """A quota whose tokens one operation has spent, and that operation's standing."""
    quota = PatientQuota(clock=clock, **options)
    standing = quota.begin()
    for _ in range(2):
        standing = fail(quota, standing=standing).standing
    return quota, standing


def test_health_costs_one_count():
    """A first-try success is ``next`` on a counter: a function in C, with no lock and no clock in reach."""
    quota = PatientQuota(clock=FakeClock())
    assert isinstance(quota.first_try, partial)
    assert (next, (quota.bucket.first_tries,)) == (quota.first_try.func, quota.first_try.args)
    quota.clock = quota._lock = None
    for _ in range(5):
        quota.first_try((0.0, None))
    assert 5 == quota.bucket.settle()


def test_a_success_gives_back_the_retries_of_one_operation_and_no_more():
    """Nine retries in a row are paid from a full bucket; the success gives back two of them, and makes room for two."""
    bucket = PayoffTokenBucket()
    bucket.release(8)
    quota = PatientQuota(bucket, clock=FakeClock())
    standing = quota.begin()
    for _ in range(9):
        standing = fail(quota, standing=standing).standing
    assert (1, 2) == (bucket.available, standing.spent)
    quota.succeeded(standing, PLAIN)
    assert 1 + 2 + 2 == bucket.available


def test_first_try_successes_take_the_slow_path_only_while_there_is_trouble():
    """The slow path is taken from the first failure to the next success, and while operations wait."""
    quota = PatientQuota(clock=FakeClock())
    calm = quota.first_try
    standing = fail(quota).standing
    assert calm is not quota.first_try
    quota.first_try((0.0, 1.0))
    assert calm is quota.first_try
    assert 1 == quota.bucket.settle()
    quota.succeeded(standing, PLAIN)
    assert calm is quota.first_try


def test_the_bucket_pays_while_nobody_waits_and_gets_it_back():
    """Two retries for who can wait for a proof only once; a success gives all back, and room for one more."""
    quota = PatientQuota(clock=FakeClock())
    first = fail(quota, delay=0.05)
    second = fail(quota, standing=first.standing, delay=0.1)
    assert (0.05, 0.1, 2.0, 1.0) == (first.delay, second.delay, second.standing.spent, second.standing.acquired)
    assert 0.0 == quota.snapshot().available
    quota.succeeded(second.standing, PLAIN, latency=0.1, timeout=1.0)
    assert 4.0 == quota.snapshot().available


def test_on_a_fake_clock_waiting_takes_no_time():
    """A client that saw no success yet asks after 1, 4 and 4.5 s in vain, and gives up when the outage is 5 s old."""
    clock = FakeClock()
    quota, standing = emptied(clock)
    asked = []
    while isinstance(seen := quota.failed(standing, PLAIN, Failure()), Go):
        asked.append(clock.now())
        standing = seen.standing
    assert ([1.0, 4.0, 4.5], 5.0, Refused(Refusal.PATIENCE, 0.5)) == (asked, clock.now(), seen)
    assert 4.5 == standing.waited


def test_a_dead_service_holds_a_plain_operation_a_tenth_of_a_second():
    """Over ten minutes without other waiters, an operation waits less than 0.1 s on average."""
    clock = FakeClock()
    quota, attempts, operations = PatientQuota(clock=clock), 0, 0
    waited = 0.0
    while clock.now() < 600:
        standing, operations = quota.begin(), operations + 1
        while True:
            attempts += 1
            seen = quota.failed(standing, PLAIN, Failure(delay=0.05))
            waited += seen.delay if isinstance(seen, Go) else seen.waited
            if isinstance(seen, Refused):
                break
            waited += seen.waited
            clock.sleep(seen.delay)
            standing = seen.standing
        clock.advance(1.0)
    assert waited / operations < 0.1
    assert attempts / operations < 1.02


@pytest.mark.parametrize("terms", [Terms(), Terms(deadline=30.0), Terms(patience=20.0)])
@pytest.mark.parametrize("pause", [600.0, 400.0, 60.0, 31.0])
def test_a_client_whose_first_attempt_always_fails_succeeds_every_time(terms, pause):
    """Scale to zero, or a proxy that resets what was idle: a call now and then, also after an hour's outage."""
    clock = FakeClock()
    quota, done = PatientQuota(clock=clock), []
    while clock.now() < 12 * 3600:
        is_down = 4 * 3600 <= clock.now() < 5 * 3600
        standing = quota.begin()
        own = terms if terms.deadline is None else terms._replace(deadline=clock.now() + 30.0)
        attempts = 1
        while True:
            seen = quota.failed(standing, own, Failure(delay=0.05))
            if isinstance(seen, Refused):
                break
            clock.sleep(seen.delay)
            standing, attempts = seen.standing, attempts + 1
            if not is_down:
                quota.succeeded(standing, own, latency=0.2, timeout=1.0)
                break
        done.append((is_down, isinstance(seen, Go), attempts))
        clock.advance(pause)
    assert {(False, True), (True, False)} == {(down, ok) for down, ok, _ in done}
    assert {2} == {attempts for down, _, attempts in done if not down}


@pytest.mark.parametrize("terms", [Terms(), Terms(deadline=9.0), Terms(patience=9.0)])
def test_a_restart_of_three_seconds_is_ridden_out(terms):
    """A client with one operation at a time asks by itself, and is back within a second after the restart."""
    clock = FakeClock()
    quota, standing = emptied(clock)
    while clock.now() < 3:
        seen = quota.failed(standing, terms, Failure())
        assert isinstance(seen, Go)
        standing = seen.standing
    assert clock.now() <= 4.0


def test_what_cannot_be_let_go_is_not_waited_with():
    """The response stays the caller's; it is asked only where there is something to wait for."""
    asked = []
    quota, standing = emptied(FakeClock())

    def keep() -> bool:
        asked.append(True)
        return False

    assert Refused(Refusal.HELD) == quota.failed(standing, PLAIN, Failure(), before_waiting=keep)
    assert Refused(Refusal.PATIENCE) == quota.failed(standing, Terms(patience=0), Failure(), before_waiting=keep)
    assert [True] == asked
    assert 0 == quota.snapshot().waiting


def test_the_lock_is_free_while_the_response_is_let_go_and_while_somebody_waits():
    """Neither the release of a response nor a waiter holds the lock."""
    director = Director()
    quota, standing = emptied(director)
    free = []

    def let_go() -> bool:
        free.append(quota._lock.acquire(blocking=False))
        quota._lock.release()
        return True

    director.start(partial(quota.failed, standing, PLAIN, Failure(), before_waiting=let_go))
    assert 1 == quota.snapshot().waiting
    assert [True] == free


def test_a_success_wakes_the_first_in_line_at_that_moment():
    """A success wakes the first in line at once, before it would have looked by itself."""
    director, said = Director(), []
    quota, standing = emptied(director)
    for _ in range(100):
        quota.first_try((0.0, None))
    fail(quota)
    fail(quota)
    standing = quota.begin()

    def wait() -> None:
        said.append((quota.failed(standing, PLAIN, Failure()), director.now()))

    director.start(wait)
    director.run_until(0.25)
    quota.first_try((0.25, None))
    director.settle()
    assert [("another request succeeded", 0.25)] == [(seen.why, when) for seen, when in said]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_waiter_leaves_the_line(kind):
    """Ctrl-C reaches the waiting thread, which leaves the line."""

    class Interrupting(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(0.01)
            raise kind

    quota, standing = emptied(Interrupting())
    with pytest.raises(kind):
        quota.failed(standing, PLAIN, Failure())
    assert LineSnapshot(2.0, 0.0, "memory", 0, pytest.approx(0.01)) == quota.snapshot()


def test_who_is_interrupted_when_let_go_passes_it_on():
    """One success lets two go; one of them is interrupted at that moment, so the third in line goes."""
    director, said = Director(), {}
    quota, _ = emptied(director)
    for _ in range(1000):
        quota.first_try((0.0, None))
    assert ["", ""] == [fail(quota).why, fail(quota).why]
    rest = director.wait

    def wait(condition: threading.Condition, seconds: float) -> None:
        rest(condition, seconds)
        if threading.current_thread().name == "doomed":
            raise KeyboardInterrupt

    def want(name: str) -> None:
        threading.current_thread().name = name
        try:
            said[name] = quota.failed(Standing(0.0), Terms(4), Failure()).why
        except KeyboardInterrupt:
            said[name] = "interrupted"

    director.wait = wait
    for name in ("doomed", "first", "second"):
        director.start(want, name)
    quota.first_try((0.0, None))
    director.settle()
    went = "another request succeeded"
    assert {"doomed": "interrupted", "first": went, "second": went} == said


def test_the_scope_is_named_while_somebody_waits():
    """The scope is in the set while an operation waits, so that first attempts report to the line."""
    director, lines = Director(), set()
    quota, standing = emptied(director, name="https://a.example:443", lines=lines)
    assert set() == lines
    thread = director.start(quota.failed, standing, PLAIN, Failure())
    assert {"https://a.example:443"} == lines
    quota.begin()
    director.run_until(10)
    thread.join(60)
    assert set() == lines


def test_a_first_attempt_puts_off_the_question():
    """The next in line asks a second after the last attempt of anybody."""
    director, said = Director(), []
    quota, standing = emptied(director)
    director.start(lambda: said.append((quota.failed(standing, PLAIN, Failure()), director.now())))
    director.run_until(0.4)
    quota.begin()
    director.run_until(1.3)
    assert [] == said
    director.run_until(1.4)
    assert [1.4] == [when for _, when in said]


def test_a_full_line_is_refused():
    """The number of waiters is bounded."""
    director = Director()
    quota, standing = emptied(director, room=2)
    for _ in range(2):
        director.start(quota.failed, standing, PLAIN, Failure())
    assert Refused(Refusal.FULL) == quota.failed(standing, PLAIN, Failure())
    assert 2 == quota.snapshot().waiting


def test_a_line_that_fills_up_while_a_response_is_let_go_refuses():
    """The place is taken only then."""
    director = Director()
    quota, standing = emptied(director, room=1)

    def let_go() -> bool:
        director.start(quota.failed, standing, PLAIN, Failure())
        return True

    assert Refused(Refusal.FULL) == quota.failed(standing, PLAIN, Failure(), before_waiting=let_go)


def test_a_retired_scope_says_so():
    """A retired scope knows that it is retired, and operations that are still on it go on."""
    quota = PatientQuota(clock=FakeClock())
    assert not quota.retired
    quota.retired = True
    assert isinstance(fail(quota), Go)
    assert quota.retired


def test_a_client_that_saw_a_success_asks_sooner():
    """A client that saw a success asks after 0.5, 1.5, 3.5 and 4.5 s, because it knows its own rate."""
    clock = FakeClock()
    quota = PatientQuota(clock=clock)
    quota.first_try((0.0, None))
    standing, asked = quota.begin(), []
    for _ in range(2):
        standing = quota.failed(standing, PLAIN, Failure()).standing
    while isinstance(seen := quota.failed(standing, PLAIN, Failure()), Go):
        asked.append(clock.now())
        standing = seen.standing
    assert [0.5, 1.5, 3.5, 4.5] == asked


@pytest.mark.parametrize(
    ("terms", "took", "delay"),
    [
        (Terms(), 0.0, 3.0),
        (Terms(), 2.0, 2.5),  # the outage is two seconds old: half a second is left after it
        (Terms(), 4.45, 0.1),
        (Terms(patience=20.0), 0.0, 12.0),
        (Terms(deadline=302.0), 0.0, 1.5),
        (Terms(max_attempts=3), 0.0, 3.0),
        (Terms(max_attempts=4), 0.0, 0.1),  # this retry is not the last one
        (Terms(patience=0.0), 0.0, 0.1),
    ],
)
def test_a_client_with_hardly_any_operations_makes_its_last_retry_late(terms, took, delay):
    """A client that few others would help waits three fifths of its patience before its last retry, and not past it."""
    clock = FakeClock()
    quota = PatientQuota(clock=clock)
    for _ in range(5):
        clock.advance(60)
        quota.first_try((clock.now(), None))
    first = fail(quota, terms, delay=0.05)
    clock.advance(took)
    second = fail(quota, terms, standing=first.standing, delay=0.1)
    assert (0.05, pytest.approx(delay)) == (first.delay, second.delay)


@pytest.mark.parametrize(
    ("most", "tokens"), [(None, 2.0), (1, 0.0), (2, 1.0), (6, 5.0), (100, 99.0), (UNLIMITED, 36.0)]
)
def test_a_bucket_begins_with_the_retries_of_one_operation(most, tokens):
    """That many retries can be paid for; where their number has no bound, as many as with the AWS SDKs."""
    assert tokens == Terms(most).room
    bucket = PayoffTokenBucket(Terms(most).room)
    assert (tokens, tokens) == (bucket.available, bucket.capacity)
    assert tokens == sum(bucket.take() for _ in range(200))
    next(bucket.first_tries)
    assert tokens == bucket.available
    bucket.succeeded(1)
    assert min(2 * tokens + 1, max(36.0, tokens)) == bucket.available


def test_nobody_makes_more_retries_past_its_patience_however_much_was_earned():
    """An operation makes its own two retries, whatever their delay; further ones end with its patience."""
    clock = FakeClock()
    bucket = PayoffTokenBucket()
    bucket.release(30)
    quota = PatientQuota(bucket, clock=clock)
    standing = quota.begin()
    for delay in (8.0, 16.0):
        go = quota.failed(standing, PLAIN, Failure(delay=delay))
        assert delay == go.delay
        clock.advance(delay)
        standing = go.standing
    assert Refused(Refusal.PATIENCE) == quota.failed(standing, PLAIN, Failure(delay=20.0))


def test_a_name_that_never_resolved_is_given_up_soon():
    """A name that never resolved is misspelt; one that did resolve is waited for as any outage is."""
    waited = []
    for known in (False, True):
        clock = FakeClock()
        quota = PatientQuota(clock=clock)
        if known:
            quota.first_try((0.0, None))
        seen, standing = None, quota.begin()
        while not isinstance(seen, Refused):
            seen = quota.failed(standing, PLAIN, Failure(unresolved=True))
            standing = getattr(seen, "standing", standing)
        waited.append((seen.reason, clock.now()))
    assert [(Refusal.PATIENCE, 2.0), (Refusal.PATIENCE, 5.0)] == waited


def test_the_price_of_a_retry_that_was_not_made_comes_back():
    """A limiter gave no permit; who was let go from the line had paid nothing."""
    quota = PatientQuota(clock=FakeClock())
    paid = fail(quota).standing
    quota.unsent(paid)
    quota.unsent(Standing(0.0))
    assert 2.0 == quota.snapshot().available


def test_first_tries_are_paid_into_a_counted_quota_before_something_is_taken():
    """The rewards of first tries are paid in one sum before tokens are taken, so a shared bucket is asked only then."""
    bucket = TokenBucket(100, initial=20)
    quota = PatientQuota(CountedQuota(bucket, reward=2.0), clock=FakeClock())
    for _ in range(5):
        quota.first_try((0.0, None))
    assert 20 == bucket.available
    fail(quota, price=14)
    assert 16 == bucket.available
    assert bucket is quota.plain


@pytest.mark.parametrize(
    ("failures", "later", "is_spare"), [(0, 0, True), (1, 0, False), (1, 299, False), (1, 301, True), (2, 301, True)]
)
def test_a_scope_untouched_for_minutes_is_as_good_as_new(failures, later, is_spare):
    """A crawler that met many dead hosts has room for others."""
    clock = FakeClock()
    quota = PatientQuota(clock=clock)
    for _ in range(failures):
        fail(quota)
    clock.advance(later)
    assert is_spare is quota.is_spare()
    if later > 300:
        fail(quota)
        assert 1.0 == quota.snapshot().available


def test_what_was_repaired_is_spare():
    """A quota is spare if no operation waits on it and no token is missing."""
    quota = PatientQuota(clock=FakeClock())
    quota.succeeded(fail(quota).standing, PLAIN)
    assert quota.is_spare()
    quota.bucket.acquire(2.5)
    assert not quota.is_spare()


# Other buckets


def test_a_line_stands_in_front_of_any_bucket():
    """The bucket pays its price while no operation waits, and gets it back; a waiter's retry costs nothing."""
    clock, shared = FakeClock(), TokenBucket(28)
    quota = PatientQuota(CountedQuota(shared), clock=clock)
    first = fail(quota, price=14)
    second = fail(quota, standing=first.standing, price=14)
    third = fail(quota, standing=second.standing, price=14)
    assert ("", "", "nobody had asked for a while") == (first.why, second.why, third.why)
    assert (28.0, 0) == (third.standing.spent, shared.available)
    quota.first_try((0.0, None))
    assert 1 == quota.bucket.settle()
    quota.succeeded(third.standing, PLAIN)
    assert 28 == quota.snapshot().available


@pytest.mark.parametrize(("bucket", "held"), [(PayoffTokenBucket(), 0.0), (CountedQuota(TokenBucket(2)), 2.0)])
def test_a_success_that_lets_somebody_go_makes_no_room_but_returns_what_others_share(bucket, held):
    """A success that lets a waiter go adds nothing to a private bucket, but returns tokens to a shared one."""
    director = Director()
    quota = PatientQuota(bucket, clock=director)
    standing = fail(quota, standing=fail(quota).standing).standing
    thread = director.start(fail, quota)
    quota.succeeded(standing, PLAIN, latency=1.0, timeout=1.0)
    assert (held, 1) == (quota.snapshot().available, quota.snapshot().waiting)
    director.run_until(20)
    thread.join(60)


def test_another_bucket_is_not_renewed():
    """A foreign bucket is not filled up with time, since others may have spent it."""
    clock, shared = FakeClock(), TokenBucket(14)
    quota = PatientQuota(CountedQuota(shared), clock=clock)
    fail(quota, price=14)
    clock.advance(1000)
    assert fail(quota, price=14).waited > 0


def test_two_adapters_on_one_bucket_never_spend_more_than_it_holds():
    """Each adapter has a line of its own in front of the same tokens."""
    bucket, clock = PayoffTokenBucket(), FakeClock()
    one, two = PatientQuota(bucket, clock=clock), PatientQuota(bucket, clock=clock)
    assert ["", ""] == [fail(one).why, fail(two).why]
    assert fail(one).waited > 0
    assert fail(two).waited > 0
    one.first_try((0.0, None))
    assert ("", 1.0) == (fail(two, Terms(5)).why, bucket.available)


# Forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_begins_without_waiters_and_its_parent_keeps_its_own():
    """The child's line is empty and the parent's is not, even if another thread held the lock."""
    director = Director()
    quota, standing = emptied(director)
    director.start(quota.failed, standing, PLAIN, Failure())
    with quota._lock:
        pid = os.fork()
        if pid == 0:
            quota.first_try((0.0, None))
            fresh = (quota.snapshot().waiting, quota.snapshot().available, quota.snapshot().down_for)
            os._exit(0 if fresh == (0, 2.0, None) and fail(quota).why == "" else 1)
    assert 0 == os.waitpid(pid, 0)[1]
    assert 1 == quota.snapshot().waiting


@pytest.mark.real_time
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.skipif(sys.gettrace() is not None, reason="a child of a fork may inherit coverage's lock, held")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forks_in_the_middle_of_operations_strand_nobody_on_either_side():
    """Each child begins with an empty line and lives through an outage of its own; its parent's threads go on."""
    quota, ended = PatientQuota(clock=Hurried()), []

    def operate(choose: random.Random) -> object:
        terms = Terms(deadline=quota.clock.now() + choose.choice([1.0, 20.0]))
        standing = quota.begin()
        while choose.random() < (0.9 if quota.clock.now() % 30 < 10 else 0.1):
            seen = quota.failed(standing, terms, Failure())
            if isinstance(seen, Refused):
                return seen.reason
            standing = seen.standing
        quota.succeeded(standing, terms)
        return "ok"

    def work(seed: int, is_enough: Callable[[], bool]) -> None:
        choose = random.Random(seed)
        while not is_enough():
            try:
                end = operate(choose)
            except KeyboardInterrupt:
                end = "interrupted"
            ended.append(end)

    stop = threading.Event()
    threads = [threading.Thread(target=work, args=(seed, stop.is_set), daemon=True) for seed in range(10)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(12):
        quota.clock.pause()
        pid = os.fork()
        if pid == 0:
            faulthandler.dump_traceback_later(60, exit=True)  # a child that hangs says where
            fresh, enough = quota.snapshot().waiting, len(ended) + 20
            work(0, lambda: len(ended) >= enough)  # noqa: B023
            os._exit(fresh + quota.snapshot().waiting)
        children.append(pid)
    try:
        assert {0} == {os.waitpid(pid, 0)[1] for pid in children}
    finally:
        stop.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert 0 == quota.snapshot().waiting
    assert {"ok", Refusal.DEADLINE} <= set(ended)


# Many at once


class World:
    """Virtual time: what is due is done in its order, and nobody sleeps."""

    def __init__(self) -> None:
        self.time, self.events, self.number = 0.0, [], count()

    def now(self) -> float:
        return self.time

    wall = now

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps here")

    def at(self, when: float, call, *arguments) -> None:
        heapq.heappush(self.events, (max(when, self.time), next(self.number), call, arguments))

    def run(self) -> None:
        while self.events:
            self.time, _, call, arguments = heapq.heappop(self.events)
            call(*arguments)


@pytest.mark.parametrize("seed", [1, 2])
def test_ten_thousand_operations_through_a_line_all_end_in_time(seed):
    """A service that is up and down at random; random deadlines, hints and cancellations; in virtual time."""
    choose, world = random.Random(seed), World()
    quota = PatientQuota(clock=world, room=300)
    ended, held = [], set()

    def is_down() -> bool:
        return int(world.time / 7) % 3 == 1 or choose.random() < 0.1

    def operate(number: int) -> None:
        span = choose.choice([None, 1.0, 10.0, 60.0])
        terms = Terms(patience=choose.choice([0.0, 2.0, 5.0]), deadline=None if span is None else world.time + span)
        attempt(number, quota.begin(), terms)

    def attempt(number: int, standing: Standing, terms: Terms) -> None:
        world.at(world.time + choose.random() / 10, answer, number, standing, terms, world.time)

    def answer(number: int, standing: Standing, terms: Terms, sent: float) -> None:
        if not is_down():
            if standing.successes is None:
                quota.first_try((sent, 1.0))
            else:
                quota.succeeded(standing, terms, latency=world.time - sent, timeout=1.0)
            ended.append((number, "ok", world.time - standing.began, terms))
            return
        look: list = []
        seen = quota.judge(
            standing,
            terms,
            Failure(1.0, 0.05, choose.choice([0.0, 0.0, 3.0]), choose.random() < 0.2),
            wake=lambda: world.at(world.time, look[0]),
        )
        if isinstance(seen, Waiter):
            waiter, looking = seen, [True]
            held.add(number)

            def again() -> None:
                if looking:
                    decide(quota._look(waiter))

            def decide(seen) -> None:
                if isinstance(seen, Wait):
                    assert seen.until > world.time
                    if choose.random() < 0.01:
                        quota._made_line().leave(waiter, world.time)
                        seen = Refused(Refusal.HELD)
                    else:
                        world.at(seen.until, again)
                        return
                looking.clear()
                held.discard(number)
                go_on(number, seen, standing, terms)

            look.append(again)
            decide(quota._enter(waiter))
        else:
            go_on(number, seen, standing, terms)

    def go_on(number: int, seen, standing: Standing, terms: Terms) -> None:
        if isinstance(seen, Go):
            world.at(world.time + seen.delay, attempt, number, seen.standing, terms)
        else:
            ended.append((number, seen.reason, world.time - standing.began, terms))

    for number in range(10_000):
        world.at(choose.random() * 600, operate, number)
    world.run()
    assert list(range(10_000)) == sorted(number for number, *_ in ended)
    assert (set(), 0) == (held, quota.snapshot().waiting)
    waits = [took - (10.0 if terms.deadline is None else terms.deadline) for _, _, took, terms in ended]
    assert max(waits) < 5.0
    assert sum(how == "ok" for _, how, *_ in ended) > 6000


class Hurried:
    """The machine's clock, a hundred times as fast; a wait is interrupted now and then."""

    SPEED = 100

    def now(self) -> float:
        return time.monotonic() * self.SPEED

    wall = now

    def sleep(self, seconds: float) -> None:
        raise AssertionError("the lock is held")

    def pause(self) -> None:
        time.sleep(0.03)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        condition.wait(seconds / self.SPEED)
        if random.random() < 0.02:
            raise KeyboardInterrupt


@pytest.mark.real_time
def test_ten_thousand_operations_on_threads_strand_nobody():
    """Real conditions and real wake-ups: every operation ends, and nobody is left in line.

    The first outage lasts until each kind of end was seen, however fast or busy the machine is.
    """
    quota, ended = PatientQuota(clock=Hurried(), room=20), []
    per_thread, kinds, wanted = 400, set(), {"ok", "interrupted", Refusal.PATIENCE, Refusal.DEADLINE}

    def operate(choose: random.Random) -> object:
        span = choose.choice([None, 1.0, 20.0])
        terms = Terms(deadline=None if span is None else quota.clock.now() + span)
        standing = quota.begin()
        while choose.random() < (0.95 if not wanted <= kinds or quota.clock.now() % 30 < 10 else 0.1):
            seen = quota.failed(standing, terms, Failure(hint=choose.choice([0.0, 0.0, 2.0])))
            if isinstance(seen, Refused):
                return seen.reason
            standing = seen.standing
        if standing.successes is None:
            quota.first_try((quota.clock.now(), None))
        else:
            quota.succeeded(standing, terms)
        return "ok"

    def work(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(per_thread):
            try:
                end = operate(choose)
            except KeyboardInterrupt:
                end = "interrupted"
            ended.append(end)
            kinds.add(end)

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            before = len(ended)
            thread.join(60)
            assert not thread.is_alive() or before < len(ended), "no operation ended for a minute"
    assert 25 * per_thread == len(ended)
    assert 0 == quota.snapshot().waiting
    assert wanted <= kinds


def test_a_scope_that_never_failed_has_no_line():
    """Success brings none, first tried or not; the first failure makes it, and a child of a fork begins without."""
    clock = FakeClock()
    quota = PatientQuota(clock=clock)
    quota.first_try((clock.now(), None))
    quota.succeeded(quota.begin(), Terms())
    assert (True, None, 0) == (quota.is_spare(), quota.snapshot().down_for, quota.snapshot().waiting)
    assert quota._line is None
    standing = quota.begin()
    assert isinstance(quota.failed(standing, Terms(), Failure()), Go)
    assert quota._line is not None
    quota.renew_lock()
    assert quota._line is None
