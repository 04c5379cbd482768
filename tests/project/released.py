"""Tries a built wheel as its users will: ``python tests/project/released.py dist`` (``tox -e release``).

The wheel goes into a virtual environment of its own, without extras. There it is imported with every warning as an
error, meets a server that fails once, and is looked at by mypy.
"""

from __future__ import annotations

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

EXTRAS = ("click", "rich", "redis", "opentelemetry", "prometheus_client", "pytest")


def main(dist: Path) -> None:
    """Try the one wheel of a folder.

    :raises subprocess.CalledProcessError: if a step fails; its output has been printed.
    """
    (wheel,) = dist.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "Scripts" if sys.platform == "win32" else "bin", "python")
        run(python, "-m", "pip", "install", "--quiet", wheel)
        run(python, "-W", "error", "-c", f"EXTRAS = {EXTRAS}\n{IMPORT_ALL}", cwd=folder)
        run(python, "-W", "error", "-c", USE, cwd=folder)
        program = Path(folder, "program.py")
        program.write_text(USE, encoding="utf-8")
        run(sys.executable, "-m", "mypy", "--strict", "--python-executable", python, program, cwd=folder)
    print(f"{wheel.name}: installed without extras, imported, used and typed")  # noqa: T201


def run(*command: object, cwd: str | None = None) -> None:
    """Run a command that must succeed."""
    subprocess.run([str(part) for part in command], check=True, cwd=cwd)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
