"""The scopes of a strategy (contract 6, 11.3): what operations on one service share, its quota, and which are kept.

What was evicted must be as good as new: eviction neither refills a spent quota nor strands who waits on one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..clock import SYSTEM_CLOCK, Clock
from ..errors import StopReason
from ..forksafe import forgets_with_all, renew_lock_after_fork
from ..observing.history import RetryHistory
from ..observing.summary import RetrySummary, add_up
from ..urls import without_secrets
from .line import Bounds
from .payoff import PayoffQuota, PayoffTokenBucket
from .quota import NO_QUOTA, Quota

if TYPE_CHECKING:
    from ..config.retry_config import RetryConfig

MOST_SCOPES = 1024
"""The most scopes that are kept."""
FORGET_AFTER = 600.0
"""Seconds without use after which a scope is evicted, whatever it holds."""
MOST_EXAMINED = 64
"""The most scopes that are examined for a newcomer to a full table: it costs the same however many are kept."""
OVERFLOW = "overflow"
"""The name of the scope that newcomers share while there is no room."""


NO_SCOPE = "default"
"""The name by which a function that makes buckets is asked for that of operations without a scope."""

MakeQuota = Callable[[str | None, float], Quota]
"""Makes the quota of a scope, by its name, at a moment."""


class Part(Protocol):
    """What a feature keeps of a scope."""

    def is_spare(self, now: float) -> bool:
        """Return True if a new one would do as well."""

    def forget(self, now: float) -> None:
        """Begin anew."""


P = TypeVar("P", bound=Part)


class Tally:
    """The operations on one scope that ended. A first-try success advances :attr:`at_once`, which needs no lock."""

    __slots__ = ("_others", "_readings", "at_once")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.at_once: count[int] = count()
        self._readings = 0
        self._others: tuple[float, ...] = (0, 0, 0, 0, 0, 0.0)
        """The sums of :data:`COUNTS`."""

    def add(self, history: RetryHistory) -> None:
        """Count an operation that the machine drove. Hold the lock."""
        retries, waited = 0, history.line_wait
        for each in history.attempts:
            retries = each.number - 1
            waited += each.delay + each.permit_wait + each.gate_wait + each.line_wait
        is_saved = retries > 0 and history.stop_reason is StopReason.SUCCESS
        counted = 1, retries > 0, retries, is_saved, history.gave_up, waited
        self._others = tuple(map(sum, zip(self._others, counted, strict=True)))

    def read(self) -> RetrySummary:
        """Return what was counted. Hold the lock."""
        at_once = next(self.at_once) - self._readings  # a reading advances it, too
        self._readings += 1
        return add_up((RetrySummary(*self._others), RetrySummary(at_once)))  # type: ignore[arg-type]


class Scope:
    """What the operations on one service share.

    :param name: None for operations without one.
    """

    __slots__ = ("__weakref__", "is_retired", "name", "parts", "quota", "shown", "tally", "used_at", "users")

    def __init__(self, name: str | None, quota: Quota, now: float) -> None:
        self.name: str | None = name
        self.shown: str = without_secrets(str(name))
        """The name as it may be shown."""
        self.quota: Quota = quota
        self.tally: Tally = Tally()
        self.parts: dict[str, Any] = {}
        """What features keep of it, by their names."""
        self.used_at: float = now
        self.is_retired: bool = False
        """It was evicted: who remembers it asks for a new one."""
        self.users: set[object] = set()
        """Operations under way, for which it is not evicted."""

    def part(self, name: str, make: Callable[[], P]) -> P:
        """Return a feature's part, made on first use. Threads that ask at the same moment get the same one."""
        found: P | None = self.parts.get(name)
        return self.parts.setdefault(name, make()) if found is None else found

    def is_spare(self, now: float) -> bool:
        """Return True if a new one would do as well."""
        return self.quota.is_spare(now) and all(part.is_spare(now) for part in list(self.parts.values()))

    def forget(self, now: float) -> None:
        """Begin anew, as if nobody had ever sent anything."""
        self.quota.forget(now)
        self.tally.forget()
        for part in list(self.parts.values()):
            part.forget(now)


