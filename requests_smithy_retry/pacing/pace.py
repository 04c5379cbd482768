"""The pace that announced limits allow a scope (contract 7.4). Pure: every method is given the time.

While more than half of a limit is left, nothing is spaced. Below that, sends are spaced where the rate seen so far in
the window would use up the rest before the reset: evenly, so that the last one arrives just inside. Other clients of
the same key show in what is left: it falls by more than this process sent. Only this process's share is spent then.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from .announced import Announced

PLENTY = 0.5
"""While a greater part of a limit is left, nothing is spaced."""
STEP = 1 / 32
"""Below that, the rate is looked at whenever so great a part of the limit was used, and over so much of the window."""
MARGIN = 0.9
"""The rest is taken to last if the rate seen so far would use up less than this part of it."""
SPREAD, AT_LEAST = 0.1, 2.0
"""Those who waited are let go over this part of the wait, and over so many seconds of it, where the limit of the next
window is not known."""
MEMORY = 0.5
"""The weight of each window in the share of this process, as a part of the weight of the one after it."""
MOVES = 0.25
"""The part of a window by which its reset must move on, in small steps, to show that the window is not fixed."""
IN_HAND = 0.02
"""The part of a steadily refilled limit that is kept in hand."""
GAIN = 40.0
"""The gain in speed of a process, times its share and the part of the limit that is left above that. With more it would
overshoot: it hears what the others did only with its own sends."""
FASTEST, SLOWEST = 2.0, 0.5
"""The most and the least, as parts of the usual rate, that go where more or less than that is left."""
KEPT, FAIR = 0.8, 0.03
"""The part of its share that a process keeps, and what it gets in addition: so shares become equal in time."""
GIVEN, USUAL = 0.3, 0.1
"""In a sliding window, the part that it gives of what it has above the usual share, or takes of what it has below.
Who has it alone gives nothing."""
MOST_WINDOWS = 8
"""Limits of one scope that are kept."""
BACK = 2.0, 0.1
"""A reset that is earlier than one before by so many seconds, and so great a part of the window, is another limit's."""
FORGOTTEN = 2.0
"""The number of its lengths after which a window that was not announced again is forgotten."""


ALWAYS = float("inf"), 0.0
"""The remaining number and the moment for which no closer look is needed: none would do."""


