"""The client rate limiter (contract 9): the published rows, then its invariants, then threads and fork."""

from __future__ import annotations

import copy
import os
import pickle
import random
import sys
import threading

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from requests_smithy_retry import ClientRateLimiter, RateLimiterSettings, SystemClock
from requests_smithy_retry.clock import wait_in
from requests_smithy_retry.smithy.rate_limiter import FORGET_AFTER, RateClocker, UntilPermitted, rate_after_success
from requests_smithy_retry.testing.clock import FakeClock
from tests.spec_files import adaptive_vectors
from tests.unit.core.director import Director

VECTORS = adaptive_vectors()
MOST = sys.float_info.max


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def limiter(clock):
    return ClientRateLimiter(clock=clock)


def throttled_at(rate: float, clock: FakeClock, **numbers: float) -> ClientRateLimiter:
    """A limiter that was throttled while it measured about ``rate``."""
    limiter = ClientRateLimiter(RateLimiterSettings(**numbers), clock=clock)
    for _ in range(int(rate * 4)):
        clock.advance(1 / rate)
        limiter.record_response(throttled=False)
    limiter.record_response(throttled=True)
    return limiter


@pytest.mark.parametrize("looks", [True, False])
def test_the_published_end_to_end_rows(limiter, clock, looks):
    """Rate, capacity and maximum after each response; looking in between changes nothing."""
    for case in VECTORS["end_to_end"]["cases"]:
        clock.advance(case["timestamp"] - clock.now())
        limiter.record_response(throttled=False)
        if looks or case is VECTORS["end_to_end"]["cases"][-1]:
            view = limiter.snapshot()
            assert view.measured_rate == pytest.approx(case["measured_tx_rate"], abs=5e-7)
            assert view.fill_rate == pytest.approx(case["new_token_bucket_rate"], abs=5e-7)
            assert view.capacity == pytest.approx(case["derived_botocore_capacity"], abs=5e-7)
            assert view.max_capacity == pytest.approx(case["derived_botocore_max_capacity"], abs=5e-7)
            assert not view.enabled


def test_after_the_first_throttling_a_permit_is_not_there_yet(limiter, clock):
    """Throttled at 0 s, asked at 0.1 s: 0.05 permits, 1.9 s to wait; at 2.1 s nothing is wanting."""
    row = VECTORS["token_bucket"][0]
    limiter.record_response(throttled=True)
    clock.advance(row["acquire_at"])
    wait = limiter.try_acquire()
    assert limiter.snapshot().capacity == pytest.approx(row["capacity_after"], abs=row["tolerance"])
    assert wait.seconds == pytest.approx(row["wait"], abs=row["tolerance"])
    clock.advance(2.0)
    assert limiter.try_acquire() is None
    assert limiter.snapshot().capacity == pytest.approx(VECTORS["token_bucket"][1]["capacity_after"], abs=1e-9)


def test_no_permit_is_needed_before_the_server_throttles(limiter):
    """A limiter that only measures grants everything and deducts nothing."""
    assert [limiter.try_acquire() for _ in range(100)] == [None] * 100


def test_throttling_drops_the_rate_to_seven_tenths_of_what_was_measured(clock):
    """At 10 attempts a second, throttling drops the rate to about 7."""
    view = throttled_at(10, clock).snapshot()
    assert view.last_max_rate == view.measured_rate == pytest.approx(10, rel=0.2)
    assert view.fill_rate == pytest.approx(0.7 * view.last_max_rate)


def test_a_second_throttling_starts_from_the_lower_of_measured_and_allowed(clock):
    """``u = min(measured, fill_rate)`` once enabled."""
    limiter = throttled_at(10, clock)
    before = limiter.snapshot()
    limiter.record_response(throttled=True)
    after = limiter.snapshot()
    assert after.last_max_rate == before.fill_rate < before.measured_rate
    assert after.fill_rate == pytest.approx(0.49 * before.last_max_rate)


