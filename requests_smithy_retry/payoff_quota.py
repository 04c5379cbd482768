"""What a quota is that goes by whether retries pay, to those who use it; :mod:`payoff_bucket` is one."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from .quota import RetryQuota, TokenBucketSnapshot


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
