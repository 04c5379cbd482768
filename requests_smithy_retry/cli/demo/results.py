"""The results of a client's operations: a verdict on each, from the reports of both ends, and their sums."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .clients import Client
from .plan import FAULTS, Operation, digest

EMPTY = digest(b"")


class Verdict(enum.Enum):
    """The result of an operation in a word."""

    SUCCEEDED = "succeeded"
    """The client got a success, and both ends have the same bytes."""
    FAILED = "failed"
    """The client got a status of 400 or above, or an exception."""
    WRONG = "wrong"
    """One end accepted other bytes than the other end sent."""
    ASLEEP = "asleep"
    """The client did nothing for so long that it was ended."""
    MISSING = "missing"
    """The operation was not made."""


@dataclass(frozen=True)
class Result:
    """The result of an operation."""

    operation: Operation
    verdict: Verdict
    requests: int
    seconds: float = 0.0
    is_empty: bool = False


def judge(
    operation: Operation,
    sent: str,
    accepted: Sequence[str],
    requests: int,
    seconds: float,
    status: int | None = None,
    body: str = "",
    otherwise: Verdict = Verdict.FAILED,
) -> Result:
    """Judge an operation by the reports of both ends; ``otherwise`` is the verdict if it got no success."""
    went_well = status is not None and status < 400
    wrong = [each for each in accepted if each != sent]
    if went_well and body != digest(operation.download()):
        wrong.append(body)
    verdict = Verdict.WRONG if wrong else Verdict.SUCCEEDED if went_well else otherwise
    return Result(operation, verdict, requests, seconds, EMPTY in wrong)


def column(client: Client, results: Sequence[Result], noise: Iterable[str] = ()) -> dict[str, Any]:
    """Return one client's column of the report, as plain values for JSON."""
    begun = [result.requests for result in results if result.verdict is not Verdict.MISSING]
    slowest = max(results, key=lambda result: result.seconds)
    return {
        "client": client.name,
        "setup": client.setup,
        "operations": len(results),
        **counts(results),
        "empty": sum(result.is_empty for result in results),
        "requests_per_operation": round(sum(begun) / len(begun), 3) if begun else 0.0,
        "most_requests": max(result.requests for result in results),
        "slowest": {
            "seconds": round(slowest.seconds, 3),
            "fault": slowest.operation.fault.name,
            "still_asleep": slowest.verdict is Verdict.ASLEEP,
        },
        "faults": {
            fault.name: counts(result for result in results if result.operation.fault is fault) for fault in FAULTS
        },
        "noise": list(noise),
    }


def counts(results: Iterable[Result]) -> dict[str, int]:
    """Return the number of operations for each verdict."""
    verdicts = Counter(result.verdict for result in results)
    return {verdict.value: verdicts[verdict] for verdict in Verdict}
