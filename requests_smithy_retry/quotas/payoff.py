"""The payoff quota: the number of retries a client may still make in vain. It goes by operations, not by seconds.

A first-try success proves that the service is up: it fills the bucket to ``ROOM``. A retry that pays proves that
retries pay: its operation gets everything back, and room for one operation more. Both proofs fade with each further
first-try success, so after an hour the bucket holds what it holds after a minute. There is no clock, no rate, no price.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import Any

from ..forksafe import renew_lock_after_fork
from .bucket import TokenBucketSnapshot

ROOM = 2.0
"""The two retries of one operation of three attempts: the least that rides out one failure in ten."""
MEMORY = 0.95
"""The factor by which a first-try success shrinks the room that retries earned: it lasts for some twenty of them."""
MOST = 36.0
"""The capacity of the AWS SDKs, 500 tokens at 14 a retry: no client may do more harm than with theirs."""


class PayoffTokenBucket:
    """The default bucket of retries, for which successes pay. Safe to use from several threads.

    A first-try success is one ``next(bucket.first_tries)``: no lock, no clock. It is worked in when a retry is wanted
    or paid.

    >>> from requests_smithy_retry.quotas.payoff import PayoffTokenBucket
    >>> bucket = PayoffTokenBucket()
    >>> bucket.take(), bucket.take(), bucket.take()
    (True, True, False)
    >>> bucket.succeeded(2)
    >>> bucket.available
    4.0
    """

    __slots__ = ("__weakref__", "_firsts", "_lock", "_seen", "_tokens", "first_tries", "line")

    def __init__(self) -> None:
        self.first_tries: count[int] = count()
        """The counter of first-try successes; each one calls ``next`` on it."""
        self.line: Any = None
        """The line before it, where the bucket was passed to an adapter."""
        self._firsts = 0
        self._tokens: float
        self.renew_lock()
        renew_lock_after_fork(self)

    @property
    def capacity(self) -> float:
        """The tokens up to which first-try successes fill it; retries that paid can raise it above."""
        return ROOM

    @property
    def available(self) -> float:
        """The tokens that it holds now: from 0 to ``MOST``."""
        with self._lock:
            self._settle()
            return self._tokens

    @property
    def plain(self) -> PayoffTokenBucket:
        """Itself: the bucket behind a line."""
        return self

    def settle(self) -> int:
        """Process the first-try successes that were only counted; return how many there were since it was made."""
        with self._lock:
            self._settle()
            return self._firsts

    def take(self, price: float = 1.0, *, spare: float = 0.0) -> bool:
        """Pay for a retry, or take nothing and return False.

        :param price: one token, for whatever reason the attempt failed.
        :param spare: tokens that must be left after it.
        """
        with self._lock:
            self._settle()
            if self._tokens < price + spare:
                return False
            self._tokens -= price
            return True

    def succeeded(self, spent: float, *, somebody_waits: bool = False) -> None:
        """Take note of a success after retries that were paid for here.

        :param spent: tokens that they cost together: their number.
        :param somebody_waits: True: it lets a waiting operation go, so it makes no room for more.
        """
        _check(spent)
        if not somebody_waits:
            self.release(spent + ROOM)

    def renew(self) -> None:
        """Refill it: it then holds what a new one holds, or more."""
        with self._lock:
            self._settle()
            self._tokens = max(ROOM, self._tokens)

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:  # noqa: ARG002
        """Take ``amount`` tokens and return True, or take nothing and return False. It never waits.

        :param amount: 0 or more.
        :raises ValueError: for a negative amount, or none at all.
        """
        _check(amount)
        return self.take(amount)

    def release(self, amount: float) -> None:
        """Give ``amount`` tokens back; what exceeds ``MOST`` is dropped.

        :raises ValueError: for a negative amount, or none at all.
        """
        _check(amount)
        with self._lock:
            self._settle()
            self._tokens = min(MOST, self._tokens + amount)

    def snapshot(self) -> TokenBucketSnapshot:
        """An immutable view of the bucket now; ``available`` may be above ``capacity``."""
        return TokenBucketSnapshot(ROOM, self.available)

    def renew_lock(self) -> None:
        """Begin anew, lock and tokens, after a fork: the state of other threads is not known in the child."""
        self._lock = threading.Lock()
        self._tokens = ROOM
        # The counter stays: a holder of its ``__next__`` goes on counting here.
        self._seen = next(self.first_tries) + 1

    def _settle(self) -> None:
        at = next(self.first_tries)
        new, self._seen = at - self._seen, at + 1
        if new:
            self._firsts += new
            self._tokens = ROOM + max(0.0, self._tokens - ROOM) * float(MEMORY**new)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy begins anew, with a lock of its own (contract 11.1).
        return type(self), ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.available:.3g} of {self.capacity:g}>"


def _check(amount: float) -> None:
    # Taking -1 would overfill a bucket, giving nan back would spoil it for good.
    if not amount >= 0:
        raise ValueError(f"amount={amount!r}: a number of tokens, 0 or more, is allowed")
