"""Tries a built wheel as its users will: ``python tests/project/released.py dist`` (``tox -e release``).

The wheel goes into a virtual environment of its own, without extras. There it is imported with every warning as an
error, meets a server that fails once, and is looked at by mypy.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

USE = """
import requests
from requests_smithy_retry import mount, retry_history
from requests_smithy_retry.testing import FaultServer, Reply

session: requests.Session = mount(requests.Session(), operation_timeout=30)
with FaultServer([Reply(503), Reply(200)]) as server:
    response = session.get(server.url)
history = retry_history(response)
assert history is not None
assert len(history.attempts) == 2, history.explain()
"""

IMPORT_ALL = """
import importlib, pkgutil
import requests_smithy_retry as package

for name in package.__all__:
    getattr(package, name)
for module in pkgutil.walk_packages(package.__path__, "requests_smithy_retry.", onerror=lambda name: None):
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        missing = (error.name or str(error)).partition(".")[0]
        assert missing in EXTRAS, (module.name, error)
"""

CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"
HEADING = re.compile(r"^## (?P<version>\S+) (?P<when>\(unreleased\)|- \d{4}-\d\d-\d\d)$", re.MULTILINE)
EXTRAS = ("redis", "opentelemetry", "prometheus_client", "pytest")


def complaint(changelog: str, version: str) -> str | None:
    """Return what is wrong with a changelog whose first heading does not name a version, with a date if it is final."""
    wanted = f"## {version} " + ("(unreleased)" if ".dev" in version else "- YYYY-MM-DD")
    first = HEADING.search(changelog)
    if first is None or first["version"] != version or (first["when"] == "(unreleased)") != (".dev" in version):
        found = re.search(r"^## .*$", changelog, re.MULTILINE)
        return f'CHANGELOG.md begins with "{found[0] if found else ""}"; the version to release needs "{wanted}"'
    return None


def main(dist: Path) -> None:
    """Try the one wheel of a folder, and print where it is.

    :raises SystemExit: if the changelog does not begin with the wheel's version.
    :raises subprocess.CalledProcessError: if a step fails; its output has been printed.
    """
    (wheel,) = dist.glob("*.whl")
    wrong = complaint(CHANGELOG.read_text(encoding="utf-8"), wheel.name.split("-")[1])
    if wrong:
        raise SystemExit(wrong)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "Scripts" if sys.platform == "win32" else "bin", "python")
        run(python, "-m", "pip", "install", "--quiet", wheel)
        run(python, "-W", "error", "-c", f"EXTRAS = {EXTRAS}\n{IMPORT_ALL}", cwd=folder)
        run(python, "-W", "error", "-c", USE, cwd=folder)
        program = Path(folder, "program.py")
        program.write_text(USE, encoding="utf-8")
        run(sys.executable, "-m", "mypy", "--strict", "--python-executable", python, program, cwd=folder)
    print(f"installed without extras, imported, used and typed: {wheel.resolve()}")  # noqa: T201


def run(*command: object, cwd: str | None = None) -> None:
    """Run a command that must succeed."""
    subprocess.run([str(part) for part in command], check=True, cwd=cwd)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
