"""The proof that the checks see: each seeded bug is put into a copy of the package, and they run on that.

    python -m benchmarks.seeded [--only NAMES] [--checks explore,tests] [--all] [--clean] [--jobs 1] [--json FILE]

The bugs are those of `seeded_bugs.toml`. The checks, in their order: `explore` (the send loop in a simulated world,
spells of failure, random runs and the fixed set), `schedules` (threads over one object, at most two preemptions),
`bound` (retries in vain) and `tests` (those of the bug's room and of behaviour, the ones on real time included). A bug
is tried until one check finds it; `--all` tries every check. `--clean` runs the checks on copies without a bug, which
they must leave alone. Exit status 1: a bug that no check finds. Half an hour of a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from . import command

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUGS = HERE / "seeded_bugs.toml"
LONGEST = 900
"""Seconds after which a check that bounds itself by much less hangs: the bug is found."""
LONGEST_TEST = 120
"""Seconds after which a test hangs."""

PROGRAMS = {
    "clock.py": "line,rate limit",
    "core/retry_budget.py": "spent,payoff,first tries,line",
    "core/wait_queue.py": "line",
    "core/scope.py": "scope",
    "features/rate_limits/limits.py": "rate limit",
    "smithy/buckets.py": "bucket",
    "smithy/rate_limiter.py": "limiter",
    "wire/pools.py": "kept",
    "features/addresses/memory.py": "address",
    "features/addresses/resolving.py": "names",
}
"""By the file of a bug: the programs of `schedules` that run it; all for others would find nothing else."""
PYTEST = (
    *("-m", "pytest", "-q", "-x", "--no-header", "--tb=line", "-p", "no:cacheprovider"),
    *("-o", f"faulthandler_timeout={LONGEST_TEST}", "-o", "faulthandler_exit_on_timeout=true"),
)
RUNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "explore": (
        ("-m", "benchmarks.explore.spells", "--operations", "4000", "--first"),
        ("-m", "benchmarks.explore", "--operations", "30000", "--seed", "seeded", "--first"),
        ("-m", "benchmarks.explore", "--sweep", "11", "--first"),
    ),
    "schedules": (("-m", "benchmarks.explore.schedules", "--bound", "2", "--seconds", "5", "--first", "--only"),),
    "bound": (("-m", "benchmarks.bound", "--quick"),),
    "tests": (PYTEST,),
}
"""By check, in the order in which they are tried: what it runs."""
TOLD = re.compile(r"violates: (.*)|BROKEN by (.*)|^FAILED (tests/.*)|(Timeout \([0-9].*)", re.MULTILINE)
"""The line in which a check tells of the violation that it found."""
HANGS = re.compile(r'File ".*/(tests/.*\.py)", line \d+ in (test_\w+)')
"""The line of a traceback that names the test that hangs."""


class Found(NamedTuple):
    """The outcome of one bug.

    :param by: the checks that found it.
    :param how: what the first of them said.
    :param tried: all checks that were tried.
    """

    name: str
    kind: str
    by: tuple[str, ...]
    how: str
    tried: tuple[str, ...]
    seconds: float


def room_tests(file: str, root: Path = ROOT) -> list[str]:
    """Return what pytest is given to run the tests that name a file's module, those of its room, and of behaviour."""
    module = f"requests_smithy_retry.{file.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
    room, _, name = module.rpartition(".")
    named = re.compile(rf"from {re.escape(module)}\b|from {re.escape(room)} import .*\b{name}\b")
    tests = [path for folder in ("unit", "behaviour") for path in sorted((root / "tests" / folder).rglob("test_*.py"))]
    near = [str(path.relative_to(root)) for path in tests if named.search(path.read_text("utf-8"))]
    folders = [f"tests/unit/{file.partition('/')[0]}", "tests/behaviour"]
    return [*near, *(folder for folder in folders if (root / folder).is_dir())]


def put_in(bug: dict[str, str], folder: Path) -> None:
    """Put a bug into a copy of the package."""
    file = folder / "requests_smithy_retry" / bug["file"]
    text = file.read_text(encoding="utf-8")
    old, new = bug["old"], bug["new"]
    if text.count(old) != 1:
        raise ValueError(f"{bug['name']}: its text is {text.count(old)} times in {bug['file']}")
    file.write_text(text.replace(old, new), encoding="utf-8")


