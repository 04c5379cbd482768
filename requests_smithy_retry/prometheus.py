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
from .features.telemetry import MAX_VALUES, METRICS, MetricsListener, QuotaLevels

PREFIX = "requests_smithy_retry"

COMMON = ("method", "scope")


class PrometheusListener(MetricsListener):
    """Counts attempts, retries, waits, throttling, rescues and giving up; shows the quota and the waiting operations.

    Each label has few values, whatever servers answer: known methods, statuses of three digits, and the first
    ``max_scopes`` scopes and exception types. The rest is ``_OTHER``. The counters of failures start at 0 with a
    scope's first attempt, so that ``rate()`` sees the first failure.

    :param registry: in place of the default one.
    :param max_scopes: the most scopes with labels of their own.
    """

    def __init__(self, *, registry: CollectorRegistry = REGISTRY, max_scopes: int = MAX_VALUES) -> None:
        super().__init__(max_scopes)
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for metric, (unit, text, *own) in METRICS.items():
            name = f"{PREFIX}_{metric.replace('.', '_')}"
            if unit == "s":
                self._histograms[metric] = Histogram(f"{name}_seconds", text, COMMON, registry=registry)
            else:
                self._counters[metric] = Counter(name, text, (*COMMON, *own), registry=registry)
        self._begun: set[tuple[str, str]] = set()
        registry.register(_Gauges(self._levels))

    def add_for(self, common: tuple[str, str], metric: str, amount: float, **own: str) -> None:
        if common not in self._begun:
            for name in ("retries", "throttled", "recovered"):
                self._counters[name].labels(*common)
            for reason in (*EXHAUSTED, StopReason.NOT_RESENDABLE):
                self._counters["give_ups"].labels(*common, reason.name.lower())
            self._begun.add(common)
        if metric in self._histograms:
            self._histograms[metric].labels(*common).observe(amount)
        else:
            self._counters[metric].labels(*common, *own.values()).inc(amount)


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
