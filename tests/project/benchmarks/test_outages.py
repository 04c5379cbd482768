"""The outages with real clients: what their figures are of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.outage_client import Episode, figures, histogram

pytestmark = pytest.mark.once

CALM = Episode("no retry", "hole, 10 s")


def test_figures_are_those_of_the_trouble_and_of_the_time_after_it():
    """Attempts per operation that was begun, success in percent, and when no more than a tenth of a second's fail."""
    counts = {
        "sent": [9, 6, 4, 9, 9, 9],
        "load": [9, 5, 4, 40, 75, 9],
        "wanted": [9, 2, 3, 8, 10, 10],
        "begun": [9, 2, 2, 8, 10, 10],
        "successes": [9, 1, 0, 4, 8, 9],
        "late": 0.01,
        "no thread": 0.0,
    }
    expected = {"amplification": 2.5, "success": 20.0, "success after": 75.0, "peak": 1.5, "recovery": 2}
    found = figures(replace(CALM, before=1.0, lasts=2.0, after=3.0), counts)
    assert {**expected, "late": 0.01, "no thread": 0.0} == found
    assert [1, 2, 0] == histogram([-0.1, 0.5, 1.0, 1.9, 3.0], 3)
