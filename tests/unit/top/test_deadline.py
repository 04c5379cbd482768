"""A moment by which something must be over."""

from __future__ import annotations

from requests_smithy_retry.clock import SYSTEM_CLOCK, Deadline, after, earliest
from requests_smithy_retry.testing.clock import FakeClock


def test_what_is_left_goes_down_with_the_clock() -> None:
    """The time that is left goes down with the clock, and is negative once the moment has passed."""
    clock = FakeClock()
    deadline = after(10, clock)
    assert deadline is not None
    clock.sleep(12)
    assert deadline.left() == -2


def test_by_default_it_is_on_the_systems_clock() -> None:
    """A moment by itself is one of the clock that the program runs on."""
    assert Deadline(5) == Deadline(5, SYSTEM_CLOCK)
    assert 9 < after(10).left() <= 10


def test_no_bound_is_no_deadline() -> None:
    """None stands for no deadline."""
    assert after(None) is None
    assert earliest(None, None) is None


def test_the_earliest_counts() -> None:
    """Deadlines on different clocks are compared by the time that is left."""
    here, there = FakeClock(), FakeClock()
    there.sleep(1000)
    near, far = Deadline(there.now() + 1, there), Deadline(here.now() + 5, here)
    assert [near, near] == [earliest(far, near), earliest(near, far)]
    assert [near, near] == [earliest(None, near), earliest(near, None)]


def test_the_same_moment_on_another_clock() -> None:
    """A deadline on another clock has as much time left."""
    here, there = FakeClock(), FakeClock()
    there.sleep(1000)
    deadline = Deadline(here.now() + 5, here)
    assert deadline.on(here) is deadline
    assert deadline.on(there) == Deadline(there.now() + 5, there)
