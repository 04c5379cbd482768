"""How long to wait before a retry (contract 7.1): pure arithmetic, total over all ints, without state."""

from __future__ import annotations

import enum
import inspect
import math
import random as _random
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from .finite import is_finite, shown


class Jitter(enum.Enum):
    """How a delay is spread, so that clients that failed together do not come back together."""

    FULL = "full"
    """Anywhere from 0 to the whole delay. The default."""
    EQUAL = "equal"
    """Half of the delay is kept, the other half is spread."""
    NONE = "none"
    """The delay as computed."""
    DECORRELATED = "decorrelated"
    """From the scale value up to three times the previous delay."""


@runtime_checkable
class RetryBackoffStrategy(Protocol):
    """Computes the delay before a retry; stateless.

    A strategy whose next delay depends on the last one may take it as a second, optional argument
    ``previous_delay``: it travels in the token. One-argument strategies work as they are.
    """

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Seconds to wait before retry number ``retry_attempt``: 1 for the first retry, 0 for the first attempt."""
        ...


def _module_random() -> float:
    """The shared generator, looked up at call time: a private one would be duplicated by fork."""
    return _random.random()


class ExponentialRetryBackoffStrategy:
    """Doubling delays with a cap and jitter. The cap comes before the jitter.

    >>> steps = ExponentialRetryBackoffStrategy(backoff_scale_value=2, max_backoff=20, jitter_type="none")
    >>> [steps.compute_next_backoff_delay(retry) for retry in (0, 1, 2, 3, 4, 5, 10**6)]
    [0.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0]

    :param backoff_scale_value: the delay before the first retry without jitter, in seconds, from 0 on.
    :param max_backoff: no computed delay is longer, in seconds, from 0 on.
    :param jitter_type: a :class:`Jitter` or its value.
    :param random: gives a number in [0, 1).
    :raises ValueError: for a number out of range or an unknown jitter.
    """

    __slots__ = ("backoff_scale_value", "jitter_type", "max_backoff", "random")

    def __init__(
        self,
        *,
        backoff_scale_value: float = 0.05,
        max_backoff: float = 20.0,
        jitter_type: Jitter | str = Jitter.FULL,
        random: Callable[[], float] = _module_random,
    ) -> None:
        for name, value in (("backoff_scale_value", backoff_scale_value), ("max_backoff", max_backoff)):
            if not is_finite(value) or value < 0:
                raise ValueError(f"{name}={shown(value)}: a finite number of seconds from 0 on is allowed")
        self.backoff_scale_value: float = float(backoff_scale_value)
        self.max_backoff: float = float(max_backoff)
        self.jitter_type: Jitter = Jitter(jitter_type)
        self.random: Callable[[], float] = random

    def compute_next_backoff_delay(self, retry_attempt: int, previous_delay: float | None = None) -> float:
        """Seconds to wait before a retry, from 0 to ``max_backoff``.

        :param retry_attempt: 1 for the first retry; 0 and below give 0.
        :param previous_delay: the delay before the previous retry, for decorrelated jitter.
        """
        if retry_attempt <= 0:
            return 0.0
        if self.jitter_type is Jitter.DECORRELATED:
            previous = self.backoff_scale_value if previous_delay is None else previous_delay
            spread = 3 * max(previous, self.backoff_scale_value)
            return min(self.backoff_scale_value + self.random() * spread, self.max_backoff)
        try:
            delay = min(math.ldexp(self.backoff_scale_value, retry_attempt - 1), self.max_backoff)
        except OverflowError:  # more than a float holds is more than any cap
            delay = self.max_backoff
        if self.jitter_type is Jitter.FULL:
            return self.random() * delay
        if self.jitter_type is Jitter.EQUAL:
            return delay / 2 + self.random() * delay / 2
        return delay

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(backoff_scale_value={self.backoff_scale_value:g}, "
            f"max_backoff={self.max_backoff:g}, jitter_type={self.jitter_type.value!r})"
        )


def takes_previous_delay(strategy: RetryBackoffStrategy) -> bool:
    """Whether a backoff strategy wants the previous delay as well."""
    try:
        parameters = inspect.signature(strategy.compute_next_backoff_delay).parameters
    except (TypeError, ValueError):  # a callable written in C may have no signature
        return False
    return "previous_delay" in parameters