def copy_to(folder: Path) -> None:
    """Copy what the checks need."""
    for part in ("requests_smithy_retry", "benchmarks", "tests", "docs"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "_build"))
    for part in ("pyproject.toml", "README.md", "CHANGELOG.md", "requests_smithy_retry_pytest.py"):
        shutil.copy(ROOT / part, folder)


def finds(check: str, file: str, folder: Path) -> str | None:
    """Run one check on a copy; return what it found, or None.

    :param file: the file of the bug, which says what of the check concerns it.
    """
    only = {"schedules": [PROGRAMS.get(file, "")], "tests": room_tests(file)}.get(check, [])
    for run in RUNS[check]:
        code, text = ended([sys.executable, *run, *only], folder)
        if code is None:
            return "it hangs"
        if code:
            return _told(text)
    return None


def ended(command: list[str], folder: Path) -> tuple[int | None, str]:
    """Return the exit status of a command, and what it said; None: it did not end. Nothing that it began is left."""
    env = {"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    # Into a file: children of a test that hangs keep a pipe open.
    with tempfile.TemporaryFile() as said:
        ran = subprocess.Popen(command, cwd=folder, env=env, stdout=said, stderr=said, start_new_session=True)
        try:
            code = ran.wait(LONGEST)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(ran.pid, signal.SIGKILL)
            ran.wait()
        said.seek(0)
        return code, said.read().decode(errors="replace")


def _told(text: str) -> str:
    said = TOLD.search(text)
    if said is None:
        return (text.splitlines() or ["it says nothing"])[-1].strip()
    hanging = HANGS.search(text, said.end()) if said[4] else None
    if hanging is not None:
        return f"{hanging[1]}::{hanging[2]} hangs"
    return next(part for part in said.groups() if part).partition(" - ")[0].strip()


def tried(bug: dict[str, str], wanted: frozenset[str], *, every: bool, clean: bool = False) -> Found:
    """Try checks on a copy with a bug.

    :param wanted: the names of the checks.

    :param every: all of them, even where one has found it.

    :param clean: leave the bug out.
    """
    began, by, how, file = time.monotonic(), [], "", bug["file"]
    concerned = {
        "schedules": file in PROGRAMS,
        "bound": file.startswith(("core/", "smithy/")),
    }
    checks = [check for check in RUNS if check in wanted and concerned.get(check, True)]
    made = []
    with tempfile.TemporaryDirectory() as name:
        copy_to(Path(name))
        if not clean:
            put_in(bug, Path(name))
        for check in checks:
            made.append(check)
            found = finds(check, file, Path(name))
            if found is not None:
                by.append(check)
                how = how or found
                if not every:
                    break
    return Found(bug["name"], bug["kind"], tuple(by), how, tuple(made), round(time.monotonic() - began, 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, by commas")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--checks", default=",".join(RUNS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    listed: list[dict[str, str]] = command.toml(BUGS)["bug"]
    bugs = [bug for bug in listed if any(part in bug["name"] for part in options.only.split(","))]
    if options.clean:  # one of each room, so that every check is made
        bugs = list({(bug["file"].partition("/")[0], PROGRAMS.get(bug["file"])): bug for bug in bugs}.values())
    outcomes, wanted = [], frozenset(options.checks.split(","))
    with ThreadPoolExecutor(options.jobs) as pool:
        every = options.all or options.clean
        futures = [pool.submit(tried, bug, wanted, every=every, clean=options.clean) for bug in bugs]
        for future in as_completed(futures):
            found = future.result()
            outcomes.append(found)
            name, by = f"without {found.name!r}" if options.clean else found.name, ", ".join(found.by) or "NOT FOUND"
            print(f"{name}: {by} ({found.seconds:.0f} s) {found.how[:150]}", flush=True)
    missed = [found.name for found in outcomes if not found.by]
    print(f"{len(outcomes) - len(missed)} of {len(outcomes)} found")
    command.write({"result": [found._asdict() for found in outcomes]}, options.json)
    return int(len(missed) < len(outcomes) if options.clean else bool(missed))


if __name__ == "__main__":
    sys.exit(main())
