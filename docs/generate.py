"""Writes what of the documentation is made from the code: ``python docs/generate.py``.

Some pages are made whole (:data:`PAGES`); others have a marked block (:data:`BLOCKS`) and are written by hand around
it. ``--check`` changes nothing and fails if a page is out of date.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from requests_smithy_retry.operation_options import OPERATION_OPTIONS
from requests_smithy_retry.options import OPTIONS, Option, allowed_values

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))  # for the modules beside this one, wherever it is run from


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _default(option: Option) -> str:
    if option.by_spec:
        return "by `retry_spec`"
    value = option.default
    if isinstance(value, frozenset):
        return ", ".join(f"`{item}`" for item in sorted(value))
    if value == ():
        return "none"
    return f"`{value!r}`" if isinstance(value, (bool, int, float, str, type(None))) else "the published numbers"


def options_table() -> str:
    """Every option: default, what is allowed, what it is for."""
    lines = ["| option | default | allowed | meaning |", "| --- | --- | --- | --- |"]
    for name, option in OPTIONS.items():
        allowed = _cell(allowed_values(name).rstrip(","))
        lines.append(f"| `{name}` | {_default(option)} | {allowed} | {_cell(option.meaning)} |")
    return "\n".join(lines)


def operation_options_table() -> str:
    """What ``retry_options`` takes."""
    lines = ["| option | allowed |", "| --- | --- |"]
    for name, parse in OPERATION_OPTIONS.items():
        try:
            parse(object())
        except ValueError as refusal:  # noqa: PERF203 - the refusal is what is wanted
            lines.append(f"| `{name}` | {_cell(str(refusal).partition(' is allowed')[0])} |")
    return "\n".join(lines)


def from_module(module: str, name: str) -> Callable[[], str]:
    """A table of a module beside this one, which is imported when it is made: it needs more than the core."""

    def make() -> str:
        needed = [_default] if name == "environment" else []
        table: str = getattr(importlib.import_module(module), name)(*needed)
        return table

    return make


def classification() -> str:
    """The page of every outcome's verdict."""
    import classification_page

    return classification_page.build()


PAGES: dict[str, Callable[[], str]] = {"reference/classification.md": classification}
"""Whole pages. They show what is installed, so ``--check`` leaves them to their own tests."""

BLOCKS: dict[tuple[str, str], Callable[[], str]] = {
    ("explanation/differences-from-botocore.md", "botocore-facts"): from_module("measured_tables", "botocore_facts"),
    ("explanation/quota-and-limiter.md", "policies"): from_module("measured_tables", "policies"),
    ("explanation/why-retries-are-dangerous.md", "collapse"): from_module("measured_tables", "collapse"),
    ("reference/options.md", "options"): options_table,
    ("reference/options.md", "operation-options"): operation_options_table,
    ("reference/api.md", "names"): from_module("reference_tables", "names"),
    ("reference/command-line.md", "commands"): from_module("outward_tables", "commands"),
    ("reference/environment.md", "aws"): from_module("reference_tables", "aws"),
    ("reference/environment.md", "environment"): from_module("reference_tables", "environment"),
    ("reference/exceptions.md", "raised-by-fault"): from_module("wire_tables", "raised_by_fault"),
    ("reference/exceptions.md", "exceptions"): from_module("reference_tables", "exceptions"),
    ("reference/logs-and-metrics.md", "log-records"): from_module("outward_tables", "log_records"),
    ("reference/logs-and-metrics.md", "otel-metrics"): from_module("outward_tables", "otel_metrics"),
    ("reference/logs-and-metrics.md", "prometheus-metrics"): from_module("outward_tables", "prometheus_metrics"),
    ("reference/stop-reasons.md", "stop-reasons"): from_module("reference_tables", "stop_reasons"),
}
"""By page and name of the block."""


def with_block(page: str, name: str, content: str) -> str:
    """A page's text with the content of one block replaced.

    :raises ValueError: if the page has no such block.
    """
    begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
    head, found, rest = page.partition(begin)
    _, ended, tail = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"there is no block {name!r}")
    return f"{head}{begin}\n{content}\n\n{end}{tail}"


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` say which ones are out of date.

    :returns: 1 if a page is out of date, else 0.
    """
    logging.getLogger("requests_smithy_retry").addHandler(logging.NullHandler())
    stale = []
    if "--check" not in arguments:
        for file, page in PAGES.items():
            (DOCS / file).write_text(page(), encoding="utf-8")
    for (file, name), make in BLOCKS.items():
        path = DOCS / file
        before = path.read_text(encoding="utf-8")
        after = with_block(before, name, make())
        if before != after:
            stale.append(file)
            if "--check" not in arguments:
                path.write_text(after, encoding="utf-8")
    if stale and "--check" in arguments:
        sys.stderr.write(f"out of date, run python docs/generate.py: {', '.join(dict.fromkeys(stale))}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
