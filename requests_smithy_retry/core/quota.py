"""The quota of a scope, as a strategy uses it (contract 6), and the bucket that a program may pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from ..errors import StopReason

if TYPE_CHECKING:
    from .attempt import AttemptFailed
    from .wait_queue import Bounds, Failure, Progress


class Refused(NamedTuple):
    """A refusal: its reason, and a phrase if the reason's own is not enough."""

    reason: StopReason
    waited: float = 0.0
    why: str = ""


class Payment(NamedTuple):
    """The tokens of a bucket before and after it paid for a retry, and the name of the bucket, for the record."""

    quota_before: float
    quota_after: float
    quota_source: str


class Grant(NamedTuple):
    """Another attempt may be made, after ``delay`` seconds."""

    progress: Progress
    delay: float = 0.0
    waited: float = 0.0
    why: str = ""
    payment: Payment | None = None


class TokenBucketSnapshot(NamedTuple):
    """A bucket at one moment, and the queue in front of it, if it has one.

    :param capacity: the most it holds.
    :param available: the tokens that it holds.
    :param source: which bucket answered: ``"memory"``, ``"redis"``, or ``"redis, fallen open"`` where a local bucket
        stands in for it.
    :param waiting: the number of operations that wait for the service.
    :param down_for: seconds since the first failure after the last success, whether or not a retry could follow;
        None: the last thing seen was a success, or nothing was seen for five minutes.
    """

    capacity: float
    available: float
    source: str = "memory"
    waiting: int = 0
    down_for: float | None = None


@runtime_checkable
class RetryQuota(Protocol):
    """The interface that a strategy needs of a bucket."""

    @property
    def capacity(self) -> float:
        """The most it holds."""

    @property
    def available(self) -> float:
        """The tokens that it holds now."""

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:
        """Take all of ``amount``, or nothing."""

    def release(self, amount: float) -> None:
        """Give back; what exceeds the capacity is dropped."""

    def snapshot(self) -> TokenBucketSnapshot:
        """An immutable view."""


class Quota:
    """Decides whether and when an operation of a scope may have another attempt; see :mod:`.retry_budget`.

    This class allows every retry, and counts only attempts.
    """

    counts_attempts = False
    """True if the quota bounds the attempts itself, by counting some of them."""
    bucket: RetryQuota | None = None
    """The bucket that pays for retries; None: there is none."""

    def began(self, now: float) -> None:
        """Record that a first attempt is sent."""

    def first_try(self, now: float, latency: float, timeout: float | None) -> None:
        """Record a first-try success.

        :param latency: seconds that the attempt took.
        :param timeout: seconds that it was allowed; None: as long as it took.
        """

    def acquire(self, progress: Progress, bounds: Bounds, failure: Failure, failed: AttemptFailed) -> Grant | Refused:
        """Decide about an operation whose attempt failed. It may block, on the clock of the failed attempt."""
        return Grant(progress, failure.delay)

    def succeeded(self, progress: Progress, now: float, latency: float = 0.0, timeout: float | None = None) -> None:
        """Record that an operation succeeded after it had failed, as :meth:`first_try` does for others."""

    def polled(self, progress: Progress) -> Progress:
        """Record a poll that did not get the wanted answer yet."""
        return progress

    def unsent(self, progress: Progress) -> None:
        """Give back the price of a retry that was not made."""
        if self.bucket is not None and progress.acquired:
            self.bucket.release(progress.acquired)

    @property
    def is_waited_on(self) -> bool:
        """True if some operation waits for it."""
        return False

    def forget(self, now: float) -> None:
        """Start over; waiting operations proceed at once."""

    def snapshot(self, now: float) -> TokenBucketSnapshot | None:
        """Return an immutable view; None: there is no bucket."""
        return None


NO_QUOTA = Quota()