class Window:
    """One announced limit of a scope."""

    def __init__(self, limit: Announced, now: float) -> None:
        self.limit: float = 0.0
        self.length: float = 0.0
        self.remaining: float = limit.remaining or 0.0
        self._seen = self._top = self.remaining
        self.ends: float = now + (limit.reset or 0.0)
        self._furthest = self.ends
        self._at = self._began = now
        self._own = self._spent = self._moved = self._reset = 0.0
        self.hear(limit, now)

    def hear(self, limit: Announced, now: float, heard: int = 1) -> None:
        """Take in what a response announced, and how many responses were heard since the last one, it included."""
        remaining, reset = limit.remaining or 0.0, limit.reset or 0.0
        self.length = max(self.length, limit.window or 0.0, reset)
        self.limit = limit.limit or max(self.limit, remaining + heard)
        self._named = limit.limit
        self._count(remaining, now + reset, now, heard)
        if now >= self.ends:
            self._began, self._top = now, remaining + heard
        self.remaining, self.ends = remaining, now + reset

    def contradicts(self, limit: Announced, now: float) -> bool:
        """Return True if an announcement is of another limit in the same header: each route may have its own."""
        if now >= self.ends:
            return False
        seconds, part = BACK
        is_back = self._furthest - (now + (limit.reset or 0.0)) > max(seconds, part * self.length)
        return is_back or (limit.limit is not None and self._named not in (None, limit.limit))

    def _count(self, remaining: float, ends: float, now: float, heard: int) -> None:
        """Count what this process used of the limit, and what everybody used; the past counts less and less."""
        length = self.length or 1.0
        kept = MEMORY ** ((now - self._at) / length)
        self._at = now
        further = max(0.0, ends - self._furthest)
        self._furthest = max(self._furthest, ends)
        if further >= length / 2:
            used, self._moved = self.limit - remaining, 0.0
        else:
            # Where the reset moves with the time, some came back meanwhile: a sliding window, or a bucket.
            used = max(heard, self._seen - remaining + self.limit * further / length)
            self._moved += further if remaining - self._seen <= STEP * self.limit else length
        self._seen, self._reset = remaining, ends - now
        self._own = kept * self._own + heard
        self._spent = kept * self._spent + used

    @property
    def share(self) -> float:
        """The part of the limit that this process uses."""
        if self.slides:
            # While anybody waits, all that comes back is used: the whole is known.
            part = min(1.0, self._own * math.log(1 / MEMORY) / self.limit)
            return part + GIVEN * (1 - part) * (USUAL - part)
        return min(1.0, KEPT * self._own / self._spent + FAIR) if self._spent > self._own else 1.0

    @property
    def slides(self) -> bool:
        """It is a sliding window: its reset moves on, and comes long before a bucket of the same size were full."""
        used = 1 - self._seen / self.limit if self.limit else 0.0
        return self._moved > MOVES * self.length and self._reset < 0.5 * used * self.length

    def roll(self, now: float) -> None:
        """Begin the next window, the last one being over: what a whole one allows is taken to be there."""
        if self.length:
            self._began, self._top = now, self.limit
            self.remaining = max(1.0, self._seen) if self.slides else self.limit
            self.ends = now + self.length

    @property
    def plenty(self) -> float:
        """While more is left, nothing is spaced."""
        return PLENTY * self.limit

    @property
    def next_look(self) -> float:
        """While more is left, the rate need not be looked at again; negative: look at each response."""
        return self.plenty if self.remaining > self.plenty else self.remaining - STEP * self.limit

    def is_scarce(self, now: float) -> bool:
        """Return True if the rate of this window would use up the rest before the reset."""
        if now >= self.ends or self.remaining > self.plenty:
            return False
        rate = (self._top - self.remaining) / max(now - self._began, STEP * self.length, 1e-3)
        return self.remaining < 1 or rate * (self.ends - now) > MARGIN * self.remaining

    def due(self, now: float, last: float, on_their_way: int, place: int = 1) -> float:
        """Return the moment for a send of this process, so that its share lasts until the reset.

        :param on_their_way: sends of this process that are not answered yet.
        :param place: 1 for the next send, 2 for the one after it.
        """
        if self.slides:
            # Some comes back all the time: the usual rate, faster where much is left, and slower where little is.
            share = self.share
            left = max(0.0, self.remaining - on_their_way / share) / self.limit
            speed = min(FASTEST, max(SLOWEST, 1 + GAIN * share * (left - IN_HAND)))
            return last + place * self.length / (speed * share * self.limit)
        own = self.share * self.remaining - on_their_way
        return self.ends if own < place else last + place * (self.ends - now) / own


