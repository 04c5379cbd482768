"""What metrics and spans are told apart by (contract 12): few values, however hostile the servers, and no secrets."""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import Any

from .events import AfterAttempt
from .forksafe import renew_lock_after_fork
from .observed import ObservedOperation
from .scopes import shown

KNOWN_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"})
"""The methods of RFC 9110, RFC 5789 and the QUERY draft; the semantic conventions call every other one ``_OTHER``."""

OTHER = "_OTHER"
"""Stands for all values past the bound."""

MAX_VALUES = 100
"""So many scopes, and so many exception types, are told apart."""


class Bounded:
    """Lets the first so many different values through; later ones become :data:`OTHER`.

    :param most: how many.
    """

    def __init__(self, most: int = MAX_VALUES) -> None:
        self._most = most
        self._seen: set[str] = set()
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork."""
        self._lock = threading.Lock()

    def __call__(self, value: str) -> str:
        """The value, or what stands for it."""
        if value in self._seen:
            return value
        with self._lock:
            if len(self._seen) >= self._most:
                return OTHER
            self._seen.add(value)
            return value


class Labels:
    """The label values of one listener.

    :param most: so many scopes, and exception types, are told apart.
    """

    def __init__(self, most: int = MAX_VALUES) -> None:
        self._scopes = Bounded(most)
        self._errors = Bounded(most)

    def method(self, operation: ObservedOperation) -> str:
        """The request's method, if it is a known one."""
        return operation.method if operation.method in KNOWN_METHODS else OTHER

    def scope(self, operation: ObservedOperation) -> str:
        """Whose quota is spent, without a port that goes without saying."""
        return self._scopes(shown(operation.scope))

    def outcome(self, event: AfterAttempt) -> str:
        """The status, or the exception's type."""
        if event.status is None:
            return self._errors(type(event.error).__name__)
        return str(event.status) if 100 <= event.status <= 599 else OTHER


class QuotaLevels:
    """What the retry quotas hold now, for a gauge: of every strategy that an event came from and that still lives.

    :param most: so many scopes are shown.
    """

    def __init__(self, most: int = MAX_VALUES) -> None:
        self._most = most
        # By identity: a strategy of the user's, a dataclass say, may have no hash.
        self._strategies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork."""
        self._lock = threading.Lock()

    def watch(self, operation: ObservedOperation) -> None:
        """Look at the operation's strategy from now on, if it can show what it holds."""
        strategy: Any = operation.adapter.strategy
        if id(strategy) not in self._strategies and hasattr(strategy, "snapshot"):
            with self._lock, contextlib.suppress(TypeError):  # one with slots may not allow to be watched
                self._strategies[id(strategy)] = strategy

    def read(self) -> dict[str, float]:
        """Tokens by scope. A scope that several strategies have shows the least; a shared bucket is ``"shared"``."""
        with self._lock:
            strategies = list(self._strategies.values())
        levels: dict[str, float] = {}
        for strategy in strategies:
            for scope, bucket in getattr(strategy.snapshot(), "buckets", {}).items():
                name = "shared" if scope is None else shown(scope)
                if name in levels or len(levels) < self._most:
                    levels[name] = min(bucket.available, levels.get(name, bucket.available))
        return levels
