"""The table of SDKs: which requests ours sends for them, and which troubles their scripts ride out.

    python -m benchmarks.sdks [--row NAME]... [--venv FOLDER | --here] [--jobs 2] [--json FILE]

Makes a virtual environment with the clients of requirements.txt (in .tox/sdks, unless told otherwise), and runs each
row (row.py) against an emulated service on loopback, with TLS, in processes of its own: plain; with ``install()`` and
``install(mounted=...)``; under ``run``; and with the line that mounts ours. Each trouble comes once, at each of the
first three requests of a script. Writes benchmarks/results/sdks.json. About 25 minutes on two idle cores.

To add a client, add its version to requirements.txt and a script to one of the modules of rows.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe, forget_settings

from .child import BOUND, ERROR, HANG, OUTCOMES, SAFE, TWICE
from .row import ROOMS, ROWS, Row
from .service import OUTAGE, TROUBLES

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "benchmarks" / "results" / "sdks.json"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
CHILD_BOUND = 300.0
ATTEMPT_TIMEOUT = "SMITHY_RETRY_OPERATION_ATTEMPT_TIMEOUT"
SILENCE = "silence"
RUN = ["-m", "requests_smithy_retry", "run"]
WAYS: dict[str, tuple[list[str], list[str]]] = {
    "plain": ([], ["plain"]),
    "run": (RUN, ["plain"]),
    "run --mounted=all": ([*RUN, "--mounted=all"], ["plain"]),
    "mount": ([], ["mount"]),
    **{f"install {mounted}": ([], ["install", "--mounted", mounted]) for mounted in ("none", "plain", "all")},
}
"""By the name of each way to use ours: arguments before the child's module, and the child's own."""


def environment(python: Path) -> None:
    """Make the virtual environment with the clients, if it is not there."""
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--prefer-binary"]
    subprocess.run([*pip, "-r", str(REQUIREMENTS)], check=True)


def child(python: Path, row: str, way: str, troubles: Iterable[str], **settings: str) -> dict[str, Any]:
    """Run one row in one way; with ``error`` in the result, it did not come to an end."""
    before, own = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [str(python), *before, "-m", f"{__package__}.child", row, own[0], str(file), *own[1:]]
        command += [word for trouble in troubles for word in ("--trouble", trouble)]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": folder, **settings},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=CHILD_BOUND,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"it took more than {CHILD_BOUND:g} s"}
        if not file.exists():
            return {"error": (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:500]}
        return dict(json.loads(file.read_text(encoding="utf-8")))


def measure(python: Path, name: str) -> dict[str, Any]:
    """All ways of one row."""
    row = ROWS[name]
    once = [trouble for trouble in TROUBLES if trouble != SILENCE]
    found: dict[str, Any] = {
        "reached": {},
        "left_alone": {},
        "cells": {},
        "requests_in_outage": {},
        "broken": [],
    }
    healthy: dict[str, Any] = {}

    def go(way: str, troubles: Sequence[str] = ()) -> bool:
        """Return True if ours sent every request."""
        told = child(python, name, way, troubles)
        if "error" in told:
            found["broken"].append(f"{way}: {told['error']}")
            return False
        found["version"] = told["version"]
        healthy[way] = told["healthy"]
        ours, requests = found["reached"][way] = [len(told["healthy"]["ours"]), len(told["healthy"]["trace"])]
        found["left_alone"][way] = told["left_alone"]
        if troubles:
            silent = child(python, name, way, [SILENCE], **{ATTEMPT_TIMEOUT: "2"})
            found["requests_in_outage"][way] = told["cells"].pop(OUTAGE)[0][2]
            found["cells"][way] = {**told["cells"], **silent.get("cells", {})}
        return bool(ours == requests)

    troubles = [*once, OUTAGE]
    go("plain", troubles)
    is_reached = go("run", troubles)
    for mounted in ("none", "plain", "all"):
        go(f"install {mounted}")
    if not is_reached and found["reached"].get("install all") != found["reached"].get("run"):
        go("run --mounted=all", troubles)
    if row.line:
        go("mount", () if is_reached else troubles)
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
                repeats_itself = ours[0] == TWICE and not (
                    ours[4] and all(each[at][0] != TWICE for each in own.values())
                )
                is_slow_itself = ours[0] == HANG and theirs[3] > BOUND / 2
                if is_worse and not (is_careful or repeats_itself or is_slow_itself):
                    found.append(
                        f"{way}: {trouble} at request {at + 1}: {theirs[0]} became {ours[0]} {ours[1]}".rstrip()
                    )
    return found


def line_of(name: str, found: dict[str, Any]) -> str:
    """One line of the printed table."""
    cells = []
    for way, troubles in found["cells"].items():
        outcomes = [script[0] for scripts in troubles.values() for script in scripts]
        ours, all_of_them = found["reached"][way]
        counted = Counter(outcomes)
        cells.append(
            f"{way}: {counted['right']} of {len(outcomes)} right, {ours}/{all_of_them} sent by ours, "
            f"{found['requests_in_outage'][way]} in an outage"
        )
    return f"{name} {found.get('version', '?')}: {'; '.join(cells)}{' BROKEN ' if found['broken'] else ''}" + "; ".join(
        found["broken"]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and keep the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--row", action="append", metavar="NAME", help="repeatable, others stay as they are in the file; default: all"
    )
    parser.add_argument("--venv", type=Path, default=ROOT / ".tox" / "sdks", help="where the clients are installed")
    parser.add_argument("--here", action="store_true", help="use the clients that are installed for this Python")
    parser.add_argument("--jobs", type=int, default=2, help="rows at a time")
    parser.add_argument("--json", type=Path, default=RESULT, help="the file of the figures")
    options = parser.parse_args(arguments)
    for room in ROOMS:
        importlib.import_module(f"{__package__}.{room}")
    forget_settings()
    python = Path(sys.executable) if options.here else options.venv / "bin" / "python"
    if not options.here:
        environment(python)
    names = options.row or list(ROWS)
    rows: dict[str, Any] = result_of(options.json) if options.row else {}
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(measure, python, name): name for name in names}
        for job in as_completed(jobs):
            rows[jobs[job]] = job.result()
            print(line_of(jobs[job], job.result()), flush=True)
            keep(options.json, {name: rows[name] for name in ROWS if name in rows})
    return 1 if any(rows[name]["broken"] for name in names) else 0


def result_of(file: Path) -> dict[str, Any]:
    """Return the rows of a file that may not exist."""
    return dict(json.loads(file.read_text(encoding="utf-8"))["result"]) if file.exists() else {}


def facts(row: Row) -> dict[str, str]:
    """Return what the page needs to know of a row."""
    does = (row.script.__doc__ or "").strip()
    return {"package": row.package, "line": row.shown or row.line, "why": row.why, "scheme": row.scheme, "does": does}


def keep(file: Path, rows: dict[str, Any]) -> None:
    """Write the figures."""
    document = {
        "command": "python -m benchmarks.sdks",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": describe(),
    }
    lines = [f"{json.dumps(name)}: {json.dumps({**found, **facts(ROWS[name])})}" for name, found in rows.items()]
    head = json.dumps(document, indent=1).removesuffix("\n}")
    file.write_text(head + ',\n "result": {\n  ' + ",\n  ".join(lines) + "\n }\n}\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
