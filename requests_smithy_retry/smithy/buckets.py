"""The token bucket (contract 6.2, 6.3), and the line of threads that wait for its tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from ..checks import check_amount, is_finite, safe_repr
from ..clock import SYSTEM_CLOCK, Clock, wait_in
from ..core.line import Failure, Go, Standing, Terms
from ..core.payoff import PayoffTokenBucket
from ..core.quota import Quota, RetryQuota, TokenBucketSnapshot
from ..core.scope import NO_SCOPE, MakeQuota
from ..core.steps import Ask, Join, Payment, Refused, Steps, Wait
from ..errors import RetryConfigError, StopReason
from ..forksafe import FreshCopies, renew_lock_after_fork

if TYPE_CHECKING:
    from ..classifiers.actions import RetryReason
    from ..config.retry_config import RetryConfig

LOOK_AGAIN = 1.0
"""Seconds after which a waiter whose turn has no known time looks whether tokens were lost without notice."""

ROUNDING = 1e-9
"""A part of an amount this small is a rounding error, whether it is there or missing."""


class WaitingLine:
    """The line of those who wait for the tokens of one bucket. Every method is called with the bucket's lock held."""

    def __init__(self, bucket: TokenBucket) -> None:
        self.bucket = bucket
        self.places: list[PlaceAtBucket] = []
        self._outstanding = 0.0
        self._lost: list[float] = []

    def look(self, place: PlaceAtBucket, now: float) -> Wait | bool:
        """Return True if the tokens were taken, False if they cannot come in time, or how long to wait."""
        bucket = self.bucket
        bucket._refill(now)
        self._write_off_lost()
        rank = self.places.index(place)
        if rank == 0 and self._is_enough(place.amount, now):
            bucket._available = max(0.0, bucket._available - place.amount)
            self._outstanding += place.amount
            return True
        if rank == 0 and not self._may_gain():
            return False
        seconds = self._seconds_to_wait(sum(each.amount for each in self.places[: rank + 1]), place.deadline, now)
        return False if seconds is None else Wait(now + seconds)

    def may_come(self, amount: float, deadline: float | None, now: float) -> bool:
        """Return True if ``amount`` is there, or may come in time to one that joins the line now."""
        self._write_off_lost()
        if amount > self.bucket.capacity or not self._may_gain():
            return self._is_enough(amount, now)
        return self._seconds_to_wait(sum(each.amount for each in self.places) + amount, deadline, now) is not None

    def returned(self, amount: float) -> None:
        """Tokens came back, or never will: they are no longer out."""
        left = self._outstanding - amount
        # An amount left by rounding alone is out nowhere: waiting for it would never end.
        self._outstanding = left if left > ROUNDING * max(1.0, amount) else 0.0

    def lose(self, amount: float) -> None:
        """Record, without the lock and from a finalizer, that tokens will not come back."""
        self._lost.append(amount)

    def wake_first(self) -> None:
        """Have the first in line look: it may be served, or refused, or due earlier than it thought."""
        if self.places:
            self.places[0].changed.notify()

    def _may_gain(self) -> bool:
        return self.bucket.refill_rate > 0 or self._outstanding > 0

    def _is_enough(self, amount: float, now: float) -> bool:
        # An amount missing by rounding alone may be too little to move the clock: waiting for it would never end.
        bucket = self.bucket
        missing = amount - bucket._available
        if missing <= ROUNDING * max(1.0, amount):
            return True
        return bucket.refill_rate > 0 and now + missing / bucket.refill_rate == now

    def _seconds_to_wait(self, wanted: float, deadline: float | None, now: float) -> float | None:
        """Return the seconds until all that is wanted up to a place may be there; None: not in time."""
        bucket = self.bucket
        left = float("inf") if deadline is None else deadline - now
        missing = wanted - bucket._available
        # The end of a steady refill is known: too late is too late (contract 6.3).
        if left <= 0 or (bucket.refill_rate and missing / bucket.refill_rate > left):
            return None
        # Where nothing is missing, those in front are about to take theirs: the last of them says so.
        return missing / bucket.refill_rate if bucket.refill_rate and missing > 0 else min(left, LOOK_AGAIN)

    def _write_off_lost(self) -> None:
        while self._lost:
            self.returned(self._lost.pop())


