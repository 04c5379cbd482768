"""The cubic calculation (contract 9), against the rows of ``spec/adaptive-vectors.json``, then its properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry.smithy.rate_limiter import rate_after_success, recovery_time
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


@given(RATES, st.floats(0, 100), st.floats(0, 100))
def test_the_curve_never_falls(rate, one, other):
    """The rate never falls with time."""
    early, late = sorted((one, other))
    assert rate_after_success(early, last_max_rate=rate, last_throttle=0.0) <= rate_after_success(
        late, last_max_rate=rate, last_throttle=0.0
    )
