"""The retry budget: the number of retries that a client may still make in vain. It counts operations, not seconds.

A first-try success shows that the service is up, and fills the bucket to its capacity. A success after retries shows
that retries help: it gives back what they took, plus the retries of one more operation. The excess over the capacity
shrinks with each further first-try success, so the bucket holds the same after an hour as after a minute.

Each scope has such a bucket, and a queue in front of it; :mod:`.wait_queue` makes the decisions of the queue.
"""

from __future__ import annotations

import threading
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from ..checks import check_amount
from ..clock import Wait
from ..forksafe import renew_lock_after_fork
from .quota import Grant, Payment, Quota, Refused, RetryQuota, TokenBucketSnapshot
from .wait_queue import ATTEMPTS, LEAST_GAP, UNLIMITED, Bounds, Failure, Progress, Waiter, WaitQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..classifiers.actions import RetryReason
    from .attempt import AttemptFailed

CAPACITY = ATTEMPTS - 1.0
"""The two retries of one operation: the fewest that ride out one failure in ten."""
MOST = 36.0
"""The capacity of the AWS SDKs, 500 tokens at 14 a retry: no client may do more harm than with theirs."""
WAITERS = 1000
"""The most operations that wait on one scope, by default."""
MEMORY = 0.95
"""The factor by which a first-try success shrinks the excess over the capacity: it lasts for some twenty."""
NAME_PATIENCE = 2.0
"""Seconds after which a host name that never resolved is given up as misspelt."""


def capacity_of(bounds: Bounds) -> float:
    """Return the tokens with which a scope begins: all retries of one operation can be paid for."""
    return MOST if bounds.max_attempts == UNLIMITED else float(bounds.retries)


class PayoffTokenBucket:
    """The default bucket of retries, which successes refill. Safe to use from several threads.

    >>> from requests_smithy_retry import PayoffTokenBucket
    >>> bucket = PayoffTokenBucket()
    >>> bucket.acquire(1), bucket.acquire(1), bucket.acquire(1)
    (True, True, False)
    >>> bucket.succeeded(2)
    >>> bucket.available
    4.0

    :param capacity: the tokens that it begins with, and to which first-try successes refill it; 0 or more. Retries that
        paid off can raise it above.
    """

    source = "memory"

    def __init__(self, capacity: float = CAPACITY) -> None:
        check_amount(capacity)
        self.capacity: float = capacity
        self.quota: RetryBudget | None = None
        """The queue in front of it, if it was given to an adapter: adapters that share the bucket share the queue."""
        self._tokens: float = capacity
        self.renew_lock()
        renew_lock_after_fork(self)

    @property
    def available(self) -> float:
        """The tokens that it holds now: from 0 to ``MOST``, or to ``capacity`` if that is more."""
        return self._tokens

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:
        """Take ``amount`` tokens and return True, or take nothing and return False. It never waits.

        :param amount: 0 or more.
        :raises ValueError: for anything but a finite number of 0 or more.
        """
        check_amount(amount)
        with self._lock:
            if self._tokens < amount:
                return False
            self._tokens -= amount
            return True

    def release(self, amount: float) -> None:
        """Give ``amount`` tokens back; what exceeds ``MOST`` and ``capacity`` is dropped.

        :raises ValueError: for anything but a finite number of 0 or more.
        """
        check_amount(amount)
        with self._lock:
            self._tokens = min(max(MOST, self.capacity), self._tokens + amount)

    def first_tries(self, number: int) -> None:
        """Record a number of first-try successes."""
        with self._lock:
            self._tokens = self._after(number)

    def _after(self, number: int) -> float:
        """Return the tokens that it holds after a number of first-try successes."""
        above = max(0.0, self._tokens - self.capacity)
        return self.capacity + above * float(MEMORY**number) if number else self._tokens

    def succeeded(self, spent: float) -> None:
        """Record a success after retries that were paid for here: there is room for one more operation.

        :param spent: tokens that the retries cost together: their number.
        """
        self.release(spent + self.capacity)

    def renew(self) -> None:
        """Refill it to its capacity, at least."""
        with self._lock:
            self._tokens = max(self.capacity, self._tokens)

    def forget(self) -> None:
        """Reset it to its capacity."""
        with self._lock:
            self._tokens = self.capacity

    def snapshot(self, first_tries: int = 0) -> TokenBucketSnapshot:
        """An immutable view of the bucket now; ``available`` may be above ``capacity``.

        :param first_tries: the number of first-try successes that are not recorded here yet, but count.
        """
        return TokenBucketSnapshot(self.capacity, self._after(first_tries))

    def renew_lock(self) -> None:
        """Renew lock and tokens after a fork: the child does not know the state of other threads."""
        self._lock = threading.Lock()
        self._tokens = self.capacity

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy is full, with a lock of its own (contract 11.1).
        return type(self), (self.capacity,)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.available:.3g} of {self.capacity:g}>"


class PaidBucket(RetryQuota, Protocol):
    """The bucket behind a queue: :class:`PayoffTokenBucket`, or one that processes share."""

    @property
    def source(self) -> str: ...

    def first_tries(self, number: int) -> None: ...

    def succeeded(self, spent: float) -> None: ...

    def renew(self) -> None: ...

    def forget(self) -> None: ...

    def snapshot(self, first_tries: int = 0) -> TokenBucketSnapshot: ...