class PlaceAtBucket:
    """One thread's place in the line for tokens. Its answer: whether they were taken.

    :param lends: the answer is a :class:`Loan` in place of True, so an interruption from then on loses the tokens.
    """

    def __init__(self, line: WaitingLine, amount: float, deadline: float | None, *, lends: bool = False) -> None:
        self.changed: threading.Condition = threading.Condition(line.bucket._lock)
        self.amount = amount
        self.deadline = deadline
        self._line = line
        self._lends = lends
        self._has_joined = False

    def look(self, now: float) -> Wait | Loan | bool:
        line = self._line
        if self.amount > line.bucket.capacity:
            return False
        if not self._has_joined:
            self._has_joined = True
            line.places.append(self)
        seen = line.look(self, now)
        if isinstance(seen, Wait):
            return seen
        self.leave(now)
        return Loan(line, self.amount) if seen and self._lends else seen

    def leave(self, now: float) -> None:
        if self in self._line.places:
            self._line.places.remove(self)
            self._line.wake_first()


class Loan:
    """Tokens that a retry took from a bucket on which others may wait. They come back or are lost, once.

    An interrupted operation loses them, too: otherwise others would wait without end.
    """

    __slots__ = ("_amount", "_line")

    def __init__(self, line: WaitingLine, amount: float) -> None:
        self._line = line
        self._amount = amount

    def give_back(self) -> None:
        """Give the tokens back to the bucket that they were taken from, whichever bucket its scope has by now."""
        amount, self._amount = self._amount, 0.0
        self._line.bucket.release(amount)

    def write_off(self) -> None:
        amount, self._amount = self._amount, 0.0
        if amount:
            self._line.bucket.write_off(amount)

    def __del__(self) -> None:
        # A finalizer may run inside the bucket's own lock, so it takes none.
        if getattr(self, "_amount", 0.0):  # an interruption may come before it has any
            self._line.lose(self._amount)


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
    :param on_empty: ``"fail"``: :meth:`acquire` refuses at once; ``"wait"``: it waits for its turn.
    :param success_reward: tokens that a first-try success gives back, 0 or more.
    :param clock: tells how much has been refilled, and waits.
    :raises ValueError: for a number out of range.
    """

    _past: ClassVar[frozenset[str]] = frozenset({"_available", "_refilled_at", "_lock", "_line"})

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
        self.capacity = capacity
        self.refill_rate = refill_rate
        self.on_empty = on_empty
        self.success_reward = success_reward
        self.clock = clock
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

        A bucket that waits returns False at once where nothing could ever bring the tokens, or where it is known that
        they come too late; else it waits, first come, first served, interruptibly and without its lock.

        :param amount: 0 or more.
        :param deadline: the moment, on its clock, until which a bucket that waits may wait; None: as long as it takes.
        :raises ValueError: for anything but a finite number of 0 or more.
        """
        check_amount(amount)
        if self._line is not None:
            return bool(wait_in(PlaceAtBucket(self._line, amount, deadline), self.clock))
        with self._lock:
            self._refill(self.clock.now())
            if self._available < amount:
                return False
            self._available -= amount
            return True

    def may_come(self, amount: float, deadline: float | None) -> bool:
        """Return True unless :meth:`acquire` would refuse at once. A bucket that does not wait says nothing of use."""
        now = self.clock.now()
        with self._lock:
            self._refill(now)
            return self._line is not None and self._line.may_come(amount, deadline, now)

    def release(self, amount: float) -> None:
        """Give ``amount`` tokens back; what exceeds the capacity is dropped.

        :raises ValueError: for anything but a finite number of 0 or more.
        """
        check_amount(amount)
        # Read without the lock: a full bucket has room for nothing, so there is nothing to lose (contract 6.2). Where
        # others wait, what came back is to be booked all the same.
        if self._line is None and self._available >= self.capacity:
            return
        with self._lock:
            if self._line is not None:
                self._line.returned(amount)
            self._add(amount)

    def reward(self, amount: float) -> None:
        """Add tokens that were not taken before; what exceeds the capacity is dropped.

        :raises ValueError: for anything but a finite number of 0 or more.
        """
        check_amount(amount)
        if self._available >= self.capacity:
            return
        with self._lock:
            self._add(amount)

    def write_off(self, amount: float) -> None:
        """Record that tokens which were taken will not come back; a waiter that counts on them is refused.

        :raises ValueError: for anything but a finite number of 0 or more.
        """
        check_amount(amount)
        with self._lock:
            if self._line is not None:
                self._line.returned(amount)
                self._line.wake_first()

    def snapshot(self) -> TokenBucketSnapshot:
        """An immutable view of the bucket now."""
        return TokenBucketSnapshot(self.capacity, self.available)

    def forget(self) -> None:
        """Hold what a new one holds, now. Those that wait are served from it."""
        with self._lock:
            self._available = self.capacity if self._initial is None else self._initial
            self._refilled_at = self.clock.now()
            if self._line is not None:
                self._line.wake_first()

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork."""
        self._lock = threading.Lock()
        self._line = WaitingLine(self) if self.on_empty == "wait" else None

    def _add(self, amount: float) -> None:
        self._available = min(self.capacity, self._available + amount)
        if self._line is not None:
            self._line.wake_first()

    def _refill(self, now: float) -> None:
        if self.refill_rate:
            self._available = min(self.capacity, self._available + (now - self._refilled_at) * self.refill_rate)
            self._refilled_at = now

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.available:g} of {self.capacity:g}>"


class PricedQuota:
    """A plain bucket as the quota of a scope: each retry has its price, and a refusal is final.

    A success gives back what the operation's last retry took; a first-try success gives a reward, if something is
    missing.

    :param price_of: the tokens that a retry costs, by the reason for it.
    :param is_shared: others may spend it, unseen from here.
    """

    counts_attempts = False

    def __init__(
        self, bucket: RetryQuota, price_of: Callable[[RetryReason], float], *, is_shared: bool = False
    ) -> None:
        self.bucket: RetryQuota = bucket
        self._price_of = price_of
        self._reward: float = getattr(bucket, "success_reward", 1.0)
        self._is_shared = is_shared

    def began(self, now: float) -> None:
        """First attempts cost nothing."""

    def first_try(self, now: float, latency: float, timeout: float | None) -> None:
        """Give the reward, if something is missing."""
        if self._is_shared or self.bucket.available < self.bucket.capacity:
            getattr(self.bucket, "reward", self.bucket.release)(self._reward)

    def pay(self, standing: Standing, terms: Terms, failure: Failure, now: float) -> Steps:
        """Take the price of a retry. A bucket on which others wait may take until the deadline."""
        self.end(standing)
        assert failure.reason is not None
        price, bucket = self._price_of(failure.reason), self.bucket
        # An operation that waits for tokens still has its backoff to wait.
        until = None if terms.deadline is None else terms.deadline - failure.delay
        loan = None
        if isinstance(bucket, TokenBucket) and bucket._line is not None:
            if not bucket.may_come(price, until):
                return self._refused(price)
            place = PlaceAtBucket(bucket._line, price, until, lends=True)
            granted = loan = yield Join(place, failure.verdict if bucket.available < price else None)
            if isinstance(granted, Refused):
                return granted
        else:
            granted = yield Ask(bucket.acquire, (price,))
        if not granted:
            return self._refused(price)
        after = bucket.available
        payment = Payment(after + price, after, getattr(bucket, "source", "memory"))
        paid = standing._replace(spent=standing.spent + price, acquired=price, loan=loan)
        return Go(paid, failure.delay, payment=payment)

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

    def succeeded(
        self, standing: Standing, terms: Terms, now: float, latency: float = 0.0, timeout: float | None = None
    ) -> None:
        if standing.spent:
            self.unsent(standing)
        else:
            self.first_try(now, latency, timeout)

    def answered(self, standing: Standing) -> Standing:
        """Give back the tokens of the retry before, as after any success."""
        self.unsent(standing)
        return standing._replace(acquired=0.0, loan=None)

    def unsent(self, standing: Standing) -> None:
        """Give back the tokens of the last retry."""
        if standing.loan is not None:
            standing.loan.give_back()
        elif standing.acquired:
            self.bucket.release(standing.acquired)

    def end(self, standing: Standing) -> None:
        """Tell those who wait that the tokens of the last retry will not come back."""
        if standing.loan is not None:
            standing.loan.write_off()

    def gave_up(self, *, is_outage: bool) -> int:
        return 0

    def is_spare(self, now: float) -> bool:
        return self.bucket.available >= self.bucket.capacity

    def forget(self, now: float) -> None:
        forget = getattr(self.bucket, "forget", None)
        if forget is not None:
            forget()

    def snapshot(self, now: float) -> TokenBucketSnapshot:
        return self.bucket.snapshot()


def quota_maker(quota: Any, config: RetryConfig, clock: Clock) -> MakeQuota:
    """Return the maker of priced quotas that a config asks for.

    :param quota: a number of tokens, a bucket, or a function that returns one for the name of a scope.
    """
    price_of = config.numbers.price_of
    if isinstance(quota, (int, float)):
        return lambda name, now: PricedQuota(TokenBucket(quota, clock=clock), price_of)
    if isinstance(quota, RetryQuota):
        return lambda name, now: PricedQuota(quota, price_of, is_shared=True)

    def of_scope(name: str | None, now: float) -> Quota:
        bucket: object = quota(NO_SCOPE if name is None else name)  # it is the program's, so it may be anything
        if isinstance(bucket, RetryQuota) and not isinstance(bucket, PayoffTokenBucket):
            return PricedQuota(bucket, price_of, is_shared=True)
        why = f"its function returned a {type(bucket).__name__}: a TokenBucket, or another bucket of tokens, is allowed"
        raise RetryConfigError("quota", quota, config.source("quota"), why)

    return of_scope
