"""The verdict on an operation, and the sums of a summary."""

import pytest

from requests_smithy_retry.cli.demo.clients import CLIENTS
from requests_smithy_retry.cli.demo.plan import FAULTS, Operation, digest, make_plan
from requests_smithy_retry.cli.demo.results import EMPTY, Result, Summary, Verdict, judge

OPERATION = next(operation for operation in make_plan(1, 15) if operation.fault.name == "upload-503")
WHOLE, SENT, OTHER = digest(OPERATION.download()), digest(OPERATION.upload()), digest(b"other")


@pytest.mark.parametrize(
    ("told", "accepted", "expected"),
    [
        ((200, WHOLE, None), [SENT], (Verdict.SUCCEEDED, False)),
        ((200, WHOLE, None), [SENT, SENT], (Verdict.SUCCEEDED, False)),
        ((503, EMPTY, None), [], (Verdict.FAILED, False)),
        ((None, None, "ReadTimeout"), [], (Verdict.FAILED, False)),
        ((200, OTHER, None), [SENT], (Verdict.WRONG, False)),
        ((200, EMPTY, None), [SENT], (Verdict.WRONG, True)),
        ((200, WHOLE, None), [OTHER], (Verdict.WRONG, False)),
        ((200, WHOLE, None), [EMPTY], (Verdict.WRONG, True)),
        ((200, WHOLE, None), [SENT, EMPTY], (Verdict.WRONG, True)),
        ((None, None, "ConnectionError"), [EMPTY], (Verdict.WRONG, True)),
    ],
)
def test_the_verdict_follows_from_what_both_ends_say(told, accepted, expected):
    """Success needs the same hashes at both ends; a wrong body counts even if the client was told of a failure."""
    status, body, error = told
    end = {"seconds": 0.1, "status": status, "body": body, "error": error}
    result = judge(OPERATION, SENT, end, accepted, 2)
    assert expected == (result.verdict, result.is_empty)
    assert (OPERATION, 2, 0.1) == (result.operation, result.requests, result.seconds)


def summary(*results):
    """A summary of operations with the given verdict, requests and seconds, all of the first fault."""
    return Summary(
        CLIENTS[-1],
        [
            Result(Operation(number, FAULTS[0], 1), verdict, requests, seconds, is_empty=verdict is Verdict.WRONG)
            for number, (verdict, requests, seconds) in enumerate(results)
        ],
    )


MIXED = summary(
    (Verdict.SUCCEEDED, 1, 0.1),
    (Verdict.SUCCEEDED, 4, 2.0),
    (Verdict.WRONG, 2, 0.2),
    (Verdict.ASLEEP, 1, 5.1234),
    (Verdict.MISSING, 0, None),
)


def test_each_verdict_is_counted():
    """Counts are by verdict, and by fault where one is named."""
    assert (2, 3, 0) == (
        MIXED.count(Verdict.SUCCEEDED),
        MIXED.count(Verdict.SUCCEEDED, Verdict.WRONG, fault=FAULTS[0].name),
        MIXED.count(Verdict.SUCCEEDED, fault=FAULTS[1].name),
    )


def test_requests_are_those_of_operations_that_were_begun():
    """Operations that never began do not make the average look better."""
    assert (2.0, 4) == (MIXED.requests_per_operation, MIXED.most_requests)
    assert 0.0 == summary((Verdict.MISSING, 0, None)).requests_per_operation


def test_the_slowest_may_be_asleep():
    """A client that was ended while it slept counts with the time until then."""
    assert Verdict.ASLEEP == MIXED.slowest.verdict


def test_sound_means_nothing_wrong_and_nothing_missing():
    """A failure that the caller was told of is sound; a wrong body, or an operation not done, is not."""
    assert summary((Verdict.SUCCEEDED, 1, 0.1), (Verdict.FAILED, 1, 0.1)).is_sound
    assert not summary((Verdict.SUCCEEDED, 1, 0.1), (Verdict.WRONG, 1, 0.1)).is_sound
    assert not summary((Verdict.SUCCEEDED, 1, 0.1), (Verdict.MISSING, 0, None)).is_sound


def test_as_plain_values():
    """The dictionary has every number of the column."""
    values = MIXED.to_dict()
    counts = {"succeeded": 2, "failed": 0, "wrong": 1, "asleep": 1, "missing": 1}
    assert {fault.name for fault in FAULTS} == set(values.pop("faults"))
    assert {
        "client": "RetryAdapter",
        "setup": CLIENTS[-1].setup,
        "operations": 5,
        **counts,
        "empty": 1,
        "requests_per_operation": 2.0,
        "most_requests": 4,
        "slowest": {"seconds": 5.123, "fault": "well", "still_asleep": True},
        "noise": [],
    } == values
    assert counts == MIXED.to_dict()["faults"]["well"]
    assert 0.0 == summary((Verdict.MISSING, 0, None)).to_dict()["slowest"]["seconds"]
