"""The client's rate limiter (contract 9): its numbers, the measured rate, the cubic curve, and the permits."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field, fields
from typing import ClassVar

from ..checks import is_finite
from ..clock import SYSTEM_CLOCK, Clock, Wait, checked_clock, wait_in
from ..forksafe import FreshCopies, renew_lock_after_fork

BETA = 0.7
"""The part of the rate that is left after throttling."""
SCALE = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimiterSettings:
    """The numbers of a :class:`ClientRateLimiter`. The defaults are those of the AWS SDKs' adaptive mode.

    >>> RateLimiterSettings(beta=1)
    Traceback (most recent call last):
    ValueError: beta=1: a number above 0 and below 1 is allowed

    :param beta: the part of the rate that is left after throttling, above 0 and below 1.
    :param scale: the steepness of the rise afterwards, above 0.
    :param smoothing: the weight of the newest measured rate, above 0 and up to 1.
    :param min_fill_rate: the rate never falls below it, in attempts per second, above 0.
    :param min_capacity: the number of attempts that may be made at once, however low the rate; 1 or more.
    :param max_rate_scale: the rate never rises above this multiple of the measured one, 1 or more.
    :param interval: the shortest time over which a rate is measured, in seconds, above 0.
    :raises ValueError: for a number out of its range.
    """

    beta: float = BETA
    scale: float = SCALE
    smoothing: float = 0.8
    min_fill_rate: float = 0.5
    min_capacity: float = 1.0
    max_rate_scale: float = 2.0
    interval: float = 0.5

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not is_finite(value):
                raise ValueError(f"{item.name}={value!r}: a finite number is allowed")
            if item.name in ("min_capacity", "max_rate_scale"):
                allowed, is_allowed = "a number of 1 or more", value >= 1
            elif item.name == "beta":
                allowed, is_allowed = "a number above 0 and below 1", 0 < value < 1
            elif item.name == "smoothing":
                allowed, is_allowed = "a number above 0 and up to 1", 0 < value <= 1
            else:
                allowed, is_allowed = "a number above 0", value > 0
            if not is_allowed:
                raise ValueError(f"{item.name}={value!r}: {allowed} is allowed")


DEFAULT_SETTINGS = RateLimiterSettings()


def recovery_time(last_max_rate: float, *, beta: float = BETA, scale: float = SCALE) -> float:
    """Return the seconds after throttling until the curve is back at its old rate.

    >>> round(recovery_time(10), 6)
    1.957434
    """
    return float((last_max_rate * (1 - beta) / scale) ** (1 / 3))


def rate_after_success(
    now: float, *, last_max_rate: float, last_throttle: float, beta: float = BETA, scale: float = SCALE
) -> float:
    """Return the rate of the curve at a moment.

    >>> [round(rate_after_success(now, last_max_rate=10, last_throttle=5), 3) for now in (5, 6, 7, 8, 9)]
    [7.0, 9.649, 10.0, 10.453, 13.409]
    """
    since = now - last_throttle - recovery_time(last_max_rate, beta=beta, scale=scale)
    return scale * since**3 + last_max_rate


FINEST = 1e-6
"""Seconds. No clock is finer, and the number of a shorter interval may be too large for a float."""


class RateClocker:
    """Counts responses in intervals of a clock, and smooths the rates of the intervals that are over.

    Intervals are numbered: whole numbers compare exactly, while the moment at which one ends may be rounded. The
    first one begins with the whole second in which the clocker is made, as in botocore and smithy-rs.

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
        self.count: int = 0
        self._counted = 0
        self._last_interval = self._interval_of(math.floor(now))

    def record(self, now: float) -> float:
        """Count one response; return the smoothed rate, in responses per second."""
        self.count += 1
        this_interval = self._interval_of(now)
        if this_interval > self._last_interval:
            rate = (self.count - self._counted) / ((this_interval - self._last_interval) * self.interval)
            self.measured_rate = self.smoothing * rate + (1 - self.smoothing) * self.measured_rate
            self._counted = self.count
            self._last_interval = this_interval
        return self.measured_rate

    def _interval_of(self, now: float) -> int:
        return math.floor(now / self.interval)


FASTEST = 1e12
"""Permits per second. Settings at the ends of their ranges ask for more, or for a rate that is not a number."""


