"""Looks for the private names (``wire/private.py``) in every release: ``tox -e releases`` (docs/release.md).

All of urllib3 from 1.26.18 on and of requests from 2.31 on, each beside the newest of the other. Source trees that are
named, as of a main branch, are looked at as well: ``tox -e releases -- urllib3/src``. Prints a line for each, and which
names it lacks; a program sends to a server that fails once.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from released import USE

CHECKOUT = Path(__file__).resolve().parents[2]
OLDEST = {"urllib3": (1, 26, 18), "requests": (2, 31)}
LOOK = """
import requests, urllib3
from requests_smithy_retry.wire import private
print("urllib3", urllib3.__version__, "requests", requests.__version__, "lack", *private.missing() or ["nothing"])
"""


def main(folders: list[str]) -> int:
    """Look at each; return the number of those that lack a name or fail."""
    failed = sum(is_lacking(Path(folder).resolve()) for folder in folders)
    for package, oldest in OLDEST.items():
        for version in versions(package):
            if parts(version) >= oldest:
                with tempfile.TemporaryDirectory() as folder:
                    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
                    subprocess.run([*pip, f"{package}=={version}"], check=True)
                    failed += is_lacking(Path(folder))
    return failed


def versions(package: str) -> list[str]:
    """The releases that pip offers, the oldest first."""
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: list[str] = re.findall(r"(?<=[ ,])[0-9.]+", said.partition("Available versions:")[2].splitlines()[0])
    return sorted(found, key=parts)


def parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.rstrip(",").split(".")))


def is_lacking(folder: Path) -> bool:
    """Look at what is in a folder, with all else of this environment."""
    program = f"import sys; sys.path[:0] = {[str(folder), str(CHECKOUT)]}\n{LOOK}{USE}"
    return subprocess.run([sys.executable, "-W", "error", "-c", program], check=False).returncode != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