class Scopes:
    """One :class:`Scope` by name, made when it is first needed; at most :data:`MOST_SCOPES` are kept.

    When a newcomer finds the table full, the longest unused scope that is spare goes, or one that nobody used for
    :data:`FORGET_AFTER` seconds: hosts that are gone leave nothing for those that are there. Where none is found, the
    newcomers share one more scope, so that touching many hosts does not refill a spent quota.

    :param make: makes the quota of a scope, by its name.
    """

    def __init__(self, make: MakeQuota, clock: Clock = SYSTEM_CLOCK, limit: int = MOST_SCOPES) -> None:
        self._make = make
        self._clock = clock
        self._limit = limit
        self._scopes: dict[str | None, Scope] = {}
        self._overflow: Scope | None = None
        self._evicted = RetrySummary()
        """The tallies of scopes that were evicted."""
        self.renew_lock()
        renew_lock_after_fork(self)
        forgets_with_all(self)

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork: no thread that uses a scope is in the child."""
        self._lock = threading.Lock()
        for scope in self._kept():
            scope.users.clear()

    def get(self, name: str | None) -> Scope:
        """Return the scope of this name. It may be evicted at any moment; to change it, :meth:`use` it."""
        with self._lock:
            return self._get(name)

    @contextmanager
    def use(self, name: str | None) -> Iterator[Scope]:
        """The scope of this name, which is not evicted inside the block."""
        scope, user = None, object()
        try:
            with self._lock:
                scope = self._get(name)
                scope.users.add(user)
            yield scope
        finally:
            if scope is not None:
                scope.users.discard(user)  # without the lock: who waited for it here could be interrupted

    def __iter__(self) -> Iterator[tuple[str | None, Scope]]:
        with self._lock:
            return iter(tuple(self._scopes.items()))

    def count(self, scope: Scope, history: RetryHistory) -> None:
        """Count the end of an operation that is no first-try success."""
        with self._lock:
            scope.tally.add(history)

    def tallies(self) -> Iterator[tuple[str | None, RetrySummary]]:
        """Yield what was counted, by scope; None: scopes that are no longer kept."""
        with self._lock:
            found = [(scope.name, scope.tally.read()) for scope in self._kept()]
        yield from [*found, (None, self._evicted)]

    def __len__(self) -> int:
        return len(self._scopes)

    def forget(self) -> None:
        """Have every scope begin anew."""
        with self._lock:
            kept, self._evicted = self._kept(), RetrySummary()
        now = self._clock.now()
        for scope in kept:
            scope.forget(now)

    def _kept(self) -> tuple[Scope, ...]:
        return (*self._scopes.values(), *filter(None, (self._overflow,)))

    def _get(self, name: str | None) -> Scope:
        now, scope = self._clock.now(), self._scopes.get(name)
        if scope is None:
            if len(self._scopes) >= self._limit and not self._evict_one(now):
                if self._overflow is None:
                    self._overflow = Scope(OVERFLOW, self._make(OVERFLOW, now), now)
                return self._overflow  # it stays as long as the table is full
            if self._overflow is not None:
                self._keep_tally(self._overflow)
                self._overflow = None
            scope = self._scopes[name] = Scope(name, self._make(name, now), now)
        elif now > scope.used_at:
            self._scopes[name] = self._scopes.pop(name)  # the dict's order is the order of use
        scope.used_at = now
        return scope

    def _keep_tally(self, scope: Scope) -> None:
        self._evicted = add_up((self._evicted, scope.tally.read()))

    def _evict_one(self, now: float) -> bool:
        """Evict a spare scope of those that were unused for longest; the others looked at go to the end."""
        for name in tuple(islice(self._scopes, MOST_EXAMINED)):
            scope = self._scopes.pop(name)
            is_old = now - scope.used_at >= FORGET_AFTER
            if not scope.users and (is_old or scope.is_spare(now)):
                scope.is_retired = True
                self._keep_tally(scope)
                return True
            self._scopes[name] = scope
        return False


def no_quota(name: str | None, now: float) -> Quota:
    """Make the quota of a scope that has none."""
    return NO_QUOTA


def quotas_of(config: RetryConfig, clock: Clock) -> MakeQuota:
    """Return the maker of quotas that a config asks for."""
    quota = config.effective_quota
    if quota is None:
        return no_quota
    if quota == "payoff":
        capacity = Bounds(config.most_attempts).capacity
        return lambda name, now: PayoffQuota(PayoffTokenBucket(capacity), now)
    if isinstance(quota, PayoffTokenBucket):
        return lambda name, now: line_before(quota, now)
    # Imported here: other quotas are features, which a program may do without.
    from ..features.table import quota_maker

    return quota_maker(quota, config, clock)


def line_before(bucket: PayoffTokenBucket, now: float) -> PayoffQuota:
    """Return the one line before a bucket that was passed in: adapters that share the bucket share its line."""
    with bucket._lock:
        if bucket.quota is None:
            bucket.quota = PayoffQuota(bucket, now)
        return bucket.quota