@dataclass(frozen=True, slots=True)
class RateLimiterSnapshot:
    """A limiter at one moment.

    :param enabled: True: the server has throttled, so attempts need permits.
    :param fill_rate: permits added per second.
    :param capacity: permits available now.
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
    """The wait for a permit that is not available yet. Rest, then ask again.

    :param seconds: until one is available, if the rate stays the same and no other thread takes it.
    :param limiter: wakes resting threads when its rate changes; None: they rest to the end.
    :param changes: how often its rate had changed at the request.
    """

    seconds: float
    limiter: ClientRateLimiter | None = field(default=None, repr=False, compare=False)
    changes: int = field(default=0, repr=False, compare=False)

    def rest(self, clock: Clock) -> None:
        """Wait for ``seconds``, or until the rate has changed since the request; interruptible. For the sender."""
        if self.limiter is None:
            clock.sleep(self.seconds)
        else:
            wait_in(Resting(self.limiter, self.seconds, self.changes), clock)


class Resting:
    """One thread's place among those that wait for a permit. All are woken when the rate changes."""

    def __init__(self, limiter: ClientRateLimiter, seconds: float, changes: int) -> None:
        self.changed: threading.Condition = threading.Condition(limiter._lock)
        self._limiter = limiter
        self._seconds = seconds
        self._changes = changes

    def look(self, now: float) -> Wait | None:
        """Rest at the first look; at a later one, or once the rate has changed, return to ask again."""
        if self in self._limiter._waiting or self._changes != self._limiter._changes:
            self.leave(now)
            return None
        self._limiter._waiting[self] = None
        return Wait(now + self._seconds)

    def leave(self, now: float) -> None:
        self._limiter._waiting.pop(self, None)


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
            *("_refilled_at", "_last_throttle", "enabled", "_fill_rate", "_capacity", "_max_capacity"),
            *("_last_max_rate", "_clocker", "_lock", "_waiting", "_changes"),
        }
    )

    def __init__(self, settings: RateLimiterSettings = DEFAULT_SETTINGS, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.settings = settings
        self.clock: Clock = checked_clock(clock)
        self._begin()

    def _begin(self) -> None:
        self._changes = 0
        self._reset()
        self.renew_lock()
        renew_lock_after_fork(self)

    def _reset(self) -> None:
        settings = self.settings
        now = self._refilled_at = self._last_throttle = self.clock.now()
        self.enabled: bool = False
        """True if attempts need permits."""
        self._fill_rate = 1.0
        self._capacity = 0.0
        self._max_capacity = settings.min_capacity
        self._last_max_rate = 0.0
        self._clocker = RateClocker(now, smoothing=settings.smoothing, interval=settings.interval)

    def try_acquire(self) -> PermitWait | None:
        """Take one permit for one attempt.

        :returns: None if a permit was taken. Otherwise the wait after which to ask again.
        """
        if not self.enabled:
            return None
        with self._lock:
            seconds = self._take(self.clock.now())
            return None if seconds is None else PermitWait(seconds, self, self._changes)

    def _take(self, now: float) -> float | None:
        """Take one permit, or return the seconds until there is one. Called with the lock held."""
        self._refill(now)
        seconds = (1.0 - self._capacity) / self._fill_rate
        # A wait too small to move the clock would never end: it counts as over.
        if now + seconds > now:
            return seconds
        self._capacity = max(0.0, self._capacity - 1.0)
        return None

    def record_response(self, throttled: bool) -> None:
        """Record the end of an attempt, successful or not.

        :param throttled: the server reported too many requests.
        """
        with self._lock:
            self._record(self.clock.now(), throttled)
            self._wake_all()

    def record_success(self) -> None:
        """Record a success, as ``record_response(False)`` does."""
        self.record_response(False)

    def _record(self, now: float, throttled: bool) -> None:
        measured = self._clocker.record(now)
        settings = self.settings
        if throttled:
            rate = min(measured, self._fill_rate) if self.enabled else measured
            self._last_max_rate = rate
            self._last_throttle = now
            self.enabled = True
            rate *= settings.beta
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
        rate = min(rate, most, FASTEST)
        self._fill_rate = max(rate, settings.min_fill_rate)
        self._max_capacity = max(rate, settings.min_capacity)
        self._capacity = min(self._capacity, self._max_capacity)

    @property
    def is_waited_on(self) -> bool:
        """True if some thread waits for a permit."""
        return bool(self._waiting)

    def forget(self, now: float) -> None:
        """Start afresh; threads that wait for a permit continue at once."""
        with self._lock:
            self._reset()
            self._wake_all()

    def _wake_all(self) -> None:
        self._changes += 1
        for place in tuple(self._waiting):
            place.changed.notify()

    def snapshot(self) -> RateLimiterSnapshot:
        """An immutable view of the limiter now."""
        with self._lock:
            self._refill(self.clock.now())
            rates = self._fill_rate, self._capacity, self._max_capacity, self._clocker.measured_rate
            return RateLimiterSnapshot(self.enabled, *rates, self._last_max_rate, self._last_throttle)

    def renew_lock(self) -> None:
        """Replace the lock after a fork: the waiting threads do not exist in the child."""
        self._lock = threading.Lock()
        self._waiting: dict[Resting, None] = {}  # in the order in which they came

    def _refill(self, now: float) -> None:
        gained = (now - self._refilled_at) * self._fill_rate
        self._capacity = min(self._max_capacity, self._capacity + gained)
        self._refilled_at = now

    def __repr__(self) -> str:
        view = self.snapshot()
        state = f"{view.fill_rate:.3g}/s, {view.capacity:.3g} of {view.max_capacity:.3g}"
        return f"<{type(self).__name__} {state if view.enabled else 'measuring'}>"
