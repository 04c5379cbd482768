"""The adapters that a program's sessions have: how many of them retry, and what would reach the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...config.retry_config import RetryConfig

NEVER = "never"
"""Stands for no value of ``mounted``: the adapter cannot have retries."""

MOST_KINDS = 100
"""Kinds of adapters that are told apart; a program may make classes without end."""


class Kind(NamedTuple):
    """Adapters that one sentence tells of.

    :param sentence: whose they are, their class, and what is to be said of their own retries.
    :param remedy: the value of ``mounted`` that would reach them; None: they have retries.
    """

    sentence: str
    remedy: str | None = None


class Reached:
    """Counts of adapters, by kind. The caller holds a lock."""

    def __init__(self) -> None:
        self._counts: dict[Kind, int] = {}
        self._policies: dict[Kind, RetryConfig] = {}

    def add(self, kind: Kind, policy: RetryConfig | None = None, *, by: int = 1) -> None:
        """Count an adapter of a kind, or with ``by=-1`` one that another adapter took the place of."""
        if kind not in self._counts and len(self._counts) >= MOST_KINDS:
            kind = Kind("other adapters", kind.remedy)
        self._counts[kind] = self._counts.get(kind, 0) + by
        if policy is not None:
            self._policies.setdefault(kind, policy)

    def count(self, remedy: str | None) -> int:
        """Return how many adapters a value of ``mounted`` would reach; None: how many have retries."""
        return sum(number for kind, number in self._counts.items() if kind.remedy == remedy)

    def line(self, had: str = "had") -> str:
        """Return one line for all of them; an empty one where there are none.

        :param had: the verb, for what would be.
        """
        total, reached = sum(self._counts.values()), self.count(None)
        if not total:
            return ""
        left = [f"--mounted={name} would reach {self.count(name)}" for name in ("plain", "all", "replace")]
        left = [words for words in left if not words.endswith(" 0")]
        left += [f"{self.count(NEVER)} cannot have them"] if self.count(NEVER) else []
        more = f": {', '.join(left)} (run --list names each)" if left else ""
        return f"{reached or 'none'} of {total} {'adapter' if total == 1 else 'adapters'} {had} retries{more}"

    def lines(self) -> Iterator[str]:
        """Yield a line for each kind: how many, and their policy, or that they were left alone."""
        for kind, number in self._counts.items():
            if number:
                yield f"{number} x {kind.sentence}: {'left alone' if kind.remedy else repr(self._policies[kind])}"
