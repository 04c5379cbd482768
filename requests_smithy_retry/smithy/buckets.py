"""The token bucket (contract 6.2, 6.3), and the queue of threads that wait for its tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from ..checks import check_amount, is_finite, safe_repr
from ..clock import SYSTEM_CLOCK, Clock, Wait, checked_clock, wait_in
from ..core.quota import Grant, Payment, Quota, Refused, RetryQuota, TokenBucketSnapshot
from ..core.retry_budget import PayoffTokenBucket
from ..core.scope import NO_SCOPE, MakeQuota
from ..core.wait_queue import Bounds, Failure, Progress
from ..errors import RetryConfigError, StopReason
from ..forksafe import FreshCopies, renew_lock_after_fork
from ..interruptions import ask_within_strategy

if TYPE_CHECKING:
    from ..classifiers.actions import RetryReason
    from ..config.retry_config import RetryConfig
    from ..core.attempt import AttemptFailed

LOOK_AGAIN = 1.0
"""Seconds after which a waiter looks again if those in front of it are about to be served."""

ROUNDING = 1e-9
"""A smaller part of an amount is a rounding error."""


class PlaceAtBucket:
    """One thread's place in the queue for the tokens of a bucket. Its answer is whether they were taken."""

    def __init__(self, bucket: TokenBucket, amount: float, deadline: float | None) -> None:
        self.changed: threading.Condition = threading.Condition(bucket._lock)
        self.amount = amount
        self.has_waited: bool = False
        """Its tokens were not available at the first look."""
        self._bucket = bucket
        self._deadline = deadline

    def look(self, now: float) -> Wait | bool:
        """Join at the first look. The first thread takes its tokens; one whose tokens would come too late leaves."""
        bucket, places = self._bucket, self._bucket._places
        if self.amount > bucket.capacity:
            return False
        bucket._refill(now)
        if self not in places:
            places.append(self)
        ahead = places.index(self)
        seconds = bucket._seconds_until(sum(each.amount for each in places[: ahead + 1]), now)
        is_taken = ahead == 0 and seconds == 0
        if is_taken:
            bucket._available = max(0.0, bucket._available - self.amount)
        if is_taken or _is_too_late(now, seconds, self._deadline):
            self.leave(now)
            return is_taken
        self.has_waited = True
        # If nothing is missing, those in front are about to take theirs, and the last of them wakes this one.
        return Wait(now + (seconds or LOOK_AGAIN))

    def leave(self, now: float) -> None:
        if self in self._bucket._places:
            self._bucket._places.remove(self)
            self._bucket._wake_first()


def _is_too_late(now: float, seconds: float, deadline: float | None) -> bool:
    return deadline is not None and (now >= deadline or now + seconds > deadline)


