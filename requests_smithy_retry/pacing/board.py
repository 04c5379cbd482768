"""The board of processes that share a quota (contract 7.4): one closes the gate of a scope, and all of them know.

Each place in which quotas are shared has a board of its own kind. Each send looks at it, so that costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple, Protocol

MOST_NOTICES = 1024
"""The notices that are kept; others are passed over."""
SHORTEST = 0.05
"""A gate that is closed for less time, in seconds, is not worth a notice."""


class Notice(NamedTuple):
    """A closed gate.

    :param until: when it opens, on the clock of the reader.
    :param source: the header behind it.
    """

    until: float
    source: str


class Board(Protocol):
    """The closed gates of all processes that share a quota. No method raises anything, or waits for long."""

    def has_news(self) -> bool:
        """Return True while a gate may be closed. Called before each send."""
        ...

    def closed(self, scope: str) -> Notice | None:
        """Return the notice of a scope; None if nobody has closed its gate."""
        ...

    def post(self, scope: str, seconds: float, source: str) -> None:
        """Tell the others that the gate of a scope is closed."""
        ...


class Notices(dict[Hashable, Notice]):
    """The notices that a process has read."""

    def note(self, key: Hashable, notice: Notice) -> None:
        """Keep a notice, unless a later one is kept."""
        kept = self.get(key)
        if (len(self) < MOST_NOTICES) if kept is None else notice.until > kept.until:
            self[key] = notice

    def are_current(self, now: float) -> bool:
        """Forget what is over; return True if anything is left."""
        for key, notice in tuple(self.items()):
            if notice.until <= now and self.get(key) is notice:
                self.pop(key, None)
        return len(self) > 0


class Lookout(set[Any]):
    """A live set that is true while it has items, or while a board has news."""

    __slots__ = ("board",)

    def __init__(self, board: Board) -> None:
        super().__init__()
        self.board: Board = board

    def __bool__(self) -> bool:
        return self.board.has_news() or len(self) > 0
