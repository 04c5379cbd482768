"""The command that measures how late operations end."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

pytest.importorskip("trustme")

import deadline_overshoot

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def _unverified() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


ROUNDS = 3
"""A stall that outlives its deadline does so each time; a machine that is too busy to look at the clock does not."""


@pytest.mark.real_time
@pytest.mark.parametrize("name", deadline_overshoot.STALLS)
def test_no_stall_outlives_its_deadline(name: str) -> None:
    """No stall exceeds its deadline by half a second (50 ms in the command itself), and nothing is left."""
    for _ in range(ROUNDS):
        overshoot, ended, left = deadline_overshoot.measure(deadline_overshoot.STALLS[name], 0.15)
        assert ended in ("ConnectTimeout", "ReadTimeout", "HTTPError")
        assert left == "nothing"
        if overshoot < 0.5:
            return
    pytest.fail(f"{overshoot:.3f} s late in the last of {ROUNDS} rounds")
