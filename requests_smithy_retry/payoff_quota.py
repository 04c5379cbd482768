"""What a quota is that goes by whether retries pay, to those who use it; :mod:`payoff_bucket` is one."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from .quota import RetryQuota, TokenBucketSnapshot

PAYOFF = "payoff"
"""The option ``quota`` by this name: each scope has a bucket of this kind."""

PAYOFF_SETTLING = "payoff-settling"
"""The same with a bucket that forgets what it has earned in a time of health."""

PAYOFF_NUMBERS: dict[object, dict[str, float]] = {
    PAYOFF: {},
    # Chosen by benchmarks/payoff_table.py: 200 s lose least where services are flaky, for what they forget in health;
    # the rewards make up for what is lost all the same.
    PAYOFF_SETTLING: {"settling": 200.0, "retry_reward": 0.75, "first_try_reward": 0.5},
}
"""What a bucket of each name is made with."""


class RetryCause(enum.Enum):
    """What a retry answers, as far as its price goes; the value is how a refusal calls it."""

    TIMEOUT = "a time-out"
    CONNECT = "a failed connection"
    ERROR = "an error"
    THROTTLING = "throttling"


@dataclass(frozen=True, slots=True)
class PayoffSnapshot(TokenBucketSnapshot):
    """A payoff bucket at one moment. ``available`` may be above ``capacity``, by what retries that paid have earned.

    :param rate: operations per second, as of the last operation.
    """

    rate: float = 0.0


@runtime_checkable
class PayoffQuota(RetryQuota, Protocol):
    """A quota that wants to know more than what to take and what to give back; strategies look for these methods."""

    retired: bool
    """Set when its scope was given up, so that nobody goes on remembering it."""
    wants_worth: bool
    """Whether a first-try success is worth something now: then :meth:`first_try` is called, else :meth:`count`. Also
    true of a retired one."""

    def on_operation(self) -> None:
        """Take note that an operation begins."""
        ...

    def retire(self) -> None:
        """Take note that its scope was given up."""
        ...

    def price_of(self, cause: RetryCause) -> float:
        """What a retry costs that answers such a failure; :meth:`acquire` takes it."""
        ...

    def refusal(self, cause: RetryCause, where: str) -> str:
        """Why such a retry was refused, in a phrase."""
        ...

    def on_success(self, *, retries: int, spent: float, latency: float | None, timeout: float | None) -> None:
        """Take note that an operation succeeded.

        :param retries: how many it took.
        :param spent: what they took from here, together.
        :param latency: seconds that the successful attempt took; None: nobody measured.
        :param timeout: seconds that it was allowed; None: as long as it took.
        """
        ...

    def first_try(self, started: float, timeout: float | None) -> None:
        """Take note of a whole operation: it began then, and succeeded now at the first try."""
        ...

    def count(self, started: float) -> None:
        """The same where there is no room for a reward."""
        ...
