"""The client rate limiter (contract 9): the published rows, then its invariants, then threads and fork."""

from __future__ import annotations

import copy
import pickle
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from requests_smithy_retry.clock import Clock
from requests_smithy_retry.quotas import ClientRateLimiter, RateLimiterSettings
from requests_smithy_retry.smithy.rate_limiter import (
    PermitWait,
    RateClocker,
    rate_after_success,
    recovery_time,
)
from requests_smithy_retry.testing import FakeClock
from tests.spec_files import adaptive_vectors
from tests.unit.core.director import Director

VECTORS = adaptive_vectors()
MOST = sys.float_info.max


def permitted(limiter: ClientRateLimiter, clock: Clock) -> float:
    """Rest until there is a permit, and return the seconds that took."""
    began = clock.now()
    while (wait := limiter.try_acquire()) is not None:
        wait.rest(clock)
    return clock.now() - began


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
    keys = ("measured_tx_rate", "new_token_bucket_rate", "derived_botocore_capacity", "derived_botocore_max_capacity")
    cases = VECTORS["end_to_end"]["cases"]
    for case in cases:
        clock.advance(case["timestamp"] - clock.now())
        limiter.record_response(throttled=False)
        if looks or case is cases[-1]:
            view = limiter.snapshot()
            shown = [view.measured_rate, view.fill_rate, view.capacity, view.max_capacity]
            assert ([case[key] for key in keys], False) == (pytest.approx(shown, abs=5e-7), view.enabled)


def test_the_numbers_of_the_curve_are_connected(clock):
    """Beta and scale are those of the settings; a second drop is from what is allowed, if that is less."""
    limiter = throttled_at(10, clock, beta=0.5, scale=0.8)
    view = limiter.snapshot()
    assert view.fill_rate == pytest.approx(0.5 * view.last_max_rate)
    clock.advance(0.2)
    limiter.record_response(throttled=False)
    numbers = {"last_max_rate": view.last_max_rate, "last_throttle": view.last_throttle, "beta": 0.5, "scale": 0.8}
    before = limiter.snapshot()
    assert before.fill_rate == pytest.approx(rate_after_success(clock.now(), **numbers))
    limiter.record_response(throttled=True)
    after = limiter.snapshot()
    assert after.last_max_rate == before.fill_rate < before.measured_rate
    assert after.fill_rate == pytest.approx(0.5 * before.fill_rate)


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

    def succeed() -> None:
        wait = limiter.try_acquire()
        if wait is None:
            limiter.record_response(throttled=False)
        else:
            wait.rest(clock)

    for _ in range(2):
        slowed = limiter.snapshot()
        assert slowed.fill_rate == pytest.approx(0.7 * slowed.last_max_rate)
        began = clock.now()
        while limiter.snapshot().fill_rate <= slowed.last_max_rate:
            succeed()
            assert clock.now() - began < 30, "it never recovers"
        for _ in range(200):
            succeed()
        limiter.record_response(throttled=True)


PUBLISHED = RateLimiterSettings()
ANY_SETTINGS = st.builds(
    RateLimiterSettings,
    beta=st.floats(0, 1, exclude_min=True, exclude_max=True),
    smoothing=st.floats(0, 1, exclude_min=True),
    min_capacity=st.floats(1, MOST),
    max_rate_scale=st.floats(1, MOST),
    scale=st.floats(0, MOST, exclude_min=True),
    min_fill_rate=st.floats(0, MOST, exclude_min=True),
    interval=st.floats(0, MOST, exclude_min=True),
)
STEPS = st.tuples(st.sampled_from(["ok", "throttled", "ask", "rest"]), st.floats(0, 3) | st.floats(0, 1e6))


@settings(deadline=None, max_examples=100)
@given(st.just(PUBLISHED) | ANY_SETTINGS, st.lists(STEPS, max_size=80))
@example(
    RateLimiterSettings(scale=MOST, max_rate_scale=MOST),
    [*[("ok", 0)] * 9, ("throttled", 1), ("ok", 9), ("ok", 0), ("ask", 0)],
)
@example(RateLimiterSettings(min_fill_rate=MOST), [("throttled", 1), ("ok", 1), ("ok", 0), ("ask", 0)])
def test_rate_capacity_and_waits_stay_in_their_ranges(numbers, steps):
    """Up to the ends of the ranges of settings, for any events; of the published ones a wait ends by resting."""
    clock = FakeClock()
    limiter = ClientRateLimiter(numbers, clock=clock)
    for what, seconds in steps:
        clock.advance(seconds)
        if what in ("ok", "throttled"):
            limiter.record_response(throttled=what == "throttled")
        elif what == "ask" or numbers is not PUBLISHED:
            wait = limiter.try_acquire()
            assert wait is None or wait.seconds > 0
        else:
            # Rounding may leave a wait of one tick of the clock; never a third one.
            for _ in range(3):
                wait = limiter.try_acquire()
                if wait is None:
                    break
                wait.rest(clock)
            assert wait is None
        view = limiter.snapshot()
        assert 0 <= view.capacity <= view.max_capacity <= MOST
        assert 0 < view.fill_rate <= MOST
        assert numbers is not PUBLISHED or not view.enabled or (view.fill_rate >= 0.5 and view.max_capacity >= 1)


