"""The client rate limiter (contract 9): what joins the measured rate, the cubic curve and a bucket of send permits.

It never sleeps: asked for a permit it answers "go" or how long to wait, and the waiting is done by whoever asked,
through the injected clock. Everything that changes is under one lock.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

from .clock import SYSTEM_CLOCK, Clock, wait_on
from .cubic import rate_after_success, rate_after_throttling
from .forksafe import renew_lock_after_fork
from .limiter_settings import DEFAULT_SETTINGS, RateLimiterSettings
from .rate_clocker import RateClocker

FORGET_AFTER = 60.0
"""Seconds without throttling after which an enabled limiter may be forgotten: the curve is out of sight by then."""
MAX_PENDING = 32
"""So many responses are only written down, before the first throttling, until they are worked out together."""


@dataclass(frozen=True, slots=True)
class RateLimiterSnapshot:
    """A limiter at one moment.

    :param enabled: whether the server has throttled, so that attempts need permits.
    :param fill_rate: permits that come per second.
    :param capacity: permits there are now.
    :param max_capacity: the most there can be.
    :param measured_rate: attempts per second, as measured.
    :param last_max_rate: the rate at which the server throttled last.
    :param last_throttle: when it did, on the limiter's clock; at first, when the limiter was made.
    """

    enabled: bool
    fill_rate: float
    capacity: float
    max_capacity: float
    measured_rate: float
    last_max_rate: float
    last_throttle: float


@dataclass(frozen=True, slots=True)
class PermitWait:
    """There is no permit yet: wait, then ask again.

    :param seconds: until there will be one, if the rate stays and nobody else takes it.
    """

    seconds: float
    _limiter: ClientRateLimiter = field(repr=False)
    _generation: int = field(repr=False)

    def rest(self, clock: Clock) -> None:
        """Wait for ``seconds``, or until the rate changes; interruptible. For whoever sends."""
        self._limiter.rest(clock, self._generation, self.seconds)


class ClientRateLimiter:
    """Slows a client down when the server throttles, and lets it speed up again.

    Until the server throttles for the first time it only measures. Then every attempt needs one permit.

    >>> from requests_smithy_retry import ClientRateLimiter
    >>> limiter = ClientRateLimiter()
    >>> limiter.try_acquire() is None
    True
    >>> limiter.record_response(throttled=True)
    >>> limiter.try_acquire().seconds > 0
    True

    :param settings: its numbers.
    :param clock: tells the time.
    """

    _changed: threading.Condition | None
    _resting: int

    def __init__(self, settings: RateLimiterSettings = DEFAULT_SETTINGS, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.settings = settings
        self.clock = clock
        self._now = clock.now
        now = self._used_at = self._refilled_at = self._last_throttle = clock.now()
        self.enabled: bool = False
        """Whether attempts need permits."""
        self.retired = False  # set when its scope was given up; see :mod:`scopes`
        self._pending = array("d")
        self._fill_rate = 1.0
        self._capacity = 0.0
        self._max_capacity = settings.min_capacity
        self._last_max_rate = 0.0
        self._clocker = RateClocker(now, smoothing=settings.smoothing, interval=settings.interval)
        self._generation = 0
        self.renew_lock()
        renew_lock_after_fork(self)

    def try_acquire(self) -> PermitWait | None:
        """Take one permit for one attempt.

        :returns: None: go ahead. Otherwise nothing was taken, and that is how long to wait.
        """
        if not self.enabled:
            return None
        with self._lock:
            now = self.clock.now()
            self._refill(now)
            seconds = (1.0 - self._capacity) / self._fill_rate
            # A wait too small to move the clock would be waited for ever: it is as good as over.
            if now + seconds <= now:
                self._capacity = max(0.0, self._capacity - 1.0)
                return None
            return PermitWait(seconds, self, self._generation)

    def record_response(self, throttled: bool) -> None:
        """Take note that an attempt ended, however it did.

        :param throttled: the server said that there were too many.
        """
        if not throttled and not self.enabled:
            # Nobody needs the rate yet. Appending is atomic, so this path takes no lock.
            self._pending.append(self._now())
            if len(self._pending) >= MAX_PENDING:
                with self._lock:
                    self._work_off()
            return
        with self._lock:
            self._work_off()
            self._record(self.clock.now(), throttled)
            self._generation += 1
            if self._changed is not None:
                self._changed.notify_all()

    def _record(self, now: float, throttled: bool) -> bool:
        """The formulas of contract 9. Returns whether the measured rate, not the curve, sets the new rate."""
        self._used_at = now
        measured = self._clocker.record(now)
        settings = self.settings
        if throttled:
            rate = min(measured, self._fill_rate) if self.enabled else measured
            self._last_max_rate = rate
            self._last_throttle = now
            self.enabled = True
            rate = rate_after_throttling(rate, beta=settings.beta)
        else:
            rate = rate_after_success(
                now,
                last_max_rate=self._last_max_rate,
                last_throttle=self._last_throttle,
                beta=settings.beta,
                scale=settings.scale,
            )
        self._refill(now)
        most = settings.max_rate_scale * measured
        is_bounded = rate >= most
        rate = min(rate, most)
        self._fill_rate = max(rate, settings.min_fill_rate)
        self._max_capacity = max(rate, settings.min_capacity)
        self._capacity = min(self._capacity, self._max_capacity)
        return is_bounded

    def _work_off(self) -> None:
        """Record the successes that were written down, to the same end as one by one."""
        count = len(self._pending)
        times = sorted(self._pending[:count])
        del self._pending[:count]
        index = 0
        while index < count:
            is_bounded = self._record(times[index], throttled=False)
            index += 1
            if is_bounded:
                # Until the measured rate changes, each further success sets the same rate: the last one stands for all.
                end = bisect_left(times, self._clocker.interval_end)
                self._clocker.skip(end - index)
                self._used_at = times[end - 1]
                index = end

    def rest(self, clock: Clock, generation: int, seconds: float) -> None:
        """Wait until the rate changes, at most so long; what :meth:`PermitWait.rest` does."""
        with self._lock:
            # A response that came since the question was asked has changed the answer.
            if self._generation == generation:
                # A condition takes as much memory as all the rest: only who waits has one.
                self._changed = changed = self._changed or threading.Condition(self._lock)
                self._resting += 1
                try:
                    wait_on(clock, changed, seconds)
                finally:
                    self._resting -= 1
                    self._changed = changed if self._resting else None

    @property
    def used_at(self) -> float:
        """When the last response came."""
        try:
            return self._pending[-1]
        except IndexError:
            return self._used_at

    @property
    def is_spare(self) -> bool:
        """Whether a new limiter would do as well: the server has not throttled, or not for long, and nobody waits."""
        if self._resting:
            return False
        return not self.enabled or self.clock.now() - self._last_throttle >= FORGET_AFTER

    def snapshot(self) -> RateLimiterSnapshot:
        """An immutable view of the limiter now."""
        with self._lock:
            self._work_off()
            self._refill(self.clock.now())
            return RateLimiterSnapshot(
                self.enabled,
                self._fill_rate,
                self._capacity,
                self._max_capacity,
                self._clocker.measured_rate,
                self._last_max_rate,
                self._last_throttle,
            )

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork: whoever waited is not in the child."""
        self._lock = threading.Lock()
        self._changed = None
        self._resting = 0

    def _refill(self, now: float) -> None:
        gained = (now - self._refilled_at) * self._fill_rate
        self._capacity = min(self._max_capacity, self._capacity + gained)
        self._refilled_at = now

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy keeps the configuration and starts without a past, with a lock of its own (contract 11.1).
        return _limiter, (type(self), self.settings, self.clock)

    def __repr__(self) -> str:
        view = self.snapshot()
        state = f"{view.fill_rate:.3g}/s, {view.capacity:.3g} of {view.max_capacity:.3g}"
        return f"<{type(self).__name__} {state if view.enabled else 'measuring'}>"


def _limiter(cls: type[ClientRateLimiter], settings: RateLimiterSettings, clock: Clock) -> ClientRateLimiter:
    return cls(settings, clock=clock)