def test_a_second_throttling_after_a_calm_time_starts_from_what_was_measured(clock):
    """A client that sent less than it was allowed to starts from the rate it had."""
    limiter = throttled_at(20, clock)
    allowed = limiter.snapshot().fill_rate
    clock.advance(10)
    limiter.record_response(throttled=True)
    view = limiter.snapshot()
    assert view.last_max_rate == view.measured_rate < allowed


def test_the_very_first_response_may_be_throttled(limiter, clock):
    """The rate is then the measured one, not the rate that a limiter begins with."""
    clock.advance(0.5)
    limiter.record_response(throttled=True)
    assert limiter.snapshot().last_max_rate == pytest.approx(1.6)


def test_the_numbers_of_the_curve_are_connected(clock):
    """Beta and scale are those of the settings, at the drop and on the way up."""
    limiter = throttled_at(10, clock, beta=0.5, scale=0.8)
    view = limiter.snapshot()
    assert view.fill_rate == pytest.approx(0.5 * view.last_max_rate)
    clock.advance(0.2)
    limiter.record_response(throttled=False)
    on_the_curve = rate_after_success(
        clock.now(), last_max_rate=view.last_max_rate, last_throttle=view.last_throttle, beta=0.5, scale=0.8
    )
    assert limiter.snapshot().fill_rate == pytest.approx(on_the_curve)


@pytest.mark.parametrize("numbers", [{"smoothing": 0.5}, {"interval": 2.0}])
def test_the_numbers_of_the_measuring_are_connected(clock, numbers):
    """Smoothing and interval are those of the settings."""
    limiter, alone = ClientRateLimiter(RateLimiterSettings(**numbers), clock=clock), RateClocker(0.0, **numbers)
    for _ in range(30):
        clock.advance(0.3)
        limiter.record_response(throttled=False)
        alone.record(clock.now())
    assert limiter.snapshot().measured_rate == alone.measured_rate > 0


def test_a_new_limiter_is_in_use_and_has_no_past(clock):
    """A new limiter was last used when it was made, and needs no permits."""
    clock.advance(7)
    limiter = ClientRateLimiter(clock=clock)
    assert (limiter.used_at, limiter.enabled) == (7, False)


def test_permits_come_in_while_nobody_asks(clock):
    """A look at the limiter counts them."""
    limiter = throttled_at(10, clock)
    while limiter.try_acquire() is None:
        pass
    before = limiter.snapshot()
    clock.advance(0.1)
    assert limiter.snapshot().capacity == pytest.approx(before.capacity + 0.1 * before.fill_rate)


def test_a_wait_shows_its_seconds_alone(limiter):
    """The repr of a wait shows its seconds, not the limiter behind it."""
    limiter.record_response(throttled=True)
    wait = limiter.try_acquire()
    assert repr(wait) == f"PermitWait(seconds={wait.seconds!r})"


def test_a_shallow_copy_is_on_the_same_clock(limiter, clock):
    """A copy is on the original's clock, so that a test's clock drives both."""
    assert copy.copy(limiter).clock is clock


def test_a_minute_after_the_last_throttling_a_new_limiter_would_do_as_well(clock):
    """Sixty seconds, counted from the throttling, however late it is on the clock."""
    clock.advance(1_000)
    limiter = ClientRateLimiter(clock=clock)
    assert limiter.is_spare(clock.now())
    limiter.record_response(throttled=True)
    clock.advance(59.5)
    assert not limiter.is_spare(clock.now())
    clock.advance(0.5)
    assert limiter.is_spare(clock.now())


def test_the_rate_never_passes_twice_the_measured_one(clock):
    """The published cap: long after throttling the curve is out of sight, the rate is not."""
    limiter = throttled_at(20, clock)
    clock.advance(50)
    limiter.record_response(throttled=False)
    view = limiter.snapshot()
    assert view.fill_rate == max(2 * view.measured_rate, 0.5)


