"""Telemetry that needs no code: the option ``telemetry``, and OpenTelemetry's instrumentor (contract 12)."""

from __future__ import annotations

import importlib
import io
import logging
import os
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from requests_smithy_retry import RetryConfigError, testing
from requests_smithy_retry.features.telemetry import Telemetry, without_another
from requests_smithy_retry.features.telemetry import instrumentor as instrumentor_module
from requests_smithy_retry.features.telemetry.instrumentor import RetryInstrumentor
from requests_smithy_retry.observing.events import Listeners
from requests_smithy_retry.otel import OpenTelemetryListener
from requests_smithy_retry.prometheus import PrometheusListener
from tests.support import scripted, send

LOGGER = logging.getLogger("requests_smithy_retry")


class Kept(Listeners):
    """Listeners that can be asked for."""

    def __init__(self, items: Any) -> None:
        super().__init__(items)
        self.items = items


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> Telemetry:
    """A process's telemetry, and its default registry, that are gone after the test."""
    telemetry = Telemetry()
    monkeypatch.setattr("requests_smithy_retry.features.telemetry.TELEMETRY", telemetry)
    monkeypatch.setattr(instrumentor_module, "TELEMETRY", telemetry)
    monkeypatch.setattr("requests_smithy_retry.adapter.Listeners", Kept)
    defaults = {"registry": CollectorRegistry(), "max_scopes": 9}
    monkeypatch.setattr(PrometheusListener.__init__, "__kwdefaults__", defaults)
    return telemetry


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """The library's logger, as it was."""
    level, handlers = LOGGER.level, list(LOGGER.handlers)
    yield LOGGER
    LOGGER.setLevel(level)
    LOGGER.handlers[:] = handlers


def listeners_of(adapter: Any) -> list[str]:
    """The kinds of listeners that an adapter tells."""
    return [type(item).__name__ for item in ([] if adapter.listeners is None else adapter.listeners.items)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("otel", ["OpenTelemetryListener"]),
        ("prometheus", ["PrometheusListener"]),
        ("Prometheus, otel", ["OpenTelemetryListener", "PrometheusListener"]),
    ],
)
def test_the_environment_adds_listeners(monkeypatch, text, expected):
    """Each kind has its listener, which two adapters share."""
    monkeypatch.setenv("SMITHY_RETRY_TELEMETRY", text)
    adapters = testing.scripted(200), testing.scripted(200)
    assert [expected, expected] == [listeners_of(adapter) for adapter in adapters]
    assert (adapters[0].listeners is None) == (expected == [])


@pytest.mark.parametrize(
    ("kind", "library", "listener", "package"),
    [
        ("otel", "opentelemetry", "OpenTelemetryListener", "opentelemetry-api"),
        ("prometheus", "prometheus_client", "PrometheusListener", "prometheus-client"),
    ],
)
def test_a_missing_extra_names_itself(monkeypatch, kind, library, listener, package):
    """The error, by the option or by an import, has the command that installs it."""
    monkeypatch.setitem(sys.modules, library, None)
    for place in (f"requests_smithy_retry.{kind}", f"requests_smithy_retry.features.telemetry.{kind}"):
        monkeypatch.delitem(sys.modules, place, raising=False)
    needed = f"{listener} needs {package}: pip install {package}"
    with pytest.raises(ImportError) as missing:
        importlib.import_module(f"requests_smithy_retry.{kind}")
    assert (needed, library) == (str(missing.value), missing.value.name)
    monkeypatch.setenv("SMITHY_RETRY_TELEMETRY", kind)
    with pytest.raises(RetryConfigError) as caught:
        testing.scripted(200)
    assert f"telemetry=('{kind}',) (from environment variable SMITHY_RETRY_TELEMETRY): {needed}" == str(caught.value)


def test_a_listener_of_the_programs_own_is_enough(own):
    """An adapter that has a listener of a kind gets no second one; another adapter does; undoing it all is fine."""
    own.switch_on()
    own.switch_off()
    assert [] == listeners_of(scripted(200))
    mine = OpenTelemetryListener()
    assert ["OpenTelemetryListener"] == listeners_of(scripted(200, listeners=[mine], telemetry=["otel"]))
    assert ["OpenTelemetryListener"] == listeners_of(scripted(200, telemetry=["otel"]))


def test_metrics_that_exist_already_are_an_error_with_a_name():
    """Prometheus knows each metric once: the program's listener, given to other adapters, has them."""
    PrometheusListener()
    allowed = "'prometheus' is allowed unless the program has a PrometheusListener of it"
    with pytest.raises(RetryConfigError, match=allowed):
        scripted(200, telemetry=["prometheus"])


def test_an_instrumented_adapter_falls_silent_when_that_is_undone():
    """Neither spans nor metrics come any more; instrumenting again, new adapters tell."""
    exporter, reader, tracer = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(exporter))
    providers = {"tracer_provider": tracer, "meter_provider": MeterProvider([reader])}

    def told() -> tuple[int, int]:
        metrics = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics  # type: ignore[union-attr]
        points = [point for metric in metrics if metric.name.endswith("s") for point in metric.data.data_points]
        return len(exporter.get_finished_spans()), sum(getattr(point, "value", 0) for point in points)

    instrumentor, before = RetryInstrumentor(), scripted(200)
    instrumentor.instrument(**providers)
    adapter = scripted(200, *[429] * 6, 429, 200)
    send(adapter)
    instrumentor.uninstrument()
    seen = told()
    for silent in (adapter, adapter, adapter, scripted(200)):
        send(silent)
    assert seen == told()
    instrumentor.instrument(**providers)
    try:
        assert ([], ["OpenTelemetryListener"]) == (listeners_of(before), listeners_of(scripted(200)))
    finally:
        instrumentor.uninstrument()


def test_opentelemetry_finds_the_instrumentor():
    """The entry point loads it, and the library that it instruments is there."""
    (found,) = entry_points(group="opentelemetry_instrumentor", name="requests_smithy_retry")
    assert RetryInstrumentor is found.load()
    assert ("requests >= 2.31",) == RetryInstrumentor().instrumentation_dependencies()
    assert RetryInstrumentor()._check_dependency_conflicts() is None


def shown_by(logger: logging.Logger) -> str:
    """What is written where standard error goes when two retries are logged."""
    written = io.StringIO()
    for handler in logger.handlers:
        if without_another in handler.filters:
            handler.setStream(written)
    send(scripted(503, 200))
    return written.getvalue()


def test_the_log_is_shown_where_the_program_shows_none(logger: logging.Logger, monkeypatch):
    """Each retry is a line on standard error, once for any number of adapters; a handler of the program's is enough."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setenv("SMITHY_RETRY_TELEMETRY", "log")
    testing.scripted(200)
    (line,) = shown_by(logger).splitlines()
    assert line.endswith("attempt 1 ended with 503")
    assert f" {os.getpid()} INFO requests_smithy_retry: retry 1 of GET https://api.example.com:443/things in " in line
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(io.StringIO())])
    assert "" == shown_by(logger)
