"""What the line at the end of a run counts (contract 10.5): adapters by kind, in all processes of the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...config.sources import MOUNTED_VALUES
from ...observing.summary import RetrySummary, add_up

NEVER = "never"
"""No value of ``mounted``: the adapter cannot have retries."""


class Kind(NamedTuple):
    """Adapters that one sentence describes.

    :param sentence: whose they are, their class, and their own retries.
    :param remedy: the value of ``mounted`` that would reach them; None: they have retries.
    :param policy: by which they retry, if they do: a config, or its text.
    :param where: in a dry run, the line that mounted them or made their session.
    :param unsent: what their own ``Retry`` sent again and the policy does not, and the variable that brings it back.
    """

    sentence: str
    remedy: str | None = None
    policy: Any = None
    where: str = ""
    unsent: str = ""


class Reached:
    """Counts of adapters, by kind. The caller holds a lock."""

    def __init__(self) -> None:
        self._counts: dict[Kind, int] = {}

    def add(self, kind: Kind, by: int = 1) -> None:
        """Count an adapter of a kind, or with ``by=-1`` uncount it."""
        self._counts[kind] = self._counts.get(kind, 0) + by

    def count(self, *remedies: str | None) -> int:
        """Return how many adapters one of these values of ``mounted`` would reach; None: how many have retries."""
        return sum(number for kind, number in self._counts.items() if kind.remedy in remedies)

    def line(self, had: str, processes: int) -> str:
        """Return one line for all of them, with this verb; an empty one where there are none."""
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
        return f"{reached or 'none'} of {total} {'adapter' if total == 1 else 'adapters'}{of} {had} retries{more}"

    def unsent(self) -> Iterator[str]:
        """Yield a line for methods that the program's own ``Retry`` sent again, and that are not any more."""
        numbers: dict[str, int] = {}
        for kind, number in self._counts.items():
            numbers[kind.unsent] = numbers.get(kind.unsent, 0) + number
        for clause, number in numbers.items():
            if clause:
                yield f"the own Retry of {number} {'adapter' if number == 1 else 'adapters'} {clause}"

    def lines(self) -> Iterator[str]:
        for kind, number in self._counts.items():
            yield f"{number} x {kind.sentence}{kind.where}: {'left alone' if kind.remedy else kind.policy}"

    def as_data(self) -> list[Any]:
        """Return the counts for another process, as JSON can write them."""
        counts = self._counts.items()
        return [[*kind._replace(policy=kind.policy and repr(kind.policy)), number] for kind, number in counts if number]


class Account(NamedTuple):
    """The report of one process, as JSON can write it.

    :param reached: its adapters, by :meth:`Reached.as_data`.
    :param did: the numbers of a summary without its hosts.
    """

    reached: list[Any]
    did: Iterable[Any]


def report(told: Iterable[Account], had: str, *, each: bool) -> list[str]:
    """Return the lines at the end: how many adapters of all processes had retries, and what these did.

    :param each: also a line for each kind of adapters.
    """
    reached, all_told = Reached(), [one for one in told if one.reached or any(one.did)]
    for one in all_told:
        for *kind, number in one.reached:
            reached.add(Kind(*kind), number)
    line = reached.line(had, len(all_told))
    if not line:
        return []
    did = add_up(RetrySummary(*one.did) for one in all_told)
    lines = [line, str(did)] if did.operations else [line]
    return [*lines, *reached.unsent(), *(reached.lines() if each else ())]
