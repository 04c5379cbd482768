"""All benchmarks with one command, each in a process of its own, and the pictures of what they found.

    python -m pip install -r benchmarks/requirements.txt
    python -m benchmarks [--quick] [--only NAME] [--to FOLDER]

Writes `benchmarks/results/NAME.json` (by which command, when, on which machine, and of what was found the part
that is printed or drawn: `kept.py`) and draws the pictures; `python docs/generate.py` then writes the tables.
The whole takes about an hour on two cores, and two at most. `--quick` takes two minutes, shows whether
everything works, and keeps nothing unless `--to` says where. Exit status 1: a part failed, took too long, or called its
own figures invalid.

To add a part, write a script that has `--json FILE` and `--quick`, and give it a line in `PARTS`.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from kept import KEPT, pruned
from machine import describe, forget_settings

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


class Part(NamedTuple):
    """One benchmark.

    :param command: arguments of the interpreter.
    :param bound: seconds after which it is ended.
    :param quick: the arguments that make it quick.
    """

    command: tuple[str, ...]
    bound: float
    quick: tuple[str, ...] = ("--quick",)


PARTS = {
    "overhead": Part(("benchmarks/overhead.py",), 300),
    "footprint": Part(("benchmarks/footprint.py",), 300),
    "faults": Part(("benchmarks/fault_table.py",), 120),
    "deadlines": Part(("benchmarks/deadline_overshoot.py", "--deadline", "1", "--rounds", "3"), 400),
    "adaptive": Part(("benchmarks/adaptive_loopback.py",), 60),
    "addresses": Part(("benchmarks/addresses.py",), 400),
    "rate-limits": Part(("benchmarks/rate_limits.py",), 600),
    "outages": Part(("benchmarks/outage_loopback.py",), 720),
    "picture": Part(("benchmarks/outage_picture.py",), 200),
    "simulation": Part(("-m", "benchmarks.simulation", "--seeds", "3"), 500),
    "downloads": Part(("benchmarks/downloads.py", "--simulated", "10000", "--sockets", "300", "--peers", "60"), 900),
    "map": Part(("-m", "benchmarks.harm_map", "--loopback", "--processes", "2"), 1800),
    "waiting": Part(("-m", "benchmarks.outage_tables", "--table", "short", "--table", "weak", "--seeds", "3"), 900),
}


def run(name: str, folder: Path, *, quick: bool) -> str:
    """Run one part and keep what it found.

    :returns: the trouble, as a sentence; empty if there was none.
    """
    part = PARTS[name]
    command = [*part.command, *(part.quick if quick else ())]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "found.json"
        try:
            status = subprocess.run(
                [sys.executable, *command, "--json", str(file)],
                cwd=HERE.parent,
                env={**os.environ, "PYTHONPATH": str(HERE.parent)},
                timeout=part.bound,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return f"took more than {part.bound:g} s"
        if not file.exists():
            return f"ended with status {status}"
        found = json.loads(file.read_text(encoding="utf-8"))
    document = {
        "command": " ".join(["python", *command]),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "seconds": round(time.monotonic() - began),
        "machine": describe(),
        "result": pruned(found, KEPT.get(name)),
    }
    (folder / f"{name}.json").write_text(_readable(document), encoding="utf-8")
    return f"ended with status {status}, its figures are kept" if status else ""


def _readable(document: dict[str, Any]) -> str:
    """JSON with a line for each entry, and one for a whole list of numbers."""
    text = json.dumps(document, indent=1, allow_nan=False)
    return re.sub(r"\[[^][{}]*\]", lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for, and draw."""
    options = _options(arguments)
    forget_settings()
    began, wrong = time.monotonic(), {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.to or (Path(temporary) if options.quick else RESULTS)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        draw = _draw() if folder == RESULTS else None
        for name in options.only or PARTS:
            print(f"\n== {name}\n", flush=True)
            if problem := run(name, folder, quick=options.quick):
                wrong[name] = problem
    if draw is not None:
        print(f"\ndrawn: {', '.join(draw())}; now run python docs/generate.py")
    print(f"{time.monotonic() - began:.0f} s")
    for name, problem in wrong.items():
        print(f"{name}: {problem}")
    return int(bool(wrong))


def _draw() -> Callable[[], list[str]]:
    """Return the function that draws. Called first, so that a missing matplotlib is not found out after 20 minutes."""
    from plots import draw

    return draw


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small run of each, about two minutes, kept nowhere")
    parser.add_argument(
        "--only", action="append", choices=PARTS, metavar="NAME", help=f"repeatable: {', '.join(PARTS)}"
    )
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="where the JSON goes (benchmarks/results)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
