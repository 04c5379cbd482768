"""Traces and metrics of OpenTelemetry: see :mod:`.features.telemetry.otel`."""

from .features.telemetry.otel import OpenTelemetryListener as OpenTelemetryListener
