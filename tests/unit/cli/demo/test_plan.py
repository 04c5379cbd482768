"""The demo's workload: its operations, and the server's side of it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry.cli.demo.plan import DAY, FAULTS, FEWEST, MOST_SLOW, OUTAGE, FaultScript, digest, make_plan
from requests_smithy_retry.testing import RecordedRequest, Reply, ResetAfterRequest
from requests_smithy_retry.testing.clock import FakeClock


@given(st.integers(), st.integers(FEWEST, 150))
def test_a_plan_has_as_many_operations_as_asked_for_and_all_faults(seed, count):
    """For any seed and count, the count is right, each fault occurs, and slow ones occur a few times only."""
    plan = make_plan(seed, count)
    faults = Counter(operation.fault for operation in plan)
    assert list(range(count)) == [operation.number for operation in plan]
    assert set(FAULTS) == set(faults)
    assert [fault for fault in FAULTS if fault.is_slow and faults[fault] > MOST_SLOW] == []


def test_the_day_is_last_and_the_outage_before_it():
    """The fault that may put a client to sleep comes last, and the outage's operations follow one another."""
    plan = make_plan(1, 60)
    assert [OUTAGE, OUTAGE, OUTAGE, DAY] == [operation.fault for operation in plan[-4:]]


def test_the_same_numbers_make_the_same_plan():
    """Both ends make the same operations and the same bodies; another seed makes others."""
    first, second, other = make_plan(1, 30), make_plan(1, 30), make_plan(2, 30)
    assert first == second
    assert [item.fault for item in first] != [item.fault for item in other]
    assert first[0].download() == second[0].download() != other[0].download()


def test_no_two_bodies_are_alike():
    """Each operation has its own bytes each way; only an upload that is not wanted is empty."""
    plan = make_plan(1, 60)
    bodies = [item.download() for item in plan] + [item.upload() for item in plan if item.fault.upload]
    assert len(bodies) == len({digest(body) for body in bodies})
    assert min(map(len, bodies)) >= 2000
    assert {b""} == {item.upload() for item in plan if not item.fault.upload}


PLAN = make_plan(1, FEWEST * 3)


def operation_with(name):
    return next(operation for operation in PLAN if operation.fault.name == name)


def ask(script, operation, body=b""):
    return script(RecordedRequest(operation.fault.method, operation.path, body=body))


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault is not OUTAGE], ids=lambda fault: fault.name)
def test_what_comes_first_comes_once(fault):
    """Each fault strikes as often as its table says, and is followed by the good answer."""
    script, operation = FaultScript(PLAN, 3.0, FakeClock()), operation_with(fault.name)
    first = list(fault.first(operation.download()))
    assert [*first, Reply(body=operation.download())] == [ask(script, operation) for _ in range(len(first) + 1)]
    assert len(first) + 1 == script.seen[operation.number]


def test_only_what_was_answered_well_counts_as_accepted():
    """The body that came with the refused request is not taken as good; the one of the answered request is."""
    script, operation = FaultScript(PLAN, 3.0, FakeClock()), operation_with("upload-503")
    ask(script, operation, b"refused")
    assert [] == script.accepted[operation.number]
    ask(script, operation, b"")
    assert [digest(b"")] == script.accepted[operation.number]


def test_the_outage_lasts_so_long_from_its_first_request():
    """Every connection is reset for 3 s, for each operation of the outage."""
    clock = FakeClock()
    script = FaultScript(PLAN, 3.0, clock)
    first, second = [operation for operation in PLAN if operation.fault is OUTAGE][:2]
    assert ResetAfterRequest() == ask(script, first)
    clock.sleep(2.9)
    assert ResetAfterRequest() == ask(script, second)
    clock.sleep(0.2)
    assert Reply(body=second.download()) == ask(script, second)


def test_it_knows_when_the_last_request_came():
    """The moment is that of the clock; before the first request it is below 0."""
    clock = FakeClock()
    script = FaultScript(PLAN, 3.0, clock)
    assert -1.0 == script.latest
    clock.sleep(4)
    ask(script, PLAN[0])
    assert clock.now() == script.latest
