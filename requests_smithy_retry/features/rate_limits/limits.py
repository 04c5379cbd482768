"""Announced rate limits as a count-down (contract 7.4): which requests wait for the reset of a limit that is used up.

A :class:`Window` is one announced limit, a :class:`Limits` has all limits of one user of a scope. The caller passes the
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
"""Seconds by which a reset in whole seconds may be off, and the ``Date`` that it is measured against."""
LAG = 1.0
"""Seconds within which a server counts a request; others wait no longer for the first answer of a new window."""
AT_ONCE = 8
"""If others use a limit as well, at most one in this many of the remaining requests is under way at once."""
SPREAD, MOST_SPREAD = 0.1, 5.0
"""Each process waits longer than a server asked by at most this part, and at most these seconds."""
SHORT = 2.0
"""A thread that waits alone for fewer seconds gets no spread."""
REFUSALS = frozenset({403, 429, 503})  # the statuses by which servers refuse a request because of a limit


def spread(seconds: float, *, is_alone: bool) -> float:
    """Return the seconds to wait longer than a server asked, so that not all processes come at once."""
    return 0.0 if is_alone and seconds < SHORT else random_part() * min(SPREAD * seconds, MOST_SPREAD)


@dataclass(eq=False, slots=True)
class Window:
    """One window of an announced limit, according to one answer or to all."""

    source: str  # the header behind it
    limit: float | None  # the requests of a whole window; None: it is not known
    counts_requests: bool  # if not, it matters only whether something is left
    remaining: float
    told_at: float  # when so much was left: a request that is sent later finds less, or another window
    sent_at: float  # when the latest answered request was sent
    lasts_until: float  # it does not end earlier, however its reset was rounded
    resets_at: float  # when all of it is available again: the earliest announced moment
    first_remaining: float = 0.0  # what was left before its first answer
    own_requests: int = 0  # those that this process has sent since then
    was_shared: bool = False  # others used the window before this one as well

    @property
    def is_shared(self) -> bool:
        """True if others use it as well: they have had an eighth of it."""
        return self.first_remaining - self.remaining - self.own_requests > self.first_remaining / AT_ONCE

    def then(self, answer: Window) -> Window | None:
        """Return what is known after another answer; None if that is about another limit: there are several."""
        is_over = answer.told_at >= self.resets_at
        is_risen = answer.remaining > self.remaining and answer.sent_at > self.told_at
        if not is_over and self._contradicts(answer, is_new=is_risen):
            return None
        if is_risen or (is_over and answer.sent_at >= self.resets_at):
            answer.was_shared = self.is_shared
            return answer
        if not is_over:  # else it is about the time before
            self.remaining, self.told_at = min((self.remaining, self.told_at), (answer.remaining, answer.told_at))
            self.sent_at = max(self.sent_at, answer.sent_at)
            self.lasts_until = max(self.lasts_until, answer.lasts_until)
            self.resets_at = min(self.resets_at, answer.resets_at)
            self.own_requests += answer.sent_at == -inf
        return self

    def _contradicts(self, answer: Window, *, is_new: bool) -> bool:
        """Return True for another size or end, and for a new window before this one can be over."""
        is_early = (answer.told_at if is_new else answer.resets_at + ROUNDING) < self.lasts_until
        is_late = answer.lasts_until > self.resets_at + ROUNDING and not is_new
        return is_early or is_late or (answer.limit != self.limit and None not in (answer.limit, self.limit))

    def opens(self, now: float, in_flight: Collection[float]) -> float:
        """Return when another request may be sent: now, or the moment until which none may without another answer.

        :param in_flight: when the requests without an answer yet were sent.
        """
        if now < self.resets_at:
            most = self.remaining
            if self.was_shared or self.is_shared:
                most = max(self.remaining // AT_ONCE, min(self.remaining, 1))
            uncounted = sum(sent > self.sent_at - LAG for sent in in_flight)
            return now if most - uncounted * self.counts_requests >= 1 else self.resets_at
        # The limit of a new window is known with its first answer: if some were held back, one goes ahead.
        ahead = [sent for sent in in_flight if sent >= self.resets_at]
        if not ahead or self.remaining - (len(in_flight) - len(ahead)) * self.counts_requests >= 1:
            return now
        answered = min(ahead) + LAG
        return answered if now < answered else now + LAG * (len(ahead) >= (self.limit or inf))


class InFlight:
    """One request under way: it counts until it is answered, or garbage-collected."""

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
        self.queue: deque[PlaceAtLimits] = deque()
        # No WeakSet: one that another thread's request leaves must not be iterated. The callback runs no bytecode.
        self._in_flight: dict[weakref.ref[InFlight], None] = {}
        self.asked: weakref.WeakSet[Caller] = weakref.WeakSet()
        """Calls that a server asked to wait."""

    @property
    def is_spare(self) -> bool:
        """True if no request waits or is under way."""
        return not self.queue and not self._in_flight

    def opens(self, now: float) -> tuple[float, str]:
        """Return when another request may be sent, and the header that says so. Called with the lock."""
        sent = [one.sent for each in list(self._in_flight) if (one := each()) is not None]
        moments = [(window.opens(now, sent), window.source) for window in self._windows.values()]
        return max([*moments, (self._closed_until, self._closed_by), (self._paused_until, PAUSE)])

    def shut_for(self, now: float) -> tuple[float, str]:
        """Return the seconds until another request may be sent, and the header that says so; 0: one may be sent now."""
        with self.lock:
            opens, cause = self.opens(now)
        return max(0.0, opens - now), cause

    def goes_at(self, opens: float, now: float) -> float:
        """Return when the next request goes if the limit opens at a moment: with spread a little later, and at the
        same time for the whole process. Called with the lock held.
        """
        if self.spreads and opens - now > LAG and opens != self._opening:  # else it waits for an answer of our own
            is_alone = len(self.queue) == 1
            self._opening, self._goes = opens, opens + spread(opens - now, is_alone=is_alone)
        return self._goes if self._opening <= max(opens, now) < self._goes else opens

    def try_enter(self, now: float, path: str = "") -> InFlight | None:
        """Count a request that is sent now, if none waits and there is room; None if it has to wait its turn.

        A limit that only one path announced may be its own, so another path's request does not wait for it.
        """
        with self.lock:
            is_open = not self.queue and self.goes_at(self.opens(now)[0], now) <= now
            is_free = len(self._paths) == 1 and path not in self._paths and now >= self._paused_until
            return self.let_in(InFlight(now, 0.0, "")) if is_open or is_free else None

    def let_in(self, in_flight: InFlight) -> InFlight:
        """Count a request that is sent now. Called with the lock held."""
        self._in_flight[weakref.ref(in_flight, self._in_flight.pop)] = None
        for window in self._windows.values():
            window.own_requests += 1
        return in_flight

    def answered(
        self, in_flight: InFlight | None, told: Collection[Announced], status: int, now: float, path: str = ""
    ) -> None:
        """Record a request's end: ``in_flight``, if it was counted; what its answer announced; its status, or 0."""
        with self.lock:
            if in_flight is not None:
                self._in_flight.pop(weakref.ref(in_flight), None)
            if path and (told or status in REFUSALS) and len(self._paths) < 2:
                self._paths.add(path)
            if not self._has_several:
                self._take_in(told, now, -inf if in_flight is None else in_flight.sent, is_refused=status in REFUSALS)
            if 0 < status < 500 and status not in REFUSALS:
                self._refused, self._closed_until = None, -inf
                self._opening = self._goes = -inf
            self.wake()

    def _take_in(self, limits: Collection[Announced], now: float, sent: float, *, is_refused: bool) -> None:
        told: dict[str, Window] = {}
        for remaining, reset, limit, source, name, counts_requests in limits:
            if remaining is not None and reset is not None and limit != 0:  # a limit of 0 is none
                # If the limit resets now, and yet this was refused, the reset was rounded down.
                wait = reset or ROUNDING * (is_refused and remaining < 1)
                new = Window(
                    source,
                    limit,
                    counts_requests,
                    remaining,
                    told_at=now,
                    sent_at=sent,
                    lasts_until=sent + wait - 2 * ROUNDING,
                    resets_at=now + wait,
                    first_remaining=remaining + 1,
                    own_requests=len(self._in_flight) + 1,
                )
                window = self._windows.get(name, new).then(new)
                self._has_several |= window is None
                told[name] = window or new
        self._has_several |= bool(told and self._windows) and self._windows.keys().isdisjoint(told)
        self._windows = {} if self._has_several else told or self._windows

    def refused(self, who: object, seconds: float, now: float, status: int | None) -> None:
        """Hold back all calls after a second refusal in a row, of another operation, without a success in between."""
        with self.lock:
            if self._refused not in (None, who) and now + seconds > self._closed_until:
                self._closed_until, self._closed_by = now + seconds, f"retry-after of a {status}"
            self._refused = who

    def pause(self, until: float) -> None:
        """Hold back all calls until a moment, even if some succeed meanwhile."""
        with self.lock:
            self._paused_until = max(self._paused_until, until)

    def wake(self) -> None:
        """Wake the first in the queue. Called with the lock held."""
        if self.queue:
            self.queue[0].changed.notify()


