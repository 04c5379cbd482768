"""Runs the whole suite on the Pythons of other Debians: ``python tests/project/pythons.py FOLDER`` (docs/release.md).

Debian testing has the newest Pythons, and Debian 13 has OpenSSL 3.5. Needs root, debootstrap, unshare and git. FOLDER,
made on the first run and kept for the next, gets a tree for each Debian. ``/proc`` and ``/dev`` are mounted there in a
namespace that ends with each command: nothing stays mounted, so that FOLDER can be deleted. pip goes by its
configuration outside. ``--python python3.15`` runs one alone; other arguments are handed on to pytest.

Prints a row for the table of docs/release.md for each Python.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import subprocess
import sys
from pathlib import Path

from released import USE

CHECKOUT = Path(__file__).resolve().parents[2]
PYTHONS = {"python3.14": "forky", "python3.15": "forky", "pypy3": "forky", "python3.13": "trixie"}
"""By interpreter: the Debian that has it."""
SCRIPTS = Path("/usr/share/debootstrap/scripts")
AS_OUTSIDE = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf"),
    "/etc/ssl/certs/ca-certificates.crt",
)
"""What pip needs to reach its index."""
ENTER = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
WHO = """
import platform, requests, ssl, sys, urllib3
names = platform.python_implementation(), ".".join(map(str, sys.implementation.version[:3]))
print(*names, "|", requests.__version__, "|", urllib3.__version__, "|", ssl.OPENSSL_VERSION.split()[1])
"""
INSTALL = """
set -e
cd /checkout
test -x "$2/bin/python" || { "$1" -m venv "$2"; "$1" -m venv "$2-bare"; "$2-bare/bin/pip" install --quiet requests; }
"$2/bin/pip" install --quiet --prefer-binary -e ".[cli,test]"
"$2/bin/pip" wheel --quiet --no-deps --wheel-dir "$2/wheel" .
"$2-bare/bin/pip" install --quiet --no-deps --force-reinstall "$2"/wheel/*.whl
cd /
"$2-bare/bin/python" -W error -c "$3"
"""


def main() -> int:
    """Make each Debian that is not there, and run the suite on its Pythons; return how many failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", action="append", choices=PYTHONS)
    given, handed_on = parser.parse_known_args()
    failed = 0
    for python in given.python or PYTHONS:
        root = given.folder.resolve() / PYTHONS[python]
        if not (root / "usr/bin/git").exists():
            bootstrap(root)
        for name in AS_OUTSIDE:
            copy_in(Path(name).expanduser(), root)
        copy_checkout(root / "checkout")
        failed += run_suite(root, python, handed_on or ["-m", "not once"]) != 0
    return failed


def bootstrap(root: Path) -> None:
    """Make a Debian with its Pythons, from the mirror of the machine's own Debian."""
    targets = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"]
    lines = subprocess.run(targets, check=True, capture_output=True, text=True).stdout.splitlines()
    mirror = next(line.split()[1] for line in lines if line.startswith("Debian "))
    script = SCRIPTS / root.name
    script = script if script.exists() else SCRIPTS / "sid"
    pythons = [python for python, debian in PYTHONS.items() if debian == root.name]
    packages = *(python + part for python in pythons for part in ("", "-venv")), "ca-certificates", "git"
    run("debootstrap", "--variant=minbase", f"--include={','.join(packages)}", root.name, root, mirror, script)


def copy_in(path: Path, root: Path) -> None:
    """Copy a file of the machine to the same place in the Debian."""
    if path.is_file():
        there = root / path.relative_to("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)


def copy_checkout(there: Path) -> None:
    """Copy what git knows of the checkout, and what is new in it, as a repository of its own."""
    shutil.rmtree(there, ignore_errors=True)
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (CHECKOUT / name).exists():
            (there / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, there / name)


def run_suite(root: Path, python: str, arguments: list[str]) -> int:
    """Install into an environment of this Python, run the tests, print their row, and return their exit status."""
    home = f"/venv/{python}"
    run(*inside(root), "sh", "-c", INSTALL, "sh", python, home, USE)
    who = subprocess.run([*inside(root), f"{home}/bin/python", "-c", WHO], check=True, capture_output=True, text=True)
    test = f'cd /checkout && exec {home}/bin/python -m pytest -q -n 2 --dist worksteal --timeout 900 "$@"'
    command = [*inside(root), "sh", "-c", test, "sh", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as suite:
        assert suite.stdout is not None
        last = ""
        for line in suite.stdout:
            last = line.strip() or last
            sys.stdout.write(line)
    sys.stdout.write(f"| {datetime.date.today()} | {who.stdout.strip()} | {last.strip('= ')} |\n")
    return suite.returncode


def inside(root: Path) -> list[str]:
    """The beginning of a command that runs inside the Debian, with mounts and processes of its own."""
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, str(root)]


def run(*command: object) -> None:
    """Run a command that must succeed."""
    subprocess.run([str(part) for part in command], check=True)


if __name__ == "__main__":
    sys.exit(main())
