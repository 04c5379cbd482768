"""The proof for programs of others: which requests of an SDK ours sends, and which troubles its scripts ride out.

    python -m benchmarks.sdks [--row NAME]... [--venv FOLDER | --here] [--json FILE]

Makes a virtual environment with the clients of requirements.txt (in .tox/sdks, unless told otherwise), and runs each
row (rows.py) against an emulated service on loopback, with TLS, in processes of its own: plain; under ``run``; and with
the line that mounts ours. Each trouble comes once, at each of the first three requests of a script. Five minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..command import forget_settings
from .child import BOUND, ERROR, HANG, OUTCOMES, SAFE, TWICE
from .rows import ROWS
from .service import OUTAGE, TROUBLES

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
CHILD_BOUND = 300.0
SILENCE = "silence"
RUN = ["-m", "requests_smithy_retry", "run"]
WAYS: dict[str, tuple[list[str], str]] = {
    "plain": ([], "plain"),
    "run": (RUN, "plain"),
    "run --mounted=all": ([*RUN, "--mounted=all"], "plain"),
    "mount": ([], "mount"),
}
"""By the name of each way to use ours: arguments before the child's module, and the child's own."""


def child(python: str, row: str, way: str, troubles: Iterable[str] = (), **settings: str) -> dict[str, Any]:
    """Run one row in one way; with ``error`` in the result, it did not come to an end."""
    before, own = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [python, *before, "-m", "benchmarks.sdks.child", row, own, str(file)]
        command += [word for trouble in troubles for word in ("--trouble", trouble)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": folder, **settings}
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=CHILD_BOUND, check=False
            )
        except subprocess.TimeoutExpired:
            return {"error": f"it took more than {CHILD_BOUND:g} s"}
        if not file.exists():
            return {"error": (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:500]}
        return dict(json.loads(file.read_text(encoding="utf-8")))


def measure(python: str, name: str) -> dict[str, Any]:
    """All ways of one row."""
    row = ROWS[name]
    found: dict[str, Any] = {"reached": {}, "cells": {}, "requests_in_outage": {}, "broken": []}
    healthy: dict[str, Any] = {}

    for way in WAYS if row.line else [way for way in WAYS if way != "mount"]:
        told = child(python, name, way, [*(trouble for trouble in TROUBLES if trouble != SILENCE), OUTAGE])
        if "error" in told:
            found["broken"].append(f"{way}: {told['error']}")
            continue
        silent = child(python, name, way, [SILENCE], SMITHY_RETRY_OPERATION_ATTEMPT_TIMEOUT="2")
        found["version"], healthy[way] = told["version"], told["healthy"]
        found["reached"][way] = [len(told["healthy"]["ours"]), len(told["healthy"]["trace"])]
        found["requests_in_outage"][way] = told["cells"].pop(OUTAGE)[0][2]
        found["cells"][way] = {**told["cells"], **silent.get("cells", {})}
    found["broken"] += broken(found["cells"], healthy)
    return found


def broken(cells: dict[str, Any], healthy: dict[str, Any]) -> list[str]:
    """Say what is worse with ours than without.

    A client that sends a POST again after a trouble may have it applied twice; that ours does not is no harm, and that
    ours does so in its place, by its own ``Retry``, is its harm.

    :param cells: by way and trouble, the outcome of each script.
    :param healthy: by way, the script without trouble.
    """
    plain = healthy.get("plain", {"told": None, "trace": []})
    found = [
        f"{way}: without trouble, {part} differs"
        for way, each in healthy.items()
        for part in ("told", "trace")
        if each[part] != plain[part]
    ]
    own = cells.get("plain", {})
    for way, troubles in cells.items():
        for trouble, scripts in troubles.items():
            for at, (ours, theirs) in enumerate(zip(scripts, own.get(trouble, []), strict=False)):
                is_worse = OUTCOMES.index(ours[0]) > OUTCOMES.index(theirs[0])
                is_careful = ours[0] == ERROR and plain["trace"][at][0] not in SAFE
                was_ours = ours[4] and all(each[at][0] != TWICE for each in own.values())
                is_slow_itself = ours[0] == HANG and theirs[3] > BOUND / 2
                if is_worse and not (is_careful or is_slow_itself or (ours[0] == TWICE and not was_ours)):
                    found.append(f"{way}: {trouble} at request {at + 1}: {theirs[0]} became {ours[0]} {ours[1]}")
    return found


def line_of(name: str, found: dict[str, Any]) -> str:
    """One line of the printed table."""
    cells = []
    for way, troubles in found["cells"].items():
        outcomes = Counter(script[0] for scripts in troubles.values() for script in scripts)
        ours, requests = found["reached"][way]
        cells.append(
            f"{way}: {outcomes['right']} of {outcomes.total()} right, {ours}/{requests} sent by ours, "
            f"{found['requests_in_outage'][way]} in an outage"
        )
    return "; ".join([f"{name} {found.get('version', '?')}", *cells, *(f"BROKEN {each}" for each in found["broken"])])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write what was asked for. Exit status 1: a client is broken by ours."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--row", action="append", choices=ROWS, help="repeatable; default: all")
    parser.add_argument("--venv", type=Path, default=ROOT / ".tox" / "sdks", help="where the clients are installed")
    parser.add_argument("--here", action="store_true", help="use the clients that are installed for this Python")
    parser.add_argument("--json", type=Path, help="write the figures to FILE")
    options = parser.parse_args(arguments)
    forget_settings()
    python = sys.executable if options.here else str(options.venv / "bin" / "python")
    if not options.here:
        if not Path(python).exists():
            subprocess.run([sys.executable, "-m", "venv", str(options.venv)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", str(REQUIREMENTS)], check=True)
    found = {}
    for name in options.row or ROWS:
        found[name] = measure(python, name)
        print(line_of(name, found[name]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(any(each["broken"] for each in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