class Caller:
    """The identity of one call."""

    __slots__ = ("__weakref__",)


def opens_too_late(seconds: float, cause: str) -> RetryError:
    """Return the refusal of a call whose limit opens too late for it."""
    why = f"the rate limit ({cause}) opens in {seconds_text(seconds)}, which is too late for this call"
    return RetryError(why, stop_reason=StopReason.RATE_LIMITED, unmade=Hint(seconds, cause))


class PlaceAtLimits:
    """One request's place in the queue for its limits.

    :param longest: the most seconds that it waits. If it would have to wait longer, it goes at once.
    :param ends: the moment at which it is too late for its call: it does not go if the limit opens later.
    :param latest: the moment up to which it may be spread.
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

    def look(self, now: float) -> Wait | InFlight:
        """Join the queue at the first look; then look for room.

        :raises RetryError: if the limit is known to open too late for the call.
        """
        limits = self._limits
        if self._began is None:
            self._began, self._until = now, now + self._longest
            limits.queue.append(self)
        is_first, (opens, cause) = limits.queue[0] is self, limits.opens(now)
        if opens > now and opens >= self._ends:
            raise opens_too_late(opens - now, cause)
        until, goes = min(self._until, self._ends), limits.goes_at(opens, now)
        goes = goes if goes < self._latest else opens
        if now >= until or opens >= self._until or (is_first and goes <= now):
            self.leave(now)
            return limits.let_in(InFlight(now, now - self._began, self._source))
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
