"""The quota of a scope, as the machine uses it (contract 6), and the bucket that a program may pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from .line import Failure, Standing, Terms
    from .steps import Steps


class TokenBucketSnapshot(NamedTuple):
    """A bucket at one moment, and the line in front of it, if it has one.

    :param capacity: the most it holds.
    :param available: the tokens that it holds.
    :param source: which bucket answered: ``"memory"``, ``"redis"``, or ``"redis, fallen open"`` where a local bucket
        stands in for it.
    :param waiting: the number of operations that wait for the service.
    :param down_for: seconds since the first failure after the last success; None: the last thing seen was a success.
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


class Back(NamedTuple):
    """An outage that is over: its seconds, and the number of operations that gave up in it."""

    seconds: float
    gave_up: int


class Quota(Protocol):
    """May an operation of this scope have another attempt, and when? It is given the time; see :mod:`.payoff`."""

    counts_attempts: bool
    """True if the quota bounds the attempts itself, by those that count."""

    def began(self, now: float) -> None: ...

    def first_try(self, now: float, latency: float, timeout: float | None) -> Back | None: ...

    def pay(self, standing: Standing, terms: Terms, failure: Failure, now: float) -> Steps: ...

    def succeeded(
        self, standing: Standing, terms: Terms, now: float, latency: float = 0.0, timeout: float | None = None
    ) -> Back | None: ...

    def answered(self, standing: Standing) -> Standing: ...

    def unsent(self, standing: Standing) -> None: ...

    def end(self, standing: Standing) -> None: ...

    def gave_up(self, *, is_outage: bool) -> int: ...

    def is_spare(self, now: float) -> bool: ...

    def forget(self, now: float) -> None: ...

    def snapshot(self, now: float) -> TokenBucketSnapshot | None: ...


class NoQuota:
    """Every retry may be made; attempts alone are counted."""

    counts_attempts = False

    def began(self, now: float) -> None:
        """Nothing waits."""

    def first_try(self, now: float, latency: float, timeout: float | None) -> None:
        """Nothing is counted."""

    def pay(self, standing: Standing, terms: Terms, failure: Failure, now: float) -> Steps:
        """Let it go: there is nothing to pay."""
        from .line import Go

        return Go(standing, failure.delay)
        yield  # a generator, as that of each quota

    def succeeded(
        self, standing: Standing, terms: Terms, now: float, latency: float = 0.0, timeout: float | None = None
    ) -> None:
        """Nothing is counted."""

    def answered(self, standing: Standing) -> Standing:
        return standing

    def unsent(self, standing: Standing) -> None:
        """Nothing was paid."""

    def end(self, standing: Standing) -> None:
        """Nothing was paid."""

    def gave_up(self, *, is_outage: bool) -> int:
        return 0

    def is_spare(self, now: float) -> bool:
        return True

    def forget(self, now: float) -> None:
        """Nothing is known."""

    def snapshot(self, now: float) -> None:
        """Nothing is known."""


NO_QUOTA = NoQuota()
