"""Set up this checkout and run something in it, on a machine with only Python 3.10+ and git.

``python3 dev.py demo`` runs the demo, ``python3 dev.py test`` the whole test suite by way of tox. What follows is
handed on: ``python3 dev.py test -e py312``, ``python3 dev.py demo --quick``. Everything goes into ``.venv`` and
``.tox`` of this checkout; to begin afresh, delete them. Only the standard library is used here.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
OLDEST = (3, 10)
SUPPORTED = ("3.13", "3.12", "3.11", "3.10")
NEEDS = {"demo": ["-e", "."], "test": ["tox>=4.11"]}
IS_WINDOWS = os.name == "nt"
CLOSING_LINE = re.compile(r"^(=+ )?\d+ (passed|failed|errors?)\b.* in [\d.]+s( \([\d:]+\))?( =+)?$")


def main(arguments):
    """Run one of the two commands and return its exit status."""
    if not arguments or arguments[0] not in NEEDS:
        sys.stderr.write(f"usage: python3 dev.py {'|'.join(NEEDS)} [arguments that are handed on]\n")
        return 2
    if sys.version_info < OLDEST:
        return in_newer_python(arguments)
    command, *rest = arguments
    python = set_up(command)
    if command == "demo":
        return subprocess.call([python, "-m", "benchmarks.demo", *rest], cwd=HERE)
    return run_tox(python, rest)


def say(sentence):
    """Tell what is being done, apart from what a command prints."""
    sys.stderr.write(f"dev.py: {sentence}\n")
    sys.stderr.flush()


def in_newer_python(arguments):
    """Do the same with a Python that is new enough."""
    for folder in search_path():
        for version in SUPPORTED:
            found = shutil.which(f"python{version}", path=folder)
            if found and is_working(found):
                return subprocess.call([found, str(HERE / "dev.py"), *arguments])
    say(f"Python 3.10 or newer is needed; this is {sys.version.split()[0]}, and none of {', '.join(SUPPORTED)} is here")
    return 2


def is_working(python):
    """Return True if an executable is a Python that starts and is new enough; a shim of pyenv may be neither."""
    return run_quietly([python, "-c", f"import sys; sys.exit(sys.version_info < {OLDEST})"])[0] == 0


def search_path():
    """The folders to look for Pythons in: pyenv's own versions, newest first, before the PATH."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [
        str(folder)
        for version in SUPPORTED
        for folder in sorted(root.glob(f"versions/{version}.*/bin"), reverse=True)
        if folder.is_dir()
    ]
    return folders + os.environ.get("PATH", "").split(os.pathsep)


def set_up(command):
    """Make ``.venv`` hold what a command needs, and return its Python."""
    python = str(VENV / ("Scripts/python.exe" if IS_WINDOWS else "bin/python"))
    if not (is_working(python) and run_quietly([python, "-m", "pip", "--version"])[0] == 0):
        say(f"making {VENV.name} with Python {sys.version.split()[0]}")
        make_venv()
    stamp = VENV / f"ready-for-{command}"
    wanted = hashlib.sha256((HERE / "setup.cfg").read_bytes() + repr(NEEDS).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        say(f"installing {' '.join(NEEDS[command])}")
        subprocess.check_call(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDS[command]], cwd=HERE
        )
        stamp.write_text(wanted)
    return python


def make_venv():
    """Make the environment: with venv, or, where a distribution leaves that out, with virtualenv or after adding it."""
    ways = [[sys.executable, "-m", "venv", "--clear"], [sys.executable, "-m", "virtualenv", "--clear"]]
    if shutil.which("virtualenv"):
        ways.append(["virtualenv", "--clear", "--python", sys.executable])
    if any(succeeds([*way, str(VENV)]) for way in ways):
        return
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        say("this Python has no venv; adding it with apt-get")
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        subprocess.call(["apt-get", "update", "-qq"])
        for name in (package, "python3-venv"):
            if succeeds(["apt-get", "install", "-y", "-qq", name]) and succeeds([*ways[0], str(VENV)]):
                return
    sys.exit("dev.py: this Python cannot make a virtual environment; install python3-venv or virtualenv, and try again")


def succeeds(command):
    """Run something quietly; whether it went well. The last line that it said is shown if not."""
    status, said = run_quietly(command)
    if status != 0:
        say(f"{' '.join(command[:3])} failed: {' '.join(said.strip().splitlines()[-1:])}")
    return status == 0


def run_quietly(command):
    """Run something, and return its exit status, 127 if it cannot be run, and what it said."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except OSError as error:
        return 127, str(error)
    return done.returncode, done.stdout.decode(errors="replace")


def run_tox(python, arguments):
    """Run tox with every Python that is here, and repeat at the end what each test run ended with."""
    environment = {**os.environ, "PATH": os.pathsep.join(search_path()), "PYTHONUNBUFFERED": "1"}
    # Three at a time, of which one waits at most times; the output of each comes when it is done, in one piece.
    command = [python, "-m", "tox", "run-parallel", "--parallel", "3", "--parallel-no-spinner", *arguments]
    closing = []
    say("running tox; what each environment prints comes when it has ended")
    with subprocess.Popen(
        command, cwd=HERE, env=environment, stdout=subprocess.PIPE, encoding="utf-8", errors="replace"
    ) as tox:
        for line in tox.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            if CLOSING_LINE.search(line):
                closing.append(line)
    if closing:
        sys.stdout.write("\nEach test run's closing line:\n" + "".join(closing))
    return tox.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
