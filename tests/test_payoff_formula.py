"""The payoff bucket against the formula that it was asked for, written down a second time, on any sequence of events.

The second one works out each event when it happens, in plain arithmetic, and shares nothing with the package.
"""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from requests_smithy_retry.payoff_bucket import MAX_PENDING, PayoffTokenBucket
from requests_smithy_retry.payoff_quota import RetryCause
from requests_smithy_retry.payoff_rate import FAR
from requests_smithy_retry.testing.clock import FakeClock

COSTS = {RetryCause.TIMEOUT: 1, RetryCause.CONNECT: 1, RetryCause.ERROR: 0.6, RetryCause.THROTTLING: 0.3}
CLOSE = {"rel": 1e-9, "abs": 1e-9}


class Formula:
    """T, C and (n, w, at), eagerly."""

    def __init__(self, now):
        self.t = self.c = 1.5
        self.n = self.w = self.rate = 0.0
        self.at = now

    def operation(self, now):
        d = math.exp(-(now - self.at) / 30)
        self.n = self.n * d + 1
        self.w = self.w * d + 30 * (1 - d)
        self.at = now
        self.rate = self.n / max(self.w, 10)
        capacity = min(36, 1.5 + 0.5 * self.rate)
        if capacity > self.c:
            self.t += capacity - self.c
        self.c = capacity
        self.t = min(self.t, self.c + 3)

    def acquire(self, cost):
        if self.t < cost:
            return False
        self.t -= cost
        return True

    def paid(self, spent, worth):
        self.t = min(max(self.c + 3, self.t), self.t + spent + 0.5 * worth)

    def first(self, worth):
        if self.t < self.c:
            self.t = min(self.c, self.t + 0.4 * worth)


class Settling(Formula):
    """The same, where what is above the capacity is forgotten within 200 s, and m is the mark up to which a rise gives
    nothing, unless a whole bucket would not be whole any more.
    """

    m = 1.5

    def operation(self, now):
        t, c, rate = self.t, self.c, self.rate
        left = math.exp(-(now - self.at) / 200)
        super().operation(now)
        if self.rate < rate and t > c:
            t = c + (t - c) * left
        mark = c + (self.m - c) * left
        self.m = max(mark, self.c)
        self.t = min(t + self.m - mark, self.c + 3)
        if t >= c:
            self.t = max(self.t, self.c)


