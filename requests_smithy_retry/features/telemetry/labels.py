"""The labels of metrics and spans (contract 12): few values, however hostile the servers, and no secrets."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from ...core.quotas import NO_SCOPE
from ...forksafe import renew_lock_after_fork
from ...observing.events import AfterAttempt, ObservedOperation
from ...urls import display_scope

KNOWN_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"})
"""The methods of RFC 9110, RFC 5789 and the QUERY draft; the semantic conventions call every other one ``_OTHER``."""

OTHER = "_OTHER"
"""The label of all values beyond the limit."""

MAX_VALUES = 100
"""The default limit of scopes, and of exception types."""


class Bounded:
    """Returns the first ``most`` distinct values as they are, and :data:`OTHER` for later ones."""

    def __init__(self, most: int = MAX_VALUES) -> None:
        self._most = most
        self._seen: set[str] = set()
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, value: str) -> str:
        if value in self._seen:
            return value
        with self._lock:
            if len(self._seen) >= self._most:
                return OTHER
            self._seen.add(value)
            return value


class Labels:
    """The label values of one listener."""

    def __init__(self, most: int = MAX_VALUES) -> None:
        self._scopes = Bounded(most)
        self._errors = Bounded(most)

    def method(self, operation: ObservedOperation) -> str:
        """Return the request's method if it is a known one, else :data:`OTHER`."""
        return operation.method if operation.method in KNOWN_METHODS else OTHER

    def scope(self, operation: ObservedOperation) -> str:
        """Return the scope, without a default port."""
        return self._scopes(display_scope(operation.scope))

    def outcome(self, event: AfterAttempt) -> str:
        """Return the status, or the exception's type."""
        if event.status is None:
            return self._errors(type(event.error).__name__)
        return str(event.status) if 100 <= event.status <= 599 else OTHER


class QuotaLevels:
    """The tokens in the retry quotas, and who waits, for gauges: of every observed strategy that is still alive."""

    def __init__(self, most: int = MAX_VALUES) -> None:
        self._most = most
        # By identity: a user's strategy, a dataclass say, may not be hashable.
        self._strategies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def observe(self, operation: ObservedOperation) -> None:
        """Include the operation's strategy from now on, if it has a ``snapshot``."""
        strategy: Any = operation.adapter.strategy
        if id(strategy) not in self._strategies and hasattr(strategy, "snapshot"):
            with contextlib.suppress(TypeError):  # slots may rule out a weak reference
                self._strategies[id(strategy)] = strategy

    def read(self) -> dict[str, float]:
        """Return the tokens by scope: the lowest of several strategies."""
        levels: dict[str, float] = {}
        for name, bucket in self._buckets():
            if name in levels or len(levels) < self._most:
                levels[name] = min(bucket.available, levels.get(name, bucket.available))
        return levels

    def waiting(self) -> dict[str, int]:
        """Return the operations that wait, by scope: those of all strategies."""
        levels: dict[str, int] = {}
        for name, bucket in self._buckets():
            count, others = getattr(bucket, "waiting", None), levels.get(name, 0)
            if count is not None and (name in levels or len(levels) < self._most):
                levels[name] = count + others
        return levels

    def _buckets(self) -> Iterator[tuple[str, Any]]:
        # A list of references is made in one step: other threads may add strategies meanwhile.
        alive = [strategy for each in self._strategies.valuerefs() if (strategy := each()) is not None]
        for strategy in alive:
            for scope, bucket in getattr(strategy.snapshot(), "buckets", {}).items():
                yield display_scope(scope or NO_SCOPE), bucket
