"""The payoff quota: the number of retries a client may still make in vain. It goes by operations, not by seconds.

A first-try success proves that the service is up: it fills the bucket to ``ROOM``. A retry that pays proves that
retries pay: its operation gets everything back, and room for one operation more. Both proofs fade with each further
first-try success, so after an hour the bucket holds what it holds after a minute. There is no clock, no rate, no price.

A scope has such a bucket, and a line in front of it, of which all decisions are made in :mod:`.line`. An operation that
waits here holds no lock, no connection and no thread but its own: it rests on a condition of the scope's lock, by the
injected clock, until the line says that it is time to look again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from ..clock import SYSTEM_CLOCK, Clock, wait_on
from ..forksafe import renew_lock_after_fork
from ..urls import display_scope
from .bucket import RetryQuota, TokenBucketSnapshot, is_full
from .line import MOST, ROOM, WAITERS, Failure, Go, Line, Refusal, Refused, Standing, Terms, Wait, Waiter
from .scope_quota import FirstTry, ScopeQuota

logger: logging.Logger = logging.getLogger("requests_smithy_retry")

MEMORY = 0.95
"""The factor by which a first-try success shrinks the room that retries earned: it lasts for some twenty of them."""
FIRST_TRY = Terms(patience=0.0)
"""The terms of a first-try success: it waited for nobody, so the recovery lasts no longer for its patience."""
NAME_PATIENCE = 2.0
"""Seconds after which a name that never resolved is given up: it is misspelt."""


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

    :param room: the tokens that it begins with, up to which first-try successes fill it; 0 or more. Retries that paid
        can raise it above.
    """

    __slots__ = ("__weakref__", "_firsts", "_lock", "_seen", "_tokens", "capacity", "first_tries", "line")

    def __init__(self, room: float = ROOM) -> None:
        _check(room)
        self.capacity: float = room
        self.first_tries: count[int] = count()
        """The counter of first-try successes; each one calls ``next`` on it."""
        self.line: Any = None
        """The line before it, where the bucket was passed to an adapter."""
        self._firsts = 0
        self._tokens: float
        self.renew_lock()
        renew_lock_after_fork(self)

    @property
    def available(self) -> float:
        """The tokens that it holds now: from 0 to ``MOST``, or to ``capacity`` if that is more."""
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

    def take(self, price: float = 1.0, *, deadline: float | None = None) -> bool:  # noqa: ARG002
        """Pay for a retry, or take nothing and return False.

        :param price: one token, for whatever reason the attempt failed.
        :param deadline: for buckets that ask a server: it is over then.
        """
        with self._lock:
            self._settle()
            if self._tokens < price:
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
            self.release(spent + self.capacity)

    def renew(self) -> None:
        """Refill it: it then holds what a new one holds, or more."""
        with self._lock:
            self._settle()
            self._tokens = max(self.capacity, self._tokens)

    def forget(self) -> None:
        """Hold what a new one holds, and have counted no success."""
        with self._lock:
            self._settle()
            self._tokens, self._firsts = self.capacity, 0

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:  # noqa: ARG002
        """Take ``amount`` tokens and return True, or take nothing and return False. It never waits.

        :param amount: 0 or more.
        :raises ValueError: for a negative amount, or none at all.
        """
        _check(amount)
        return self.take(amount)

    def release(self, amount: float) -> None:
        """Give ``amount`` tokens back; what exceeds ``MOST`` and ``capacity`` is dropped.

        :raises ValueError: for a negative amount, or none at all.
        """
        _check(amount)
        with self._lock:
            self._settle()
            self._tokens = min(max(MOST, self.capacity), self._tokens + amount)

    def snapshot(self) -> TokenBucketSnapshot:
        """An immutable view of the bucket now; ``available`` may be above ``capacity``."""
        return TokenBucketSnapshot(self.capacity, self.available)

    def renew_lock(self) -> None:
        """Begin anew, lock and tokens, after a fork: the state of other threads is not known in the child."""
        self._lock = threading.Lock()
        self._tokens = self.capacity
        # The counter stays: a holder of its ``__next__`` goes on counting here.
        self._seen = next(self.first_tries) + 1

    def _settle(self) -> None:
        at = next(self.first_tries)
        new, self._seen = at - self._seen, at + 1
        if new:
            self._firsts += new
            earned = max(0.0, self._tokens - self.capacity)
            self._tokens = self.capacity + earned * float(MEMORY**new)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy begins anew, with a lock of its own (contract 11.1).
        return type(self), (self.capacity,)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.available:.3g} of {self.capacity:g}>"


def _check(amount: float) -> None:
    # Taking -1 would overfill a bucket, giving nan back would spoil it for good.
    if not amount >= 0:
        raise ValueError(f"amount={amount!r}: a number of tokens, 0 or more, is allowed")


