"""The scopes of a strategy (contract 6.4): what operations on one service share, such as its quota."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..clock import SYSTEM_CLOCK, Clock
from ..forksafe import forgets_with_all, renew_lock_after_fork
from ..urls import scope_name, without_secrets
from .health import Health
from .quota import NO_QUOTA, Quota
from .retry_budget import PayoffTokenBucket, RetryBudget, capacity_of
from .wait_queue import Bounds

if TYPE_CHECKING:
    from ..config.retry_config import RetryConfig

MOST_SCOPES = 1024
"""The most scopes that are kept."""
NO_SCOPE = "default"
"""The name that a function that makes buckets gets for operations without a scope."""

MakeQuota = Callable[[str | None, float], Quota]
"""Makes the quota of a scope, by its name, at a moment."""


class Part(Protocol):
    """The data of a feature in a scope."""

    @property
    def is_waited_on(self) -> bool:
        """True if some call waits for it."""

    def forget(self, now: float) -> None:
        """Start over."""


P = TypeVar("P", bound=Part)


class Scope:
    """What the operations on one service share.

    :param name: None for operations without one.
    """

    __slots__ = ("health", "name", "parts", "quota", "shown")

    def __init__(self, name: str | None, quota: Quota) -> None:
        self.name: str | None = name
        self.shown: str = without_secrets(str(name))
        """The name as it may be shown."""
        self.quota: Quota = quota
        self.health: Health = Health()
        self.parts: dict[str, Any] = {}
        """The data that features keep about it, by their names."""

    def part(self, name: str, make: Callable[[], P]) -> P:
        """Return a feature's part, made on first use. Threads that ask at the same moment get the same one."""
        found: P | None = self.parts.get(name)
        return self.parts.setdefault(name, make()) if found is None else found

    @property
    def is_waited_on(self) -> bool:
        """True if some call waits for its service."""
        return self.quota.is_waited_on or any(part.is_waited_on for part in list(self.parts.values()))

    def forget(self, now: float) -> None:
        """Start over, as if nothing had been sent."""
        self.quota.forget(now)
        self.health.forget()
        for part in list(self.parts.values()):
            part.forget(now)


class Scopes:
    """One :class:`Scope` per name, made when it is first needed.

    At most :data:`MOST_SCOPES` are kept: the least recently used one that no operation waits for goes first. An
    operation under way keeps its scope.
    """

    def __init__(self, make: MakeQuota, clock: Clock = SYSTEM_CLOCK, limit: int = MOST_SCOPES) -> None:
        self._make = make
        self._clock = clock
        self._limit = limit
        self._scopes: dict[str | None, Scope] = {}
        self.renew_lock()
        renew_lock_after_fork(self)
        forgets_with_all(self)

    def renew_lock(self) -> None:
        """Replace the lock, after a fork."""
        self._lock = threading.Lock()

    def get(self, name: str | None) -> Scope:
        """Return the scope of this name."""
        with self._lock:
            scope = self._scopes.pop(name, None)
            if scope is None:
                if len(self._scopes) >= self._limit:
                    self._evict_one()
                name = None if name is None else scope_name(name)
                scope = Scope(name, self._make(name, self._clock.now()))
            self._scopes[name] = scope  # the dict's order is the order of use
            return scope

    def _evict_one(self) -> None:
        for name, scope in self._scopes.items():
            if not scope.is_waited_on:
                del self._scopes[name]
                return

    def __iter__(self) -> Iterator[tuple[str | None, Scope]]:
        with self._lock:
            return iter(tuple(self._scopes.items()))

    def forget(self) -> None:
        """Make every scope start over."""
        now = self._clock.now()
        for _, scope in self:
            scope.forget(now)


def no_quota(name: str | None, now: float) -> Quota:
    """Make the quota of a scope that has none."""
    return NO_QUOTA


def quotas_of(config: RetryConfig, clock: Clock) -> MakeQuota:
    """Return the maker of quotas that a config asks for."""
    quota = config.effective_quota
    if quota is None:
        return no_quota
    if quota == "payoff":
        capacity = capacity_of(Bounds(config.most_attempts))
        return lambda name, now: RetryBudget(PayoffTokenBucket(capacity), now)
    if isinstance(quota, PayoffTokenBucket):
        return lambda name, now: queue_before(quota, now)
    # Imported here: other quotas are features, which a program may do without.
    from ..features.table import quota_maker

    return quota_maker(quota, config, clock)


def queue_before(bucket: PayoffTokenBucket, now: float) -> RetryBudget:
    """Return the queue of a bucket that a program made: adapters that share the bucket share it."""
    with bucket._lock:
        if bucket.quota is None:
            bucket.quota = RetryBudget(bucket, now)
        return bucket.quota
