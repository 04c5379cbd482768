"""The results of a client's operations: a verdict on each, from the reports of both ends, and their sums."""

from __future__ import annotations

import enum
from collections.abc import Sequence
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
    seconds: float | None = None
    is_empty: bool = False


def judge(operation: Operation, sent: str, end: dict[str, Any], accepted: Sequence[str], requests: int) -> Result:
    """Judge a finished operation."""
    status, body = end["status"], end["body"]
    went_well = status is not None and status < 400
    wrong = [each for each in accepted if each != sent]
    if went_well and body != digest(operation.download()):
        wrong.append(body)
    verdict = Verdict.WRONG if wrong else Verdict.SUCCEEDED if went_well else Verdict.FAILED
    return Result(operation, verdict, requests, end["seconds"], EMPTY in wrong)


@dataclass(frozen=True)
class Summary:
    """One client's column of the report."""

    client: Client
    results: Sequence[Result]
    noise: Sequence[str] = ()

    def count(self, *verdicts: Verdict, fault: str | None = None) -> int:
        """Return the number of operations with one of these verdicts, and with this fault."""
        return sum(
            result.verdict in verdicts and fault in (None, result.operation.fault.name) for result in self.results
        )

    @property
    def empty(self) -> int:
        """The number of wrong bodies that were empty."""
        return sum(result.is_empty for result in self.results)

    @property
    def requests_per_operation(self) -> float:
        """The requests that the server saw per begun operation; 0 if none was begun."""
        begun = [result.requests for result in self.results if result.verdict is not Verdict.MISSING]
        return sum(begun) / len(begun) if begun else 0.0

    @property
    def most_requests(self) -> int:
        return max(result.requests for result in self.results)

    @property
    def slowest(self) -> Result:
        return max(self.results, key=lambda result: result.seconds or 0.0)

    @property
    def is_sound(self) -> bool:
        """True if no body was wrong, and no operation is missing."""
        return not self.count(Verdict.WRONG, Verdict.MISSING)

    def to_dict(self) -> dict[str, Any]:
        slowest = self.slowest
        return {
            "client": self.client.name,
            "setup": self.client.setup,
            "operations": len(self.results),
            **self._counts(),
            "empty": self.empty,
            "requests_per_operation": round(self.requests_per_operation, 3),
            "most_requests": self.most_requests,
            "slowest": {
                "seconds": round(slowest.seconds or 0.0, 3),
                "fault": slowest.operation.fault.name,
                "still_asleep": slowest.verdict is Verdict.ASLEEP,
            },
            "faults": {fault.name: self._counts(fault.name) for fault in FAULTS},
            "noise": list(self.noise),
        }

    def _counts(self, fault: str | None = None) -> dict[str, int]:
        return {verdict.value: self.count(verdict, fault=fault) for verdict in Verdict}
