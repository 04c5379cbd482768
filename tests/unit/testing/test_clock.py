"""The shipped fake clock."""

from __future__ import annotations

import copy
import pickle

import pytest

from requests_smithy_retry.testing import FakeClock

pytestmark = pytest.mark.real_time


def test_sleeping_moves_both_clocks_and_is_recorded():
    """A sleep advances the monotonic and the wall clock by its seconds, and is written down."""
    clock = FakeClock(10, wall=1000)
    clock.sleep(1.5)
    clock.sleep(0)
    assert (11.5, 1001.5, [1.5, 0]) == (clock.now(), clock.wall(), clock.sleeps)


@pytest.mark.parametrize("seconds", [-0.001, -1, float("inf"), float("nan")])
@pytest.mark.parametrize("move", ["sleep", "advance"])
def test_it_refuses_to_go_back_or_nowhere(move, seconds):
    """A negative or endless move raises ValueError, and the time stays."""
    clock = FakeClock()
    with pytest.raises(ValueError, match="\\(0 or more\\)"):
        getattr(clock, move)(seconds)
    assert (0, []) == (clock.now(), clock.sleeps)


@pytest.mark.parametrize("start", [{"now": float("inf")}, {"wall": float("nan")}])
def test_a_start_that_is_no_time_is_refused(start):
    """Both of its clocks begin at a finite number of seconds."""
    with pytest.raises(ValueError, match="finite"):
        FakeClock(**start)


def test_the_wall_clock_can_be_set_back():
    """Setting the wall clock leaves the monotonic one alone."""
    clock = FakeClock(5, wall=100)
    clock.set_wall(40)
    assert (5, 40) == (clock.now(), clock.wall())


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda clock: pickle.loads(pickle.dumps(clock))])
def test_a_copy_starts_at_the_same_time_without_sleeps(duplicate):
    """A copied clock tells the same time and goes on by itself."""
    clock = FakeClock(5)
    clock.sleep(1)
    other = duplicate(clock)
    other.sleep(2)
    assert (6, [1], 8, [2]) == (clock.now(), clock.sleeps, other.now(), other.sleeps)