def test_one_attempt_takes_one_permit_and_only_when_granted(clock):
    """Being told to wait deducts nothing."""
    limiter = throttled_at(10, clock)
    clock.advance(10)
    full = limiter.snapshot().capacity
    assert limiter.try_acquire() is None
    assert limiter.snapshot().capacity == full - 1
    while limiter.try_acquire() is None:
        pass
    left = limiter.snapshot().capacity
    assert limiter.try_acquire() is not None
    assert limiter.snapshot().capacity == left >= 0


def test_permits_come_one_per_tenth_of_a_second_at_ten_per_second(clock):
    """Waiting as told grants exactly then."""
    limiter = throttled_at(10, clock, beta=0.999999, smoothing=1)
    while limiter.try_acquire() is None:
        pass
    rate = limiter.snapshot().fill_rate
    clock.sleep(limiter.try_acquire().seconds)
    start = clock.now()
    granted = []
    while len(granted) < 5:
        wait = limiter.try_acquire()
        if wait is None:
            granted.append(clock.now())
        else:
            clock.sleep(wait.seconds)
    assert granted == pytest.approx([start + n / rate for n in range(5)])


def test_a_wait_too_small_to_move_the_clock_is_granted():
    """Late on the clock, a missing 1e-14 would be waited for without end."""
    clock = FakeClock(now=2.0**40)
    limiter = ClientRateLimiter(clock=clock)
    limiter.record_response(throttled=True)
    limiter._capacity = 1.0 - 1e-9
    assert limiter.try_acquire() is None
    assert limiter.snapshot().capacity == 0.0


def test_fail_recover_fail_again(clock):
    """The whole story twice in one limiter: it slows down, comes back to the old rate, and slows down again."""
    limiter = throttled_at(20, clock)
    for _ in range(2):
        slowed = limiter.snapshot()
        assert slowed.fill_rate == pytest.approx(0.7 * slowed.last_max_rate)
        began = clock.now()
        while limiter.snapshot().fill_rate <= slowed.last_max_rate:
            wait = limiter.try_acquire()
            if wait is None:
                limiter.record_response(throttled=False)
            else:
                wait.rest(clock)
            assert clock.now() - began < 30, "it never recovers"
        for _ in range(200):
            wait = limiter.try_acquire()
            if wait is None:
                limiter.record_response(throttled=False)
            else:
                wait.rest(clock)
        limiter.record_response(throttled=True)


def test_resting_is_over_at_once_where_the_rate_changed_meanwhile(limiter, clock):
    """A response between the question and the rest has changed the answer."""
    limiter.record_response(throttled=True)
    wait = limiter.try_acquire()
    limiter.record_response(throttled=False)
    wait.rest(clock)
    assert clock.sleeps == []
    again = limiter.try_acquire()
    again.rest(clock)
    assert clock.sleeps == [again.seconds]


def test_looking_in_between_changes_nothing(clock):
    """Reading the state after each response or only at the end makes no difference, whatever the rhythm."""
    rhythm = random.Random(5)
    one, other = ClientRateLimiter(clock=clock), ClientRateLimiter(clock=clock)
    for number in range(113):
        clock.advance(rhythm.choice((0.0, 0.001, 0.02, 0.3, 2.0 if number % 50 == 0 else 0.01)))
        one.record_response(throttled=False)
        one.snapshot()
        other.record_response(throttled=False)
        assert one.used_at == other.used_at == clock.now()
    for each in (one, other):
        each.record_response(throttled=True)
    left, right = one.snapshot(), other.snapshot()
    for name in left.__slots__:
        assert getattr(left, name) == pytest.approx(getattr(right, name), rel=1e-9), name


