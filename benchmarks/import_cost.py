"""The time to import the package above `import requests`, and what `run` adds to a program.

CPU time, each time in a process of its own.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from importlib import util
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIMIT_MS = 10.0
LIMITS_MS = {"package": LIMIT_MS, "mounted": 20.0, "run_requests": 15.0, "run_nothing": 3.0}
"""The most that each may take, in milliseconds."""
PEERS = ("tenacity", "stamina", "backoff")
PROGRAMS = {
    "package": "import requests_smithy_retry",
    "mounted": "from requests_smithy_retry import mount; mount(requests.Session())",
    **{name: f"import {name}" for name in PEERS},
}
"""The programs that are timed, after requests was imported: the package alone; with the first mount; peers."""


RUNS = {"run_nothing": "", "run_requests": "import requests"}
"""The programs to which `run` adds something: one without requests, and one that imports them."""


def run_times(rounds: int) -> dict[str, Any]:
    """Milliseconds of CPU time that `run -m program` takes above `python -m program`, by program."""
    result: dict[str, Any] = {}
    for name, program in RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "program.py").write_text(program)
            ways = {"plain": ("-m", "program"), "run": ("-m", "requests_smithy_retry", "run", "-m", "program")}
            took: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(rounds):
                for way, arguments in ways.items():
                    before = _children()
                    _python(*arguments, path=(str(ROOT), folder))
                    took[way].append(_children() - before)
        result[f"{name}_ms"] = round(median(took["run"]) - median(took["plain"]), 1)
    return result


def _children() -> float:
    """Milliseconds of CPU time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def import_times(rounds: int) -> dict[str, Any]:
    """Milliseconds of CPU time, by program; and how many modules each loads."""
    able = {name: program for name, program in PROGRAMS.items() if name not in PEERS or util.find_spec(name)}
    base: list[float] = []
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in able}
    for _ in range(rounds):
        base.append(_run("", before="")[0])
        for name, program in able.items():
            found[name].append(_run(program, before="import requests; requests.Session()"))
    result: dict[str, Any] = {"limit_ms": LIMIT_MS, "rounds": rounds, "requests_ms": spread(base)}
    for name, runs in found.items():
        result[f"{name}_ms"] = spread([run[0] for run in runs])
        result[f"{name}_modules"] = runs[0][1]
    result |= run_times(rounds)
    result["heaviest_ms"] = _heaviest(PROGRAMS["mounted"], rounds)
    return result


def _run(program: str, before: str) -> tuple[float, int]:
    timed = program or "import requests; requests.Session()"
    code = (
        f"import sys, time\n{before}\nloaded = len(sys.modules)\nbegan = time.process_time()\n{timed}\n"
        "print((time.process_time() - began) * 1000, len(sys.modules) - loaded)"
    )
    milliseconds, modules = _python("-c", code).stdout.split()
    return float(milliseconds), int(modules)


def _heaviest(program: str, rounds: int) -> dict[str, float]:
    """Of the modules that a program loads after requests, those that take the longest by themselves."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        told = _python("-X", "importtime", "-c", f"import requests\n{program}").stderr
        rows = re.findall(r"^import time: +(\d+) \| +\d+ \| +(\S+)$", told, re.MULTILINE)
        names = [name for _, name in rows]
        for own, name in rows[names.index("requests") + 1 :]:
            times.setdefault(name, []).append(int(own) / 1000)
    ordered = sorted(times, key=lambda name: -median(times[name]))
    return {name: round(median(times[name]), 2) for name in ordered[:8]}


def _python(*arguments: str, path: tuple[str, ...] = (str(ROOT),)) -> subprocess.CompletedProcess[str]:
    # With compiled files, as installed packages have them, whatever the caller's environment says.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PYTHONPATH"] = os.pathsep.join(path)
    return subprocess.run([sys.executable, *arguments], env=environment, check=True, capture_output=True, text=True)


def spread(values: list[float]) -> dict[str, float]:
    """Median and extremes."""
    return {"median": round(median(values), 3), "min": round(min(values), 3), "max": round(max(values), 3)}
