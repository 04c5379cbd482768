"""The benchmark of a request that succeeds at once: it tells plain from plain by little, and finds every subject."""

from __future__ import annotations

import pytest

from benchmarks import overhead

pytestmark = [pytest.mark.once, pytest.mark.real_time]


def test_a_second_plain_adapter_costs_about_the_same() -> None:
    """Pairs fall on a busy machine alike; a subject of twice the time would be seen."""
    found = overhead.measure(["control", "control, new"], rounds=5, pairs=10)
    assert {"control", "control, new"} == set(found)
    assert [True] * 2 == [0.7 < each["cpu"]["median"] < 1.4 for each in found.values()]


def test_every_subject_that_is_installed_is_measured() -> None:
    """One that cannot be imported is left out."""
    found = overhead.measure(overhead.NAMES, rounds=1, pairs=2)
    assert set(overhead.NAMES) - {"botocore", "backoff"} <= set(found) <= set(overhead.NAMES)
