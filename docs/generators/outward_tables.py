"""Tables of what the library says to other programs, read off the code: logs, metrics, the command line."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import requests

from requests_smithy_retry.testing import scripted

from .reference_tables import cell, table


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def log_records() -> str:
    """List the log records of an operation that waits for its service and gives up, on a clock that does not run."""
    handler, logger = _Records(), logging.getLogger("requests_smithy_retry")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        session = requests.Session()
        session.mount("https://", scripted(*[503] * 9))
        session.get("https://api.example.com/things?secret=1")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    rows = []
    kinds: dict[str, logging.LogRecord] = {}
    for record in handler.records:
        kinds.setdefault(record.msg, record)
    for record in sorted(kinds.values(), key=lambda record: record.levelno):
        fields = ", ".join(f"`{name}`" for name in vars(record) if name.startswith("retry_"))
        rows.append((record.levelname, f"`{record.getMessage()}`", fields))
    return table(("level", "message", "in the record besides"), rows)


def prometheus_metrics() -> str:
    """List the metrics that a PrometheusListener registers."""
    from prometheus_client import CollectorRegistry

    from requests_smithy_retry.prometheus import PrometheusListener

    registry = CollectorRegistry()
    PrometheusListener(registry=registry)
    rows = []
    for collector in list(registry._collector_to_names):
        for family in collector.describe():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = getattr(collector, "_labelnames", ("scope",))
            rows.append((f"`{name}`", family.type, family.documentation, ", ".join(f"`{item}`" for item in labels)))
    return table(("metric", "type", "what it counts", "labels"), rows)


def otel_metrics() -> str:
    """List the instruments that an OpenTelemetryListener creates."""
    from requests_smithy_retry.otel import OpenTelemetryListener

    rows: list[tuple[str, ...]] = []

    class Meter:
        def __getattr__(self, kind: str) -> Any:
            def create(name: str, *rest: Any) -> Any:
                unit, said = rest[-2:]
                rows.append((f"`{name}`", kind.removeprefix("create_").replace("_", " "), f"`{unit}`", said))

            return create

    class Provider:
        def get_meter(self, *_: Any, **__: Any) -> Any:
            return Meter()

    OpenTelemetryListener(meter_provider=Provider())
    return table(("metric", "type", "unit", "what it counts"), rows)


def commands() -> str:
    """Each command of the command line with its options."""
    import click

    from requests_smithy_retry import cli

    parts = []
    for name, command in sorted(cli.commands().commands.items()):
        text = " ".join((command.help or "").split("\n\n")[0].split())
        arguments = [param for param in command.params if isinstance(param, click.Argument)]
        shown = " ".join(param.metavar or str(param.name).upper() for param in arguments)
        options = [param for param in command.params if isinstance(param, click.Option)]
        rows = [(f"`{', '.join(param.opts)}`", cell(param.help or "")) for param in options]
        usage = f"`requests-smithy-retry {name} [OPTIONS] {shown}".rstrip() + "`"
        listed = f"\n\n{table(('option', 'what it does'), rows)}" if rows else ""
        parts.append(f"### {name}\n\n{usage}\n\n{text}{listed}")
    return "\n\n".join(parts)


BLOCKS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "log-records": log_records,
    "otel-metrics": otel_metrics,
    "prometheus-metrics": prometheus_metrics,
}
"""By name of the block."""
