"""How fast a client is going (contract 9): responses per second, smoothed. Its owner, the limiter, holds a lock."""

from __future__ import annotations

import math


class RateClocker:
    """Counts responses in intervals of a clock, and smooths the rates of the intervals that are over.

    >>> clocker = RateClocker(now=0.0)
    >>> [clocker.record(now) for now in (0.1, 0.2, 0.3, 0.4, 0.49)]
    [0.0, 0.0, 0.0, 0.0, 0.0]
    >>> round(clocker.record(0.5), 9)
    9.6

    :param now: when counting begins, in seconds.
    :param smoothing: the weight of the newest interval, above 0 and up to 1.
    :param interval: the least length of an interval in seconds, above 0.
    """

    __slots__ = ("_count", "_last_interval", "interval", "measured_rate", "smoothing")

    def __init__(self, now: float, *, smoothing: float = 0.8, interval: float = 0.5) -> None:
        self.smoothing: float = smoothing
        self.interval: float = interval
        self.measured_rate: float = 0.0
        self._count = 0
        self._last_interval = math.floor(now / interval) * interval

    def record(self, now: float) -> float:
        """Count one response.

        :param now: when it came, in seconds.
        :returns: the smoothed rate, in responses per second.
        """
        self._count += 1
        this_interval = math.floor(now / self.interval) * self.interval
        if this_interval > self._last_interval:
            rate = self._count / (this_interval - self._last_interval)
            self.measured_rate = self.smoothing * rate + (1 - self.smoothing) * self.measured_rate
            self._count = 0
            self._last_interval = this_interval
        return self.measured_rate

    def skip(self, count: int) -> None:
        """Count so many responses of the current interval, which change no rate."""
        self._count += count

    @property
    def interval_end(self) -> float:
        """The moment before which responses belong to the current interval."""
        return self._last_interval + self.interval
