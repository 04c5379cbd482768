"""The payoff bucket: its formulas by numbers worked out by hand, then what always holds, then threads and copies."""

from __future__ import annotations

import copy
import math
import os
import pickle
import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from requests_smithy_retry.clock import SystemClock
from requests_smithy_retry.payoff_bucket import MAX_PENDING, PayoffTokenBucket
from requests_smithy_retry.payoff_quota import PayoffQuota, PayoffSnapshot, RetryCause
from requests_smithy_retry.quota import RetryQuota
from requests_smithy_retry.testing.clock import FakeClock

EPSILON = 1e-9


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def bucket(clock) -> PayoffTokenBucket:
    return PayoffTokenBucket(clock=clock)


def succeed(bucket, *, retries=1, spent=0.0, latency=None, timeout=None):
    bucket.on_success(retries=retries, spent=spent, latency=latency, timeout=timeout)


def test_a_new_bucket_holds_one_and_a_half_tokens(bucket):
    """That is also its capacity."""
    assert PayoffSnapshot(1.5, 1.5, "memory", 0.0) == bucket.snapshot()
    assert (1.5, 1.5, "<PayoffTokenBucket 1.5 of 1.5>") == (bucket.capacity, bucket.available, repr(bucket))
    assert (False, False) == (bucket.retired, bucket.wants_worth)
    assert isinstance(bucket, RetryQuota)
    assert isinstance(bucket, PayoffQuota)


def test_the_capacity_follows_the_rate(bucket, clock):
    """Worked out by hand: 1/10 s, then 1.367879 operations in 18.963617 s; growth adds tokens, shrinking takes none."""
    bucket.on_operation()
    assert PayoffSnapshot(1.55, 1.55, "memory", 0.1) == bucket.snapshot()
    clock.advance(30)
    bucket.on_operation()
    now = bucket.snapshot()
    assert (pytest.approx(0.0721318, abs=1e-6), pytest.approx(1.5360659, abs=1e-6)) == (now.rate, now.capacity)
    assert 1.55 == now.available


@pytest.mark.parametrize(("operations", "capacity"), [(10, 2.0), (400, 21.5), (690, 36.0), (1000, 36.0)])
def test_the_capacity_is_half_a_seconds_operations_up_to_36(bucket, operations, capacity):
    """At once, the rate is taken over ten seconds."""
    for _ in range(operations):
        bucket.on_operation()
    assert (pytest.approx(capacity), pytest.approx(capacity)) == (bucket.capacity, bucket.available)


def test_tokens_above_what_the_capacity_allows_go_when_the_rate_falls(bucket, clock):
    """At most three more than the capacity are held."""
    for _ in range(400):
        bucket.on_operation()
    clock.advance(300)
    assert pytest.approx(21.5) == bucket.available
    bucket.on_operation()
    now = bucket.snapshot()
    assert pytest.approx(now.capacity + 3) == now.available
    assert now.capacity < 1.6


SETTLING = {"settling": 100.0, "memory": 1e9, "seconds": 0.5}
"""A rate that is simply the operations per second since the beginning, ten seconds at least."""


def settled(clock, *, earned, waits, spent=0.0):
    """A bucket after ten operations at once, which have 2 tokens, then one after each wait."""
    bucket = PayoffTokenBucket(clock=clock, **SETTLING)
    for _ in range(10):
        bucket.on_operation()
    bucket.release(earned)
    assert bucket.acquire(spent)
    for wait in waits:
        clock.advance(wait)
        bucket.on_operation()
    return bucket.snapshot()


@pytest.mark.parametrize(("earned", "spent"), [(0.0, 0.0), (1.0, 0.0), (3.0, 0.0), (0.0, 0.25), (0.0, 2.0)])
def test_with_settling_what_is_above_the_capacity_is_forgotten_while_the_rate_falls(clock, earned, spent):
    """Here for a hundred seconds, to 1/e; what is within the capacity stays."""
    now = settled(clock, earned=earned, spent=spent, waits=[100.0])
    assert pytest.approx(1.5 + 0.5 * 11 / 100) == now.capacity
    assert pytest.approx(2.0 - spent + earned / math.e) == now.available


def test_with_settling_a_refund_is_not_forgotten_for_the_time_before_it(clock):
    """What was written down is worked out first, here a fall of a hundred seconds."""
    bucket = PayoffTokenBucket(clock=clock, **SETTLING)
    for _ in range(10):
        bucket.on_operation()
    clock.advance(100.0)
    bucket.count(clock.now())
    bucket.release(1.0)
    assert pytest.approx(3.0) == bucket.available


