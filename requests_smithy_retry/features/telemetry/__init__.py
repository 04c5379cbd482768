"""Telemetry without code (contract 12): by the option ``telemetry``, and by OpenTelemetry's instrumentor.

Each kind has one listener, which all adapters of the process share. It is made with the first adapter that needs it.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib import import_module
from operator import add
from typing import Any

from ...config.retry_config import RetryConfig
from ...core.scope import NO_SCOPE
from ...errors import RetryConfigError
from ...forksafe import renew_lock_after_fork
from ...observing.events import (
    AfterAttempt,
    GaveUp,
    ObservedOperation,
    RetryListener,
    RetryScheduled,
    Succeeded,
    Throttled,
)
from ...observing.log import logger
from ...urls import display_scope

LISTENERS = {"otel": "OpenTelemetryListener", "prometheus": "PrometheusListener"}
"""The listener of each kind, in the module of that name, which needs the extra of that name."""


class Telemetry:
    """The telemetry of this process."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._providers: dict[str, Any] | None = None
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        self._lock = threading.Lock()

    def switch_on(self, **providers: Any) -> None:
        """Add a listener with these arguments to every adapter made from now on."""
        self._providers = providers

    def switch_off(self) -> None:
        """Undo :meth:`switch_on`, also for adapters made meanwhile."""
        self._providers = None
        listener = self._made.pop("otel", None)
        if listener is not None:
            listener.is_muted = True

    def listeners(self, kinds: Collection[str], source: str, given: Iterable[Any]) -> Iterator[Any]:
        """Yield the listeners of some kinds that are not among those given; refuse a kind whose extra is missing."""
        if "log" in kinds:
            with self._lock:
                show_log()
        for kind, name in LISTENERS.items():
            if kind not in kinds and (kind != "otel" or self._providers is None):
                continue
            try:
                listener = getattr(import_module(f"requests_smithy_retry.{kind}"), name)
            except ImportError as error:  # which says what to install
                raise RetryConfigError("telemetry", kinds, source, str(error)) from None
            if not any(isinstance(item, listener) for item in given):
                try:
                    yield self._made_once(kind, listener)
                except ValueError:  # Prometheus has its metrics already
                    other = f"{kind!r} is allowed unless the program has a {name} of its own"
                    raise RetryConfigError("telemetry", kinds, source, other) from None

    def _made_once(self, kind: str, listener: type[Any]) -> Any:
        with self._lock:
            if kind not in self._made:
                self._made[kind] = listener(**(self._providers or {})) if kind == "otel" else listener()
            return self._made[kind]


TELEMETRY = Telemetry()


def listeners_of(config: RetryConfig, given: Iterable[Any]) -> Iterator[Any]:
    return TELEMETRY.listeners(config.telemetry, config.source("telemetry"), given)


def without_another(_: logging.LogRecord) -> bool:
    """Let records through as long as the program has no handler for them."""
    handlers = (*logger.handlers, *logging.getLogger().handlers)
    return all(isinstance(item, logging.NullHandler) or without_another in item.filters for item in handlers)