class CountedQuota:
    """Any retry quota, for example one on Redis, as the bucket behind a line.

    First-try successes are counted, and paid in together before something is taken, which costs one call.
    """

    def __init__(self, quota: RetryQuota, *, reward: float = 0.0) -> None:
        self.plain: RetryQuota = quota
        self.first_tries: count[int] = count()
        self._reward = reward
        self._settled = 0
        self._rewarded = 0
        self._firsts = 0

    def settle(self) -> int:
        """Return the number of first-try successes so far. Called with the lock of the line held."""
        self._settled += 1
        self._firsts = next(self.first_tries) - self._settled + 1
        return self._firsts

    def take(self, price: float = 1.0, *, deadline: float | None = None) -> bool:
        """Pay for a retry, or take nothing and return False."""
        new, self._rewarded = self._firsts - self._rewarded, self._firsts
        if new > 0 and self._reward:
            self.plain.release(new * self._reward)
        return self.plain.acquire(price, deadline=deadline)

    def succeeded(self, spent: float, *, somebody_waits: bool = False) -> None:  # noqa: ARG002
        """Give back what an operation's retries cost: other processes would miss it."""
        self.plain.release(spent)

    def release(self, amount: float) -> None:
        self.plain.release(amount)

    def renew(self) -> None:
        """Do nothing: other processes may have spent the missing tokens."""

    def snapshot(self) -> TokenBucketSnapshot:
        return self.plain.snapshot()


@dataclass(frozen=True, slots=True)
class LineSnapshot(TokenBucketSnapshot):
    """A bucket and the line in front of it at one moment.

    :param waiting: the number of operations that wait.
    :param down_for: seconds since the first failure after the last success; None: the last thing seen was a success.
    """

    waiting: int = 0
    down_for: float | None = None


def line_before(bucket: PayoffTokenBucket, clock: Clock, timeout_of: Callable[[Any], float | None]) -> PatientQuota:
    """Return the one line before a bucket that was passed in: adapters that share the bucket share its line."""
    with bucket._lock:
        if bucket.line is None:
            bucket.line = PatientQuota(bucket, clock=clock, timeout_of=timeout_of)
        line: PatientQuota = bucket.line
        return line


