"""Runs the whole suite on the Pythons of other Debians: ``python tests/project/pythons.py FOLDER`` (docs/release.md).

Debian testing has the newest Pythons, and Debian 13 has OpenSSL 3.5. Needs root, debootstrap, unshare and git. FOLDER,
made on the first run and kept for the next, gets a tree for each Debian. ``/proc`` and ``/dev`` are mounted there in a
namespace that ends with each command: nothing stays mounted, so that FOLDER can be deleted. pip goes by its
configuration outside. ``--python python3.15`` runs one alone; other arguments are handed on to pytest.

python3.13t is built from Debian's source, without the GIL, which stays off whatever is imported. What the tests use and
cannot be installed there is named.

Prints a row for the table of docs/release.md for each Python.
"""

from __future__ import annotations

import argparse
import configparser
import datetime
import os
import shutil
import subprocess
import sys
from pathlib import Path

from released import USE

CHECKOUT = Path(__file__).resolve().parents[2]
PYTHONS = {"python3.14": "forky", "python3.15": "forky", "pypy3": "forky", "python3.13": "trixie"}
"""By interpreter: the Debian that has it."""
FREE_THREADED = "python3.13t"
DEBIANS = {**PYTHONS, FREE_THREADED: "trixie"}
"""By interpreter: the Debian that it runs in."""
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
gil = "" if getattr(sys, "_is_gil_enabled", lambda: True)() else "without the GIL "
print("with requests", requests.__version__, "and urllib3", urllib3.__version__)
print(*names, f"{gil}|", ssl.OPENSSL_VERSION.split()[1])
"""
INSTALL = """
set -e
python=$1 venv=$2 use=$3 checkout=$4
shift 4
cd /checkout
test -x "$venv/bin/python" || {
    "$python" -m venv "$venv"
    "$python" -m venv "$venv-bare"
    "$venv-bare/bin/pip" install --quiet requests
}
"$venv/bin/pip" install --quiet --prefer-binary -e "$checkout"
for each; do
    grep -qsxF "$each" "$venv/refused" || "$venv/bin/pip" install --quiet --prefer-binary "$each" 2> "$venv/errors" ||
        echo "$each" >> "$venv/refused"
done
test ! -e "$venv/refused" || sed 's/^/without /' "$venv/refused"
"$venv/bin/pip" wheel --quiet --no-deps --wheel-dir "$venv/wheel" .
"$venv-bare/bin/pip" install --quiet --no-deps --force-reinstall "$venv"/wheel/*.whl
cd /
"$venv-bare/bin/python" -W error -c "$use"
"""
BUILD = """
set -e
sed 's/^deb /deb-src /' /etc/apt/sources.list > /etc/apt/sources.list.d/source.list
apt-get -qq update
apt-get -qq -y --no-install-recommends install \\
    dpkg-dev g++ libbz2-dev libffi-dev liblzma-dev libsqlite3-dev libssl-dev make zlib1g-dev
mkdir -p /usr/src/python
cd /usr/src/python
apt-get -qq --download-only source python3.13
tar xf python3.13_*.orig.tar.xz --strip-components=1
./configure -q --disable-gil --prefix="/opt/$1"
make -s -j2
make -s install
ln -s "/opt/$1/bin/$1" /usr/local/bin
"""


def main() -> int:
    """Make each Debian that is not there, and run the suite on its Pythons; return how many failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", action="append", choices=DEBIANS)
    given, handed_on = parser.parse_known_args()
    failed = 0
    for python in given.python or DEBIANS:
        root = given.folder.resolve() / DEBIANS[python]
        if not (root / "usr/bin/git").exists():
            bootstrap(root)
        for name in AS_OUTSIDE:
            copy_in(Path(name).expanduser(), root)
        if python == FREE_THREADED and not (root / "usr/local/bin" / python).is_symlink():
            run(*inside(root), "sh", "-c", BUILD, "sh", python)
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
    environ, wanted = dict(os.environ), [".[test]"]
    if python == FREE_THREADED:
        environ["PYTHON_GIL"] = "0"
        wanted = [".", *extra("test")]  # some cannot be installed
    run(*inside(root), "sh", "-c", INSTALL, "sh", python, home, USE, *wanted)
    command = [*inside(root), f"{home}/bin/python", "-c", WHO]
    who = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    versions, names = who.stdout.splitlines()
    test = f'cd /checkout && exec {home}/bin/python -m pytest -q -n 2 --dist worksteal --timeout 900 "$@"'
    command = [*inside(root), "sh", "-c", test, "sh", *arguments]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as suite:
        assert suite.stdout is not None
        last = ""
        for line in suite.stdout:
            last = line.strip() or last
            sys.stdout.write(line)
    sys.stdout.write(f"{versions}\n| {datetime.date.today()} | {names} | {last.strip('= ')} |\n")
    return suite.returncode


def extra(name: str) -> list[str]:
    """Return the requirements of an extra."""
    setup = configparser.ConfigParser()
    setup.read(CHECKOUT / "setup.cfg")
    return setup["options.extras_require"][name].split("\n")[1:]


def inside(root: Path) -> list[str]:
    """The beginning of a command that runs inside the Debian, with mounts and processes of its own."""
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, str(root)]


def run(*command: object) -> None:
    """Run a command that must succeed."""
    subprocess.run([str(part) for part in command], check=True)


if __name__ == "__main__":
    sys.exit(main())