class RetryBudget(Quota):
    """One scope's bucket and queue. Safe to use from several threads; a forked child starts over.

    :param price_of: the tokens that a retry costs, by the reason for it; None: one.
    """

    counts_attempts = True

    def __init__(
        self,
        bucket: PaidBucket | None = None,
        now: float = 0.0,
        *,
        price_of: Callable[[RetryReason], float] | None = None,
        max_waiters: int = WAITERS,
    ) -> None:
        self.bucket: PaidBucket = PayoffTokenBucket() if bucket is None else bucket
        self._price_of = price_of
        self._born = now
        self._forgot_at = -inf
        self._max_waiters = max_waiters
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Renew lock and queue after a fork: the waiting threads do not exist in the child."""
        self.lock: threading.Lock = threading.Lock()
        self._queue = WaitQueue(self._born, max_waiters=self._max_waiters)
        self._first_tries = 0
        """First-try successes that are not recorded in the bucket yet: that may cost a call."""

    def began(self, now: float) -> None:
        """Record that a first attempt is sent, so that waiters need not ask meanwhile."""
        if self._queue.waiters:
            with self.lock:
                self._queue.sent(now)

    def first_try(self, now: float, latency: float, timeout: float | None) -> None:
        with self.lock:
            self._first_tries += 1
            self._queue.succeeded(now, latency, timeout)

    def acquire(self, progress: Progress, bounds: Bounds, failure: Failure, failed: AttemptFailed) -> Grant | Refused:
        now = failed.outcome.ended
        price = 1.0 if self._price_of is None or failure.reason is None else self._price_of(failure.reason)
        with self.lock:
            if failure.unresolved and self._queue.answered_at == -inf:
                bounds = bounds._replace(patience=min(NAME_PATIENCE, bounds.patience))
            seen = self._queue.failed(progress, bounds, failure, now, price, self.bucket.renew)
        if isinstance(seen, Refused):
            return seen
        progress, delay = seen
        if delay is not None and self._take(price, bounds.deadline):
            with self.lock:
                progress = self._queue.paid(progress, bounds, price, now + delay)
            after = self.bucket.available
            return Grant(progress, delay, payment=Payment(after + price, after, self.bucket.source))
        with self.lock:
            earliest = self._queue.earliest(progress, bounds, failure, now)
            waiter = Waiter(progress, bounds, now, earliest, uncounted=failure.uncounted)
            refusal = self._queue.may_join(waiter, now)
        if refusal is not None:
            return Refused(refusal)
        answer: Grant | Refused = failed.wait_in(PlaceInQueue(self, waiter), "the failing service")
        return answer

    def _take(self, price: float, deadline: float | None) -> bool:
        with self.lock:
            number, self._first_tries = self._first_tries, 0
        self.bucket.first_tries(number)
        return self.bucket.acquire(price, deadline=deadline)

    def succeeded(self, progress: Progress, now: float, latency: float = 0.0, timeout: float | None = None) -> None:
        is_delayed = progress.failed_at is not None and now - progress.began > LEAST_GAP
        with self.lock:
            is_alone = self._queue.succeeded(now, latency, timeout, is_delayed=is_delayed)
        if progress.spent and is_alone and not self._is_forgotten(progress):
            self.bucket.succeeded(progress.spent)

    def unsent(self, progress: Progress) -> None:
        if not self._is_forgotten(progress):
            super().unsent(progress)

    def _is_forgotten(self, progress: Progress) -> bool:
        """Return True for an operation that began before :meth:`forget`: it paid from a bucket that is gone."""
        return progress.began < self._forgot_at

    @property
    def is_waited_on(self) -> bool:
        return bool(self._queue.waiters)

    def forget(self, now: float) -> None:
        with self.lock:
            self._queue.release_all_waiters(now)
            self._queue, self._first_tries = WaitQueue(now, max_waiters=self._max_waiters), 0
            self._forgot_at = now
        self.bucket.forget()

    def snapshot(self, now: float) -> TokenBucketSnapshot:
        with self.lock:
            return self.bucket.snapshot(self._first_tries)._replace(waiting=len(self._queue.waiters))


class PlaceInQueue:
    """One operation's place in the queue of a scope."""

    def __init__(self, quota: RetryBudget, waiter: Waiter) -> None:
        self.changed: threading.Condition = threading.Condition(quota.lock)
        self._quota = quota
        self._queue = quota._queue
        self._waiter = waiter
        self._has_joined = False
        waiter.wake = self.changed.notify

    def look(self, now: float) -> Grant | Wait | Refused:
        """Join the queue at the first look, and return its decision."""
        if not self._has_joined:
            self._has_joined = True
            self._queue = self._quota._queue  # forget() of another thread may have replaced it
            refusal = self._queue.join(self._waiter, now)
            if refusal is not None:
                return Refused(refusal)
        return self._queue.look(self._waiter, now)

    def leave(self, now: float) -> None:
        """Leave the queue; what it was given passes to the next."""
        self._queue.leave(self._waiter, now)
