"""The client's rate limiter (contract 9): the measured rate, the cubic curve, and the permits."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from ..clock import SYSTEM_CLOCK, Clock, wait_on
from ..forksafe import FreshCopies, renew_lock_after_fork
from .limiter_settings import BETA, DEFAULT_SETTINGS, SCALE, RateLimiterSettings


def rate_after_throttling(rate: float, *, beta: float = BETA) -> float:
    """Return the rate to go on with after throttling at a rate."""
    return beta * rate


def recovery_time(last_max_rate: float, *, beta: float = BETA, scale: float = SCALE) -> float:
    """Return the seconds after throttling until the curve is back at its old rate.

    >>> round(recovery_time(10), 6)
    1.957434

    :param last_max_rate: the rate at which the server throttled, 0 or more.
    """
    return float((last_max_rate * (1 - beta) / scale) ** (1 / 3))


def rate_after_success(
    now: float, *, last_max_rate: float, last_throttle: float, beta: float = BETA, scale: float = SCALE
) -> float:
    """Return the rate of the curve at a moment.

    >>> [round(rate_after_success(now, last_max_rate=10, last_throttle=5), 3) for now in (5, 6, 7, 8, 9)]
    [7.0, 9.649, 10.0, 10.453, 13.409]

    :param last_max_rate: the rate at which the server throttled, 0 or more.
    :param last_throttle: when it did.
    """
    since = now - last_throttle - recovery_time(last_max_rate, beta=beta, scale=scale)
    return scale * since**3 + last_max_rate


FINEST = 1e-6
"""Seconds. No clock is finer, and the number of a shorter interval may be too large for a float."""
ROUNDING = 1e-15
"""The precision of the end of an interval, as a part of the interval."""


class RateClocker:
    """Counts responses in intervals of a clock, and smooths the rates of the intervals that are over.

    Intervals have numbers: whole numbers are compared exactly, where the moment at which one ends may be rounded.

    >>> clocker = RateClocker(now=0.0)
    >>> [clocker.record(now) for now in (0.1, 0.2, 0.3, 0.4, 0.49)]
    [0.0, 0.0, 0.0, 0.0, 0.0]
    >>> round(clocker.record(0.5), 9)
    9.6

    :param smoothing: the weight of the newest interval, above 0 and up to 1.
    :param interval: the least length of an interval in seconds, above 0; one below a microsecond counts as one.
    """

    __slots__ = ("_counted", "_last_interval", "count", "interval", "measured_rate", "smoothing")

    def __init__(self, now: float, *, smoothing: float = 0.8, interval: float = 0.5) -> None:
        self.smoothing: float = smoothing
        self.interval: float = max(interval, FINEST)
        self.measured_rate: float = 0.0
        self.count: Callable[[], int] = itertools.count(1).__next__
        """Count one response that belongs to the current interval; needs no lock."""
        self._counted = 0
        self._last_interval = self._interval_of(now)

    def record(self, now: float) -> float:
        """Count one response; return the smoothed rate, in responses per second."""
        number = self.count()
        this_interval = self._interval_of(now)
        if this_interval > self._last_interval:
            rate = (number - self._counted) / ((this_interval - self._last_interval) * self.interval)
            self.measured_rate = self.smoothing * rate + (1 - self.smoothing) * self.measured_rate
            self._counted = number
            self._last_interval = this_interval
        return self.measured_rate

    @property
    def lasts_until(self) -> float:
        """The moment before which each response belongs to the current interval, less a few roundings."""
        end = (self._last_interval + 1) * self.interval
        return end - abs(end) * ROUNDING

    def _interval_of(self, now: float) -> int:
        return math.floor(now / self.interval)


FORGET_AFTER = 60.0
"""Seconds without throttling after which an enabled limiter may be forgotten: a new one would do no harm then."""

FASTEST = 1e12
"""Permits per second. Settings at the ends of their ranges ask for more, up to a rate that is no number."""


@dataclass(frozen=True, slots=True)
class RateLimiterSnapshot:
    """A limiter at one moment.

    :param enabled: True: the server has throttled, so attempts need permits.
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
    """The wait for a permit that is not there yet. Rest, then ask again.

    :param seconds: until there will be one, if the rate stays the same and no other thread takes it.
    """

    seconds: float
    _limiter: ClientRateLimiter = field(repr=False)
    _generation: int = field(repr=False)

    def rest(self, clock: Clock) -> None:
        """Wait for ``seconds``, or until the rate changes; interruptible. For the sender."""
        self._limiter.rest(clock, self._generation, self.seconds)


