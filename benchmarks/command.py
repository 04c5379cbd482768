"""What every script needs: its options, a table in plain text, medians and quartiles, and where figures were taken."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import requests
from requests.adapters import HTTPAdapter

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGES = ("requests-smithy-retry", "requests", "urllib3", "tenacity", "stamina", "backoff", "botocore")


class Line(NamedTuple):
    """One measure: the bound that was wanted, and the figure that was got."""

    what: str
    wanted: str
    got: str
    fine: bool = True


def toml(file: Path) -> dict[str, Any]:
    """Return what a file has."""
    return tomllib.loads(file.read_text(encoding="utf-8"))


def session_of(adapter: HTTPAdapter) -> requests.Session:
    """A session of an adapter, which reads no environment."""
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", adapter)
    return session


def parser(description: str | None, quick: str) -> argparse.ArgumentParser:
    """A parser of ``--quick`` and ``--json``, to which a script adds its own.

    :param description: the script's docstring; its first line is shown.
    :param quick: a phrase for the effect of ``--quick``.
    """
    made = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    made.add_argument("--quick", action="store_true", help=quick)
    made.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    return made


def write(result: dict[str, Any], file: Path | None) -> None:
    """Write the figures where ``--json`` said, if it was given."""
    if file is not None:
        file.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as they need; the first one goes left, others right."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))])
        for first, *rest in lines
    )


def spread(values: Iterable[float]) -> dict[str, float]:
    """Median and quartiles."""
    ordered = sorted(values)
    low, _, high = quantiles(ordered, n=4) if len(ordered) > 1 else ordered * 3
    return {name: round(value, 4) for name, value in (("median", median(ordered)), ("q1", low), ("q3", high))}


def describe() -> dict[str, Any]:
    """The processor, the system, the interpreter and the packages, for JSON; no name of a host, no path."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def forget_settings() -> None:
    """Proxies and retry settings of the caller's environment are no part of a comparison."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith(("SMITHY_RETRY_", "AWS_")):
            del os.environ[name]
