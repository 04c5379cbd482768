"""Matching ``@http`` URI patterns, and the precedence among them (contract 3; Smithy 2.0 "HTTP bindings").

A literal segment beats a label, a label beats a greedy label, more segments beat fewer, and last, more query literals
beat fewer.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import parse_qsl, unquote

from .protocols import parameters

Value = TypeVar("Value")


class Label(enum.Enum):
    """A segment of a pattern that is not literal."""

    ONE = "{}"
    """Exactly one segment, not empty."""
    GREEDY = "{+}"
    """One segment or more."""


_RANKS: dict[str | Label, int] = {Label.ONE: 1, Label.GREEDY: 2}
_RANK_OF_THE_END = 3
_ANY = -1
"""Stands for the length of a pattern that matches paths of several lengths."""


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
    def rank(self) -> tuple[tuple[int, ...], int]:
        """The sort key: of two patterns that match the same request, the lower one is more specific."""
        return (*(_RANKS.get(segment, 0) for segment in self.segments), _RANK_OF_THE_END), -len(set(self.query))

    def fits(self, segments: tuple[str, ...]) -> bool:
        """Return True if the pattern matches the segments of a path, as many as its own if it has no greedy label."""
        own: tuple[str | Label, ...] = self.segments
        if Label.GREEDY in own:
            at = own.index(Label.GREEDY)
            end = len(segments) - (len(own) - at - 1)
            if end <= at or segments[at:end] == ("",):
                return False
            own, segments = own[:at] + own[at + 1 :], segments[:at] + segments[end:]
        for part, segment in zip(own, segments, strict=True):
            if part != segment and (part is not Label.ONE or segment == ""):
                return False
        return True

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


class UriTable(Generic[Value]):
    """The patterns of one service."""

    def __init__(self, routes: Iterable[tuple[str, UriPattern, Value]]) -> None:
        self._routes: dict[tuple[str, int], list[tuple[UriPattern, Value]]] = {}
        for method, pattern, value in routes:
            length = _ANY if Label.GREEDY in pattern.segments else len(pattern.segments)
            self._routes.setdefault((method, length), []).append((pattern, value))

    def find(self, method: str, segments: tuple[str, ...], query: str) -> Value | None:
        """Return the value of the most specific matching pattern; None for no match, or for two that match equally."""
        near = [*self._routes.get((method, len(segments)), ()), *self._routes.get((method, _ANY), ())]
        matching = [route for route in near if route[0].fits(segments)]
        if any(pattern.query for pattern, _ in matching):
            present = parameters(query)
            asked = {(key, value) for key, values in present.items() for value in (None, *values)}
            matching = [route for route in matching if asked.issuperset(route[0].query)]
        ranks = [pattern.rank for pattern, _ in matching]
        return matching[ranks.index(min(ranks))][1] if ranks and ranks.count(min(ranks)) == 1 else None
