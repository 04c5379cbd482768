"""The token bucket (contract 6.2, 6.3), and the line of threads that wait for its tokens."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Protocol, runtime_checkable

from ..checks import is_finite, safe_repr
from ..clock import SYSTEM_CLOCK, Clock, wait_on
from ..forksafe import FreshCopies, renew_lock_after_fork

LOOK_AGAIN = 1.0
"""Seconds after which a waiter whose turn has no known time looks whether tokens were lost without notice."""

ROUNDING = 1e-9
"""A part of an amount this small is a rounding error, whether it is there or missing."""


class Waiter:
    """One waiting thread."""

    __slots__ = ("amount", "changed", "granted")

    def __init__(self, amount: float, lock: threading.Lock) -> None:
        self.amount: float = amount
        self.changed: threading.Condition = threading.Condition(lock)
        self.granted: bool | None = None
        """True: served; False: refused; None: still in line."""


class WaitingLine:
    """The line on one bucket. Every method is called with the bucket's lock held."""

    def __init__(self, bucket: TokenBucket) -> None:
        self._bucket = bucket
        self._line: deque[Waiter] = deque()
        self._outstanding = 0.0
        self._lost: deque[float] = deque()

    def acquire(self, amount: float, deadline: float | None) -> bool:
        """Take ``amount``, now or when it is its turn; return False if that cannot be in time."""
        self._write_off_lost()
        if amount > self._bucket.capacity:
            return False
        waiter = Waiter(amount, self._bucket._lock)
        try:
            self._line.append(waiter)
            if len(self._line) == 1:
                self.serve()
            while waiter.granted is None:
                wanted = sum(other.amount for other in islice(self._line, self._line.index(waiter) + 1))
                seconds = self._seconds_to_wait(wanted, deadline)
                if seconds is None:
                    return False
                wait_on(self._bucket.clock, waiter.changed, seconds)
                self._write_off_lost()
                self.serve()
            return waiter.granted
        except BaseException:
            if waiter.granted:
                # Served and interrupted at once: nobody will use the tokens.
                self.returned(amount)
                self._bucket._available = min(self._bucket.capacity, self._bucket._available + amount)
            raise
        finally:
            if waiter in self._line:
                self._line.remove(waiter)
            self.serve()

    def may_come(self, amount: float, deadline: float | None) -> bool:
        """Return True if ``amount`` is there, or may come in time to one that joins the line now."""
        self._write_off_lost()
        bucket = self._bucket
        if amount > bucket.capacity or not (bucket.refill_rate or self._outstanding):
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

    def serve(self) -> None:
        """Grant and refuse from the front of the line, as far as that is decided; wake the threads concerned."""
        bucket = self._bucket
        bucket._refill()
        while self._line:
            first = self._line[0]
            if first.granted is not None:
                pass  # an interruption came before it was told
            elif self._is_enough(first.amount):
                left, out = max(0.0, bucket._available - first.amount), self._outstanding + first.amount
                bucket._available, self._outstanding, first.granted = left, out, True
            elif not (bucket.refill_rate or self._outstanding):
                first.granted = False
            else:
                first.changed.notify()  # it may be due earlier than it thought
                return
            self._line.popleft()
            first.changed.notify()

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
        now = bucket.clock.now()
        left = float("inf") if deadline is None else deadline - now
        if bucket.refill_rate:
            seconds = (wanted - bucket._available) / bucket.refill_rate
            # The end of a steady refill is known: too late is too late (contract 6.3).
            return None if seconds > left else max(0.0, seconds)
        return None if left <= 0 else min(left, LOOK_AGAIN)

    def _write_off_lost(self) -> None:
        while self._lost:
            self.returned(self._lost.popleft())


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
    :param source: which bucket answered: ``"memory"``, ``"redis"``, ``"shared memory"``; the latter two add
        ``", fallen open"`` where a local bucket stands in.
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
        self.capacity = capacity
        self.refill_rate = refill_rate
        self.on_empty = on_empty
        self.clock = clock
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
                self._line.serve()

    def snapshot(self) -> TokenBucketSnapshot:
        """An immutable view of the bucket now."""
        return TokenBucketSnapshot(self.capacity, self.available)

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork."""
        self._lock = threading.Lock()
        self._line = WaitingLine(self) if self.on_empty == "wait" else None

    def _add(self, amount: float) -> None:
        self._available = min(self.capacity, self._available + amount)
        if self._line is not None:
            self._line.serve()

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