class PatientQuota(ScopeQuota):
    """One scope's bucket and line. Safe to use from several threads; a child of a fork begins anew.

    >>> from requests_smithy_retry.testing import FakeClock
    >>> quota = PatientQuota(clock=FakeClock())
    >>> standing = quota.begin()
    >>> quota.failed(standing, Terms(), Failure(delay=0.05)).delay
    0.05

    :param bucket: the bucket that pays for retries while nobody waits.
    :param timeout_of: the seconds that a time-out of the shapes that requests takes allows one read.
    :param lines: the names of the scopes on which operations wait, kept up to date here: first attempts that begin
        while it names theirs are to :meth:`begin` here.
    """

    __slots__ = (
        *("_born", "_count", "_line", "_lock", "_name", "_room", "_timeout_of"),
        *("bucket", "clock", "lines"),
    )

    first_try: FirstTry

    counts_attempts = True

    def __init__(
        self,
        bucket: PayoffTokenBucket | CountedQuota | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        room: int = WAITERS,
        name: str | None = None,
        timeout_of: Callable[[Any], float | None] = lambda seconds: seconds,
        lines: set[Any] | None = None,
    ) -> None:
        self.bucket: PayoffTokenBucket | CountedQuota = PayoffTokenBucket() if bucket is None else bucket
        super().__init__(self.bucket.plain)
        self.clock = clock
        self._room = room
        self._name = name
        self._timeout_of = timeout_of
        self.lines: set[Any] = set() if lines is None else lines
        self._count: FirstTry = partial(next, self.bucket.first_tries)
        self.renew_lock()
        renew_lock_after_fork(self)

    def begin(self) -> Standing:
        now = self.clock.now()
        if self._line is not None and self._line.waiters:
            with self._lock:
                self._line.sent(now)
        return Standing(now)

    def failed(
        self,
        standing: Standing,
        terms: Terms,
        failure: Failure,
        *,
        before_waiting: Callable[[], bool] | None = None,
    ) -> Go | Refused:
        changed = threading.Condition(self._lock)
        if failure.unresolved:
            with self._lock:
                has_answered = self.bucket.settle() or (self._line is not None and self._line.successes)
            if not has_answered:
                terms = terms._replace(patience=min(NAME_PATIENCE, terms.patience))
        waiter = self.judge(standing, terms, failure, wake=changed.notify)
        if not isinstance(waiter, Waiter):
            return waiter
        if before_waiting is not None and not before_waiting():
            return Refused(Refusal.HELD)
        return self._wait(waiter, changed)

    def judge(
        self, standing: Standing, terms: Terms, failure: Failure, *, wake: Callable[[], object]
    ) -> Go | Refused | Waiter:
        """Decide without waiting: a waiter may enter the line. Its ``wake`` is called with the lock held."""
        with self._lock:
            now, firsts = self.clock.now(), self.bucket.settle()
            renew = self.bucket.renew
            seen = self._made_line().failed(standing, terms, failure, now, firsts=firsts, renew=renew)
            self._follow()
        if isinstance(seen, Refused):
            return seen
        counted, delay = seen
        # Not under the lock: a bucket that processes share may take a moment to answer.
        price = failure.price
        if delay is not None and self.bucket.take(price, deadline=terms.deadline):
            with self._lock:
                self._made_line().sent(now + delay)
            # More would let one success pay for any number of retries in vain, again and again.
            spent = max(counted.spent, min(counted.spent + price, terms.retries * price))
            return Go(replace(counted, spent=spent, acquired=price), delay)
        waiter = Waiter(counted, terms, now, now + failure.hint, wake)
        with self._lock:
            refusal = self._made_line().may_join(waiter, now)
        return waiter if refusal is None else Refused(refusal)

    def succeeded(
        self, standing: Standing, terms: Terms, *, latency: float = 0.0, timeout: float | None = None
    ) -> None:
        is_alone, outage = True, None
        with self._lock:
            if standing.successes is None:
                next(self.bucket.first_tries)
            if self._line is not None:
                now, firsts = self.clock.now(), self.bucket.settle()
                is_alone = self._line.succeeded(standing, terms, now, firsts=firsts, latency=latency, timeout=timeout)
                outage, self._line.outage = self._line.outage, None
                self._follow()
        if outage is not None:
            log_back(self._name, *outage)  # without the lock: a handler may send requests
        if standing.spent:
            self.bucket.succeeded(standing.spent, somebody_waits=not is_alone)

    def gave_up(self, *, is_outage: bool) -> int:
        with self._lock:
            return 0 if self._line is None else self._line.gave_up(is_outage=is_outage)

    def unsent(self, standing: Standing) -> None:
        if standing.acquired:
            self.bucket.release(standing.acquired)

    def is_spare(self) -> bool:
        """Return True if a new one would do as well: unspent and without waiters, or unused for minutes."""
        with self._lock:
            line = self._line
            if (line is None or line.is_calm) and is_full(self.plain):
                return True
            return line is not None and line.is_as_good_as_new(self.clock.now(), self.bucket.settle())

    def snapshot(self) -> LineSnapshot:
        """An immutable view of bucket and line now."""
        held = self.bucket.snapshot()
        with self._lock:
            since, waiting = (None, 0) if self._line is None else (self._line.failing_since, len(self._line.waiters))
        down_for = None if since is None else self.clock.now() - since
        return LineSnapshot(held.capacity, held.available, held.source, waiting, down_for)

    def renew_lock(self) -> None:
        """Begin anew, lock and line, after a fork: the waiting threads do not exist in the child."""
        self._lock = threading.Lock()
        self._born = self.clock.now()
        self._line: Line | None = None
        self._follow()

    def forget(self) -> None:
        """Begin anew; those that wait ask again at once."""
        with self._lock:
            super().forget()
            now, line = self.clock.now(), self._line
            self._born, self._line = now, None
            if line is not None:
                line.let_all_go(now)
            self._follow()

    def _made_line(self) -> Line:
        """Return the line, made on first use: most scopes are never in trouble. Called with the lock."""
        if self._line is None:
            self._line = Line(self._born, room=self._room)
        return self._line

    def _wait(self, waiter: Waiter, changed: threading.Condition) -> Go | Refused:
        """Wait in the line until it decides. An interrupted thread leaves the line."""
        with self._lock:
            line, done = self._made_line(), False
            try:
                seen = self._enter(waiter)
                while isinstance(seen, Wait):
                    wait_on(self.clock, changed, max(0.0, seen.until - self.clock.now()))
                    seen = self._look(waiter)
                done = True
                return seen
            finally:
                if not done:
                    line.leave(waiter, self.clock.now())
                self._follow()

    def _enter(self, waiter: Waiter) -> Go | Wait | Refused:
        refusal = self._made_line().join(waiter, self.clock.now())
        return self._look(waiter) if refusal is None else Refused(refusal)

    def _look(self, waiter: Waiter) -> Go | Wait | Refused:
        seen = self._made_line().look(waiter, self.clock.now(), firsts=self.bucket.settle())
        self._follow()
        return seen

    def _first_try_in_trouble(self, attempt: tuple[float, Any]) -> None:
        started, timeout = attempt
        latency = self.clock.now() - started
        self.succeeded(Standing(started), FIRST_TRY, latency=latency, timeout=self._timeout_of(timeout))

    def _follow(self) -> None:
        """Have first-try successes take the slow path while operations wait or one failed, and note who waits."""
        line = self._line
        self.first_try = self._count if line is None or line.is_calm else self._first_try_in_trouble
        if line is not None and line.waiters:
            self.lines.add(self._name)
        else:
            self.lines.discard(self._name)


def log_back(scope: str | None, seconds: float, operations: int) -> None:
    """Log that a service is back, at WARNING if its outage hid the end of an operation from that level."""
    service = "the service" if scope is None else display_scope(scope)
    level = logging.WARNING if operations > 1 else logging.INFO
    extra = {"retry_scope": service, "retry_down_for": seconds, "retry_gave_up": operations}
    count = f"{operations} operations" if operations > 1 else "1 operation"
    logger.log(level, "%s is back after %.1f s, in which %s gave up", service, seconds, count, extra=extra)