class Pace:
    """The announcements of one scope's responses, and the moment of the next send."""

    def __init__(self, now: float) -> None:
        self.closed_until: float = now
        self._closed_at = self._last = self._several_until = now
        self._on_their_way = 0
        self.is_spaced: bool = False
        self._goes_on = False
        """Something succeeded after the last opening: the server refuses some, and not all."""
        self._windows: dict[tuple[str, int], Window] = {}
        self.source: str = ""

    def hear(self, limits: Collection[Announced], now: float, heard: int = 1, *, refused: bool = False) -> None:
        """Take in what a response announced.

        :param heard: responses since the last one that was taken in, this one included.
        :param refused: this one is a refusal, which uses up nothing.
        """
        self._on_their_way = max(0, self._on_their_way - heard)
        heard -= refused
        self._goes_on = self._goes_on or (heard > 0 and now >= self.closed_until)
        for at, limit in enumerate(limits):
            if limit.remaining is None or limit.reset is None:
                continue
            if not limit.counts_requests:
                if limit.is_used_up:
                    self.close(now + limit.reset, now, limit.source)
                continue
            key = (limit.source, at)
            window = self._windows.get(key)
            if window is not None:
                if window.contradicts(limit, now):
                    self._several_until = now + FORGOTTEN * max(window.length, limit.reset)
                window.hear(limit, now, heard)
            elif len(self._windows) < MOST_WINDOWS:
                self._windows[key] = Window(limit, now)
        self._look(now)

    def next_look(self, limit: Announced, at: int) -> tuple[float, float]:
        """Return what must be left of a limit, and the moment until when, for a response to need no closer look."""
        if self.is_spaced or limit.remaining is None:
            return ALWAYS
        if not limit.counts_requests:
            return 0.0, float("inf")
        window = self._windows.get((limit.source, at))
        return ALWAYS if window is None else (window.next_look, window.ends)

    def throttled(self, hint: float, now: float, source: str) -> None:
        """Take in that the server refused a request, and when it will not."""
        for window in self._windows.values():
            # A bucket is full again later than it has one: the hint knows better.
            window.remaining, window.ends = 0.0, min(window.ends, now + hint)
        if self._windows or not self._goes_on or now > self.closed_until + self._wait:
            self.close(now + hint, now, source)
        self._look(now)

    def close(self, until: float, now: float, source: str) -> None:
        """Let nothing go before a moment."""
        if self._has_several(now):
            return
        if until > self.closed_until:
            self.closed_until, self._closed_at, self.source, self._goes_on = until, now, source, False

    def sent(self, now: float, due: float | None = None) -> None:
        """Take note of a send that was let go at its turn, or without one: then the others keep theirs."""
        if due is not None:
            # A send that woke up late does not make the next one later.
            self._last = max(self._last, due, now - 0.05)
        self._on_their_way += 1

    def lost(self) -> None:
        """Take note that a send which was let go got no response."""
        self._on_their_way = max(0, self._on_their_way - 1)

    def due(self, now: float, waiting: int, place: int = 1) -> float:
        """Return the moment for a send, as far as it is known; not later than now: the next one may go.

        :param waiting: those who wait for their turn.
        :param place: its place among those.
        """
        if self._has_several(now):
            return now
        if not self._windows:
            space = max(SPREAD * self._wait, min(self._wait, AT_LEAST)) / max(waiting, 1)
            first = max(self._last + space, self.closed_until)
            return first + (place - 1) * space
        if now < self.closed_until:
            return self.closed_until
        due = now
        for window in self._windows.values():
            if now >= window.ends:
                window.roll(now)
                self._on_their_way = 0
            if self.is_spaced:
                due = max(due, window.due(now, self._last, self._on_their_way, place))
        return due

    @property
    def _wait(self) -> float:
        return self.closed_until - self._closed_at

    def _has_several(self, now: float) -> bool:
        """Return True if several limits are announced in turn: which of them a send meets is not known before."""
        return now < self._several_until

    def _look(self, now: float) -> None:
        for key, window in tuple(self._windows.items()):
            if now > window.ends + FORGOTTEN * window.length:
                del self._windows[key]
        if self.is_spaced:
            return
        for (source, _), window in self._windows.items():
            if window.is_scarce(now):
                self.is_spaced, self._last, self.source = True, now, source
                return

    def relax(self, now: float) -> bool:
        """Stop spacing if there is plenty; return True if sends need not ask any more. Nobody waits."""
        if self.is_spaced and not any(
            window.is_scarce(now) or (now < window.ends and window.remaining <= window.plenty)
            for window in self._windows.values()
        ):
            self.is_spaced = False
        return self._has_several(now) or (not self.is_spaced and now >= self.closed_until)
