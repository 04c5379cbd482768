"""The measured rate (contract 9), against the rows of ``spec/adaptive-vectors.json``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry.smithy.rate_limiter import RateClocker
from tests.spec_files import adaptive_vectors

ROWS = adaptive_vectors()["rate_clocker"]


def test_one_response_in_the_first_second_measures_the_smoothed_rate():
    """The first time is that of the clocker's making."""
    made, response = ROWS[0]["times"]
    assert RateClocker(made).record(response) == pytest.approx(ROWS[0]["measured"])


def test_nothing_is_measured_before_the_first_interval_is_over():
    """Five responses within half a second measure 0, the sixth at its end measures all six."""
    clocker = RateClocker(0.0)
    assert [clocker.record(now) for now in ROWS[1]["times"]] == [ROWS[1]["measured"]] * 5
    assert clocker.record(ROWS[1]["then"]) == pytest.approx(ROWS[1]["measured_then"])


def test_the_interval_and_the_smoothing_are_connected():
    """Changing either changes the result."""
    assert RateClocker(0.0, interval=2.0).record(1.0) == 0.0
    assert RateClocker(0.0, smoothing=0.5).record(1.0) == 0.5


def test_it_begins_within_an_interval_of_the_clock():
    """Made at 10.3 s, its first interval is the one from 10 to 10.5 s."""
    clocker = RateClocker(10.3)
    assert [0.0, 1.6] == [clocker.record(10.49), clocker.record(10.5) / 2]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=50))
def test_the_rate_is_never_negative_nor_above_what_one_interval_could_hold(times):
    """For any sequence of responses, the rate stays between 0 and all of them in one interval."""
    clocker = RateClocker(0.0)
    for now in sorted(times):
        assert 0 <= clocker.record(now) <= len(times) / 0.5
