"""The cubic calculation (contract 9), against the rows of ``spec/adaptive-vectors.json``, then its properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry.smithy.rate_limiter import rate_after_success, rate_after_throttling, recovery_time
from tests.spec_files import adaptive_vectors

pytestmark = pytest.mark.once

SUCCESS, BETAS = adaptive_vectors()["cubic"]
GIVEN = SUCCESS["given"]
RATES = st.floats(0.5, 10_000)


@pytest.mark.parametrize("case", SUCCESS["cases"], ids=lambda case: f"at {case['timestamp']}")
def test_the_rate_after_successes_is_the_published_one(case):
    """The rate agrees with each row of the published table."""
    rate = rate_after_success(
        case["timestamp"], last_max_rate=GIVEN["last_max_rate"], last_throttle=GIVEN["last_throttle_time"]
    )
    assert rate == pytest.approx(case["calculated_rate"], rel=1e-9)


def test_the_time_to_recover_is_the_published_one():
    """K of 10 and of 8 per second."""
    first, second, _ = BETAS["rows"]
    assert recovery_time(first["w_max"]) == pytest.approx(first["k"])
    assert recovery_time(second["w_max"]) == pytest.approx(second["k"])


def test_throttling_leaves_beta_of_the_rate():
    """The rate drops to beta of the measured one, and the curve begins there."""
    _, second, third = BETAS["rows"]
    assert rate_after_throttling(second["current_rate"]) == pytest.approx(second["new_rate"])
    assert rate_after_throttling(third["current_rate"], beta=third["beta"]) == pytest.approx(third["new_rate"])
    again = rate_after_success(1, last_max_rate=10, last_throttle=1, beta=third["beta"])
    assert again == pytest.approx(third["success_at_1"])


@given(RATES, st.floats(0, 100))
def test_the_curve_is_below_at_and_above_the_old_rate(rate, share):
    """Below it before K, at it at K, above it after."""
    k = recovery_time(rate)

    def at(now: float) -> float:
        return rate_after_success(now, last_max_rate=rate, last_throttle=0.0)

    assert at(k) == pytest.approx(rate)
    assert at(k * share / 101) <= rate
    assert at(k + share + 0.1) > rate


@given(RATES, st.floats(0, 100), st.floats(0, 100))
def test_the_curve_never_falls(rate, one, other):
    """The rate never falls with time."""
    early, late = sorted((one, other))
    assert rate_after_success(early, last_max_rate=rate, last_throttle=0.0) <= rate_after_success(
        late, last_max_rate=rate, last_throttle=0.0
    )


def test_scale_is_connected():
    """A greater scale recovers sooner."""
    assert recovery_time(10, scale=4) < recovery_time(10)
    slow = rate_after_success(9, last_max_rate=10, last_throttle=0)
    assert rate_after_success(9, last_max_rate=10, last_throttle=0, scale=4) > slow


def test_another_scale_moves_the_whole_curve():
    """With another scale the curve passes the old rate at that scale's time to recover."""
    there = recovery_time(10, scale=4)
    assert rate_after_success(there, last_max_rate=10, last_throttle=0, scale=4) == pytest.approx(10)