@pytest.mark.parametrize("interval", [0.1, 0.3, 0.001, 1e-6, 5e-324])
def test_an_interval_that_binary_floats_do_not_hold_comes_to_the_same_end(clock, interval):
    """With an interval whose rounded end is at a response, no response is counted twice."""
    one, other = (ClientRateLimiter(RateLimiterSettings(interval=interval), clock=clock) for _ in range(2))
    for number in range(200):
        clock.advance(number / 10 - clock.now())
        one.record_response(throttled=False)
        one.snapshot()
        other.record_response(throttled=False)
    assert one.snapshot() == other.snapshot()


@settings(deadline=None)
@given(
    st.builds(
        RateLimiterSettings,
        beta=st.floats(0, 1, exclude_min=True, exclude_max=True),
        smoothing=st.floats(0, 1, exclude_min=True),
        min_capacity=st.floats(1, MOST),
        max_rate_scale=st.floats(1, MOST),
        scale=st.floats(0, MOST, exclude_min=True),
        min_fill_rate=st.floats(0, MOST, exclude_min=True),
        interval=st.floats(0, MOST, exclude_min=True),
    ),
    st.lists(st.tuples(st.sampled_from(["ok", "throttled", "ask"]), st.floats(0, 1e6)), max_size=40),
)
@example(
    RateLimiterSettings(scale=MOST, max_rate_scale=MOST),
    [*[("ok", 0)] * 9, ("throttled", 1), ("ok", 9), ("ok", 0), ("ask", 0)],
)
@example(RateLimiterSettings(min_fill_rate=MOST), [("throttled", 1), ("ok", 1), ("ok", 0), ("ask", 0)])
def test_no_setting_in_its_range_makes_a_rate_or_a_wait_that_is_no_number(numbers, steps):
    """Up to the ends of the ranges: waits are at least 0, and capacity stays within its maximum."""
    clock = FakeClock()
    limiter = ClientRateLimiter(numbers, clock=clock)
    for what, seconds in steps:
        clock.advance(seconds)
        if what == "ask":
            wait = limiter.try_acquire()
            assert wait is None or wait.seconds > 0
        else:
            limiter.record_response(throttled=what == "throttled")
        view = limiter.snapshot()
        assert 0 < view.fill_rate <= MOST
        assert 0 <= view.capacity <= view.max_capacity <= MOST


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["ok", "throttled", "ask", "rest"]), st.floats(0, 3)), max_size=80))
def test_capacity_stays_between_nothing_and_its_maximum(steps):
    """The capacity stays in its range, and the rate at or above the least, for any sequence of events."""
    clock = FakeClock()
    limiter = ClientRateLimiter(clock=clock)
    for what, seconds in steps:
        clock.advance(seconds)
        if what == "ask":
            limiter.try_acquire()
        elif what == "rest":
            # Rounding may leave a wait of one tick of the clock; never a third one.
            for _ in range(3):
                wait = limiter.try_acquire()
                if wait is None:
                    break
                wait.rest(clock)
            else:
                raise AssertionError(f"still to wait: {wait.seconds} s")
        else:
            limiter.record_response(throttled=what == "throttled")
        view = limiter.snapshot()
        assert 0 <= view.capacity <= view.max_capacity
        assert view.max_capacity >= 1
        assert view.fill_rate >= 0.5 or not view.enabled


@pytest.mark.once
def test_a_million_random_concurrent_steps_never_take_more_than_there_is():
    """Eight threads, a million steps: capacity is never below 0, and no permit is granted twice."""
    limiter = ClientRateLimiter()
    limiter.record_response(throttled=True)
    lowest: list[float] = []

    def work(seed: int) -> None:
        chance = random.Random(seed).random
        low = 1.0
        for step in range(125_000):
            draw = chance()
            if draw < 0.8:
                limiter.try_acquire()
            else:
                limiter.record_response(draw > 0.99)
            if step % 64 == 0:
                low = min(low, limiter.snapshot().capacity)
            low = min(low, limiter._capacity)
        lowest.append(low)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(lowest) == 8
    assert min(lowest) >= 0


