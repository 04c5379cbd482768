"""Prometheus (extra ``prometheus``): counters, histograms and a gauge.

    session = mount(requests.Session(), listeners=[PrometheusListener()])

One listener serves every adapter of a process; a second one needs a registry of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector
except ImportError as _error:
    _missing = "PrometheusListener needs prometheus-client: pip install 'requests-smithy-retry[prometheus]'"
    raise ImportError(_missing, name=_error.name) from _error

from .observing.events import AfterAttempt, GaveUp, RetryScheduled, Succeeded, Throttled
from .observing.listeners import RetryListener
from .observing.metric_labels import MAX_VALUES, Labels, QuotaLevels

PREFIX = "requests_smithy_retry"

COMMON = ("method", "scope")
"""The labels of every counter and histogram."""


class PrometheusListener(RetryListener):
    """Counts attempts, retries, waits, throttling, rescues and giving up; shows the quota and the waiting operations.

    Each label has few values, whatever servers answer: known methods, statuses of three digits, and the first
    ``max_scopes`` scopes and exception types. The rest is ``_OTHER``.

    :param registry: in place of the default one.
    :param max_scopes: the most scopes with labels of their own.
    """

    def __init__(self, *, registry: CollectorRegistry = REGISTRY, max_scopes: int = MAX_VALUES) -> None:
        self._labels = Labels(max_scopes)
        self._levels = QuotaLevels(max_scopes)
        self._attempts = Counter(f"{PREFIX}_attempts", "Attempts, by outcome", (*COMMON, "outcome"), registry=registry)
        self._duration = Histogram(
            f"{PREFIX}_attempt_duration_seconds", "Duration of attempts", COMMON, registry=registry
        )
        self._retries = Counter(f"{PREFIX}_retries", "Retries that were scheduled", COMMON, registry=registry)
        self._delay = Histogram(f"{PREFIX}_retry_delay_seconds", "Delay before retries", COMMON, registry=registry)
        self._line_wait = Histogram(
            f"{PREFIX}_line_wait_seconds", "Wait for a service to be back, in vain too", COMMON, registry=registry
        )
        self._throttled = Counter(f"{PREFIX}_throttled", "Attempts that a server throttled", COMMON, registry=registry)
        self._give_ups = Counter(
            f"{PREFIX}_give_ups", "Operations given up, by reason", (*COMMON, "reason"), registry=registry
        )
        self._recovered = Counter(
            f"{PREFIX}_recovered", "Operations that succeeded after a retry", COMMON, registry=registry
        )
        registry.register(_Gauges(self._levels))

    def after_attempt(self, event: AfterAttempt, /) -> None:
        method, scope = self._labels.method(event.operation), self._labels.scope(event.operation)
        self._attempts.labels(method, scope, self._labels.outcome(event)).inc()
        self._duration.labels(method, scope).observe(event.duration)
        self._levels.observe(event.operation)

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        method, scope = self._labels.method(event.operation), self._labels.scope(event.operation)
        self._retries.labels(method, scope).inc()
        self._delay.labels(method, scope).observe(event.delay)
        if event.line_wait:
            self._line_wait.labels(method, scope).observe(event.line_wait)

    def throttled(self, event: Throttled, /) -> None:
        self._throttled.labels(self._labels.method(event.operation), self._labels.scope(event.operation)).inc()

    def gave_up(self, event: GaveUp, /) -> None:
        method, scope = self._labels.method(event.operation), self._labels.scope(event.operation)
        self._give_ups.labels(method, scope, event.history.stop_reason.name.lower()).inc()
        if event.history.line_wait:
            self._line_wait.labels(method, scope).observe(event.history.line_wait)

    def succeeded(self, event: Succeeded, /) -> None:
        self._recovered.labels(self._labels.method(event.operation), self._labels.scope(event.operation)).inc()


class _Gauges(Collector):
    """Gauges that read the levels when they are scraped."""

    def __init__(self, levels: QuotaLevels) -> None:
        self._levels = levels

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily(f"{PREFIX}_quota_tokens", "Tokens in the retry quota", labels=("scope",))
        yield GaugeMetricFamily(f"{PREFIX}_waiting", "Operations that wait for a service now", labels=("scope",))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        tokens, waiting = self.describe()
        for scope, level in self._levels.read().items():
            tokens.add_metric((scope,), level)
        for scope, count in self._levels.waiting().items():
            waiting.add_metric((scope,), count)
        yield from (tokens, waiting)
