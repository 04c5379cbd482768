"""The counts over the operations of one client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .plan import FAULTS
from .verdicts import Result, Verdict
from .workload import Client


@dataclass(frozen=True)
class Summary:
    """One client's column.

    :param client: the client.
    :param results: the results of every operation, in order; at least one.
    :param noise: the last lines of the child that were not events.
    """

    client: Client
    results: Sequence[Result]
    noise: Sequence[str] = ()

    def count(self, *verdicts: Verdict, fault: str | None = None) -> int:
        """Return the number of operations with one of these verdicts.

        :param fault: count only operations with this fault.
        """
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
        """The most requests of one operation."""
        return max(result.requests for result in self.results)

    @property
    def slowest(self) -> Result:
        """The operation that took longest."""
        return max(self.results, key=lambda result: result.seconds or 0.0)

    @property
    def is_sound(self) -> bool:
        """Return True if no body was wrong, and no operation is missing."""
        return not self.count(Verdict.WRONG, Verdict.MISSING)

    def to_dict(self) -> dict[str, Any]:
        """Return the column as plain values; seconds are rounded to milliseconds."""
        slowest = self.slowest
        return {
            "client": self.client.name,
            "setup": self.client.setup,
            "operations": len(self.results),
            **{verdict.value: self.count(verdict) for verdict in Verdict},
            "empty": self.empty,
            "requests_per_operation": round(self.requests_per_operation, 3),
            "most_requests": self.most_requests,
            "slowest": {
                "seconds": round(slowest.seconds or 0.0, 3),
                "fault": slowest.operation.fault.name,
                "still_asleep": slowest.verdict is Verdict.ASLEEP,
            },
            "faults": {
                fault.name: {verdict.value: self.count(verdict, fault=fault.name) for verdict in Verdict}
                for fault in FAULTS
            },
            "noise": list(self.noise),
        }
