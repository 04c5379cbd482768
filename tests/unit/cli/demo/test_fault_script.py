"""The server's side of the workload."""

import pytest

from requests_smithy_retry.cli.demo.fault_script import FIRST, FaultScript
from requests_smithy_retry.cli.demo.plan import FAULTS, FEWEST, OUTAGE, digest, make_plan
from requests_smithy_retry.testing import RecordedRequest, Reply, ResetAfterRequest
from requests_smithy_retry.testing.clock import FakeClock

PLAN = make_plan(1, FEWEST * 3)


def operation_with(name):
    return next(operation for operation in PLAN if operation.fault.name == name)


def ask(script, operation, body=b""):
    return script(RecordedRequest(operation.fault.method, operation.path, body=body))


def test_every_fault_has_a_script():
    """The table of what comes first names each fault once; only the outage goes by time."""
    assert {fault.name for fault in FAULTS} == {*FIRST, OUTAGE.name}


@pytest.mark.parametrize("name", sorted(FIRST))
def test_what_comes_first_comes_once(name):
    """Each fault strikes as often as its table says, and is followed by the good answer."""
    script, operation = FaultScript(PLAN, 3.0, FakeClock()), operation_with(name)
    first = list(FIRST[name](operation.download()))
    assert [*first, Reply(body=operation.download())] == [ask(script, operation) for _ in range(len(first) + 1)]
    assert len(first) + 1 == script.requests_of(operation.number)


def test_only_what_was_answered_well_counts_as_accepted():
    """The body that came with the refused request is not taken as good; the one of the answered request is."""
    script, operation = FaultScript(PLAN, 3.0, FakeClock()), operation_with("upload-503")
    ask(script, operation, b"refused")
    assert [] == script.accepted_of(operation.number)
    ask(script, operation, b"")
    assert [digest(b"")] == script.accepted_of(operation.number)


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