@pytest.mark.parametrize("late", [0.0, 5.0, 30.0])
def test_with_settling_an_operation_that_ends_late_forgets_nothing(clock, late):
    """Between the two that are worked out, at 30 and at 40 s, ten seconds went by, whenever another had begun."""
    bucket = PayoffTokenBucket(clock=clock, **SETTLING)
    for _ in range(10):
        bucket.on_operation()
    bucket.release(1.0)
    clock.advance(30.0)
    bucket.on_operation()
    before = bucket.snapshot()
    bucket.count(late)
    assert before.available == pytest.approx(bucket.available, abs=0.02)
    clock.advance(10.0)
    bucket.count(late)
    bucket.count(clock.now())
    now = bucket.snapshot()
    assert now.rate < before.rate
    over = before.available - before.capacity
    assert pytest.approx(before.capacity + over * math.exp(-0.1), abs=0.02) == now.available


def test_with_settling_a_rise_gives_what_no_rise_has_given_before(clock):
    """The capacity falls from 2 to 1.55; rising from there it gives nothing up to the mark, which follows it slowly."""
    fallen = settled(clock, earned=0.0, spent=1.9, waits=[110.0])
    assert pytest.approx((1.55, 0.1)) == (fallen.capacity, fallen.available)
    clock = FakeClock()
    risen = settled(clock, earned=0.0, spent=1.9, waits=[110.0, *[0.0] * 11])
    assert pytest.approx((1.6, 0.1)) == (risen.capacity, risen.available)
    clock = FakeClock()
    bucket = settled(clock, earned=0.0, spent=1.9, waits=[110.0, 100.0, *[0.0] * 42])
    mark = (1.5 + 0.5 * 11 / 110) + 0.45 / math.e
    assert pytest.approx(1.5 + 0.5 * 54 / 210) == bucket.capacity
    assert mark > bucket.capacity
    assert pytest.approx(0.1) == bucket.available
    clock = FakeClock()
    bucket = settled(clock, earned=0.0, spent=1.9, waits=[110.0, 100.0, *[0.0] * 99])
    assert pytest.approx(1.5 + 0.5 * 111 / 210) == bucket.capacity
    assert pytest.approx(0.1 + bucket.capacity - mark) == bucket.available


def test_with_settling_a_rise_that_gives_nothing_leaves_a_whole_bucket_whole(clock):
    """What it spent came back while the capacity was down at 1.55; with that at 1.6, it holds 1.6."""
    bucket = PayoffTokenBucket(clock=clock, **SETTLING)
    for _ in range(10):
        bucket.on_operation()
    assert bucket.acquire(1.9)
    clock.advance(110.0)
    bucket.on_operation()
    for _ in range(9):
        succeed(bucket, retries=0)
    assert pytest.approx((1.55, 1.55)) == (bucket.capacity, bucket.available)
    for _ in range(11):
        bucket.on_operation()
        assert not bucket.wants_worth
    assert pytest.approx((1.6, 1.6)) == (bucket.capacity, bucket.available)


@pytest.mark.parametrize(
    ("cause", "price"),
    [(RetryCause.TIMEOUT, 1), (RetryCause.CONNECT, 1), (RetryCause.ERROR, 0.6), (RetryCause.THROTTLING, 0.3)],
)
def test_the_price_goes_by_the_failure(bucket, cause, price):
    """The issue's four prices."""
    assert price == bucket.price_of(cause)


def test_a_retry_that_paid_costs_nothing_and_earns_a_little(bucket):
    """All that was spent comes back, with half of what a success is worth: 0.8 after a fifth of the time-out."""
    bucket.on_operation()
    assert bucket.acquire(1.0)
    assert pytest.approx(0.55) == bucket.available
    succeed(bucket, spent=1.0, latency=0.2, timeout=1.0)
    assert pytest.approx(1.95) == bucket.available


@pytest.mark.parametrize(
    ("latency", "timeout", "worth"),
    [(0.0, 1.0, 1.0), (0.5, 2.0, 0.75), (1.0, 1.0, 0.0), (7.0, 1.0, 0.0), (5.0, None, 1.0), (None, 1.0, 1.0)],
)
def test_what_a_success_is_worth(bucket, latency, timeout, worth):
    """The part of the time-out that was left; 1 where there is none, or where nobody measured."""
    succeed(bucket, latency=latency, timeout=timeout)
    assert pytest.approx(1.5 + 0.5 * worth) == bucket.available


