"""The quota of one scope, as a strategy uses it (contract 6): the interface, and its adapter for a plain bucket."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .bucket import RetryQuota, TokenBucket, TokenBucketSnapshot, is_full, loan_of
from .line import Failure, Go, Refusal, Refused, Standing, Terms

FirstTry = Callable[[tuple[float, Any]], object]
"""Called on a first-try success, with when it began and its time-out as requests takes it."""

DO_NOTHING: FirstTry = bool
"""For a bucket to which a first-try success brings nothing now: a built-in costs no more than the call."""


class ScopeQuota(ABC):
    """May an operation of this scope have another attempt, and when?

    What is here already is true of a bucket that knows neither the time nor an outage.
    """

    __slots__ = ("__weakref__", "first_try", "plain", "retired")

    counts_attempts = False
    """True if the quota bounds the attempts itself, by those that count."""

    def __init__(self, bucket: RetryQuota) -> None:
        self.plain: RetryQuota = bucket
        """The bucket without a line before it."""
        self.first_try: FirstTry = DO_NOTHING
        """Called on each first-try success. Another function takes its place when the effect of a success changes."""
        self.retired: bool = False
        """True once the scope was given up, so that no adapter goes on remembering it."""

    def begin(self) -> Standing:
        """Begin an operation now."""
        return Standing(0.0)

    @abstractmethod
    def failed(
        self,
        standing: Standing,
        terms: Terms,
        failure: Failure,
        *,
        before_waiting: Callable[[], bool] | None = None,
    ) -> Go | Refused:
        """Decide about an operation whose attempt failed. It may take a while: until its deadline or its patience ends.

        :param before_waiting: lets go of what the failed attempt holds, before the operation waits; False: it cannot.
        """

    def answered(self, standing: Standing) -> Standing:
        """Take note of an attempt that brought an answer, but not yet the one that is polled for."""
        return standing

    @abstractmethod
    def succeeded(
        self, standing: Standing, terms: Terms, *, latency: float = 0.0, timeout: float | None = None
    ) -> None:
        """Take note that an operation succeeded."""

    def gave_up(self, *, is_outage: bool) -> int:  # noqa: ARG002
        """Count an operation that gave up in an outage that is known, and return its number; 0: none is known.

        :param is_outage: it waited for the service in vain, so an outage is known from now on.
        """
        return 0

    @abstractmethod
    def unsent(self, standing: Standing) -> None:
        """Give back the price of a retry that was not made."""

    def forget(self) -> None:
        """Begin anew, with what is left of a bucket that other processes share."""
        forget = getattr(self.plain, "forget", None)
        if forget is not None:
            forget()

    def is_spare(self) -> bool:
        """Return True if a new one would do as well."""
        return is_full(self.plain)

    def snapshot(self) -> TokenBucketSnapshot:
        """An immutable view."""
        return self.plain.snapshot()


class PricedQuota(ScopeQuota):
    """A plain bucket as the quota of a scope: each retry has its price, and a refusal is final.

    A success gives back what the operation's last retry took; a first-try success gives a reward, if something is
    missing.
    """

    __slots__ = ("_is_shared", "_reward")

    first_try: FirstTry

    def __init__(self, bucket: RetryQuota, *, is_shared: bool = False) -> None:
        super().__init__(bucket)
        self._reward: float = getattr(bucket, "success_reward", 1.0)
        self._is_shared = is_shared
        if is_shared:
            self.first_try = self._give_reward

    def failed(
        self,
        standing: Standing,
        terms: Terms,
        failure: Failure,
        *,
        before_waiting: Callable[[], bool] | None = None,
    ) -> Go | Refused:
        """Take the price of a retry. A bucket on which others wait may take until the deadline."""
        if standing.loan is not None:
            standing.loan.write_off()
        # An operation that waits for tokens still has its backoff to wait.
        until = None if terms.deadline is None else terms.deadline - failure.delay
        price, bucket, granted, loan = failure.price, self.plain, None, None
        try:
            granted = self._take(price, until, before_waiting)
            if granted is None:
                return Refused(Refusal.HELD)
            # The hook is set after a refusal, too: other processes may have spent a bucket shared with this one.
            self.first_try = self._give_reward
            if not granted:
                return Refused(Refusal.EMPTY, why=self._refusal(price))
            loan = loan_of(bucket, price)
            return Go(replace(standing, spent=standing.spent + price, acquired=price, loan=loan), failure.delay)
        except BaseException:
            # An interruption came before the operation had them.
            if loan is not None:
                loan.write_off()
            elif granted and isinstance(bucket, TokenBucket):
                bucket.write_off(price)
            raise

    def _take(self, price: float, until: float | None, before_waiting: Callable[[], bool] | None) -> bool | None:
        """Take a price; None: it would have to be waited for, with what cannot be let go."""
        bucket = self.plain
        if before_waiting is None or not isinstance(bucket, TokenBucket) or bucket.on_empty != "wait":
            return bucket.acquire(price, deadline=until)
        if bucket.acquire(price, deadline=bucket.clock.now()):
            return True
        if not bucket.may_come(price, until):
            return False
        # Those who have the tokens may wait for the connection: one that waits keeps nothing.
        return bucket.acquire(price, deadline=until) if before_waiting() else None

    def answered(self, standing: Standing) -> Standing:
        """Give back the tokens of the retry before, as after any success."""
        self.unsent(standing)
        return replace(standing, acquired=0.0, loan=None)

    def succeeded(
        self,
        standing: Standing,
        terms: Terms,  # noqa: ARG002
        *,
        latency: float = 0.0,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
    ) -> None:
        if standing.spent:
            self.unsent(standing)
        elif self.first_try is not DO_NOTHING:
            self._give_reward()

    def unsent(self, standing: Standing) -> None:
        """Give back the tokens of the last retry."""
        if standing.loan is not None:
            standing.loan.give_back()
        elif standing.acquired:
            self.plain.release(standing.acquired)
        self._look()

    def _give_reward(self, _: object = None) -> None:
        getattr(self.plain, "reward", self.plain.release)(self._reward)
        self._look()

    def _look(self) -> None:
        """Give first-try successes the cheap path while no token is missing."""
        if self._is_shared or not is_full(self.plain):
            return
        self.first_try = DO_NOTHING
        # Looked at once more: a retry may have been paid in between, and what it took must not be forgotten.
        if not is_full(self.plain):
            self.first_try = self._give_reward

    def _refusal(self, price: float) -> str:
        bucket: Any = self.plain
        source = getattr(bucket, "source", "memory")
        where = "" if source == "memory" else f" ({source})"
        trouble = "too small" if 0 < bucket.capacity < price else "empty"
        held = f"{bucket.available:g} of {bucket.capacity:g}"
        return f"{where} is {trouble} ({held}, needs {price:g})"