def test_a_changed_rate_wakes_all_who_wait():
    """Four threads that would wait for a minute look again at once, and find permits."""
    director, said = Director(), []
    limiter = ClientRateLimiter(RateLimiterSettings(min_fill_rate=1 / 60, min_capacity=4), clock=director)
    limiter.record_response(throttled=True)
    for _ in range(4):
        director.start(lambda: said.append(permitted(limiter, director)))
    director.run_until(0.25)
    assert limiter.is_waited_on
    limiter._last_throttle -= 120
    limiter._refilled_at -= 240  # as if four permits had come
    limiter.record_response(throttled=False)
    director.settle()
    assert [0.25] * 4 == said
    assert not limiter.is_waited_on


@pytest.mark.parametrize(
    "change",
    [ClientRateLimiter.record_success, lambda limiter: limiter.record_response(True), lambda own: own.forget(0)],
    ids=["success", "throttled", "forgotten"],
)
def test_a_rate_that_changes_before_a_rest_is_heeded(clock, change):
    """Who has asked by the old rate does not rest by it, but asks again."""
    limiter = throttled_at(10, clock)
    while (wait := limiter.try_acquire()) is None:
        pass
    before = clock.now()
    change(limiter)
    wait.rest(clock)
    assert before == clock.now()
    assert not limiter.is_waited_on


def test_who_waits_for_a_permit_goes_when_everything_is_forgotten():
    """At that moment: nobody needs a permit any more."""
    director, said = Director(), []
    limiter = ClientRateLimiter(clock=director)
    limiter.record_response(throttled=True)
    director.start(lambda: said.append(permitted(limiter, director)))
    director.run_until(0.5)
    limiter.forget(0.5)
    director.settle()
    assert [0.5] == said
    assert not limiter.is_waited_on


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_copy_keeps_the_numbers_and_has_no_past(copied):
    """A copy has a lock of its own, and can be made while the original's is held."""
    limiter = ClientRateLimiter(RateLimiterSettings(beta=0.5))
    limiter.record_response(throttled=True)
    with limiter._lock:
        other = copied(limiter)
    assert (limiter.settings, False, 1.0) == (other.settings, other.enabled, other.snapshot().fill_rate)


def test_it_says_of_itself_what_it_does(limiter):
    """Measuring, or the rate and the permits."""
    assert repr(limiter) == "<ClientRateLimiter measuring>"
    limiter.record_response(throttled=True)
    assert repr(limiter) == "<ClientRateLimiter 0.5/s, 0 of 1>"


def test_one_attempt_takes_one_permit_and_only_when_granted(clock):
    """Being told to wait deducts nothing."""
    limiter = throttled_at(10, clock)
    clock.advance(10)
    levels = [limiter.snapshot().capacity]
    while limiter.try_acquire() is None:
        levels.append(limiter.snapshot().capacity)
    assert [levels[0] - taken for taken in range(len(levels))] == pytest.approx(levels)
    assert 0 <= limiter.snapshot().capacity == levels[-1] < 1 < levels[0]


SUCCESS, BETAS = adaptive_vectors()["cubic"]
RATES = st.floats(0.5, 10_000)


@pytest.mark.parametrize("case", SUCCESS["cases"], ids=lambda case: f"at {case['timestamp']}")
def test_the_rate_after_successes_is_the_published_one(case):
    """The rate agrees with each row of the published table."""
    given = {
        "last_max_rate": SUCCESS["given"]["last_max_rate"],
        "last_throttle": SUCCESS["given"]["last_throttle_time"],
    }
    assert rate_after_success(case["timestamp"], **given) == pytest.approx(case["calculated_rate"], rel=1e-9)


def test_the_time_to_recover_is_the_published_one():
    """K of 10 and of 8 per second."""
    assert all(recovery_time(row["w_max"]) == pytest.approx(row["k"]) for row in BETAS["rows"][:2])


@given(RATES, st.floats(0, 100), st.floats(0, 100))
def test_the_curve_never_falls(rate, one, other):
    """The rate never falls with time."""
    early, late = (rate_after_success(at, last_max_rate=rate, last_throttle=0.0) for at in sorted((one, other)))
    assert early <= late


ROWS = adaptive_vectors()["rate_clocker"]


@pytest.mark.parametrize(
    ("made", "numbers", "times", "measured"),
    [
        (ROWS[0]["times"][0], {}, ROWS[0]["times"][1:], ROWS[0]["measured"]),
        (0.0, {}, ROWS[1]["times"], ROWS[1]["measured"]),
        (0.0, {}, [*ROWS[1]["times"], ROWS[1]["then"]], ROWS[1]["measured_then"]),
        (0.0, {"interval": 2.0}, [1.0], 0.0),
        (0.0, {"smoothing": 0.5}, [1.0], 0.5),
        (10.3, {}, [10.49], 0.0),
        (10.3, {}, [10.49, 10.5], 3.2),
        (10.6, {}, [10.7], 1.6),
    ],
    ids=[
        "one",
        "five in an interval",
        "six at its end",
        "interval",
        "smoothing",
        "late",
        "the clock's interval",
        "made late",
    ],
)
def test_the_measured_rate(made, numbers, times, measured):
    """Nothing before an interval of the clock is over, then all of its responses, smoothed."""
    clocker = RateClocker(made, **numbers)
    assert [clocker.record(now) for now in times][-1] == pytest.approx(measured)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=50))
def test_the_rate_is_never_negative_nor_above_what_one_interval_could_hold(times):
    """For any sequence of responses, the rate stays between 0 and all of them in one interval."""
    clocker = RateClocker(0.0)
    for now in sorted(times):
        assert 0 <= clocker.record(now) <= len(times) / 0.5


def test_a_wait_without_a_limiter_is_slept():
    """One that a program made by hand, in the place of a strategy's."""
    clock = FakeClock()
    PermitWait(2.5).rest(clock)
    assert 2.5 == clock.now()
