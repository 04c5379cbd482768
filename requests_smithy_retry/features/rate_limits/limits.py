"""Announced rate limits as a count-down (contract 7.4): who waits until a limit that is used up begins anew.

A :class:`Window` is one announced limit, a :class:`Limits` has all of one user of a scope. They are given the time. Who
waits goes in the order in which they came; nothing is spaced, estimated or learnt.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Collection
from dataclasses import dataclass

from ...core.steps import Wait
from ...forksafe import renew_lock_after_fork
from .announced import Announced

ROUNDING = 1.0
"""Seconds by which a moment that is announced in whole seconds may be off."""
SCOUT = 1.0
"""The most seconds for which others wait for the first answer of a new window, which tells what it has."""
AT_ONCE = 8
"""Where others use a limit as well, no more than one in so many of the requests that are left is under way at once."""


@dataclass(eq=False, slots=True)
class Window:
    """One announced limit: the window under way.

    :param size: the requests of a whole window; None: it is not known.
    :param left: what the server said was left when it was ``heard`` last.
    :param ends: when it is full again.
    :param counts: it counts requests; if not, it matters only whether something is left.
    :param own: the requests that this process has sent in it; infinite if its beginning was not seen.
    :param is_shared: others have used it as well.
    """

    size: float | None
    left: float
    ends: float
    source: str
    counts: bool
    heard: float
    own: float = math.inf
    is_shared: bool = False

    def hear(self, told: Announced, now: float, sent: float, under_way: int) -> bool:
        """Take in an announcement; return False if it is not of this limit, so there are several.

        :param sent: when its request was sent. What is left is more than was known before only in a new window.
        :param under_way: other requests of this process that have no answer yet.
        """
        assert told.remaining is not None
        assert told.reset is not None
        if self.counts and told.limit != self.size:
            return False
        # Nothing is left, and the reset is now: it was rounded down.
        reset = told.reset or ROUNDING * told.is_used_up
        ends, is_risen = now + reset, told.remaining > self.left and sent > self.heard
        is_new = now >= self.ends or (is_risen and now >= self.ends - ROUNDING)
        if is_risen and not is_new and self.counts and self.size is not None:
            return False
        if is_new:
            self.is_shared, self.own = self._is_used_by_others(), under_way + 1
        # Of several roundings of one moment the earliest is right: a window ends no later than any answer says.
        is_same = not is_new and not is_risen and ends < self.ends + ROUNDING
        self.left = min(self.left, told.remaining) if is_same else told.remaining
        self.ends = min(self.ends, ends) if is_same else ends
        self.heard = now
        self.is_shared = self.is_shared or self._is_used_by_others()
        return True

    def _is_used_by_others(self) -> bool:
        return self.size is not None and self.size - self.left > self.own

    def opens(self, now: float, under_way: int) -> float:
        """Return when another request may be sent: now, or the moment until which none may without another answer."""
        if now >= self.ends:
            # Of a new window nobody knows what it has before its first answer.
            is_unknown = self.left < 1 and under_way > 0 and now < self.ends + SCOUT
            return self.ends + SCOUT if is_unknown else now
        most = max(1.0, self.left // AT_ONCE) if self.is_shared and self.left >= 1 else self.left
        return now if most - under_way * self.counts >= 1 else self.ends


@dataclass(eq=False)
class Pass:
    """One request under way: it counts until it was answered, or until nobody refers to it any more."""

    sent: float
    waited: float
    source: str


class Limits:
    """The announced limits of one user of a scope. Safe to use from several threads."""

    def __init__(self) -> None:
        self._windows: dict[str, Window] = {}
        self._has_several = False
        self._refused: object = None
        self._closed_until = 0.0
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork; the waiting threads do not exist in the child."""
        self.lock = threading.Lock()
        self.line: list[Turn] = []
        self._under_way: weakref.WeakSet[Pass] = weakref.WeakSet()

    @property
    def is_spare(self) -> bool:
        """Nobody waits, and nothing is under way."""
        return not self.line and not self._under_way

    def opens(self, now: float) -> tuple[float, str]:
        """Return when another request may be sent, and the header that says so. Called with the lock."""
        moments = [(window.opens(now, len(self._under_way)), window.source) for window in self._windows.values()]
        return max([*moments, (self._closed_until, "retry-after")])

    def let_in(self, now: float, waited: float, source: str) -> Pass:
        """Count a request that is sent now. Called with the lock."""
        passed = Pass(now, waited, source if waited else "")
        self._under_way.add(passed)
        for window in self._windows.values():
            window.own += 1
        return passed

    def answered(self, passed: Pass | None, told: Collection[Announced], now: float, *, is_success: bool) -> None:
        """Take in the end of a request, with what its answer announced."""
        with self.lock:
            if passed is not None:
                self._under_way.discard(passed)
            sent = 0.0 if passed is None else passed.sent
            for limit in () if self._has_several else told:
                if limit.remaining is not None and limit.reset is not None:
                    fresh = Window(limit.limit, limit.remaining, now, limit.source, limit.counts_requests, now)
                    window = self._windows.setdefault(limit.name, fresh)
                    self._has_several |= not window.hear(limit, now, sent, len(self._under_way))
            if self._has_several:
                self._windows.clear()
            if is_success:
                self._refused, self._closed_until = None, 0.0
            self.wake()

    def refused(self, who: object, seconds: float, now: float) -> None:
        """Hold everybody back after the second refusal in a row, of another operation, with no success in between."""
        with self.lock:
            if self._refused not in (None, who):
                self._closed_until = max(self._closed_until, now + seconds)
            self._refused = who

    def wake(self) -> None:
        """Have the first in line look. Called with the lock."""
        if self.line:
            self.line[0].changed.notify()


class Turn:
    """One request's place in the line before a limit.

    :param longest: the most seconds that it waits; who would have to wait longer goes at once, for the server's own
        answer.
    :param deadline: the moment by which it must be sent; None: there is none.
    """

    def __init__(self, limits: Limits, longest: float, deadline: float | None) -> None:
        self.changed = threading.Condition(limits.lock)
        self._limits = limits
        self._longest = longest
        self._until = math.inf if deadline is None else deadline
        self._began: float | None = None
        self._source = ""

    def look(self, now: float) -> Wait | Pass:
        """Join at the first look; then see whether there is room."""
        limits, line = self._limits, self._limits.line
        if self._began is None:
            self._began, self._until = now, min(self._until, now + self._longest)
            line.append(self)
        opens, source = limits.opens(now)
        is_first = line[0] is self
        if now < self._until and not (is_first and (opens <= now or opens >= self._until)):
            self._source = source
            return Wait(opens if is_first else self._until)
        self.leave(now)
        return limits.let_in(now, now - self._began, self._source)

    def leave(self, now: float) -> None:  # noqa: ARG002
        """Let the next one have its turn."""
        if self in self._limits.line:
            self._limits.line.remove(self)
        self._limits.wake()
