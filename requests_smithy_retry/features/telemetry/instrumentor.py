"""OpenTelemetry's instrumentor, which ``opentelemetry-instrument`` finds by its entry point.

Neither requests nor the extra ``otel`` is imported before the first adapter is made: the program may have to patch the
standard library first.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

from . import TELEMETRY


class RetryInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Adds one shared OpenTelemetry listener to every adapter that is made from now on."""

    def instrumentation_dependencies(self) -> Collection[str]:
        return ("requests >= 2.31",)

    def _instrument(self, **kwargs: Any) -> None:
        providers = ("tracer_provider", "meter_provider")
        TELEMETRY.switch_on(**{name: kwargs[name] for name in providers if name in kwargs})

    def _uninstrument(self, **kwargs: Any) -> None:
        TELEMETRY.switch_off()
