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
    _missing = "PrometheusListener needs prometheus-client: pip install prometheus-client"
    raise ImportError(_missing, name=_error.name) from _error

from .core.endings import EXHAUSTED
from .errors import StopReason
from .features.telemetry import MAX_VALUES, Labels, QuotaLevels
from .observing.events import (
    AfterAttempt,
    GaveUp,
    ObservedOperation,
    RetryListener,
    RetryScheduled,
    Succeeded,
    Throttled,
)

PREFIX = "requests_smithy_retry"

COMMON = ("method", "scope")


class PrometheusListener(RetryListener):
    """Counts attempts, retries, waits, throttling, rescues and giving up; shows the quota and the waiting operations.

    Each label has few values, whatever servers answer: known methods, statuses of three digits, and the first
    ``max_scopes`` scopes and exception types. The rest is ``_OTHER``. The counters of what may go wrong are 0 from a
    scope's first attempt on, so that ``rate()`` sees the first failure.

    :param registry: in place of the default one.
    :param max_scopes: the most scopes with labels of their own.
    """

    def __init__(self, *, registry: CollectorRegistry = REGISTRY, max_scopes: int = MAX_VALUES) -> None:
        self._labels = Labels(max_scopes)
        self._levels = QuotaLevels(max_scopes)

        def count(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"{PREFIX}_{name}", text, (*COMMON, *labels), registry=registry)

        def seconds(name: str, text: str) -> Histogram:
            return Histogram(f"{PREFIX}_{name}_seconds", text, COMMON, registry=registry)

        self._attempts = count("attempts", "Attempts, by outcome", "outcome")
        self._duration = seconds("attempt_duration", "Duration of attempts")
        self._retries = count("retries", "Retries that were scheduled")
        self._delay = seconds("retry_delay", "Delay before retries")
        self._line_wait = seconds("line_wait", "Wait for a service to be back, in vain too")
        self._throttled = count("throttled", "Attempts that a server throttled")
        self._give_ups = count("give_ups", "Operations given up, by reason", "reason")
        self._recovered = count("recovered", "Operations that succeeded after a retry")
        self._begun: set[tuple[str, str]] = set()
        registry.register(_Gauges(self._levels))

    def after_attempt(self, event: AfterAttempt, /) -> None:
        common = self._common(event.operation)
        self._attempts.labels(*common, self._labels.outcome(event)).inc()
        self._duration.labels(*common).observe(event.duration)
        self._levels.observe(event.operation)

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        common = self._common(event.operation)
        self._retries.labels(*common).inc()
        self._delay.labels(*common).observe(event.delay)
        if event.line_wait:
            self._line_wait.labels(*common).observe(event.line_wait)

    def throttled(self, event: Throttled, /) -> None:
        self._throttled.labels(*self._common(event.operation)).inc()

    def gave_up(self, event: GaveUp, /) -> None:
        common = self._common(event.operation)
        self._give_ups.labels(*common, event.history.stop_reason.name.lower()).inc()
        if event.history.line_wait:
            self._line_wait.labels(*common).observe(event.history.line_wait)

    def succeeded(self, event: Succeeded, /) -> None:
        self._recovered.labels(*self._common(event.operation)).inc()

    def _common(self, operation: ObservedOperation) -> tuple[str, str]:
        common = self._labels.method(operation), self._labels.scope(operation)
        if common not in self._begun:
            for counter in (self._retries, self._throttled, self._recovered):
                counter.labels(*common)
            for reason in (*EXHAUSTED, StopReason.NOT_RESENDABLE):
                self._give_ups.labels(*common, reason.name.lower())
            self._begun.add(common)
        return common


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
