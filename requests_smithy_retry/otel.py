"""OpenTelemetry (extra ``otel``): a span for every attempt, context sent with it, and metrics.

    session = mount(requests.Session(), listeners=[OpenTelemetryListener()])

With opentelemetry-instrumentation-requests, each attempt becomes a child of its span, which covers the whole call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

try:
    from opentelemetry import context, metrics, propagate, trace
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
except ImportError as _error:
    _missing = "OpenTelemetryListener needs opentelemetry-api: pip install opentelemetry-api"
    raise ImportError(_missing, name=_error.name) from _error

from . import __version__
from .features.telemetry import KNOWN_METHODS, MAX_VALUES, METRICS, MetricsListener, method_of
from .observing.events import AfterAttempt, BeforeAttempt, GaveUp, RetryScheduled
from .urls import DEFAULT_PORTS

NAME = "requests_smithy_retry"

SUPPRESS = ("suppress_instrumentation", getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", "suppress_instrumentation"))
"""Set in the context by exporters, whose own requests are not to be traced."""


class OpenTelemetryListener(MetricsListener):
    """Records attempts as spans, and metrics of them.

    A span has the attributes of the semantic conventions for HTTP clients, with ``http.request.resend_count`` for
    retries. It is current during the attempt, and its context is sent in the attempt's headers. A scheduled retry and
    giving up are events on the caller's span. URLs have no userinfo and no query. The text of exceptions is not
    recorded, because it may hold either.

    :param tracer_provider: in place of the global one.
    :param meter_provider: in place of the global one.
    :param max_scopes: the most scopes with metrics of their own.
    """

    is_muted: bool = False
    """True once :class:`RetryInstrumentor` has switched it off."""

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        max_scopes: int = MAX_VALUES,
    ) -> None:
        super().__init__(max_scopes)
        self._tracer = trace.get_tracer(NAME, __version__, tracer_provider)
        meter = metrics.get_meter(NAME, __version__, meter_provider)
        self._add: dict[str, Callable[[float, dict[str, str]], None]] = {
            name: meter.create_histogram(f"{NAME}.{name}", unit, text).record
            if unit == "s"
            else meter.create_counter(f"{NAME}.{name}", unit, text).add
            for name, (unit, text, *_) in METRICS.items()
        }

        def gauge(name: str, read: Callable[[], Mapping[str, float]], unit: str, text: str) -> None:
            def observe(_: CallbackOptions) -> list[Observation]:
                return [Observation(value, {"scope": scope}) for scope, value in read().items()]

            meter.create_observable_gauge(f"{NAME}.{name}", [observe], unit, text)

        gauge("quota", self._levels.read, "{token}", "Tokens in the retry quota")
        gauge("waiting", self._levels.waiting, "{operation}", "Operations that wait for a service now")

    def before_attempt(self, event: BeforeAttempt, /) -> None:
        if self.is_muted or any(context.get_value(key) for key in SUPPRESS):
            return
        operation = event.operation
        method = method_of(operation)
        attributes: dict[str, Any] = {"url.full": operation.url, "http.request.method": method}
        target = urlsplit(operation.url)
        if target.hostname is not None:
            attributes["server.address"] = target.hostname
            attributes["server.port"] = target.port or DEFAULT_PORTS.get(target.scheme, 0)
        if operation.method not in KNOWN_METHODS:
            attributes["http.request.method_original"] = operation.method
        if event.number > 1:
            attributes["http.request.resend_count"] = event.number - 1
            attributes[f"{NAME}.reason"] = operation.data.pop((self, NAME), "")
        name = "HTTP" if operation.method not in KNOWN_METHODS else method
        span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)
        operation.data[self] = span, context.attach(trace.set_span_in_context(span))
        propagate.inject(event.request.headers)

    def after_attempt(self, event: AfterAttempt, /) -> None:
        begun: tuple[Span, Any] | None = event.operation.data.pop(self, None)
        if begun is None:
            return
        span, token = begun
        context.detach(token)
        if event.status is not None:
            span.set_attribute("http.response.status_code", event.status)
        if event.error is not None or (event.status or 0) >= 400:
            kind = type(event.error)
            name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
            span.set_attribute("error.type", str(event.status) if event.error is None else name)
            span.set_status(Status(StatusCode.ERROR))
        if event.number > 1:
            span.set_attribute(f"{NAME}.delay", event.record.delay)
            span.set_attribute(f"{NAME}.delay_source", event.record.delay_source)
            if event.record.line_wait:
                span.set_attribute(f"{NAME}.line_wait", event.record.line_wait)
        span.end()
        super().after_attempt(event)

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        if self.is_muted:
            return
        super().retry_scheduled(event)
        event.operation.data[self, NAME] = event.record.ending
        note: dict[str, Any] = {"attempt": event.number, "ending": event.record.ending, "delay": event.delay}
        if event.line_wait:
            note |= {"line_wait": event.line_wait, "line_why": event.line_why}
        trace.get_current_span().add_event("retry scheduled", {**note, "delay_source": event.delay_source})

    def gave_up(self, event: GaveUp, /) -> None:
        if self.is_muted:
            return
        super().gave_up(event)
        reason = event.history.stop_reason.name.lower()
        trace.get_current_span().add_event("gave up", {"reason": reason, "sentence": event.history.sentence})

    def add_for(self, common: tuple[str, str], metric: str, amount: float, **own: str) -> None:
        if not self.is_muted:
            method, scope = common
            self._add[metric](amount, {"http.request.method": method, "scope": scope, **own})
