"""The verdict on an operation, and the sums of a summary."""

import pytest

from requests_smithy_retry.cli.demo.clients import CLIENTS
from requests_smithy_retry.cli.demo.plan import FAULTS, Operation, digest, make_plan
from requests_smithy_retry.cli.demo.results import EMPTY, Result, Verdict, column, counts, judge

OPERATION = next(operation for operation in make_plan(1, 15) if operation.fault.name == "upload-503")
WHOLE, SENT, OTHER = digest(OPERATION.download()), digest(OPERATION.upload()), digest(b"other")


@pytest.mark.parametrize(
    ("told", "accepted", "expected"),
    [
        ((200, WHOLE), [SENT], (Verdict.SUCCEEDED, False)),
        ((200, WHOLE), [SENT, SENT], (Verdict.SUCCEEDED, False)),
        ((503, EMPTY), [], (Verdict.FAILED, False)),
        ((None, ""), [], (Verdict.FAILED, False)),
        ((200, OTHER), [SENT], (Verdict.WRONG, False)),
        ((200, EMPTY), [SENT], (Verdict.WRONG, True)),
        ((200, WHOLE), [OTHER], (Verdict.WRONG, False)),
        ((200, WHOLE), [EMPTY], (Verdict.WRONG, True)),
        ((200, WHOLE), [SENT, EMPTY], (Verdict.WRONG, True)),
        ((None, ""), [EMPTY], (Verdict.WRONG, True)),
    ],
)
def test_the_verdict_follows_from_what_both_ends_say(told, accepted, expected):
    """Success needs the same hashes at both ends; a wrong body counts even if the client was told of a failure."""
    result = judge(OPERATION, SENT, accepted, 2, 0.1, *told)
    assert expected == (result.verdict, result.is_empty)
    assert (OPERATION, 2, 0.1) == (result.operation, result.requests, result.seconds)


def results(*given):
    """Results of operations with the given verdict, requests and seconds, all of the first fault."""
    return [
        Result(Operation(number, FAULTS[0], 1), verdict, requests, seconds, is_empty=verdict is Verdict.WRONG)
        for number, (verdict, requests, seconds) in enumerate(given)
    ]


MIXED = results(
    (Verdict.SUCCEEDED, 1, 0.1),
    (Verdict.SUCCEEDED, 4, 2.0),
    (Verdict.WRONG, 2, 0.2),
    (Verdict.ASLEEP, 1, 5.1234),
    (Verdict.MISSING, 0, 0.0),
)


def test_requests_are_those_of_operations_that_were_begun():
    """Operations that never began do not make the average look better."""
    assert 2.0 == column(CLIENTS[-1], MIXED)["requests_per_operation"]
    assert 0.0 == column(CLIENTS[-1], results((Verdict.MISSING, 0, 0.0)))["requests_per_operation"]


def test_a_column_has_every_number():
    """Counts are by verdict, and by fault; a client that was ended while it slept counts with the time until then."""
    values = column(CLIENTS[-1], MIXED, ["hello"])
    expected = {"succeeded": 2, "failed": 0, "wrong": 1, "asleep": 1, "missing": 1}
    faults = values.pop("faults")
    assert [fault.name for fault in FAULTS] == list(faults)
    assert (expected, counts(())) == (faults[FAULTS[0].name], faults[FAULTS[1].name])
    assert {
        "client": "RetryAdapter",
        "setup": CLIENTS[-1].setup,
        "operations": 5,
        **expected,
        "empty": 1,
        "requests_per_operation": 2.0,
        "most_requests": 4,
        "slowest": {"seconds": 5.123, "fault": "well", "still_asleep": True},
        "noise": ["hello"],
    } == values