def test_a_time_out_of_no_seconds_is_worth_nothing(bucket):
    """Nothing is divided by it."""
    succeed(bucket, latency=0.0, timeout=0.0)
    assert 1.5 == bucket.available


def test_what_retries_earn_ends_three_above_the_capacity(bucket):
    """However many pay."""
    for _ in range(20):
        succeed(bucket)
    assert 4.5 == bucket.available


def test_a_first_try_success_gives_up_to_the_capacity(bucket):
    """0.4 of its worth where something is missing, and nothing where nothing is."""
    succeed(bucket, retries=0)
    assert 1.5 == bucket.available
    assert bucket.acquire(1.0)
    succeed(bucket, retries=0, latency=0.25, timeout=1.0)
    assert pytest.approx(0.8) == bucket.available
    for _ in range(9):
        succeed(bucket, retries=0)
    assert 1.5 == bucket.available


def test_what_was_not_used_comes_back(bucket):
    """A retry that was paid and not made: the amount, and no reward."""
    assert bucket.acquire(1.0)
    bucket.release(1.0)
    assert 1.5 == bucket.available


def test_a_refusal_says_what_there_was_and_never_shows_it_as_enough(bucket):
    """What is there is rounded down."""
    bucket.on_operation()
    assert bucket.acquire(0.551)
    assert not bucket.acquire(1.0)
    sentence = "retries are not paying on https://api.example.com: 0.99 of 1.55 tokens, a time-out costs 1"
    assert sentence == bucket.refusal(RetryCause.TIMEOUT, " on https://api.example.com")


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (RetryCause.TIMEOUT, "a time-out costs 1"),
        (RetryCause.CONNECT, "a failed connection costs 1"),
        (RetryCause.ERROR, "an error costs 0.6"),
        (RetryCause.THROTTLING, "throttling costs 0.3"),
    ],
)
def test_a_refusal_says_what_failed_and_what_its_retry_costs(bucket, cause, words):
    """Each in words of its own."""
    assert f"retries are not paying: 1.5 of 1.5 tokens, {words}" == bucket.refusal(cause, "")


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [(0.4 - 1e-12, "0.4"), (0.6 - 1e-12, "0.59"), (0.6 - 1e-9, "0.59"), (0.599, "0.59"), (0.0, "0"), (0.3, "0.3")],
)
def test_rounding_of_the_computer_is_not_shown(tokens, shown):
    """What is a hair's breadth below 0.4 is 0.4; but 0.6 is what the retry costs that was refused."""
    bucket = PayoffTokenBucket(least=tokens)
    assert bucket.refusal(RetryCause.ERROR, "").startswith(f"retries are not paying: {shown} of ")


def test_first_tries_that_were_written_down_count_as_if_one_by_one(clock):
    """The rate is the same number as if each had been worked out when it was."""
    together, one_by_one = PayoffTokenBucket(clock=clock), PayoffTokenBucket(clock=clock)
    for number in range(MAX_PENDING - 1):
        together.count(clock.now())
        one_by_one.on_operation()
        clock.advance(0.1 * (number % 7))
    assert pytest.approx(one_by_one.snapshot().rate) == together.snapshot().rate


def test_so_many_are_written_down_and_no_more(bucket):
    """The list does not grow beyond what is worked out together."""
    for _ in range(3 * MAX_PENDING + 5):
        bucket.count(0.0)
    assert 5 == len(bucket._pending)
    assert pytest.approx((3 * MAX_PENDING + 5) / 10) == bucket.snapshot().rate


def test_a_first_try_written_down_below_the_capacity_gives_its_reward(bucket, clock):
    """By how long it took until now; a bucket says that it wants to know."""
    assert not bucket.wants_worth
    bucket.acquire(1.0)
    assert bucket.wants_worth
    clock.advance(8.0)
    bucket.first_try(7.5, 1.0)
    assert pytest.approx(0.5 + 0.05 + 0.2) == bucket.available


