"""Delays (contract 7.1): tables, and properties over all ints. The published vectors are in test_spec_vectors."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from requests_smithy_retry import StandardRetryStrategy
from requests_smithy_retry.quotas import ExponentialRetryBackoffStrategy, Jitter, RetryBackoffStrategy
from requests_smithy_retry.testing import FakeClock
from tests.support import Reply, scripted, send

seconds = st.floats(0, 1e9, allow_nan=False)
unit = st.floats(0, 1, exclude_max=True)
retries = st.one_of(st.integers(), st.sampled_from([0, 1, 1023, 1024, 1025, 1026, 10**6, 10**400]))


@pytest.mark.once
@given(st.sampled_from(Jitter), seconds, seconds, unit, retries, st.one_of(st.none(), seconds))
def test_a_delay_is_from_0_to_the_cap(jitter, base, cap, drawn, retry, previous):
    """For any int, jitter, base and draw a delay is from 0 to the cap, and 0 before the first retry."""
    backoff = ExponentialRetryBackoffStrategy(
        backoff_scale_value=base, max_backoff=cap, jitter_type=jitter, random=lambda: drawn
    )
    delay = backoff.compute_next_backoff_delay(retry, previous)
    assert 0 <= delay <= cap
    assert retry > 0 or delay == 0
    assert isinstance(delay, float)


@given(st.floats(5e-324, 1e9), seconds, st.integers(1, 3000))
@example(5e-324, 20.0, 3000)  # even the smallest base reaches the cap in the end
def test_the_cap_comes_before_the_jitter(base, cap, retry):
    """Full jitter spreads ``min(base * 2**(retry-1), cap)``, also where a float overflows or is tiny."""
    scaled = base
    for _ in range(retry - 1):
        scaled = min(scaled * 2, cap)
    backoff = ExponentialRetryBackoffStrategy(backoff_scale_value=base, max_backoff=cap, random=lambda: 0.5)
    assert 0.5 * min(scaled, cap) == pytest.approx(backoff.compute_next_backoff_delay(retry), abs=0)


@given(unit, st.lists(st.integers(1, 50), max_size=5))
def test_it_has_no_state(drawn, retries):
    """An operation's delays do not depend on those of another: decorrelated jitter included."""
    backoff = ExponentialRetryBackoffStrategy(jitter_type="decorrelated", random=lambda: drawn)
    first = backoff.compute_next_backoff_delay(1)
    for retry in retries:
        backoff.compute_next_backoff_delay(retry, 3.0)
    assert first == backoff.compute_next_backoff_delay(1)


def test_decorrelated_jitter_spreads_at_least_its_own_base():
    """A previous delay below the base, one of another kind of failure for instance, does not narrow the spread."""
    backoff = ExponentialRetryBackoffStrategy(backoff_scale_value=2, jitter_type="decorrelated", random=lambda: 0.5)
    assert 2 + 0.5 * 3 * 2 == backoff.compute_next_backoff_delay(2, 0.1)


@pytest.mark.parametrize("value", [-1, -0.001, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["backoff_scale_value", "max_backoff"])
def test_bad_numbers_are_refused(name, value):
    """A number that is no finite duration is refused by name, and shown."""
    with pytest.raises(ValueError, match=f"^{name}={value!r}: a finite number of seconds \\(0 or more\\) is allowed$"):
        ExponentialRetryBackoffStrategy(**{name: value})
    with pytest.raises(ValueError, match="sometimes"):
        ExponentialRetryBackoffStrategy(jitter_type="sometimes")


@pytest.mark.parametrize(
    ("jitter", "base", "expected"),
    [("full", 2, [0.0, 2.0, 4.0, 8.0, 9.0]), ("decorrelated", 2, [0.0, *[9.0] * 4]), ("decorrelated", 0, [0.0] * 5)],
)
def test_the_longest_delay(jitter, base, expected):
    """It is what the cap leaves; with decorrelated jitter, any delay can grow to the cap."""
    backoff = ExponentialRetryBackoffStrategy(backoff_scale_value=base, max_backoff=9, jitter_type=jitter)
    assert expected == [backoff.longest_delay(retry) for retry in range(5)]


def test_it_draws_from_the_module_level_generator(monkeypatch):
    """The default draw is ``random.random``, looked up at call time, so that a fork does not repeat it."""
    backoff = ExponentialRetryBackoffStrategy(backoff_scale_value=1)
    monkeypatch.setattr(random, "random", lambda: 0.125)
    assert 0.125 == backoff.compute_next_backoff_delay(1)


def test_it_shows_what_it_is():
    """The repr names the numbers and is of the protocol's kind."""
    backoff: RetryBackoffStrategy = ExponentialRetryBackoffStrategy()
    assert "ExponentialRetryBackoffStrategy(backoff_scale_value=0.05, max_backoff=20, jitter_type='full')" == repr(
        backoff
    )
    assert isinstance(backoff, RetryBackoffStrategy)


class TwoArguments:
    """A strategy whose delay builds on the last one."""

    def compute_next_backoff_delay(self, retry_attempt, previous_delay=None):
        return 1.0 if previous_delay is None else previous_delay * 3


def test_a_strategy_of_ones_own_may_build_on_the_last_delay():
    """One of two arguments gets the previous delay of its operation, and of no other."""
    for clock in (FakeClock(), FakeClock()):
        strategy = StandardRetryStrategy(backoff=TwoArguments(), max_attempts=4, quota=500, clock=clock)
        adapter = scripted(503, 503, 503, 200, strategy=strategy)
        send(adapter)
        assert [1.0, 3.0, 9.0] == adapter.clock.sleeps


def test_decorrelated_jitter_builds_on_what_was_computed():
    """A server's hint makes one wait longer, not those after it."""
    backoff = ExponentialRetryBackoffStrategy(
        backoff_scale_value=1, max_backoff=50, jitter_type="decorrelated", random=lambda: 0.5
    )
    strategy = StandardRetryStrategy(backoff=backoff, quota=500, jitter="none", clock=FakeClock())
    adapter = scripted(Reply(503, {"Retry-After": "100"}), 503, 200, strategy=strategy)
    send(adapter)
    assert [100, 1 + 0.5 * 3 * 2.5] == adapter.clock.sleeps
