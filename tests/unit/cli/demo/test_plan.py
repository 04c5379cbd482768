"""The demo's workload as data."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry.cli.demo.plan import DAY, FAULTS, FEWEST, MOST_SLOW, OUTAGE, digest, make_plan


@given(st.integers(), st.integers(FEWEST, 150))
def test_a_plan_has_as_many_operations_as_asked_for_and_all_faults(seed, count):
    """Whatever the numbers: the count is right, each fault occurs, and slow ones occur a few times only."""
    plan = make_plan(seed, count)
    faults = Counter(operation.fault for operation in plan)
    assert list(range(count)) == [operation.number for operation in plan]
    assert set(FAULTS) == set(faults)
    assert [fault for fault in FAULTS if fault.is_slow and faults[fault] > MOST_SLOW] == []


def test_the_day_is_last_and_the_outage_before_it():
    """What may put a client to sleep comes last, and the outage's operations follow one another."""
    plan = make_plan(1, 60)
    assert [OUTAGE, OUTAGE, OUTAGE, DAY] == [operation.fault for operation in plan[-4:]]


def test_the_same_numbers_make_the_same_plan():
    """Both ends make the same operations and the same bodies; another seed makes others."""
    first, second, other = make_plan(1, 30), make_plan(1, 30), make_plan(2, 30)
    assert first == second
    assert [item.fault for item in first] != [item.fault for item in other]
    assert first[0].download() == second[0].download() != other[0].download()


def test_no_two_bodies_are_alike():
    """Each operation has its own bytes each way, and none are empty where there is a body."""
    plan = make_plan(1, 60)
    bodies = [item.download() for item in plan] + [item.upload() for item in plan if item.fault.upload]
    assert len(bodies) == len({digest(body) for body in bodies})
    assert min(map(len, bodies)) >= 2000
    assert {b""} == {item.upload() for item in plan if not item.fault.upload}


def test_fewer_operations_than_faults_are_refused():
    """A run with too few operations would leave a fault out."""
    with pytest.raises(
        ValueError, match=f"^count={FEWEST - 1}: a whole number of {FEWEST} or more is allowed, one for each fault$"
    ):
        make_plan(1, FEWEST - 1)
