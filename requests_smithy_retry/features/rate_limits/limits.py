"""Announced rate limits as a count-down (contract 7.4): which requests wait for the reset of a limit that is used up.

A :class:`Window` is one announced limit, a :class:`Limits` has all limits of one user of a scope. They are given the
time. Waiters go in order; nothing is spaced, estimated or learnt.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from math import inf

from ...clock import Wait
from ...core.backoff import random_part
from ...core.server_hints import Hint
from ...errors import RetryError, StopReason, seconds_text
from ...forksafe import renew_lock_after_fork
from .announced import PAUSE, Announced

ROUNDING = 1.0
"""Seconds by which a reset in whole seconds may be off, and by which the ``Date`` may be that it is measured
against."""
LAG = 1.0
"""Seconds in which a server counts a request; others wait no longer for the first answer of a new window."""
AT_ONCE = 8
"""If others use a limit as well, at most one in so many of the requests that are left is under way at once."""
SPREAD, MOST_SPREAD = 0.1, 5.0
"""Each process waits at most this part longer than a server asked, and at most these seconds."""
SHORT = 2.0
"""A thread that waits alone, for fewer seconds, is not spread."""
REFUSALS = frozenset({403, 429, 503})  # the statuses by which servers refuse a request because of a limit


def spread(seconds: float, *, is_alone: bool) -> float:
    """Return the seconds to wait longer than a server asked, so that not all processes come at once."""
    return 0.0 if is_alone and seconds < SHORT else random_part() * min(SPREAD * seconds, MOST_SPREAD)


@dataclass(eq=False, slots=True)
class Window:
    """One window of an announced limit, by one answer or by all."""

    source: str  # the header behind it
    size: float | None  # the requests of a whole window; None: it is not known
    counts: bool  # it counts requests; if not, it matters only whether something is left
    left: float
    heard: float  # when so much was left: a request that is sent later finds less, or another window
    asked: float  # when the latest request was sent that was answered
    lasts: float  # it does not end before this moment, however its reset was rounded
    ends: float  # when all of it is there again: the earliest moment that was told
    base: float = 0.0  # what was left before the first answer of it
    own: int = 0  # the requests that this process has sent since then
    was_shared: bool = False  # others have used the window before as well

    @property
    def is_shared(self) -> bool:
        """True if others use it as well: they have had an eighth of it."""
        return self.base - self.left - self.own > self.base / AT_ONCE

    def then(self, told: Window) -> Window | None:
        """Return what is known after another answer; None: that is about another limit, so there are several."""
        is_over, is_risen = told.heard >= self.ends, told.left > self.left and told.asked > self.heard
        if not is_over and self._contradicts(told, is_new=is_risen):
            return None
        if is_risen or (is_over and told.asked >= self.ends):
            told.was_shared = self.is_shared
            return told
        if not is_over:  # else it is about the time before
            self.left, self.heard = min((self.left, self.heard), (told.left, told.heard))
            self.asked, self.lasts = max(self.asked, told.asked), max(self.lasts, told.lasts)
            self.ends, self.own = min(self.ends, told.ends), self.own + (told.asked == -inf)
        return self

    def _contradicts(self, told: Window, *, is_new: bool) -> bool:
        """Return True for another size or end, and for a new window before this one can be over."""
        is_early = (told.heard if is_new else told.ends + ROUNDING) < self.lasts
        is_late = told.lasts > self.ends + ROUNDING and not is_new
        return is_early or is_late or (told.size != self.size and None not in (told.size, self.size))

    def opens(self, now: float, under_way: Collection[float]) -> float:
        """Return when another request may be sent: now, or the moment until which none may without another answer.

        :param under_way: when the requests were sent that have no answer yet.
        """
        if now < self.ends:
            most = max(self.left // AT_ONCE, min(self.left, 1)) if self.was_shared or self.is_shared else self.left
            uncounted = sum(sent > self.asked - LAG for sent in under_way)
            return now if most - uncounted * self.counts >= 1 else self.ends
        # The size of a new window is known with its first answer: if some were held back, one goes ahead.
        ahead = [sent for sent in under_way if sent >= self.ends]
        if not ahead or self.left - (len(under_way) - len(ahead)) * self.counts >= 1:
            return now
        answered = min(ahead) + LAG
        return answered if now < answered else now + LAG * (len(ahead) >= (self.size or inf))


class Pass:
    """One request under way: it counts until it is answered, or collected."""

    def __init__(self, sent: float, waited: float, source: str) -> None:
        self.sent = sent
        self.waited = waited
        self.source = source


class Limits:
    """The announced limits of one user of a scope. Safe to use from several threads; a forked child has no waiters.

    :param spreads: waiters go a little later than the reset.
    :param paused_until: the server has asked all its users to send nothing before this moment.
    """

    def __init__(self, *, spreads: bool = False, paused_until: float = -inf) -> None:
        self.spreads = spreads
        self._paused_until = paused_until
        self._opening = self._goes = -inf
        self._windows: dict[str, Window] = {}
        self._has_several = False
        self._refused: object = None
        self._closed_until = -inf
        self._closed_by = ""
        self._paths: set[str] = set()  # the paths that announced a limit, two at most: then it is not one path's own
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Replace the lock after a fork: the waiting threads do not exist in the child."""
        self.lock: threading.Lock = threading.Lock()
        self.queue: deque[Turn] = deque()
        # No WeakSet: one that another thread's pass leaves must not be iterated. The callback runs no bytecode.
        self._under_way: dict[weakref.ref[Pass], None] = {}
        self.asked: weakref.WeakSet[Caller] = weakref.WeakSet()
        """Calls that a server asked to wait."""

    @property
    def is_spare(self) -> bool:
        """True if no request waits or is under way."""
        return not self.queue and not self._under_way

    def opens(self, now: float) -> tuple[float, str]:
        """Return when another request may be sent, and the header that says so. Called with the lock."""
        sent = [passed.sent for each in list(self._under_way) if (passed := each()) is not None]
        moments = [(window.opens(now, sent), window.source) for window in self._windows.values()]
        return max([*moments, (self._closed_until, self._closed_by), (self._paused_until, PAUSE)])

    def shut_for(self, now: float) -> float:
        """Return the seconds until another request may be sent; 0: one may be sent now."""
        with self.lock:
            return max(0.0, self.opens(now)[0] - now)

    def goes(self, opens: float, now: float) -> float:
        """Return when the next one goes that may go from a moment on: later by a time of this process, the same for
        all.

        Called with the lock held. A wait of :data:`LAG` is for an answer of our own.
        """
        if self.spreads and opens - now > LAG and opens != self._opening:
            is_alone = len(self.queue) == 1
            self._opening, self._goes = opens, opens + spread(opens - now, is_alone=is_alone)
        return self._goes if self._opening <= max(opens, now) < self._goes else opens

    def try_enter(self, now: float, path: str = "") -> Pass | None:
        """Count a request that is sent now, if none waits and there is room; None: it has to take its turn.

        A limit that only one path announced may be its own, so another path's request does not wait for it.
        """
        with self.lock:
            is_open = not self.queue and self.goes(self.opens(now)[0], now) <= now
            is_free = len(self._paths) == 1 and path not in self._paths and now >= self._paused_until
            return self.let_in(Pass(now, 0.0, "")) if is_open or is_free else None

    def let_in(self, passed: Pass) -> Pass:
        """Count a request that is sent now. Called with the lock."""
        self._under_way[weakref.ref(passed, self._under_way.pop)] = None
        for window in self._windows.values():
            window.own += 1
        return passed

    def answered(
        self, passed: Pass | None, told: Collection[Announced], status: int, now: float, path: str = ""
    ) -> None:
        """Record the end of a request: its pass, if it has one; what its answer announced; its status, or 0."""
        with self.lock:
            if passed is not None:
                self._under_way.pop(weakref.ref(passed), None)
            if path and (told or status in REFUSALS) and len(self._paths) < 2:
                self._paths.add(path)
            if not self._has_several:
                self._take_in(told, now, -inf if passed is None else passed.sent, is_refused=status in REFUSALS)
            if 0 < status < 500 and status not in REFUSALS:
                self._refused, self._closed_until = None, -inf
                self._opening = self._goes = -inf
            self.wake()

    def _take_in(self, limits: Collection[Announced], now: float, sent: float, *, is_refused: bool) -> None:
        told: dict[str, Window] = {}
        for left, reset, size, source, name, counts in limits:
            if left is not None and reset is not None and size != 0:  # a limit of 0 is none
                # If all of it is there again now, and yet this was refused, the reset was rounded down.
                wait = reset or ROUNDING * (is_refused and left < 1)
                moments = now, sent, sent + wait - 2 * ROUNDING, now + wait
                heard = Window(source, size, counts, left, *moments, left + 1, len(self._under_way) + 1)
                window = self._windows.get(name, heard).then(heard)
                self._has_several |= window is None
                told[name] = window or heard
        self._has_several |= bool(told and self._windows) and self._windows.keys().isdisjoint(told)
        self._windows = {} if self._has_several else told or self._windows

    def refused(self, who: object, seconds: float, now: float, status: int | None) -> None:
        """Hold back everybody after the second refusal in a row, of another operation, without a success in between."""
        with self.lock:
            if self._refused not in (None, who) and now + seconds > self._closed_until:
                self._closed_until, self._closed_by = now + seconds, f"retry-after of a {status}"
            self._refused = who

    def pause(self, until: float) -> None:
        """Hold back everybody until a moment, whatever succeeds meanwhile."""
        with self.lock:
            self._paused_until = max(self._paused_until, until)

    def wake(self) -> None:
        """Wake the first in the queue. Called with the lock held."""
        if self.queue:
            self.queue[0].changed.notify()


