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

from .events import AfterAttempt, GaveUp, RetryScheduled, Throttled
from .listeners import RetryListener
from .metric_labels import MAX_VALUES, Labels, QuotaLevels

PREFIX = "requests_smithy_retry"

COMMON = ("method", "scope")
"""The labels of every counter and histogram."""


class PrometheusListener(RetryListener):
    """Counts attempts, retries, throttling and giving up, and shows what the retry quota holds.

    Each label has few values whatever servers answer: methods are the known ones, statuses three digits, and of scopes
    and exception types the first ``max_scopes`` are told apart. The rest is ``_OTHER``.

    :param registry: in place of the default one.
    :param max_scopes: so many scopes are told apart.
    """

    def __init__(self, *, registry: CollectorRegistry = REGISTRY, max_scopes: int = MAX_VALUES) -> None:
        self._labels = Labels(max_scopes)
        self._levels = QuotaLevels(max_scopes)
        self._attempts = Counter(
            f"{PREFIX}_attempts", "Attempts, by what they ended with", (*COMMON, "outcome"), registry=registry
        )
        self._duration = Histogram(
            f"{PREFIX}_attempt_duration_seconds", "How long attempts took", COMMON, registry=registry
        )
        self._retries = Counter(f"{PREFIX}_retries", "Retries that were scheduled", COMMON, registry=registry)
        self._delay = Histogram(
            f"{PREFIX}_retry_delay_seconds", "What was waited before retries", COMMON, registry=registry
        )
        self._throttled = Counter(f"{PREFIX}_throttled", "Attempts that a server throttled", COMMON, registry=registry)
        self._give_ups = Counter(
            f"{PREFIX}_give_ups", "Operations given up, by reason", (*COMMON, "reason"), registry=registry
        )
        registry.register(_QuotaGauge(self._levels))

    def after_attempt(self, event: AfterAttempt, /) -> None:
        """Count the attempt."""
        method, scope = self._labels.method(event.operation), self._labels.scope(event.operation)
        self._attempts.labels(method, scope, self._labels.outcome(event)).inc()
        self._duration.labels(method, scope).observe(event.duration)
        self._levels.watch(event.operation)

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        """Count the retry."""
        method, scope = self._labels.method(event.operation), self._labels.scope(event.operation)
        self._retries.labels(method, scope).inc()
        self._delay.labels(method, scope).observe(event.delay)

    def throttled(self, event: Throttled, /) -> None:
        """Count it."""
        self._throttled.labels(self._labels.method(event.operation), self._labels.scope(event.operation)).inc()

    def gave_up(self, event: GaveUp, /) -> None:
        """Count it by its reason."""
        method, scope = self._labels.method(event.operation), self._labels.scope(event.operation)
        self._give_ups.labels(method, scope, event.history.stop_reason.name.lower()).inc()


class _QuotaGauge(Collector):
    """Reads the levels when it is scraped, so that they are never stale."""

    def __init__(self, levels: QuotaLevels) -> None:
        self._levels = levels

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Name it without reading."""
        yield GaugeMetricFamily(f"{PREFIX}_quota_tokens", "What the retry quota holds", labels=("scope",))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read it."""
        for family in self.describe():
            for scope, level in self._levels.read().items():
                family.add_metric((scope,), level)
            yield family