def test_what_was_written_down_comes_before_what_happens_next(clock):
    """A retry is paid from what five operations have added; one later operation is not counted before them."""
    bucket = PayoffTokenBucket(clock=clock)
    for _ in range(5):
        bucket.count(clock.now())
    assert bucket.acquire(1.7)
    bucket, clock = PayoffTokenBucket(clock=clock), clock
    for _ in range(2):
        bucket.count(clock.now())
    clock.advance(40.0)
    bucket.on_operation()
    assert pytest.approx(1.6) == bucket.available


@pytest.mark.parametrize("how", ["on_success", "first_try"])
def test_a_reward_goes_up_to_the_capacity_that_operations_before_it_have_left(clock, how):
    """They were far apart, so it has fallen from 2 nearly to 1.5."""
    bucket = PayoffTokenBucket(clock=clock)
    for _ in range(10):
        bucket.on_operation()
    bucket.acquire(0.2)
    clock.advance(300.0)
    bucket.count(clock.now())
    if how == "on_success":
        succeed(bucket, retries=0)
    else:
        bucket.first_try(0.0, None)
    assert 1.5 < bucket.capacity < 1.6
    assert pytest.approx(1.8, abs=0.02) == bucket.available


def test_operations_that_are_worked_out_together_leave_a_new_bucket_whole(clock):
    """However many they are: what they add is a sum, and the capacity is none."""
    for operations in range(1, 200):
        bucket = PayoffTokenBucket(clock=clock)
        for _ in range(operations):
            bucket.count(clock.now())
        assert bucket.snapshot().available >= bucket.capacity
        assert not bucket.wants_worth


@pytest.mark.parametrize("longest", [0.0, 0.1, 100.0])
@pytest.mark.parametrize("settling", [None, 200.0])
def test_no_operation_makes_a_whole_bucket_less_than_whole(clock, settling, longest):
    """Not by a bit: what wants no reward is asked for none, however the rate goes."""
    bucket, waits = PayoffTokenBucket(settling=settling, clock=clock), random.Random(1)
    for number in range(300):
        clock.advance(longest * waits.random())
        for _ in range(1 + number % 7):
            bucket.count(clock.now())
        now = bucket.snapshot()
        assert now.available >= now.capacity
        assert not bucket.wants_worth


def test_a_retired_bucket_wants_to_be_asked_each_time(bucket):
    """So that whoever remembers it finds out."""
    bucket.retire()
    bucket.on_operation()
    assert (True, True) == (bucket.retired, bucket.wants_worth)


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"least": -1}, "least=-1: a finite number from 0 on is allowed"),
        ({"seconds": math.nan}, "seconds=nan: a finite number from 0 on is allowed"),
        ({"most": 1}, "most=1: a finite number from 1.5 on is allowed"),
        ({"earnings": math.inf}, "earnings=inf: a finite number from 0 on is allowed"),
        ({"settling": 0}, "settling=0: a finite number above 0 is allowed"),
        ({"settling": -1}, "settling=-1: a finite number above 0 is allowed"),
        ({"earnings": 10**400}, f"earnings={10**400}: a finite number from 0 on is allowed"),
        ({"least": True}, "least=True: a finite number from 0 on is allowed"),
        ({"least": "2"}, "least='2': a finite number from 0 on is allowed"),
        ({"most": 10**5000}, "most=<int that cannot be shown>: a finite number from 1.5 on is allowed"),
        ({"memory": None}, "memory=None: a finite number above 0 is allowed"),
        ({"memory": 0}, "memory=0: a finite number above 0 is allowed"),
        ({"shortest": 0}, "shortest=0: a finite number above 0 is allowed"),
        ({"timeout_cost": -0.1}, "timeout_cost=-0.1: a finite number from 0 on is allowed"),
    ],
)
def test_a_number_out_of_range_is_refused(options, phrase):
    """By its name, with what is allowed."""
    with pytest.raises(ValueError, match=phrase):
        PayoffTokenBucket(**options)