class Caller:
    """The identity of one call."""

    __slots__ = ("__weakref__",)


class Turn:
    """One request's place in the queue for its limits.

    :param longest: the most seconds that it waits. If it would have to wait longer, it goes at once.
    :param ends: the moment at which it is too late for its call: it does not go if the limit opens later.
    :param latest: the moment that no spread exceeds.
    """

    def __init__(self, limits: Limits, longest: float, ends: float = inf, latest: float = inf) -> None:
        self.changed: threading.Condition = threading.Condition(limits.lock)
        self._limits = limits
        self._longest = longest
        self._ends = ends
        self._latest = min(ends, latest)
        self._began: float | None = None
        self._until = inf
        self._source = ""

    def look(self, now: float) -> Wait | Pass:
        """Join the queue at the first look; then look for room.

        :raises RetryError: if the limit is known to open too late for the call.
        """
        limits = self._limits
        if self._began is None:
            self._began, self._until = now, now + self._longest
            limits.queue.append(self)
        is_first, (opens, cause) = limits.queue[0] is self, limits.opens(now)
        if opens > now and opens >= self._ends:
            why = f"the rate limit ({cause}) opens in {seconds_text(opens - now)}, which is too late for this call"
            raise RetryError(why, stop_reason=StopReason.RATE_LIMITED, unmade=Hint(opens - now, cause))
        until, goes = min(self._until, self._ends), limits.goes(opens, now)
        goes = goes if goes < self._latest else opens
        if now >= until or opens >= self._until or (is_first and goes <= now):
            self.leave(now)
            return limits.let_in(Pass(now, now - self._began, self._source))
        if opens > now or not self._source:
            self._source = cause
        # All but the first are woken by the one in front. Their own time is for a clock that wakes none.
        if is_first:
            return Wait(min(until, goes))
        return Wait(min(until, max(opens, now) + LAG), min(until, max(goes, now)))

    def leave(self, now: float) -> None:
        """Leave the queue, and wake the next."""
        if self in self._limits.queue:  # an interruption may have come before
            self._limits.queue.remove(self)
        self._limits.wake()
