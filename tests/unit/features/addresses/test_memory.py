"""The memory of addresses (contract 14.5): how long an address is avoided, and in which order addresses are tried."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry.features.addresses.memory import (
    LONGEST_PERIOD,
    MOST_ADDRESSES,
    MOST_ORIGINS,
    AddressFault,
    AddressMemory,
)
from requests_smithy_retry.testing import FakeClock

HERE = "name.test:80"
ABCD = ("A", "B", "C", "D")


class Failing:
    """A memory, and the failures that it is told of: ``a`` for an answer with 5xx, ``A`` for anything else."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.memory = AddressMemory(self.clock)

    def fail(self, failures: str) -> None:
        for letter in failures:
            self.memory.failed(HERE, letter.upper(), "503" if letter.islower() else "reset", answers=letter.islower())

    def order(self, addresses: str = "ABCD", tried: str = "") -> str:
        return "".join(self.memory.in_order(HERE, tuple(addresses), {(HERE, letter) for letter in tried}))


@pytest.mark.parametrize(
    ("addresses", "failures", "tried", "expected"),
    [
        ("ABCD", "", "", "ABCD"),
        ("ABCD", "A", "", "BCDA"),
        ("ABCD", "BD", "", "ACBD"),
        ("ABCD", "ABC", "", "DABC"),
        ("ABCD", "ABCD", "", "ABCD"),
        ("ABCD", "a", "", "BCDA"),
        ("ABCD", "ab", "", "CDAB"),
        ("ABCD", "abc", "", "CDAB"),  # no more than half of them
        ("ABC", "ab", "", "BCA"),
        ("AB", "a", "", "BA"),
        ("AB", "ab", "", "AB"),  # none answers well
        ("AB", "aB", "", "AB"),  # better an answer than none
        ("ABCD", "abCD", "", "ABCD"),
        ("ABCD", "aC", "", "BDAC"),
        ("ABCD", "Aa", "", "BCDA"),
        ("A", "A", "", "A"),
        ("ABCD", "", "A", "BCDA"),
        ("ABCD", "", "AC", "BDAC"),
        ("ABCD", "B", "A", "CDAB"),  # a dead address is worse than one that was tried
        ("AB", "B", "A", "AB"),
        ("AB", "bB", "a", "AB"),
        ("ABCD", "b", "A", "CDBA"),  # one that answered badly is better than one that was tried
        ("AB", "ba", "A", "BA"),
    ],
)
def test_the_order_of_addresses(addresses: str, failures: str, tried: str, expected: str) -> None:
    """The resolver's order stands but for addresses that are dead, that were tried, or that answer badly."""
    it = Failing()
    it.fail(failures)
    assert expected == it.order(addresses, tried.upper())


def test_an_address_is_avoided_for_longer_each_time() -> None:
    """The periods are 30 s, then twice as long each time, at most 300 s."""
    it, periods = Failing(), []
    for _ in range(6):
        it.fail("A")
        began = it.clock.now()
        while it.order("AB") == "BA" and it.clock.now() - began < 400:
            it.clock.advance(1)
        periods.append(it.clock.now() - began)
        it.memory.begin_probe(HERE, "A")
    assert [30, 60, 120, 240, 300, 300] == periods


def test_one_connection_finds_out_whether_an_address_is_well() -> None:
    """After its period an address has its turn again; while one connection tries it, others leave it alone."""
    it = Failing()
    it.fail("A")
    it.clock.advance(30)
    first = it.order("AB")
    it.memory.begin_probe(HERE, "A")
    second = it.order("AB")
    it.memory.succeeded(HERE, "A")
    assert ("AB", "BA", "AB") == (first, second, it.order("AB"))


def test_a_success_clears_an_address() -> None:
    """The next failure is a first one; a success of an unknown address or origin is no news."""
    it = Failing()
    it.fail("AB")
    for origin, address in ((HERE, "A"), (HERE, "unknown"), ("unknown", "A")):
        it.memory.succeeded(origin, address)
    assert [False, True] == [it.memory.is_known(HERE, address) for address in "AB"]
    it.memory.succeeded(HERE, "B")
    assert () == it.memory.snapshot()


def test_a_snapshot_tells_what_failed_and_old_failures_are_forgotten() -> None:
    """It has the last failure, the time left and the period; five minutes after that, a failure counts no more."""
    it = Failing()
    it.fail("A")
    it.clock.advance(10)
    it.fail("b")
    it.clock.advance(25)
    expected = (AddressFault(HERE, "A", "reset", 0.0, 30.0), AddressFault(HERE, "B", "503", 5.0, 30.0))
    assert expected == it.memory.snapshot()
    it.clock.advance(306)
    assert () == it.memory.snapshot()
    it.fail("A")
    it.clock.advance(29)
    assert [30.0] == [item.period for item in it.memory.snapshot()]


def test_the_memory_is_bounded() -> None:
    """The oldest origins go first, and of one origin the oldest addresses."""
    memory = AddressMemory(FakeClock())
    for number in range(MOST_ORIGINS + 5):
        memory.failed(f"{number}", "A", "reset")
    assert [False, True] == [memory.is_known(origin, "A") for origin in ("4", "5")]
    for number in range(MOST_ADDRESSES + 5):
        memory.failed(HERE, f"{number}", "reset")
    assert [False, True] == [memory.is_known(HERE, address) for address in ("4", "5")]


@pytest.mark.parametrize(
    ("failures", "tried", "expected"),
    [
        ("", "", ""),
        ("A", "", "A"),
        ("AB", "", "AB"),
        ("ABCD", "", ""),
        ("ab", "", "AB"),
        ("abc", "", "AB"),
        ("", "A", "A"),
        ("BCD", "A", "BCD"),
    ],
)
def test_which_kept_connections_are_avoided(failures: str, tried: str, expected: str) -> None:
    """A kept connection is avoided if its address is worse than another one."""
    it = Failing()
    it.fail(failures)
    pairs = {(HERE, letter) for letter in tried}
    assert expected == "".join(name for name in ABCD if it.memory.is_avoided(HERE, name, ABCD, pairs))


steps = st.one_of(
    st.tuples(st.just("fail"), st.sampled_from(ABCD), st.booleans()),
    st.tuples(st.just("succeed"), st.sampled_from(ABCD), st.none()),
    st.tuples(st.just("wait"), st.floats(0, 400), st.none()),
    st.tuples(st.just("probe"), st.sampled_from(ABCD), st.none()),
)


@given(st.lists(steps, max_size=40), st.sets(st.sampled_from(ABCD)))
def test_whatever_happens_no_address_is_shut_out(story: list[Any], tried: set[str]) -> None:
    """Every address stays in the order, one at least is not avoided, and no period is longer than allowed."""
    clock = FakeClock()
    memory, pairs = AddressMemory(clock), {(HERE, name) for name in tried}
    does = {
        "fail": lambda name, answers: memory.failed(HERE, name, "why", answers=answers),
        "succeed": lambda name, _: memory.succeeded(HERE, name),
        "probe": lambda name, _: memory.begin_probe(HERE, name),
        "wait": lambda seconds, _: clock.advance(seconds),
    }
    for what, value, answers in story:
        does[what](value, answers)
        order = memory.in_order(HERE, ABCD, pairs)
        assert sorted(order) == list(ABCD)
        assert not memory.is_avoided(HERE, order[0], ABCD, pairs)
        assert all(0 <= item.seconds_left <= item.period <= LONGEST_PERIOD for item in memory.snapshot())
