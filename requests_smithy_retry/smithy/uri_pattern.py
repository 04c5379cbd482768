"""Matching ``@http`` URI patterns, and the precedence among them (contract 3; Smithy 2.0 "HTTP bindings").

A literal segment beats a label, a label beats a greedy label, more segments beat fewer, and last, more query literals
beat fewer. The patterns of a service make one trie, so a match costs about the same for 10 patterns and for 1,000, and
is linear in the path: no node is visited twice.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import parse_qsl, unquote

from ..copying import PicklesByEveryProtocol
from .request_parts import parameters

Value = TypeVar("Value")


class Label(enum.Enum):
    """A segment of a pattern that is not literal."""

    ONE = "{}"
    """Exactly one segment, not empty."""
    GREEDY = "{+}"
    """One segment or more."""


_RANKS: dict[str | Label, int] = {Label.ONE: 1, Label.GREEDY: 2}
_RANK_OF_THE_END = 3
_WORST: tuple[int, ...] = (4,)


@dataclass(frozen=True, slots=True)
class UriPattern:
    """One URI pattern.

    >>> UriPattern.parse("/buckets/{name}/{key+}?list-type=2").query
    (('list-type', '2'),)
    """

    text: str
    """The pattern as in the model."""
    segments: tuple[str | Label, ...]
    """Literal segments, decoded, and labels."""
    query: tuple[tuple[str, str | None], ...]
    """Query literals; the value is None if only the key is required."""

    @property
    def rank(self) -> tuple[int, ...]:
        """The sort key: of two patterns that match the same path, the lower one is more specific."""
        return (*(_RANKS.get(segment, 0) for segment in self.segments), _RANK_OF_THE_END)

    @classmethod
    def parse(cls, text: str) -> UriPattern:
        """Read a pattern.

        :raises ValueError: with one phrase that says what is expected.
        """
        path, asked, query = text.partition("?")
        if not path.startswith("/"):
            raise ValueError('a URI pattern that starts with "/"')
        if "#" in text or "{" in query or "}" in query or (asked != "" and query == ""):
            raise ValueError("a URI pattern with no fragment, no label in its query, and a query that is not empty")
        parts = path[1:].split("/")
        if parts[-1] == "":
            parts.pop()
        segments = tuple(_segment(part) for part in parts)
        if segments.count(Label.GREEDY) > 1:
            raise ValueError("a URI pattern with at most one greedy label")
        literals = parse_qsl(query, keep_blank_values=True)
        return cls(text, segments, tuple((key, None if value == "" else value) for key, value in literals))


def _segment(part: str) -> str | Label:
    inner = part[1:-1]
    if part.startswith("{") and part.endswith("}") and inner.strip("+") != "":
        name, label = (inner[:-1], Label.GREEDY) if inner.endswith("+") else (inner, Label.ONE)
        if not any(mark in name for mark in "{}+"):
            return label
    literal = unquote(part)
    if "{" in part or "}" in part or literal in ("", ".", ".."):
        raise ValueError("a URI pattern whose segments are literals, {label} or {label+}, none empty and none a dot")
    return literal


class _Routes(PicklesByEveryProtocol, Generic[Value]):
    """The patterns that end at one node; they have the same rank and differ only in their query literals."""

    __slots__ = ("_pivots", "_plain", "rank")

    def __init__(self, routes: list[tuple[UriPattern, Value]]) -> None:
        frequency = Counter(literal for pattern, _ in routes for literal in set(pattern.query))
        self.rank = routes[0][0].rank
        self._plain: list[Value] = []
        self._pivots: dict[tuple[str, str | None], list[tuple[UriPattern, Value]]] = {}
        for pattern, value in routes:
            if pattern.query == ():
                self._plain.append(value)
            else:
                rarest = min(pattern.query, key=lambda literal: frequency[literal])
                self._pivots.setdefault(rarest, []).append((pattern, value))

    def pick(self, query: str) -> list[Value]:
        """Return the values of the matching patterns with the most query literals."""
        best, most = self._plain, 0
        if not self._pivots:
            return best
        present = parameters(query)
        asked = dict.fromkeys((key, value) for key, values in present.items() for value in (None, *values))
        for pivot in asked:
            for pattern, value in self._pivots.get(pivot, ()):
                literals = set(pattern.query)
                if literals <= asked.keys():
                    if len(literals) > most:
                        best, most = [], len(literals)
                    if len(literals) == most:
                        best = [*best, value]
        return best


class _Node(PicklesByEveryProtocol, Generic[Value]):
    __slots__ = ("greedy", "label", "literals", "routes")

    def __init__(self) -> None:
        self.literals: dict[str, _Node[Value]] = {}
        self.label: _Node[Value] | None = None
        self.greedy: dict[int, _Node[Value]] = {}
        self.routes: _Routes[Value] | None = None

    def step(self, segment: str | Label, left: int) -> _Node[Value]:
        """Return the child for a segment, made if needed; ``left`` segments of the pattern follow it."""
        if isinstance(segment, str):
            return self.literals.setdefault(segment, _Node())
        if segment is Label.GREEDY:
            return self.greedy.setdefault(left, _Node())
        if self.label is None:
            self.label = _Node()
        return self.label


class UriTrie(PicklesByEveryProtocol, Generic[Value]):
    """The patterns of one service, as a trie.

    :param routes: method, pattern and value of each.
    """

    __slots__ = ("_roots",)

    def __init__(self, routes: Iterable[tuple[str, UriPattern, Value]]) -> None:
        self._roots: dict[str, _Node[Value]] = {}
        ends: dict[_Node[Value], list[tuple[UriPattern, Value]]] = {}
        for method, pattern, value in routes:
            node = self._roots.setdefault(method, _Node())
            for index, segment in enumerate(pattern.segments, start=1):
                node = node.step(segment, len(pattern.segments) - index)
            ends.setdefault(node, []).append((pattern, value))
        for node, ending in ends.items():
            node.routes = _Routes(ending)

    def find(self, method: str, segments: tuple[str, ...], query: str) -> Value | None:
        """Return the value of the most specific matching pattern, or None.

        Two patterns that match equally well give None; a valid model has none, but some models do.

        :param segments: from :func:`~.request_parts.path_segments`.
        """
        best: list[Value] = []
        best_rank = _WORST
        for routes in self._routes_of(method, segments):
            if routes.rank < best_rank and (found := routes.pick(query)):
                best_rank, best = routes.rank, found
        return best[0] if len(best) == 1 else None

    def _routes_of(self, method: str, segments: tuple[str, ...]) -> Iterator[_Routes[Value]]:
        """Yield the routes whose path matches."""
        end = len(segments)
        stack = [(self._roots[method], 0)] if method in self._roots else []
        while stack:
            node, at = stack.pop()
            if at == end:
                if node.routes is not None:
                    yield node.routes
                continue
            segment = segments[at]
            for after, child in node.greedy.items():
                taken = end - after - at
                if taken > 1 or (taken == 1 and segment != ""):
                    stack.append((child, end - after))
            if node.label is not None and segment != "":
                stack.append((node.label, at + 1))
            if segment in node.literals:
                stack.append((node.literals[segment], at + 1))
