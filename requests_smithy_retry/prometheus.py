"""Metrics of Prometheus: see :mod:`.features.telemetry.prometheus`."""

from .features.telemetry.prometheus import PrometheusListener as PrometheusListener
