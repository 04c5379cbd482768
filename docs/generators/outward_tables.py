"""Tables of what the library says to other programs, read off the code: logs, metrics, the command line."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
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
    """List the log records of an operation that gives up and of a success after it, on a clock that does not run."""
    handler, logger = _Records(), logging.getLogger("requests_smithy_retry")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        session = requests.Session()
        session.mount("https://", scripted(*[503] * 7, 200))
        for _ in range(3):
            session.get("https://api.example.com/things?secret=1")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    rows = []
    kinds: dict[str, logging.LogRecord] = {}
    for record in handler.records:
        kinds.setdefault(record.msg, record)
    fields: dict[str, None] = {}
    for record in sorted(kinds.values(), key=lambda record: record.levelno):
        fields.update(dict.fromkeys(f"`{name}`" for name in vars(record) if name.startswith("retry_")))
        rows.append((record.levelname, f"`{record.getMessage()}`"))
    return f"{table(('level', 'message'), rows)}\n\nAttributes of records, where known: {', '.join(fields)}."


def metrics() -> str:
    """List the metrics of a PrometheusListener, each beside the OpenTelemetry instrument that counts the same."""
    from prometheus_client import CollectorRegistry

    from requests_smithy_retry.prometheus import PrometheusListener

    registry, instruments = CollectorRegistry(), otel_instruments()
    PrometheusListener(registry=registry)
    rows = []
    for collector in list(registry._collector_to_names):
        for family in collector.describe():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            rows.append((f"`{name}`", instruments.pop(family.documentation), family.documentation))
    assert not instruments, instruments
    return table(("Prometheus", "OpenTelemetry", "what it counts"), rows)


def otel_instruments() -> dict[str, str]:
    """The names of the instruments that an OpenTelemetryListener creates, by what they count."""
    from requests_smithy_retry.otel import OpenTelemetryListener

    names: dict[str, str] = {}

    class Meter:
        def __getattr__(self, kind: str) -> Any:
            def create(name: str, *rest: Any) -> Any:
                names[rest[-1]] = f"`{name}`"
                return SimpleNamespace(add=None, record=None)

            return create

    class Provider:
        def get_meter(self, *_: Any, **__: Any) -> Any:
            return Meter()

    OpenTelemetryListener(meter_provider=Provider())
    return names


def commands() -> str:
    """Each command of the command line with its options."""
    from requests_smithy_retry.cli.subcommands import PARSERS

    parts = []
    for name, make in PARSERS.items():
        parser = make()
        text = " ".join((parser.description or "").split())
        options = [action for action in parser._actions if action.option_strings and action.dest != "help"]
        rows = [(f"`{', '.join(action.option_strings)}`", cell(action.help or "")) for action in options]
        usage = f"`requests-smithy-retry {name} [OPTIONS] [OPTION=VALUE]...`"
        parts.append(f"### {name}\n\n{usage}\n\n{text}\n\n{table(('option', 'what it does'), rows)}")
    return "\n\n".join(parts)


BLOCKS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "log-records": log_records,
    "metrics": metrics,
}
"""By name of the block."""