def test_a_changed_rate_wakes_all_who_wait():
    """Four threads that would wait for a minute look again at once, and find permits."""
    limiter = ClientRateLimiter(RateLimiterSettings(min_fill_rate=1 / 60))
    limiter.record_response(throttled=True)
    waits = [limiter.try_acquire() for _ in range(4)]
    assert min(wait.seconds for wait in waits) > 30
    done = []
    threads = [threading.Thread(target=lambda w=wait: done.append(w.rest(SystemClock()))) for wait in waits]
    for thread in threads:
        thread.start()
    while len(limiter._waiting) < 4:
        pass
    limiter._last_throttle -= 2 * FORGET_AFTER
    assert not limiter.is_spare(SystemClock().now())
    limiter.record_response(throttled=False)
    for thread in threads:
        thread.join(60)
    assert len(done) == 4
    assert not limiter._waiting


def test_who_waits_for_a_permit_goes_when_everything_is_forgotten():
    """At that moment: nobody needs a permit any more, in either way of waiting for one."""
    director, said = Director(), []
    limiter = ClientRateLimiter(clock=director)
    limiter.record_response(throttled=True)
    wait = limiter.try_acquire()
    director.start(lambda: said.append(wait_in(UntilPermitted(limiter, None, None), director)))
    director.start(lambda: said.append(wait.rest(director)))
    director.run_until(0.5)
    limiter.forget(0.5)
    director.settle()
    assert [0.5, None] == sorted(said, key=str)
    assert limiter.is_spare(0.5)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_copy_keeps_the_numbers_and_has_no_past(copied):
    """A copy has a lock of its own, and can be made while the original's is held."""
    limiter = ClientRateLimiter(RateLimiterSettings(beta=0.5))
    limiter.record_response(throttled=True)
    with limiter._lock:
        other = copied(limiter)
    assert (other.settings, other.enabled) == (limiter.settings, False)
    assert other.snapshot().fill_rate == 1.0


class NamedLimiter(ClientRateLimiter):
    """A limiter with a constructor of its own."""

    def __init__(self, name):
        super().__init__(RateLimiterSettings(beta=0.5))
        self.name = name


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_subclass_with_a_constructor_and_attributes_of_its_own_is_copied(copied):
    """The copy keeps its attributes, and has no past."""
    limiter = NamedLimiter("mine")
    limiter.note = "set later"
    limiter.record_response(throttled=True)
    other = copied(limiter)
    assert (NamedLimiter, "mine", "set later", 0.5, False) == (
        *(type(other), other.name, other.note, other.settings.beta, other.enabled),
    )


def test_a_child_never_inherits_a_held_lock():
    """Forked while another thread holds the lock, the child can ask."""
    limiter = ClientRateLimiter()
    limiter.record_response(throttled=True)
    with limiter._lock:
        pid = os.fork()
        if pid == 0:
            os._exit(0 if limiter.try_acquire() is not None else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_it_says_of_itself_what_it_does(limiter):
    """Measuring, or the rate and the permits."""
    assert repr(limiter) == "<ClientRateLimiter measuring>"
    limiter.record_response(throttled=True)
    assert repr(limiter) == "<ClientRateLimiter 0.5/s, 0 of 1>"


def test_a_success_is_recorded_as_a_response_that_was_not_throttled():
    """Both ways to record a success give the same state, even where the rate cannot change and they only count."""
    seen = []
    for record in (ClientRateLimiter.record_success, lambda limiter: limiter.record_response(False)):
        clock = FakeClock()
        limiter = ClientRateLimiter(clock=clock)
        for number in range(400):
            clock.advance(0.05)
            record(limiter)
            if number in (250, 300):
                limiter.record_response(True)
        seen.append((limiter.snapshot(), limiter.used_at))
    assert seen[0] == seen[1]
    assert seen[0][0].enabled
