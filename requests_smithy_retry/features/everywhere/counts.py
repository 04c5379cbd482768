"""What the line at the end of a run counts (contract 10.5): adapters by kind, in all processes of the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...config.sources import MOUNTED_VALUES
from ...observing.summary import RetrySummary, add_up

NEVER = "never"
"""Not a value of ``mounted``: the adapter cannot have retries."""


class AdapterKind(NamedTuple):
    """Adapters that one sentence describes.

    :param sentence: whose they are, their class, and their own retries.
    :param needed: the value of ``mounted`` by which they would get retries; None if they have them.
    :param policy: by which they retry, if they do: a config, or its text.
    :param where: in a dry run, the line that mounted them or made their session.
    :param no_longer_retried: what their own ``Retry`` retried and the policy does not; variables that bring it back.
    """

    sentence: str
    needed: str | None = None
    policy: Any = None
    where: str = ""
    no_longer_retried: str = ""


class AdapterCounts:
    """Counts of adapters, by kind. The caller holds a lock."""

    def __init__(self) -> None:
        self._counts: dict[AdapterKind, int] = {}

    def add(self, kind: AdapterKind, by: int = 1) -> None:
        """Count an adapter of a kind, or with ``by=-1`` uncount it."""
        self._counts[kind] = self._counts.get(kind, 0) + by

    def count(self, *needed: str | None) -> int:
        """Return how many adapters one of these values of ``mounted`` would reach; None: how many have retries."""
        return sum(number for kind, number in self._counts.items() if kind.needed in needed)

    def line(self, verb: str, processes: int) -> str:
        """Return one line for all of them, with this verb; an empty one if there are none."""
        total, reached = sum(self._counts.values()), self.count(None)
        if not total:
            return ""
        left = [
            f"--mounted={name} would reach {self.count(*MOUNTED_VALUES[: number + 1])} more"  # each reaches more
            for number, name in enumerate(MOUNTED_VALUES)
            if self.count(name)
        ]
        left += [f"{self.count(NEVER)} cannot have them"] if self.count(NEVER) else []
        more = f": {', '.join(left)} (run --list names each)" if left else ""
        of = f" of {processes} processes" if processes > 1 else ""
        return f"{reached or 'none'} of {total} {'adapter' if total == 1 else 'adapters'}{of} {verb} retries{more}"

    def no_longer_retried(self) -> Iterator[str]:
        """Yield a line for each thing that the program's own ``Retry`` retried, and the policy does not."""
        numbers: dict[str, int] = {}
        for kind, number in self._counts.items():
            numbers[kind.no_longer_retried] = numbers.get(kind.no_longer_retried, 0) + number
        for clause, number in numbers.items():
            if clause:
                yield f"the own Retry of {number} {'adapter' if number == 1 else 'adapters'} {clause}"

    def lines(self) -> Iterator[str]:
        for kind, number in self._counts.items():
            yield f"{number} x {kind.sentence}{kind.where}: {'left alone' if kind.needed else kind.policy}"

    def as_data(self) -> list[Any]:
        """Return the counts for another process, as values for JSON."""
        counts = self._counts.items()
        return [[*kind._replace(policy=kind.policy and repr(kind.policy)), number] for kind, number in counts if number]


class ProcessReport(NamedTuple):
    """The report of one process, as values for JSON.

    :param adapters: by :meth:`AdapterCounts.as_data`.
    :param summary: what their retries did, without its hosts.
    """

    adapters: list[Any]
    summary: Iterable[Any]


def report(reports: Iterable[ProcessReport], verb: str, *, each: bool) -> list[str]:
    """Return the lines at the end: how many adapters of all processes had retries, and what these did.

    :param each: also a line for each kind of adapters.
    """
    counts, reports = AdapterCounts(), [one for one in reports if one.adapters or any(one.summary)]
    for one in reports:
        for *kind, number in one.adapters:
            counts.add(AdapterKind(*kind), number)
    line = counts.line(verb, len(reports))
    if not line:
        return []
    did = add_up(RetrySummary(*one.summary) for one in reports)
    lines = [line, str(did)] if did.operations else [line]
    return [*lines, *counts.no_longer_retried(), *(counts.lines() if each else ())]
