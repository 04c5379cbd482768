"""Backoff (contract 7.1): the published numbers, and the delay before a retry. Pure but for the random number."""

from __future__ import annotations

import enum
import math
import random as _random
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from ..checks import is_finite, safe_repr
from ..classifiers.actions import ErrorKind, RetryReason
from ..classifiers.outcome import Outcome


class RetryNumbers(NamedTuple):
    """The numbers of one published specification.

    :param initial_backoff: backoff base after a transient failure, in seconds.
    :param throttling_backoff: backoff base after throttling, in seconds.
    :param retry_cost: tokens that a retry takes.
    :param throttling_cost: tokens that a retry after throttling takes.
    :param timeout_cost: tokens that a retry after a client-side timeout takes.
    """

    initial_backoff: float
    throttling_backoff: float
    retry_cost: int
    throttling_cost: int
    timeout_cost: int

    def price_of(self, reason: RetryReason) -> float:
        """Return the tokens that a retry takes."""
        if reason.kind is ErrorKind.THROTTLING:
            return self.throttling_cost
        return self.timeout_cost if reason.timeout else self.retry_cost


RETRY_SPECS = {
    "2.1": RetryNumbers(0.05, 1.0, retry_cost=14, throttling_cost=5, timeout_cost=14),
    "2.0": RetryNumbers(1.0, 1.0, retry_cost=5, throttling_cost=5, timeout_cost=10),
}
"""By the value of the option ``retry_spec``."""


class Jitter(enum.Enum):
    """The randomization of a delay, so that clients that failed together do not come back together."""

    FULL = "full"
    """A random delay from 0 to the computed one. The default."""
    EQUAL = "equal"
    """Half of the computed delay, plus a random part of the other half."""
    NONE = "none"
    """The computed delay."""
    DECORRELATED = "decorrelated"
    """A random delay from the scale value to the scale value plus three times the previous delay, up to the maximum."""


@runtime_checkable
class RetryBackoffStrategy(Protocol):
    """Computes the delay before a retry; stateless.

    The method may take a second, optional argument ``previous_delay``, the delay before the previous retry in seconds.
    """

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the seconds to wait before retry ``retry_attempt``: 1 is the first retry, 0 the first attempt."""


Backoff: TypeAlias = RetryBackoffStrategy | Callable[[int, Outcome], float]


def random_part() -> float:
    # Looked up at call time, and shared: a fork would duplicate a private generator.
    return _random.random()


class ExponentialRetryBackoffStrategy:
    """Doubling delays with a cap and jitter. The cap applies before the jitter.

    >>> steps = ExponentialRetryBackoffStrategy(backoff_scale_value=2, max_backoff=20, jitter_type="none")
    >>> [steps.compute_next_backoff_delay(retry) for retry in (0, 1, 2, 3, 4, 5, 10**6)]
    [0.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0]

    :param backoff_scale_value: the delay before the first retry without jitter, in seconds, 0 or more.
    :param max_backoff: the longest computed delay, in seconds, 0 or more.
    :param jitter_type: a :class:`Jitter` or its value.
    :param random: returns a number in [0, 1).
    :raises ValueError: for a number out of range or an unknown jitter.
    """

    def __init__(
        self,
        *,
        backoff_scale_value: float = 0.05,
        max_backoff: float = 20.0,
        jitter_type: Jitter | str = Jitter.FULL,
        random: Callable[[], float] = random_part,
    ) -> None:
        for name, value in (("backoff_scale_value", backoff_scale_value), ("max_backoff", max_backoff)):
            if not is_finite(value) or value < 0:
                raise ValueError(f"{name}={safe_repr(value)}: a finite number of seconds (0 or more) is allowed")
        self.backoff_scale_value: float = float(backoff_scale_value)
        self.max_backoff: float = float(max_backoff)
        self.jitter_type: Jitter = Jitter(jitter_type)
        self.random: Callable[[], float] = random

    def compute_next_backoff_delay(self, retry_attempt: int, previous_delay: float | None = None) -> float:
        """Return the seconds to wait before a retry, from 0 to ``max_backoff``.

        :param retry_attempt: 1 for the first retry; for 0 and below the delay is 0.
        :param previous_delay: the delay before the previous retry in seconds, for decorrelated jitter.
        """
        if retry_attempt <= 0:
            return 0.0
        if self.jitter_type is Jitter.DECORRELATED:
            previous = self.backoff_scale_value if previous_delay is None else previous_delay
            spread = 3 * max(previous, self.backoff_scale_value)
            return min(self.backoff_scale_value + self.random() * spread, self.max_backoff)
        delay = self._capped(retry_attempt)
        if self.jitter_type is Jitter.FULL:
            return self.random() * delay
        if self.jitter_type is Jitter.EQUAL:
            return delay / 2 + self.random() * delay / 2
        return delay

    def longest_delay(self, retry_attempt: int) -> float:
        """Return the longest possible delay before a retry, in seconds; it never falls from retry to retry.

        :param retry_attempt: 1 for the first retry; for 0 and below the delay is 0.
        """
        if retry_attempt <= 0:
            return 0.0
        if self.jitter_type is Jitter.DECORRELATED:  # any positive delay can grow to the cap
            return self.max_backoff if self.backoff_scale_value > 0 else 0.0
        return self._capped(retry_attempt)

    def _capped(self, retry_attempt: int) -> float:
        try:
            return min(math.ldexp(self.backoff_scale_value, retry_attempt - 1), self.max_backoff)
        except OverflowError:
            return self.max_backoff

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(backoff_scale_value={self.backoff_scale_value:g}, "
            f"max_backoff={self.max_backoff:g}, jitter_type={self.jitter_type.value!r})"
        )
