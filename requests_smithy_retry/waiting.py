"""Waiting for retry tokens (contract 6.3): who is in line on a bucket, who is served, who waits in vain.

First come, first served: the first in line is served before anybody behind or new, however little they want. Whoever
changes the bucket serves the line; each waiter looks by itself when the refill, its deadline or a lost token is due.
Everything here happens under the bucket's own lock, which is released while somebody waits.
"""

from __future__ import annotations

import threading
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from .clock import wait_on

if TYPE_CHECKING:
    from .quota import RetryQuota, TokenBucket

LOOK_AGAIN = 1.0
"""Seconds after which a waiter whose turn has no known time looks whether tokens were lost without notice."""

ROUNDING = 1e-9
"""A refill that lacks so small a part of what is wanted is complete."""


class Waiter:
    """One who waits.

    :param amount: what it wants.
    :param deadline: until when; None: as long as it takes.
    :param lock: the bucket's.
    """

    __slots__ = ("amount", "changed", "deadline", "granted")

    def __init__(self, amount: float, deadline: float | None, lock: threading.Lock) -> None:
        self.amount: float = amount
        self.deadline: float | None = deadline
        self.changed: threading.Condition = threading.Condition(lock)
        self.granted: bool | None = None
        """True: served; False: refused; None: still in line."""


class WaitingLine:
    """The line on one bucket. Every method is called with the bucket's lock held.

    :param bucket: whose tokens are waited for.
    """

    def __init__(self, bucket: TokenBucket) -> None:
        self._bucket = bucket
        self._line: deque[Waiter] = deque()
        self._outstanding = 0.0
        self._lost: deque[float] = deque()

    def acquire(self, amount: float, deadline: float | None) -> bool:
        """Take ``amount``, now or when it is its turn; False where that cannot be in time."""
        self._write_off_lost()
        if amount > self._bucket.capacity:
            return False
        waiter = Waiter(amount, deadline, self._bucket._lock)
        self._line.append(waiter)
        if len(self._line) == 1:
            self.serve()
        try:
            while waiter.granted is None:
                seconds = self._seconds_to_wait(waiter)
                if seconds is None:
                    return False
                wait_on(self._bucket.clock, waiter.changed, seconds)
                self._write_off_lost()
                self.serve()
        except BaseException:
            if waiter.granted:
                # Served and interrupted at once: nobody will use the tokens.
                self.returned(amount)
                self._bucket._available = min(self._bucket.capacity, self._bucket._available + amount)
            raise
        finally:
            if waiter.granted is None:
                self._line.remove(waiter)
            self.serve()
        return waiter.granted

    def returned(self, amount: float) -> None:
        """Tokens came back, or never will: they are no longer out."""
        self._outstanding = max(0.0, self._outstanding - amount)

    def lose(self, amount: float) -> None:
        """Take note without the lock, from a finalizer, that tokens will not come back."""
        self._lost.append(amount)

    def serve(self) -> None:
        """Grant and refuse from the front of the line, as far as that is known; wake whom it concerns."""
        bucket = self._bucket
        bucket._refill()
        while self._line:
            first = self._line[0]
            if self._is_enough(first.amount):
                bucket._available = max(0.0, bucket._available - first.amount)
                self._outstanding += first.amount
                first.granted = True
            elif not (bucket.refill_rate or self._outstanding):
                first.granted = False
            else:
                first.changed.notify()  # it may be due earlier than it thought
                return
            self._line.popleft()
            first.changed.notify()

    def _is_enough(self, amount: float) -> bool:
        # What is missing by rounding alone may be too little to move the clock: waiting for it would never end.
        return amount - self._bucket._available <= ROUNDING * max(1.0, amount)

    def _seconds_to_wait(self, waiter: Waiter) -> float | None:
        """How long until it is worth looking again; None: it will not be in time."""
        bucket = self._bucket
        now = bucket.clock.now()
        left = float("inf") if waiter.deadline is None else waiter.deadline - now
        if bucket.refill_rate:
            due = self._wanted_up_to(waiter) - bucket._available
            seconds = due / bucket.refill_rate
            # The end of a steady refill is known: too late is too late (contract 6.3).
            return None if seconds > left else max(0.0, seconds)
        return None if left <= 0 else min(left, LOOK_AGAIN)

    def _wanted_up_to(self, waiter: Waiter) -> float:
        place = self._line.index(waiter)
        return sum(other.amount for other in islice(self._line, place + 1))

    def _write_off_lost(self) -> None:
        while self._lost:
            self.returned(self._lost.popleft())


class Loan:
    """Tokens that a retry took from a bucket on which others may wait. They come back or are lost, once.

    Whoever drops a token without a word (an interrupt, say) loses them too: otherwise others would wait for ever.

    :param line: of the bucket.
    :param bucket: whose tokens they are.
    :param amount: how many.
    """

    __slots__ = ("_amount", "_bucket", "_line")

    def __init__(self, line: WaitingLine, bucket: TokenBucket, amount: float) -> None:
        self._line = line
        self._bucket = bucket
        self._amount = amount

    def settle(self) -> None:
        """They are about to be released."""
        self._amount = 0.0

    def write_off(self) -> None:
        """They will not come back."""
        amount, self._amount = self._amount, 0.0
        if amount:
            self._bucket.write_off(amount)

    def __del__(self) -> None:
        # A finalizer may run inside the bucket's own lock, so it takes none.
        if self._amount:
            self._line.lose(self._amount)


def loan_of(bucket: RetryQuota, amount: float) -> Loan | None:
    """The loan to go with tokens just taken; None for a bucket that nobody waits on."""
    line = getattr(bucket, "_line", None)
    return Loan(line, bucket, amount) if isinstance(line, WaitingLine) else None  # type: ignore[arg-type]
