"""OpenTelemetry with the real SDK and exporters in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

import requests
from opentelemetry import context, trace
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from requests_smithy_retry import TokenBucket, testing
from requests_smithy_retry.otel import OpenTelemetryListener
from requests_smithy_retry.testing import FakeClock
from tests.support import before_each_sleep, read_timeout, scripted, send, session_with


class Telemetry:
    """A listener and all that it exported."""

    def __init__(self, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.listener = OpenTelemetryListener(
            tracer_provider=self.tracer_provider, meter_provider=MeterProvider([self.reader]), **options
        )

    @property
    def spans(self) -> list[Any]:
        return list(self.exporter.get_finished_spans())

    def points(self, name: str) -> dict[tuple[Any, ...], Any]:
        """The data points of a metric, by their labels' values in the order of their names."""
        data = self.reader.get_metrics_data()
        assert data is not None
        found = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            if metric.name == f"requests_smithy_retry.{name}":
                for point in metric.data.data_points:
                    labels = tuple(value for _, value in sorted(point.attributes.items()))
                    found[labels] = getattr(point, "value", None) or getattr(point, "sum", 0)
        return found


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


SCOPE = "https://api.example.com"


def test_each_attempt_is_a_span_under_the_callers(telemetry: Telemetry) -> None:
    """The attempts are children of the span that was current, and it is current again afterwards."""
    with telemetry.tracer_provider.get_tracer("caller").start_as_current_span("caller") as caller:
        send(scripted(503, read_timeout(), 200, listeners=[telemetry.listener]))
        assert trace.get_current_span() is caller
    *attempts, outer = telemetry.spans
    assert ["GET", "GET", "GET", "caller"] == [span.name for span in telemetry.spans]
    assert {outer.context.span_id} == {span.parent.span_id for span in attempts}
    assert {SpanKind.CLIENT} == {span.kind for span in attempts}
    assert [StatusCode.ERROR, StatusCode.ERROR, StatusCode.UNSET] == [span.status.status_code for span in attempts]
    assert [
        ("retry scheduled", {"attempt": 1, "ending": "503", "delay": 0.05, "delay_source": "backoff"}),
        ("retry scheduled", {"attempt": 2, "ending": "ReadTimeout", "delay": 0.1, "delay_source": "backoff"}),
    ] == [(event.name, dict(event.attributes)) for event in outer.events]


def test_a_span_has_the_attributes_of_the_conventions(telemetry: Telemetry) -> None:
    """Method, target, status, error type, and from the second attempt on the resend count and our delay."""
    url = "https://user:hunter2@api.example.com/things?key=hunter2"
    send(scripted(503, read_timeout(), 200, listeners=[telemetry.listener]), url=url)
    target = {
        "http.request.method": "GET",
        "url.full": "https://api.example.com:443/things",
        "server.address": "api.example.com",
        "server.port": 443,
    }
    resent = {"requests_smithy_retry.delay_source": "backoff"}
    assert [
        {**target, "http.response.status_code": 503, "error.type": "503"},
        {
            **target,
            **resent,
            "http.request.resend_count": 1,
            "requests_smithy_retry.reason": "503",
            "error.type": "requests.exceptions.ReadTimeout",
            "requests_smithy_retry.delay": 0.05,
        },
        {
            **target,
            **resent,
            "http.request.resend_count": 2,
            "requests_smithy_retry.reason": "ReadTimeout",
            "http.response.status_code": 200,
            "requests_smithy_retry.delay": 0.1,
        },
    ] == [dict(span.attributes) for span in telemetry.spans]


def test_each_attempt_sends_its_own_context(telemetry: Telemetry) -> None:
    """The traceparent of an attempt names that attempt's span; the caller's request gets no traceparent."""
    adapter = scripted(503, 200, listeners=[telemetry.listener])
    response = send(adapter)
    sent = [item.headers["traceparent"].split("-")[2] for item in adapter.sent]
    assert [f"{span.context.span_id:016x}" for span in telemetry.spans] == sent
    assert len(set(sent)) == 2
    assert "traceparent" not in response.request.headers


@pytest.fixture
def instrumented(telemetry: Telemetry) -> Iterator[None]:
    instrumentor = RequestsInstrumentor()
    instrumentor.instrument(tracer_provider=telemetry.tracer_provider)
    yield
    instrumentor.uninstrument()


@pytest.mark.usefixtures("instrumented")
def test_it_works_beside_the_instrumentation_of_requests(telemetry: Telemetry) -> None:
    """The span of requests' instrumentation is the parent of ours; the request carries the attempt's span."""
    adapter = scripted(503, 200, listeners=[telemetry.listener])
    session_with(adapter).get("https://api.example.com/things")
    *attempts, call = telemetry.spans
    assert [call.context.span_id] * 2 == [span.parent.span_id for span in attempts]
    assert {call.context.trace_id} == {span.context.trace_id for span in attempts}
    sent = [item.headers["traceparent"].split("-")[2] for item in adapter.sent]
    assert [f"{span.context.span_id:016x}" for span in attempts] == sent


