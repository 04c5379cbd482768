"""The token bucket (contract 6.2, 6.3), and the line of threads that wait for its tokens."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from ..checks import is_finite, safe_repr
from ..clock import SYSTEM_CLOCK, Clock, wait_on
from ..forksafe import FreshCopies, renew_lock_after_fork

LOOK_AGAIN = 1.0
"""Seconds after which a waiter whose turn has no known time looks whether tokens were lost without notice."""

ROUNDING = 1e-9
"""A part of an amount this small is a rounding error, whether it is there or missing."""


@dataclass(eq=False, slots=True)
class Waiter:
    """One waiting thread, which takes its tokens itself when it is the first in line."""

    amount: float
    changed: threading.Condition


class WaitingLine:
    """The line on one bucket. Every method is called with the bucket's lock held."""

    def __init__(self, bucket: TokenBucket) -> None:
        self._bucket = bucket
        self._line: list[Waiter] = []
        self._outstanding = 0.0
        self._lost: list[float] = []

    def acquire(self, amount: float, deadline: float | None) -> bool:
        """Take ``amount``, now or when it is its turn; return False if that cannot be in time."""
        bucket = self._bucket
        if amount > bucket.capacity:
            return False
        waiter = Waiter(amount, threading.Condition(bucket._lock))
        try:
            self._line.append(waiter)
            is_granted = self._wait(waiter, deadline)
        finally:
            if waiter in self._line:
                self._line.remove(waiter)
            self.wake_first()
        if is_granted:
            # Last of all: who is interrupted before has taken nothing.
            left, out = max(0.0, bucket._available - amount), self._outstanding + amount
            bucket._available, self._outstanding = left, out
        return is_granted

    def _wait(self, waiter: Waiter, deadline: float | None) -> bool:
        """Wait until a waiter is the first and there is enough for it; return False if that cannot be in time."""
        bucket = self._bucket
        while True:
            bucket._refill()
            self._write_off_lost()
            place = self._line.index(waiter)
            if place == 0 and self._is_enough(waiter.amount):
                return True
            if place == 0 and not self._may_gain():
                return False
            wanted = sum(each.amount for each in self._line[: place + 1])
            seconds = self._seconds_to_wait(wanted, deadline)
            if seconds is None:
                return False
            wait_on(bucket.clock, waiter.changed, seconds)

    def may_come(self, amount: float, deadline: float | None) -> bool:
        """Return True if ``amount`` is there, or may come in time to one that joins the line now."""
        self._write_off_lost()
        if amount > self._bucket.capacity or not self._may_gain():
            return self._is_enough(amount)
        return self._seconds_to_wait(sum(each.amount for each in self._line) + amount, deadline) is not None

    def returned(self, amount: float) -> None:
        """Tokens came back, or never will: they are no longer out."""
        left = self._outstanding - amount
        # An amount left by rounding alone is out nowhere: waiting for it would never end.
        self._outstanding = left if left > ROUNDING * max(1.0, amount) else 0.0

    def lose(self, amount: float) -> None:
        """Take note, without the lock and from a finalizer, that tokens will not come back."""
        self._lost.append(amount)

    def wake_first(self) -> None:
        """Have the first in line look: it may be served, or refused, or due earlier than it thought."""
        if self._line:
            self._line[0].changed.notify()

    def _may_gain(self) -> bool:
        return self._bucket.refill_rate > 0 or self._outstanding > 0

    def _is_enough(self, amount: float) -> bool:
        # An amount missing by rounding alone may be too little to move the clock: waiting for it would never end.
        bucket = self._bucket
        missing = amount - bucket._available
        if missing <= ROUNDING * max(1.0, amount):
            return True
        now = bucket.clock.now()
        return bucket.refill_rate > 0 and now + missing / bucket.refill_rate == now

    def _seconds_to_wait(self, wanted: float, deadline: float | None) -> float | None:
        """Return the seconds until all that is wanted up to a waiter may be there; None: not in time."""
        bucket = self._bucket
        left = float("inf") if deadline is None else deadline - bucket.clock.now()
        missing = wanted - bucket._available
        # The end of a steady refill is known: too late is too late (contract 6.3).
        if left <= 0 or (bucket.refill_rate and missing / bucket.refill_rate > left):
            return None
        # Where nothing is missing, those in front are about to take theirs: the last of them says so.
        return missing / bucket.refill_rate if bucket.refill_rate and missing > 0 else min(left, LOOK_AGAIN)

    def _write_off_lost(self) -> None:
        while self._lost:
            self.returned(self._lost.pop())