class StillClock(SystemClock):
    """One that is not the clock of a bucket that was given none."""


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda bucket: pickle.loads(pickle.dumps(bucket))])
def test_a_copy_keeps_the_numbers_and_starts_anew(copied):
    """With a lock of its own, on a clock of the same kind."""
    bucket = PayoffTokenBucket(least=2.5, error_cost=0.5, clock=StillClock())
    bucket.acquire(2.0)
    bucket.count(0.0)
    other = copied(bucket)
    assert PayoffSnapshot(2.5, 2.5, "memory", 0.0) == other.snapshot()
    assert 0.5 == other.price_of(RetryCause.ERROR)
    assert other._lock is not bucket._lock
    assert isinstance(other.clock, StillClock)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_a_free_lock():
    """Also where another thread held it."""
    bucket = PayoffTokenBucket()
    with bucket._lock:
        child = os.fork()
        if child == 0:  # pragma: no cover - the child is not measured
            os._exit(0 if bucket.acquire(1.0) else 1)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.floats(0, 600)),
        st.tuples(st.just("operation"), st.sampled_from([1, 3, 50])),
        st.tuples(st.just("count"), st.sampled_from([1, 70])),
        st.tuples(st.just("vain"), st.sampled_from(list(RetryCause))),
        st.tuples(st.just("paid"), st.tuples(st.lists(st.sampled_from(list(RetryCause)), max_size=3), st.floats(0, 2))),
        st.tuples(st.just("first"), st.floats(0, 2)),
    ),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_what_always_holds(steps):
    """0 to C + 3 tokens; a refusal costs nothing; a paid retry leaves no fewer; idle time takes none."""
    clock = FakeClock()
    bucket = PayoffTokenBucket(clock=clock)
    for what, value in steps:
        before = bucket.snapshot()
        if what == "wait":
            clock.advance(value)
            assert before == bucket.snapshot()
        elif what in ("operation", "count"):
            for _ in range(value):
                bucket.on_operation() if what == "operation" else bucket.count(clock.now())
            after = bucket.snapshot()
            if after.available < before.available - EPSILON:
                assert after.rate < before.rate
        elif what == "vain":
            price = bucket.price_of(value)
            granted = bucket.acquire(price)
            assert granted == (before.available >= price)
            assert before.available - granted * price == bucket.available
        elif what == "paid":
            prices = [bucket.price_of(cause) for cause in value[0]]
            spent = sum(price for price in prices if bucket.acquire(price))
            succeed(bucket, retries=1, spent=spent, latency=value[1], timeout=1.0)
            assert bucket.available >= before.available - EPSILON
        else:
            bucket.first_try(clock.now() - value, 1.0)
        now = bucket.snapshot()
        assert 0 <= now.available <= now.capacity + 3  # to the last bit
        assert 1.5 <= now.capacity <= 36


def test_128_threads_lose_no_operation_and_no_token():
    """Each vain retry cost one, each paid one nothing, and every operation was counted."""
    clock = FakeClock()
    bucket = PayoffTokenBucket(most=1e6, retry_reward=0, clock=clock)
    granted = []
    barrier = threading.Barrier(128)

    def work(number):
        barrier.wait()
        for turn in range(50):
            if (number + turn) % 2:
                bucket.count(clock.now())
            else:
                bucket.on_operation()
        spent = 0.0
        for _ in range(10):
            if bucket.acquire(1.0):
                spent += 1.0
            now = bucket.snapshot()
            assert 0 <= now.available <= now.capacity + 3
        if number % 2:
            succeed(bucket, spent=spent)
        else:
            granted.append(spent)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(128)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = bucket.snapshot()
    assert pytest.approx(128 * 50 / 10) == now.rate
    assert pytest.approx(1.5 + 0.5 * 640) == now.capacity
    assert pytest.approx(now.capacity - sum(granted)) == now.available


def test_128_threads_of_every_kind_leave_a_bucket_that_holds_what_it_may():
    """First tries written down and not, paid and vain retries, refunds; whoever looks sees 0 to C + 3."""
    clock = FakeClock()
    bucket = PayoffTokenBucket(clock=clock)
    wrong, barrier = [], threading.Barrier(128)

    def work(number):
        barrier.wait()
        for turn in range(30):
            kind = (number + turn) % 4
            if kind == 0:
                (bucket.first_try if bucket.wants_worth else lambda started, _: bucket.count(started))(0.0, 1.0)
            else:
                bucket.on_operation()
                price = bucket.price_of(RetryCause.ERROR)
                spent = sum(price for _ in range(kind) if bucket.acquire(price))
                if kind == 1:
                    bucket.release(spent)
                elif kind == 2:
                    succeed(bucket, spent=spent)
            now = bucket.snapshot()
            if not 0 <= now.available <= now.capacity + 3 + EPSILON:
                wrong.append(now)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(128)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong
    now = bucket.snapshot()
    assert (pytest.approx(128 * 30 / 10), 36) == (now.rate, now.capacity)
    assert bucket.wants_worth == (now.available < now.capacity)
