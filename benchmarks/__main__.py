"""All figures that pages print, with one command: each part in a process of its own, kept with its date and machine.

    python -m pip install -r benchmarks/requirements.txt
    python -m benchmarks [NAME...] [--quick] [--only NAME] [--to FOLDER]

A name stands for all parts that begin with it. Each part writes `benchmarks/results/NAME.json`: by which command, when,
on which machine, and what was found. Then
`python docs/generate.py` writes the tables. The whole takes half an hour on two cores; `--quick` takes two minutes,
shows whether everything works, and keeps nothing unless `--to` says where. Exit status 1: a part failed, took too
long, or called its own figures invalid.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .command import describe, forget_settings

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PARTS: dict[str, tuple[str, float]] = {
    "overhead": ("overhead", 600),
    "faults": ("fault_table", 120),
    "addresses": ("addresses", 400),
    "rate-limits": ("rate_limits", 900),
    "outages": ("outage_loopback", 720),
    "outages-fan-out": ("outage_fanout", 120),
    "picture": ("outage_picture --draw", 200),
    "web-service": ("web_service", 400),
    "waiting": ("outage_tables --table short --table weak --seeds 3", 900),
}
"""By name: the module with its arguments, and the seconds after which it is ended."""


def run(name: str, folder: Path, *, quick: bool) -> str:
    """Run one part and keep what it found.

    :returns: the trouble, as a sentence; empty if there was none.
    """
    module, bound = PARTS[name]
    command = ["-m", *f"benchmarks.{module}".split(), *(["--quick"] if quick else [])]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "found.json"
        full = [sys.executable, *command, "--json", str(file)]
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        try:
            status = subprocess.run(full, cwd=HERE.parent, env=environment, timeout=bound, check=False).returncode
        except subprocess.TimeoutExpired:
            return f"took more than {bound:g} s"
        if not file.exists():
            return f"ended with status {status}"
        found = json.loads(file.read_text(encoding="utf-8"))
    document = {
        "command": " ".join(["python", *command]),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "seconds": round(time.monotonic() - began),
        "machine": describe(),
        "result": found,
    }
    text = json.dumps(document, indent=1, allow_nan=False)
    # A line for each entry, and one for a whole list of numbers.
    text = re.sub(r"\[[^][{}]*\]", lambda listed: re.sub(r"\s*\n\s*", " ", listed[0]), text)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    return f"ended with status {status}, its figures are kept" if status else ""


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts that begin with it; default: all")
    parser.add_argument("--quick", action="store_true", help="a small run of each, about two minutes, kept nowhere")
    parser.add_argument("--only", action="append", choices=PARTS, help="repeatable")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="where the JSON goes (benchmarks/results)")
    options = parser.parse_args(arguments)
    forget_settings()
    chosen = [name for name in PARTS if name in (options.only or ()) or name.startswith(tuple(options.names))]
    if (options.names or options.only) and not chosen:
        parser.error(f"no part begins with {' or '.join(options.names)}: {', '.join(PARTS)} are allowed")
    wrong = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.to or (Path(temporary) if options.quick else RESULTS)).resolve()
        for name in chosen or PARTS:
            print(f"\n== {name}\n", flush=True)
            if problem := run(name, folder, quick=options.quick):
                wrong[name] = problem
    for name, problem in wrong.items():
        print(f"{name}: {problem}")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
