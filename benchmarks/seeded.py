"""Do the checks see? Each seeded bug is put into a copy of the package, and the checks run on that.

    python -m benchmarks.seeded [--only NAME] [--checks loop,schedules] [--all] [--jobs 2] [--json FILE]

The bugs are those of `seeded_bugs.toml`. The checks: `schedules` (threads over one object, at most two preemptions),
`loop` (random runs in the simulated world), `sweep` (each n-th byte and statement), `bound` (retries in vain) and
`tests` (those of the bug's room, on virtual time). A bug is tried until one check finds it; `--all` tries every check.
Exit status 1: a bug that no check finds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUGS = HERE / "seeded_bugs.toml"
LONGEST = 600
"""Seconds after which a check counts as hanging: the bug is found."""

PROGRAMS = {
    "quotas/payoff.py": "spent,payoff,line",
    "quotas/bucket.py": "bucket,hook",
    "quotas/line.py": "line",
    "quotas/patient.py": "line",
    "quotas/scope_quota.py": "hook",
    "quotas/scopes.py": "scope",
    "quotas/outage.py": "shared",
    "pacing/gate.py": "gate",
    "pacing/pace.py": "gate",
    "pacing/rate_limiter.py": "limiter",
    "wire/idle.py": "kept",
    "wire/addresses.py": "address",
    "wire/resolving.py": "names",
    "sending/credentials.py": "credentials",
}
"""By the file of a bug: the programs of `schedules` that run it; all for others would find nothing else."""

CHECKS: dict[str, tuple[str, ...]] = {
    "schedules": ("-m", "benchmarks.explore.schedules", "--bound", "2", "--seconds", "3", "--first"),
    "loop": ("-m", "benchmarks.explore", "--operations", "2500", "--seed", "seeded", "--first"),
    "sweep": ("-m", "benchmarks.explore", "--sweep", "19", "--first"),
    "bound": ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/project/benchmarks/test_bound.py"),
    "tests": ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not real_time"),
}
FIRST = {"concurrency": "schedules", "shared memory": "schedules", "accounts": "bound"}
"""By the kind of a bug: the check that is tried first; `loop` for others."""


class Found(NamedTuple):
    """What became of one bug."""

    name: str
    kind: str
    by: tuple[str, ...]
    how: str
    seconds: float


def room_tests(bug: dict[str, str]) -> str:
    """Return the folder with the tests of a bug's file."""
    room = bug["file"].partition("/")[0]
    return f"tests/unit/{room}" if "/" in bug["file"] else "tests/unit/top"


def put_in(bug: dict[str, str], folder: Path) -> None:
    """Put a bug into a copy of the package."""
    file = folder / "requests_smithy_retry" / bug["file"]
    text = file.read_text(encoding="utf-8")
    old, new = bug["old"], bug["new"]
    if text.count(old) != 1:
        raise ValueError(f"{bug['name']}: its text is {text.count(old)} times in {bug['file']}")
    file.write_text(text.replace(old, new), encoding="utf-8")


def tried(bug: dict[str, str], wanted: frozenset[str], *, every: bool) -> Found:
    """Try checks on a copy with a bug.

    :param wanted: the names of the checks.

    :param every: all of them, even where one has found it.
    """
    began, by, how = time.monotonic(), [], ""
    first = FIRST.get(bug["kind"], "loop")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("requests_smithy_retry", "benchmarks", "tests", "docs"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "_build"))
        for part in ("pyproject.toml", "README.md", "CHANGELOG.md", "requests_smithy_retry_pytest.py"):
            shutil.copy(ROOT / part, folder)
        put_in(bug, folder)
        programs = "shared" if "shared_memory" in bug["file"] else PROGRAMS.get(bug["file"], "")
        checks = [check for check in CHECKS if check in wanted and (check != "schedules" or programs)]
        for check in sorted(checks, key=lambda check: check != first):
            try:
                only = {"schedules": ["--only", programs], "tests": [room_tests(bug)]}.get(check, [])
                ran = subprocess.run(
                    [sys.executable, *CHECKS[check], *only],
                    cwd=folder,
                    env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
                    capture_output=True,
                    text=True,
                    timeout=LONGEST,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                found, text = True, "violates: it hangs"
            else:
                found, text = ran.returncode != 0, ran.stdout + ran.stderr
            if found:
                by.append(check)
                how = how or _told(text)
                if not every:
                    break
    return Found(bug["name"], bug["kind"], tuple(by), how, round(time.monotonic() - began, 1))


def _told(text: str) -> str:
    lines = [line for line in text.splitlines() if "violates:" in line or line.startswith("E  ")] or text.splitlines()
    return lines[0].partition("violates:")[2].strip() or lines[-1].strip() if lines else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--checks", default=",".join(CHECKS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    bugs: list[dict[str, Any]] = tomllib.loads(BUGS.read_text(encoding="utf-8"))["bug"]
    bugs = [bug for bug in bugs if arguments.only is None or arguments.only in bug["name"]]
    outcomes, wanted = [], frozenset(arguments.checks.split(","))
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for future in as_completed([pool.submit(tried, bug, wanted, every=arguments.all) for bug in bugs]):
            found = future.result()
            outcomes.append(found)
            print(
                f"{found.name}: {', '.join(found.by) or 'NOT FOUND'} ({found.seconds:.0f} s) {found.how[:150]}",
                flush=True,
            )
    missed = [found.name for found in outcomes if not found.by]
    print(f"{len(outcomes) - len(missed)} of {len(outcomes)} found")
    if arguments.json is not None:
        arguments.json.write_text(
            json.dumps([found._asdict() for found in outcomes], indent=1) + "\n", encoding="utf-8"
        )
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
