"""The retry quota (contract 6.2): a token bucket that retries take from and successes give back to."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .clock import SYSTEM_CLOCK, Clock
from .finite import is_finite, shown
from .forksafe import renew_lock_after_fork
from .waiting import WaitingLine


@dataclass(frozen=True, slots=True)
class TokenBucketSnapshot:
    """A bucket at one moment.

    :param capacity: the most it holds.
    :param available: what it holds.
    :param source: which bucket answered: ``"memory"``, ``"redis"``, ``"shared memory"``; the latter two add
        ``", fallen open"`` where a local bucket stands in.
    """

    capacity: float
    available: float
    source: str = "memory"


@runtime_checkable
class RetryQuota(Protocol):
    """What a strategy needs of a bucket."""

    @property
    def capacity(self) -> float:
        """The most it holds."""
        ...

    @property
    def available(self) -> float:
        """What it holds now."""
        ...

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:
        """Take all of ``amount``, or nothing."""
        ...

    def release(self, amount: float) -> None:
        """Give back; what exceeds the capacity is dropped."""
        ...

    def snapshot(self) -> TokenBucketSnapshot:
        """An immutable view."""
        ...


def is_full(bucket: RetryQuota) -> bool:
    """Whether a bucket holds all it can."""
    return bucket.available >= bucket.capacity


class TokenBucket:
    """A bucket of retry tokens. All-or-nothing, under one lock; never below 0, never above its capacity.

    Pass one object to several strategies to share a quota on purpose.

    >>> bucket = TokenBucket(28)
    >>> bucket.acquire(14), bucket.acquire(14), bucket.acquire(14), bucket.available
    (True, True, False, 0)
    >>> bucket.release(50); bucket.available
    28

    :param capacity: the most it holds, from 0 on.
    :param initial: what it holds at first; by default it is full.
    :param refill_rate: tokens that come back per second whatever happens, from 0 on.
    :param on_empty: ``"fail"``: :meth:`acquire` refuses at once; ``"wait"``: it waits for its turn.
    :param clock: tells how much has been refilled, and waits.
    :raises ValueError: for a number out of range.
    """

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
            raise ValueError(f"capacity={shown(capacity)}: a finite number from 0 on is allowed")
        if initial is not None and not (is_finite(initial) and 0 <= initial <= capacity):
            raise ValueError(f"initial={shown(initial)}: a number from 0 to the capacity {capacity!r} is allowed")
        if not is_finite(refill_rate) or refill_rate < 0:
            raise ValueError(
                f"refill_rate={shown(refill_rate)}: a finite number of tokens per second from 0 on is allowed"
            )
        if on_empty not in ("fail", "wait"):
            raise ValueError(f"on_empty={on_empty!r}: 'fail' or 'wait' is allowed")
        self.capacity = capacity
        self.refill_rate = refill_rate
        self.on_empty = on_empty
        self.clock = clock
        self._available = capacity if initial is None else initial
        self._refilled_at = clock.now()
        self.renew_lock()
        renew_lock_after_fork(self)

    @property
    def available(self) -> float:
        """What the bucket holds now."""
        if self.refill_rate:
            with self._lock:
                self._refill()
        return self._available

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:
        """Take ``amount`` tokens, or none and return False.

        A bucket that waits returns False at once where nothing could ever bring the tokens, or where it is known that
        they come too late; else it waits, first come, first served, interruptibly and without its lock.

        :param amount: from 0 on.
        :param deadline: how long a bucket that waits may wait, on its clock; None: as long as it takes.
        :raises ValueError: for a negative amount, or none at all.
        """
        _check(amount)
        with self._lock:
            self._refill()
            if self._line is not None:
                return self._line.acquire(amount, deadline)
            if self._available < amount:
                return False
            self._available -= amount
            return True

    def release(self, amount: float) -> None:
        """Give ``amount`` tokens back; what exceeds the capacity is dropped.

        :raises ValueError: for a negative amount, or none at all.
        """
        _check(amount)
        # Read without the lock: a full bucket has room for nothing, so there is nothing to lose (contract 6.2).
        if self._available >= self.capacity:
            return
        with self._lock:
            if self._line is not None:
                self._line.returned(amount)
            self._add(amount)

    def reward(self, amount: float) -> None:
        """Add tokens that nobody took; what exceeds the capacity is dropped.

        :raises ValueError: for a negative amount, or none at all.
        """
        _check(amount)
        if self._available >= self.capacity:
            return
        with self._lock:
            self._add(amount)

    def write_off(self, amount: float) -> None:
        """Take note that tokens which were taken will not come back; who waits for nothing else is refused."""
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

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy keeps the configuration and starts full, with a lock of its own (contract 11.1).
        return _bucket, (type(self), self.capacity, self.refill_rate, self.on_empty, self.clock)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.available:g} of {self.capacity:g}>"


def _check(amount: float) -> None:
    # Taking -1 would overfill a bucket, giving nan back would spoil it for good.
    if not amount >= 0:
        raise ValueError(f"amount={amount!r}: a number of tokens from 0 on is allowed")


def _bucket(cls: type[TokenBucket], capacity: float, refill_rate: float, on_empty: str, clock: Clock) -> TokenBucket:
    return cls(capacity, refill_rate=refill_rate, on_empty=on_empty, clock=clock)
