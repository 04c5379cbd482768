"""The numbers of the client's rate limiter (contract 9), which every config has; the limiter is another module."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..checks import is_finite

BETA = 0.7
"""After throttling, this part of the rate is left."""
SCALE = 0.4
"""The steepness of the curve."""


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
"""The published numbers."""
