"""A clock that runs on while the machine sleeps, and moments on it (contract 8.5)."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import RetryAdapter, SystemClock
from requests_smithy_retry.clock import (
    LEAP,
    NAP,
    SYSTEM_CLOCK,
    Deadline,
    RunningOn,
    after,
    earliest,
    running_on,
    wait_on,
)
from requests_smithy_retry.testing import FakeClock
from tests.faults import FaultProxy, FaultServer, Forget
from tests.faults.oracle import tls_contexts
from tests.support import session_with


class Machine:
    """A machine that can be put to sleep, and whose wall clock can be set."""

    def __init__(self) -> None:
        self.standing, self.epoch = 100.0, 1_700_000_000.0
        self.clock = RunningOn(lambda: self.standing, lambda: self.epoch)

    def run(self, seconds: float) -> None:
        self.standing += seconds
        self.epoch += seconds

    def sleep(self, seconds: float) -> None:
        self.epoch += seconds


HOUR = 3600.0


@pytest.mark.parametrize(
    ("story", "passed"),
    [
        (["run 10", "sleep 28800"] * 3, 3 * (10 + 8 * HOUR)),
        *(([f"set {step}", "run 7"], 7) for step in (-24 * HOUR, -HOUR, -1, 0.5, LEAP)),
        (["set 3600", "run 7"], HOUR + 7),  # that cannot be told from a sleep
        (["set -3600", "look", "sleep 28800"], 7 * HOUR),
    ],
    ids=str,
)
def test_a_sleep_of_the_machine_is_time_that_passes(story: list[str], passed: float) -> None:
    """As often as it happens, and by the wall clock, which changes nothing where it is set back or corrected."""
    machine = Machine()
    began = machine.clock()
    for what, _, seconds in (step.partition(" ") for step in story):
        if what == "run":
            machine.run(float(seconds))
        elif what == "look":
            machine.clock()
        else:
            machine.epoch += float(seconds)
    assert passed == machine.clock() - began


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(-1e6, 1e6)), max_size=30))
def test_it_never_goes_back(moves: list[tuple[float, float]]) -> None:
    """Whatever becomes of the wall clock, and never slower than the clock that stands still."""
    machine = Machine()
    seen = [machine.clock()]
    for seconds, jump in moves:
        machine.run(seconds)
        machine.epoch += jump
        seen.append(machine.clock())
    assert all(later >= before for before, later in pairwise(seen))
    assert seen[-1] - seen[0] >= machine.standing - 100 - 1e-6


def test_a_thread_that_is_held_up_between_two_clocks_takes_it_for_no_sleep() -> None:
    """A debugger, or a full machine, may hold it up as long as it likes: as it makes the clock, and as it looks."""
    machine, read = Machine(), []

    def standing() -> float:
        read.append(machine.standing)
        machine.run(3600)
        return read[-1]

    def epoch() -> float:
        moment = machine.epoch
        machine.run(3600)
        return moment

    clock = RunningOn(standing, epoch)
    seen = [clock() for _ in range(3)]
    assert read[1:] == seen


def test_threads_see_one_sleep_once() -> None:
    """Threads that look at the same moment agree."""
    machine = Machine()
    began = machine.clock()
    machine.sleep(1000)
    with ThreadPoolExecutor(8) as pool:
        assert [1000.0] * 8 == list(pool.map(lambda _: machine.clock() - began, range(8)))


def test_the_kernels_clock_is_taken_where_there_is_one() -> None:
    """``CLOCK_BOOTTIME`` on Linux; where the kernel refuses it, or has none, the wall clock helps."""
    assert isinstance(running_on(None), RunningOn)
    assert isinstance(running_on(-12345), RunningOn)
    known = time.CLOCK_MONOTONIC if hasattr(time, "CLOCK_MONOTONIC") else None
    assert known is None or abs(running_on(known)() - time.monotonic()) < 60


def test_a_long_sleep_looks_at_the_clock_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """``time.sleep`` stands still with the machine, so a wait of 100 s is over soon after the lid is open again."""
    machine, slept = Machine(), []
    monkeypatch.setattr(SystemClock, "now", staticmethod(machine.clock))

    def nap(seconds: float) -> None:
        slept.append(seconds)
        machine.run(seconds)
        if len(slept) == 2:
            machine.sleep(3600)

    monkeypatch.setattr(time, "sleep", nap)
    SystemClock().sleep(100)
    assert [NAP, NAP, 0.0] == slept
    slept.clear()
    SystemClock().sleep(70)
    assert [NAP, 0.0] == slept[:1] + slept[-1:]


def test_a_sleep_that_a_test_has_replaced_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ``time.sleep`` does nothing, as in many tests, the parts add up to the whole, and nothing spins."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    SystemClock().sleep(100)
    assert [NAP] * 3 == slept[:3]
    assert pytest.approx(100, abs=5) == sum(slept)


@pytest.mark.real_time
@pytest.mark.filterwarnings("ignore:Unverified")
def test_a_closed_lid_loses_no_post(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first POST after a sleep of the machine goes over a new connection: a NAT has forgotten the old one."""
    slept, now, nat = [0.0], SystemClock.now, Forget()
    monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: now() + sum(slept)))
    server, proxy = FaultServer(tls=tls_contexts()[0]), FaultProxy(nat)
    with server, proxy, session_with(RetryAdapter()) as client:
        how: Any = {"proxies": {"https": proxy.url}, "verify": False, "timeout": 60}
        for gap in (60.0, 3600.0, 36_000.0):
            assert client.post(server.url, data=b"x", **how).ok
            nat.forget()
            slept.append(gap)
        assert client.post(server.url, data=b"x", **how).ok


def test_a_closed_lid_ends_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block's deadline goes on while the machine sleeps."""
    machine = Machine()
    monkeypatch.setattr(SystemClock, "now", staticmethod(machine.clock))
    deadline = after(60)
    assert deadline is not None
    machine.sleep(3600)
    assert -3540 == deadline.left()


def test_a_deadline_is_a_moment_on_a_clock() -> None:
    """What is left of it, negative once it has passed, is the same on each; the earliest counts, and None is none."""
    here, there = FakeClock(), FakeClock()
    there.sleep(1000)
    near, far = Deadline(there.now() + 1, there), after(5, here)
    assert far is not None
    assert (far, Deadline(there.now() + 5, there)) == (far.on(here), far.on(there))
    assert [near] * 4 == [earliest(*pair) for pair in ((far, near), (near, far), (None, near), (near, None))]
    assert [None, None] == [after(None), earliest(None, None)]
    here.sleep(7)
    assert -2 == far.left()
    assert Deadline(5) == Deadline(5, SYSTEM_CLOCK)
    assert 9 < after(10).left() <= 10


def test_a_signal_while_a_lock_is_taken_back_does_not_lose_it() -> None:
    """Who waits by a clock without conditions is interrupted as it takes the lock back, and has it all the same."""
    condition = threading.Condition()
    usual, signals = condition.acquire, [KeyboardInterrupt]

    def acquire(*how: Any) -> bool:
        if signals:
            raise signals.pop()
        return bool(usual(*how))

    condition.acquire = acquire  # type: ignore[method-assign]
    with condition:
        with pytest.raises(KeyboardInterrupt):
            wait_on(FakeClock(), condition, 1.0)
        assert condition._is_owned()  # type: ignore[attr-defined]