class ClientRateLimiter(FreshCopies):
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

    _past: ClassVar[frozenset[str]] = frozenset(
        {
            *("_now", "used_at", "_refilled_at", "_last_throttle", "enabled", "retired", "_fill_rate", "_count"),
            *("_steady_until", "_capacity", "_max_capacity", "_last_max_rate", "_clocker", "_generation"),
            *("_lock", "_changed", "_resting"),
        }
    )
    _changed: threading.Condition | None
    _resting: int

    def __init__(self, settings: RateLimiterSettings = DEFAULT_SETTINGS, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.settings = settings
        self.clock = clock
        self._begin()

    def _begin(self) -> None:
        settings = self.settings
        self._now = self.clock.now
        now = self._refilled_at = self._last_throttle = self._now()
        self.used_at: float = now
        """The moment of the last response."""
        self.enabled: bool = False
        """True if attempts need permits."""
        self.retired = False  # set when its scope was given up; see :mod:`scopes`
        self._steady_until = -math.inf  # no success changes the rate before
        self._fill_rate = 1.0
        self._capacity = 0.0
        self._max_capacity = settings.min_capacity
        self._last_max_rate = 0.0
        self._clocker = RateClocker(now, smoothing=settings.smoothing, interval=settings.interval)
        self._count = self._clocker.count
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
            # A wait too small to move the clock would never end: it counts as over.
            if now + seconds <= now:
                self._capacity = max(0.0, self._capacity - 1.0)
                return None
            return PermitWait(seconds, self, self._generation)

    def record_response(self, throttled: bool) -> None:
        """Take note of the end of an attempt, successful or not.

        :param throttled: the server said that there were too many.
        """
        with self._lock:
            self._record(self._now(), throttled)
            self._generation += 1
            if self._changed is not None:
                self._changed.notify_all()

    def record_success(self) -> object:
        """Take note of a success: like ``record_response(False)``, but cheaper while the rate cannot change."""
        now = self._now()
        if now < self._steady_until:
            # Nobody needs a permit yet, and it would set the same rate again. Counting is atomic, so there is no lock.
            self.used_at = now
            return self._count()
        self.record_response(False)
        return None

    def _record(self, now: float, throttled: bool) -> None:
        """Set the rate by the formulas of contract 9."""
        self.used_at = now
        measured = self._clocker.record(now)
        settings = self.settings
        if throttled:
            rate = min(measured, self._fill_rate) if self.enabled else measured
            self._last_max_rate = rate
            self._last_throttle = now
            self.enabled = True
            rate = rate_after_throttling(rate, beta=settings.beta)
        elif not self.enabled:
            rate = settings.scale * (now - self._last_throttle) ** 3  # the curve that rises from 0
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
        # Where the measured rate, not the curve, sets the new one, it stays until the measured rate changes.
        is_steady = rate >= most and not self.enabled
        self._steady_until = self._clocker.lasts_until if is_steady else -math.inf
        rate = min(rate, most, FASTEST)
        self._fill_rate = max(rate, settings.min_fill_rate)
        self._max_capacity = max(rate, settings.min_capacity)
        self._capacity = min(self._capacity, self._max_capacity)

    def rest(self, clock: Clock, generation: int, seconds: float) -> None:
        """Wait until the rate changes, at most ``seconds``; the work of :meth:`PermitWait.rest`."""
        with self._lock:
            # A response that came since the question was asked has changed the answer.
            if self._generation == generation:
                # A condition takes as much memory as all the rest, so it exists only while a thread waits.
                self._changed = changed = self._changed or threading.Condition(self._lock)
                is_resting = False
                try:
                    # One step: a signal's handler may raise between two.
                    self._resting, is_resting = self._resting + 1, True
                    wait_on(clock, changed, seconds)
                finally:
                    self._resting -= is_resting
                    self._changed = changed if self._resting else None

    @property
    def is_spare(self) -> bool:
        """True if a new limiter would do as well: no throttling, or none for long, and no waiting thread."""
        if self._resting:
            return False
        return not self.enabled or self.clock.now() - self._last_throttle >= FORGET_AFTER

    def snapshot(self) -> RateLimiterSnapshot:
        """An immutable view of the limiter now."""
        with self._lock:
            self._refill(self.clock.now())
            rates = self._fill_rate, self._capacity, self._max_capacity, self._clocker.measured_rate
            return RateLimiterSnapshot(self.enabled, *rates, self._last_max_rate, self._last_throttle)

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork: the waiting threads do not exist in the child."""
        self._lock = threading.Lock()
        self._changed = None
        self._resting = 0

    def _refill(self, now: float) -> None:
        gained = (now - self._refilled_at) * self._fill_rate
        self._capacity = min(self._max_capacity, self._capacity + gained)
        self._refilled_at = now

    def __repr__(self) -> str:
        view = self.snapshot()
        state = f"{view.fill_rate:.3g}/s, {view.capacity:.3g} of {view.max_capacity:.3g}"
        return f"<{type(self).__name__} {state if view.enabled else 'measuring'}>"