class TokenBucket(FreshCopies):
    """A bucket of retry tokens. All-or-nothing, under one lock; never below 0, never above its capacity.

    Pass one object to several strategies to share a quota on purpose.

    >>> bucket = TokenBucket(28)
    >>> bucket.acquire(14), bucket.acquire(14), bucket.acquire(14), bucket.available
    (True, True, False, 0)
    >>> bucket.release(50); bucket.available
    28

    :param capacity: the most it holds, 0 or more.
    :param initial: the tokens that it holds at first; by default it is full.
    :param refill_rate: tokens that come back per second whatever happens, 0 or more.
    :param on_empty: ``"fail"``: :meth:`acquire` refuses at once; ``"wait"``: it waits for its turn, which needs a
        ``refill_rate`` above 0.
    :param success_reward: tokens that a first-try success gives back, 0 or more.
    :param clock: measures the refill, and waits.
    :raises ValueError: for a number out of range.
    """

    _past: ClassVar[frozenset[str]] = frozenset({"_available", "_refilled_at", "_lock", "_places"})

    def __init__(
        self,
        capacity: float = 500,
        *,
        initial: float | None = None,
        refill_rate: float = 0.0,
        on_empty: str = "fail",
        success_reward: float = 1,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        check_amount(capacity, "capacity")
        check_amount(refill_rate, "refill_rate")
        check_amount(success_reward, "success_reward")
        if initial is not None and not (is_finite(initial) and 0 <= initial <= capacity):
            raise ValueError(f"initial={safe_repr(initial)}: a number from 0 to the capacity {capacity!r} is allowed")
        if on_empty not in ("fail", "wait"):
            raise ValueError(f"on_empty={on_empty!r}: 'fail' or 'wait' is allowed")
        if on_empty == "wait" and not refill_rate:
            raise ValueError("on_empty='wait': only 'fail' is allowed without a refill_rate")
        self.capacity = capacity
        self.refill_rate = refill_rate
        self.on_empty = on_empty
        self.success_reward = success_reward
        self.clock: Clock = checked_clock(clock)
        self._initial = initial
        self._begin()
        if initial is not None:
            self._available = initial

    def _begin(self) -> None:
        self._available = self.capacity
        self._refilled_at = self.clock.now()
        self.renew_lock()
        renew_lock_after_fork(self)

    @property
    def available(self) -> float:
        """The tokens that the bucket holds now."""
        if self.refill_rate:
            with self._lock:
                self._refill(self.clock.now())
        return self._available

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:
        """Take ``amount`` tokens and return True, or take nothing and return False.

        A bucket that waits returns False at once if the tokens would come too late or exceed its capacity; else it
        waits, first come, first served, interruptibly and without its lock.

        :param amount: 0 or more.
        :param deadline: the moment, on its clock, until which a bucket that waits may wait; None: as long as it takes.
        :raises ValueError: for anything but a finite number of 0 or more.
        """
        check_amount(amount)
        if self.on_empty == "wait":
            return bool(wait_in(self.place(amount, deadline), self.clock))
        with self._lock:
            self._refill(self.clock.now())
            if self._available < amount:
                return False
            self._available -= amount
            return True

    def place(self, amount: float, deadline: float | None) -> PlaceAtBucket:
        """Return a place to wait in."""
        return PlaceAtBucket(self, amount, deadline)

    def _seconds_until(self, amount: float, now: float) -> float:
        """Return the seconds until a bucket that waits holds an amount within its capacity; 0 if it does."""
        missing = amount - self._available
        # An amount missing by rounding alone may be too little to move the clock: waiting for it would never end.
        if missing <= ROUNDING * max(1.0, amount) or now + missing / self.refill_rate == now:
            return 0.0
        return missing / self.refill_rate

    def release(self, amount: float) -> None:
        """Give ``amount`` tokens back; what exceeds the capacity is dropped.

        :raises ValueError: for anything but a finite number of 0 or more.
        """
        check_amount(amount)
        # Read without the lock: a full bucket drops everything (contract 6.2).
        if self._available < self.capacity:
            with self._lock:
                self._available = min(self.capacity, self._available + amount)
                self._wake_first()

    @property
    def is_waited_on(self) -> bool:
        """True if some thread waits for its tokens."""
        return bool(self._places)

    def snapshot(self) -> TokenBucketSnapshot:
        """An immutable view of the bucket now."""
        return TokenBucketSnapshot(self.capacity, self.available)

    def forget(self) -> None:
        """Reset it to its initial tokens. Waiters are served from them."""
        with self._lock:
            self._available = self.capacity if self._initial is None else self._initial
            self._refilled_at = self.clock.now()
            self._wake_first()

    def renew_lock(self) -> None:
        """Replace the lock, after a fork."""
        self._lock = threading.Lock()
        self._places: list[PlaceAtBucket] = []

    def _wake_first(self) -> None:
        if self._places:
            self._places[0].changed.notify()

    def _refill(self, now: float) -> None:
        if self.refill_rate:
            self._available = min(self.capacity, self._available + (now - self._refilled_at) * self.refill_rate)
            self._refilled_at = now

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.available:g} of {self.capacity:g}>"