class Loan:
    """Tokens that a retry took from a bucket on which others may wait. They come back or are lost, once.

    An interrupted operation loses them, too: otherwise others would wait without end.
    """

    __slots__ = ("_amount", "_bucket", "_line")

    def __init__(self, line: WaitingLine, bucket: TokenBucket, amount: float) -> None:
        self._line = line
        self._bucket = bucket
        self._amount = amount

    def give_back(self) -> None:
        """Give the tokens back to the bucket that they were taken from, whichever bucket its scope has by now."""
        amount, self._amount = self._amount, 0.0
        self._bucket.release(amount)

    def write_off(self) -> None:
        """Take note that the tokens will not come back."""
        amount, self._amount = self._amount, 0.0
        if amount:
            self._bucket.write_off(amount)

    def __del__(self) -> None:
        # A finalizer may run inside the bucket's own lock, so it takes none.
        if getattr(self, "_amount", 0.0):  # an interruption may come before it has any
            self._line.lose(self._amount)


def loan_of(bucket: RetryQuota, amount: float) -> Loan | None:
    """Return the loan to go with tokens just taken; None for a bucket without a line."""
    line = getattr(bucket, "_line", None)
    return Loan(line, bucket, amount) if isinstance(line, WaitingLine) else None  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class TokenBucketSnapshot:
    """A bucket at one moment.

    :param capacity: the most it holds.
    :param available: the tokens that it holds.
    :param source: which bucket answered: ``"memory"``, ``"redis"``, or ``"redis, fallen open"`` where a local bucket
        stands in for it.
    """

    capacity: float
    available: float
    source: str = "memory"


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


def is_full(bucket: RetryQuota) -> bool:
    """Return True if a bucket holds all it can."""
    return bucket.available >= bucket.capacity


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
        if not is_finite(capacity) or capacity < 0:
            raise ValueError(f"capacity={safe_repr(capacity)}: a finite number of 0 or more is allowed")
        if initial is not None and not (is_finite(initial) and 0 <= initial <= capacity):
            raise ValueError(f"initial={safe_repr(initial)}: a number from 0 to the capacity {capacity!r} is allowed")
        if not is_finite(refill_rate) or refill_rate < 0:
            raise ValueError(
                f"refill_rate={safe_repr(refill_rate)}: a finite number of tokens per second, 0 or more, is allowed"
            )
        if on_empty not in ("fail", "wait"):
            raise ValueError(f"on_empty={on_empty!r}: 'fail' or 'wait' is allowed")
        if not is_finite(success_reward) or success_reward < 0:
            raise ValueError(
                f"success_reward={safe_repr(success_reward)}: a finite number of tokens, 0 or more, is allowed"
            )
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
                self._refill()
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
        with self._lock:
            self._refill()
            if self._line is not None:
                return self._line.acquire(amount, deadline)
            if self._available < amount:
                return False
            self._available -= amount
            return True

    def may_come(self, amount: float, deadline: float | None) -> bool:
        """Return True unless :meth:`acquire` would refuse at once. A bucket that does not wait says nothing of use."""
        with self._lock:
            self._refill()
            return self._line is not None and self._line.may_come(amount, deadline)

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
        """Take note that tokens which were taken will not come back; a waiter that counts on them is refused.

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

    def _refill(self) -> None:
        if self.refill_rate:
            now = self.clock.now()
            self._available = min(self.capacity, self._available + (now - self._refilled_at) * self.refill_rate)
            self._refilled_at = now

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.available:g} of {self.capacity:g}>"


def check_amount(amount: float) -> None:
    """Refuse an amount that a bucket can neither take (-1 would overfill it) nor give (nan would spoil it for good)."""
    if not is_finite(amount) or amount < 0:
        raise ValueError(f"amount={safe_repr(amount)}: a finite number of tokens, 0 or more, is allowed")
