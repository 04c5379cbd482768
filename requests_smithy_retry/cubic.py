"""The cubic rate calculation (contract 9), after TCP CUBIC: pure functions of numbers.

After throttling the rate drops to a part of what it was; then it rises, steeply at first, flat around the rate at
which the server throttled, and steeply again beyond it.
"""

from __future__ import annotations

BETA = 0.7
"""After throttling, this part of the rate is left."""
SCALE = 0.4
"""How fast the curve rises."""


def rate_after_throttling(rate: float, *, beta: float = BETA) -> float:
    """The rate to go on with after throttling.

    :param rate: the rate at which the server throttled, per second.
    :param beta: the part that is left.
    """
    return beta * rate


def recovery_time(last_max_rate: float, *, beta: float = BETA, scale: float = SCALE) -> float:
    """Seconds after throttling until the curve is back at the rate of then.

    >>> round(recovery_time(10), 6)
    1.957434

    :param last_max_rate: the rate at which the server throttled, from 0 on.
    :param beta: the part that was left.
    :param scale: how fast the curve rises.
    """
    return float((last_max_rate * (1 - beta) / scale) ** (1 / 3))


def rate_after_success(
    now: float, *, last_max_rate: float, last_throttle: float, beta: float = BETA, scale: float = SCALE
) -> float:
    """The rate of the curve at a moment.

    >>> [round(rate_after_success(now, last_max_rate=10, last_throttle=5), 3) for now in (5, 6, 7, 8, 9)]
    [7.0, 9.649, 10.0, 10.453, 13.409]

    :param now: the moment, in seconds.
    :param last_max_rate: the rate at which the server throttled, from 0 on.
    :param last_throttle: when it did.
    :param beta: the part that was left.
    :param scale: how fast the curve rises.
    """
    since = now - last_throttle - recovery_time(last_max_rate, beta=beta, scale=scale)
    return scale * since**3 + last_max_rate