class PricedQuota(Quota):
    """A plain bucket as the quota of a scope: each retry has its price, and a refusal is final.

    A success gives back what the operation's last retry took; a first-try success gives a reward, if the bucket
    is not full. ``is_shared``: others may spend its tokens, too.
    """

    def __init__(
        self, bucket: RetryQuota, price_of: Callable[[RetryReason], float], *, is_shared: bool = False
    ) -> None:
        self.bucket: RetryQuota = bucket
        self._price_of = price_of
        self._reward: float = getattr(bucket, "success_reward", 1.0)
        self._is_shared = is_shared

    def first_try(self, now: float, latency: float, timeout: float | None) -> None:
        if self._is_shared or self.bucket.available < self.bucket.capacity:
            self.bucket.release(self._reward)

    def acquire(self, progress: Progress, bounds: Bounds, failure: Failure, failed: AttemptFailed) -> Grant | Refused:
        """Take the price of a retry. With ``on_empty="wait"``, this may last until the deadline."""
        assert failure.reason is not None
        price, bucket, began = self._price_of(failure.reason), self.bucket, failed.clock.now()
        # An operation that waits for tokens still waits for its backoff.
        until = None if bounds.deadline is None else bounds.deadline - failure.delay
        before, why = None, ""
        if isinstance(bucket, TokenBucket) and bucket.on_empty == "wait":
            before = bucket.available
            place = bucket.place(price, until)
            is_taken = failed.wait_in(place, "the retry budget")
            why = "the retry budget had tokens again" if place.has_waited else ""
        else:
            is_taken = bucket.acquire(price)
        if not is_taken:
            return self._refused(price)
        after, waited = bucket.available, failed.clock.now() - began
        held = after + price if before is None or before >= price else before
        payment = Payment(held, after, getattr(bucket, "source", "memory"))
        paid = progress._replace(spent=progress.spent + price, acquired=price)
        return Grant(paid, failure.delay, waited=waited, why=why, payment=payment)

    def _refused(self, price: float) -> Refused:
        bucket, source = self.bucket, getattr(self.bucket, "source", "memory")
        where = "" if source == "memory" else f" ({source})"
        trouble = "too small" if 0 < bucket.capacity < price else "empty"
        held = f"{bucket.available:g} of {bucket.capacity:g}"
        return Refused(
            StopReason.QUOTA_EXCEEDED,
            0.0,
            f"the retry budget of {{service}}{where} is {trouble} ({held}, needs {price:g})",
        )

    def succeeded(self, progress: Progress, now: float, latency: float = 0.0, timeout: float | None = None) -> None:
        if progress.spent:
            self.unsent(progress)
        else:
            self.first_try(now, latency, timeout)

    def polled(self, progress: Progress) -> Progress:
        self.unsent(progress)
        return progress._replace(acquired=0.0)

    @property
    def is_waited_on(self) -> bool:
        return bool(getattr(self.bucket, "is_waited_on", False))

    def forget(self, now: float) -> None:
        forget = getattr(self.bucket, "forget", None)
        if forget is not None:
            forget()

    def snapshot(self, now: float) -> TokenBucketSnapshot:
        return self.bucket.snapshot()


def quota_maker(quota: Any, config: RetryConfig, clock: Clock) -> MakeQuota:
    """Return the maker of priced quotas for a number of tokens, a bucket, or a function of a scope's name."""
    price_of = config.numbers.price_of
    if isinstance(quota, (int, float)):
        return lambda name, now: PricedQuota(TokenBucket(quota, clock=clock), price_of)
    if isinstance(quota, RetryQuota):
        return lambda name, now: PricedQuota(quota, price_of, is_shared=True)

    def of_scope(name: str | None, now: float) -> Quota:
        scope = NO_SCOPE if name is None else name
        bucket: object = ask_within_strategy("the function of quota", quota, scope)  # it may return anything
        if isinstance(bucket, RetryQuota) and not isinstance(bucket, PayoffTokenBucket):
            return PricedQuota(bucket, price_of, is_shared=True)
        why = f"its function returned a {type(bucket).__name__}: a TokenBucket, or another bucket of tokens, is allowed"
        raise RetryConfigError("quota", quota, config.source("quota"), why)

    return of_scope