def show_log() -> None:
    """Write the records on retries to stderr, unless the program has a handler for them."""
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    if not any(without_another in item.filters for item in logger.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
        handler.addFilter(without_another)
        logger.addHandler(handler)


KNOWN_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"})
"""The methods of RFC 9110, RFC 5789 and the QUERY draft; the semantic conventions call every other one ``_OTHER``."""

OTHER = "_OTHER"

MAX_VALUES = 100
"""The default limit of scopes, and of exception types."""


class Bounded:
    """Returns the first ``most`` distinct values as they are, and :data:`OTHER` for later ones."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: set[str] = set()

    def __call__(self, value: str) -> str:
        # Without a lock: threads that come at once may add a few more.
        if value not in self._seen and len(self._seen) >= self._most:
            return OTHER
        self._seen.add(value)
        return value


def method_of(operation: ObservedOperation) -> str:
    return operation.method if operation.method in KNOWN_METHODS else OTHER


class QuotaLevels:
    """The tokens in the retry quotas and the waiting operations, of all observed strategies, for gauges."""

    def __init__(self, most: int = MAX_VALUES) -> None:
        self._most = most
        # By identity: a user's strategy, a dataclass say, may not be hashable.
        self._strategies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def observe(self, operation: ObservedOperation) -> None:
        strategy: Any = operation.adapter.strategy
        if id(strategy) not in self._strategies and hasattr(strategy, "snapshot"):
            with contextlib.suppress(TypeError):  # slots may rule out a weak reference
                self._strategies[id(strategy)] = strategy

    def read(self) -> dict[str, float]:
        """Return the tokens by scope: the lowest of several strategies."""
        return self._by_scope(lambda bucket: bucket.available, min)

    def waiting(self) -> dict[str, int]:
        """Return the operations that wait, by scope: those of all strategies."""
        return self._by_scope(lambda bucket: getattr(bucket, "waiting", None), add)

    def _by_scope(self, level_of: Callable[[Any], Any], join: Callable[[Any, Any], Any]) -> dict[str, Any]:
        """Return the levels of the first scopes, those of several strategies joined to one."""
        levels: dict[str, Any] = {}
        # A list of references is made in one step: other threads may add strategies meanwhile.
        alive = [strategy for each in self._strategies.valuerefs() if (strategy := each()) is not None]
        buckets = [item for strategy in alive for item in getattr(strategy.snapshot(), "buckets", {}).items()]
        for scope, bucket in buckets:
            name, level = display_scope(scope or NO_SCOPE), level_of(bucket)
            if level is not None and (name in levels or len(levels) < self._most):
                levels[name] = join(levels[name], level) if name in levels else level
        return levels


METRICS: dict[str, tuple[str, ...]] = {
    "attempts": ("{attempt}", "Attempts, by outcome", "outcome"),
    "attempt.duration": ("s", "Duration of attempts"),
    "retries": ("{retry}", "Retries that were scheduled"),
    "retry.delay": ("s", "Delay before retries"),
    "line.wait": ("s", "Wait for a service to be back, in vain too"),
    "throttled": ("{attempt}", "Attempts that a server throttled"),
    "give_ups": ("{operation}", "Operations given up, by reason", "reason"),
    "recovered": ("{operation}", "Operations that succeeded after a retry"),
}
"""By name: the unit (seconds are a histogram, all others a counter), what is counted, and a label of its own."""


class MetricsListener(RetryListener):
    """Reports each metric. A subclass provides the instruments.

    :param most: the most scopes with labels of their own.
    """

    def __init__(self, most: int) -> None:
        self._scopes = Bounded(most)
        self._errors = Bounded(most)
        self._levels = QuotaLevels(most)

    def add(self, metric: str, amount: float, operation: ObservedOperation, **own: str) -> None:
        """Count, or measure, for an operation; ``own`` are labels beside its method and its scope."""
        self.add_for(self._common(operation), metric, amount, **own)

    def _common(self, operation: ObservedOperation) -> tuple[str, str]:
        """Return the method and the scope, which all metrics have."""
        return method_of(operation), self._scopes(display_scope(operation.scope))

    @abstractmethod
    def add_for(self, common: tuple[str, str], metric: str, amount: float, **own: str) -> None:
        """Count, or measure, for a method and a scope."""

    def after_attempt(self, event: AfterAttempt, /) -> None:
        if event.status is None:
            outcome = self._errors(type(event.error).__name__)
        else:
            outcome = str(event.status) if 100 <= event.status <= 599 else OTHER
        common = self._common(event.operation)
        self.add_for(common, "attempts", 1, outcome=outcome)
        self.add_for(common, "attempt.duration", event.duration, outcome=outcome)
        self._levels.observe(event.operation)

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        self.add("retries", 1, event.operation)
        self.add("retry.delay", event.delay, event.operation)
        if event.line_wait:
            self.add("line.wait", event.line_wait, event.operation)

    def throttled(self, event: Throttled, /) -> None:
        self.add("throttled", 1, event.operation)

    def gave_up(self, event: GaveUp, /) -> None:
        reason = "late" if event.history.is_late else event.history.stop_reason.name.lower()
        self.add("give_ups", 1, event.operation, reason=reason)
        if event.history.line_wait:
            self.add("line.wait", event.history.line_wait, event.operation)

    def succeeded(self, event: Succeeded, /) -> None:
        self.add("recovered", 1, event.operation)