LATENCY = st.floats(0, 3)
TIMEOUT = st.one_of(st.none(), st.floats(0.1, 3))
CAUSES = st.lists(st.sampled_from(list(RetryCause)), min_size=1, max_size=4)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.one_of(st.floats(0, 1), st.floats(0, 60), st.sampled_from([600.0, 40_000.0]))),
        st.tuples(st.just("operation"), st.sampled_from([1, 3, 30])),
        st.tuples(st.just("vain"), CAUSES),
        st.tuples(st.just("paid"), st.tuples(CAUSES, LATENCY, TIMEOUT)),
        st.tuples(st.just("first"), st.tuples(LATENCY, TIMEOUT)),
        st.tuples(st.just("quick firsts"), st.tuples(st.sampled_from([1, 5, MAX_PENDING // 2 + 1]), st.floats(0, 2))),
        st.tuples(st.just("look"), st.none()),
    ),
    max_size=30,
)


def worth(latency, timeout):
    return 1.0 if timeout is None else max(0.0, 1 - latency / timeout)


def first_try(bucket, clock, latency, timeout):
    """What the adapter does: a success is booked when it is there, with the time at which its operation began."""
    started = clock.now()
    clock.advance(latency)
    if bucket.wants_worth:
        bucket.first_try(started, timeout)
    else:
        bucket.count(started)


def spend(bucket, formula, causes):
    spent = 0.0
    for cause in causes:
        # Where rounding decides, either answer is right; both are made to give the same one.
        if abs(formula.t - COSTS[cause]) < 1e-6:
            break
        granted = bucket.acquire(bucket.price_of(cause))
        assert granted == formula.acquire(COSTS[cause])
        if not granted:
            event("refused")
            break
        spent += COSTS[cause]
    return spent


@settings(max_examples=200, deadline=None)
@given(EVENTS, st.booleans())
def test_the_bucket_is_the_formula(events, looks):
    """Token by token, looked at after each event or at the end alone; first tries that were written down included."""
    clock = FakeClock()
    follow(events, looks, clock, PayoffTokenBucket(clock=clock), Formula(clock.now()))


@settings(max_examples=100, deadline=None)
@given(EVENTS)
def test_with_settling_it_is_the_formula_that_forgets(events):
    """Where nothing is written down for later: what is counted together is also forgotten together."""
    clock = FakeClock()
    bucket = PayoffTokenBucket(settling=200.0, clock=clock)
    events = [(what, value) if what != "quick firsts" else ("operation", value[0]) for what, value in events]
    follow(events, True, clock, bucket, Settling(clock.now()))


def follow(events, looks, clock, bucket, formula):
    """Both through all events, compared after each (looks) or at the end."""
    for what, value in events:
        if what == "wait":
            clock.advance(value)
        elif what == "operation":
            for _ in range(value):
                bucket.on_operation()
                formula.operation(clock.now())
        elif what == "vain":
            bucket.on_operation()
            formula.operation(clock.now())
            spend(bucket, formula, value)
        elif what == "paid":
            causes, latency, timeout = value
            bucket.on_operation()
            formula.operation(clock.now())
            spent = spend(bucket, formula, causes)
            clock.advance(latency)
            bucket.on_success(retries=len(causes), spent=spent, latency=latency, timeout=timeout)
            formula.paid(spent, worth(latency, timeout))
        elif what == "first":
            latency, timeout = value
            formula.operation(clock.now())
            first_try(bucket, clock, latency, timeout)
            formula.first(worth(latency, timeout))
        elif what == "quick firsts":
            count, gap = value
            for _ in range(count):
                formula.operation(clock.now())
                first_try(bucket, clock, 0.0, 1.0)
                formula.first(1.0)
                clock.advance(gap)
        if looks or what == "look":
            check(bucket, formula)
    check(bucket, formula)


def check(bucket, formula):
    now = bucket.snapshot()
    assert pytest.approx(formula.rate, **CLOSE) == now.rate
    assert pytest.approx(formula.c, **CLOSE) == now.capacity
    assert pytest.approx(formula.t, **CLOSE) == now.available


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.floats(0, 5), st.floats(0, 200)), min_size=1, max_size=MAX_PENDING - 1))
def test_what_is_counted_together_is_what_is_counted_one_by_one(gaps):
    """Rises in the middle and the limit of three above the capacity included."""
    clock = FakeClock()
    together, one_by_one = PayoffTokenBucket(clock=clock), PayoffTokenBucket(clock=clock)
    for bucket in (together, one_by_one):
        bucket.release(2.5)
    for gap in gaps:
        clock.advance(gap)
        together.count(clock.now())
        one_by_one.on_operation()
    a, b = together.snapshot(), one_by_one.snapshot()
    assert pytest.approx((b.rate, b.capacity, b.available), **CLOSE) == (a.rate, a.capacity, a.available)


@pytest.mark.parametrize("gap", [FAR * 30 - 1, FAR * 30 + 1, 1e6, 1e12])
def test_an_age_between_operations_that_are_counted_together(gap):
    """Nothing is divided by nothing."""
    clock = FakeClock()
    bucket, formula = PayoffTokenBucket(clock=clock), Formula(clock.now())
    for wait in (1.0, gap, 1.0, gap, 2.0):
        clock.advance(wait)
        bucket.count(clock.now())
        formula.operation(clock.now())
    check(bucket, formula)


def test_the_order_in_which_they_end_does_not_matter():
    """Operations that began earlier and succeeded later count when they began."""
    found = set()
    for order in itertools.permutations([3.0, 8.0, 40.0, 41.0]):
        clock = FakeClock()
        bucket = PayoffTokenBucket(clock=clock)
        clock.advance(50.0)
        for started in order:
            bucket.count(started)
        found.add(bucket.snapshot())
    assert 1 == len(found)


def test_an_operation_that_ends_after_later_ones_were_worked_out_still_counts_by_its_age():
    """Its share of the rate is what it would have been; the rate stays that of the last one."""
    clock = FakeClock()
    late, in_order = PayoffTokenBucket(clock=clock), PayoffTokenBucket(clock=clock)
    for started in (30.0, 5.0):
        late.count(started)
        late.snapshot()
    for started in (5.0, 30.0):
        in_order.count(started)
    assert pytest.approx(in_order.snapshot().rate) == late.snapshot().rate
    assert pytest.approx(in_order.snapshot().capacity) == late.snapshot().capacity


def test_an_hour_of_health_fills_the_room_above_the_capacity():
    """The formula's drift: each rise adds tokens and no fall takes them."""
    clock = FakeClock()
    bucket = PayoffTokenBucket(clock=clock)
    for number in range(1200):
        clock.advance(1.0 if number % 2 else 5.0)
        bucket.count(clock.now())
    now = bucket.snapshot()
    assert pytest.approx(now.capacity + 3, abs=0.02) == now.available
