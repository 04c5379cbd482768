"""Do the checks see? Each of forty seeded bugs (``seeded_bugs.toml``) is put into a copy of the package in turn.

    python benchmarks/seeded_bugs.py -- python -m pytest -q -x tests/unit/{room}

A bug is found if the command, run in the copy, fails or comes to no end; ``{room}`` is the folder of the file with the
bug. Without a bug the command must succeed. ``--only NAME`` and ``--kind KIND`` choose bugs. Needs Python 3.11 and git.
Exit status 1: a bug was not found.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "requests_smithy_retry"


def main(arguments: Sequence[str]) -> int:
    """Try the bugs, and print which of them were found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", help="the name of a bug; by default all")
    parser.add_argument("--kind", action="append", help="concurrency, wire, accounts, shared memory or time")
    parser.add_argument("--seconds", type=float, default=600, help="after which a command comes to no end (600)")
    parser.add_argument("command", nargs="+", help="the check, after --")
    options = parser.parse_args(arguments)
    chosen = [
        bug
        for bug in bugs()
        if (options.only is None or bug["name"] in options.only)
        and (options.kind is None or bug["kind"] in options.kind)
    ]
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        copy_to(Path(folder))
        for room in {room_of(bug) for bug in chosen}:
            if ending_of(options.command, room, Path(folder), options.seconds) != "missed":
                raise SystemExit(f"without a bug the command fails, too, in {room}")
        for bug in chosen:
            ending = tried(bug, options.command, Path(folder), options.seconds)
            print(f"{ending:9} | {bug['kind']:13} | {bug['name']}", flush=True)
            missed += [bug] if ending == "missed" else []
    print(f"{len(chosen) - len(missed)} of {len(chosen)} found")
    return 1 if missed else 0


def bugs() -> list[dict[str, Any]]:
    """Return the list."""
    import tomllib

    found: list[dict[str, Any]] = tomllib.loads((ROOT / "benchmarks" / "seeded_bugs.toml").read_text("utf-8"))["bug"]
    return found


def room_of(bug: dict[str, Any]) -> str:
    """Return the folder of the file with the bug."""
    return str(bug["file"]).partition("/")[0]


def copy_to(folder: Path) -> None:
    """Copy the files of the working tree."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def tried(bug: dict[str, Any], command: Sequence[str], folder: Path, seconds: float) -> str:
    """Return how the command ended with a bug in the copy, which is as before afterwards."""
    file = folder / PACKAGE / bug["file"]
    sound = file.read_text("utf-8")
    file.write_text(sound.replace(bug["old"], bug["new"]), "utf-8")
    try:
        return ending_of(command, room_of(bug), folder, seconds)
    finally:
        file.write_text(sound, "utf-8")


def ending_of(command: Sequence[str], room: str, folder: Path, seconds: float) -> str:
    """Run the command in the copy: ``"found"``, ``"timed out"`` or ``"missed"``."""
    # Bytecode is told to be fresh by the time and the size of its source, which may be the same.
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [word.replace("{room}", room) for word in command]
    try:
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "timed out"
    return "found" if done.returncode else "missed"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