def test_metrics_count_what_happened(telemetry: Telemetry) -> None:
    """Attempts by outcome, retries, throttling, give-ups by reason, delays, and what the quota holds."""
    adapter = scripted(429, read_timeout(), 503, 200, listeners=[telemetry.listener])
    send(adapter)
    send(adapter)
    common = ("GET",)
    assert {
        (*common, "429", SCOPE): 1,
        (*common, "ReadTimeout", SCOPE): 1,
        (*common, "503", SCOPE): 1,
        (*common, "200", SCOPE): 1,
    } == telemetry.points("attempts")
    assert {(*common, SCOPE): 2} == telemetry.points("retries")
    assert {(*common, SCOPE): 1.1} == telemetry.points("retry.delay")
    assert {(*common, SCOPE): 1} == telemetry.points("throttled")
    assert {(*common, "max_attempts", SCOPE): 1} == telemetry.points("give_ups")
    assert {(SCOPE,): 500 - 5 - 14 + 1} == telemetry.points("quota")
    assert len(telemetry.points("attempt.duration")) == 4


def test_giving_up_is_on_the_callers_span(telemetry: Telemetry) -> None:
    """The caller's span has the reason and the sentence of giving up."""
    with telemetry.tracer_provider.get_tracer("caller").start_as_current_span("caller"):
        send(scripted(503, listeners=[telemetry.listener], quota=TokenBucket(0)))
    (event,) = telemetry.spans[-1].events
    assert ("gave up", "quota_exceeded") == (event.name, event.attributes["reason"])
    assert "the retry budget of https://api.example.com is empty" in event.attributes["sentence"]


def test_waits_for_a_service_are_told(telemetry: Telemetry) -> None:
    """An attempt's span ends before the wait; the next one has it, and so have the caller's span and the metrics."""
    clock, ended = FakeClock(), []

    def answer(_: Any) -> int:
        return 503 if clock.now() < 1 or clock.now() > 5 else 200

    before_each_sleep(
        clock, lambda _: ended.append((len(telemetry.spans), telemetry.points("waiting").get((SCOPE,), 0)))
    )
    adapter = testing.scripted(*[answer] * 20, clock=clock, listeners=[telemetry.listener])
    with telemetry.tracer_provider.get_tracer("caller").start_as_current_span("caller"):
        send(adapter)
    assert (3, 1) in ended
    *_, last, caller = telemetry.spans
    assert 1.95 == pytest.approx(last.attributes["requests_smithy_retry.line_wait"])
    why = [event.attributes.get("line_why") for event in caller.events]
    assert [None, None, *["nobody had asked for a while"] * 2] == why
    assert {("GET", SCOPE): pytest.approx(2.45)} == telemetry.points("line.wait")
    assert {(SCOPE,): 0} == telemetry.points("waiting")
    clock.advance(10)
    send(adapter)
    assert {("GET", SCOPE): 1} == telemetry.points("recovered")
    assert {("GET", "patience", SCOPE): 1} == telemetry.points("give_ups")
    assert 2 < telemetry.points("line.wait")["GET", SCOPE] < 6


def test_an_unknown_method_is_other(telemetry: Telemetry) -> None:
    """An unknown method is neither a label nor a span name; the conventions put it into an attribute of its own."""
    send(scripted(200, listeners=[telemetry.listener]), "BREW")
    (span,) = telemetry.spans
    assert ("HTTP", "_OTHER", "BREW") == (
        span.name,
        span.attributes["http.request.method"],
        span.attributes["http.request.method_original"],
    )
    assert {("_OTHER", "200", SCOPE): 1} == telemetry.points("attempts")


@pytest.mark.parametrize(
    "key",
    ["suppress_instrumentation", context._SUPPRESS_INSTRUMENTATION_KEY],  # type: ignore[attr-defined]
    ids=["name", "key"],
)
def test_what_an_exporter_sends_is_not_traced(telemetry: Telemetry, key: str) -> None:
    """An exporter that uses requests marks its context; tracing its requests would never end."""
    token = context.attach(context.set_value(key, True))
    try:
        adapter = scripted(200, listeners=[telemetry.listener])
        send(adapter)
    finally:
        context.detach(token)
    assert [] == telemetry.spans
    assert "traceparent" not in adapter.sent[0].headers


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_an_interrupted_attempt_ends_its_span(telemetry: Telemetry, error: BaseException) -> None:
    """After Ctrl-C no span stays open or current."""
    with pytest.raises(type(error)):
        send(scripted(error, listeners=[telemetry.listener]))
    (span,) = telemetry.spans
    assert type(error).__name__ == span.attributes["error.type"]
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_host_that_is_none_has_no_address(telemetry: Telemetry) -> None:
    """A URL that cannot be taken apart gives no attribute that lies."""
    request = requests.Request("GET", "https://api.example.com/").prepare()
    request.url = "http://[broken/"
    scripted(200, listeners=[telemetry.listener], scope=lambda _: "broken").send(request)
    (span,) = telemetry.spans
    assert "server.address" not in span.attributes


def test_scopes_are_bounded() -> None:
    """Past the bound, hosts share one label."""
    telemetry = Telemetry(max_scopes=2)
    adapter = scripted(*[200] * 4, listeners=[telemetry.listener])
    for name in ("a", "b", "c", "d"):
        send(adapter, url=f"https://{name}.example.com/")
    assert {"https://a.example.com", "https://b.example.com", "_OTHER"} == {
        labels[-1] for labels in telemetry.points("attempts")
    }
