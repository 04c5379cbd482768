"""Each feature can be deleted, with its lines: what is left imports, has its options, and retries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .test_features import PACKAGE, Row, rows

pytestmark = [pytest.mark.once, pytest.mark.untraced, pytest.mark.real_time]

PROGRAM = """
import sys
# A package that is installed for editing would take the place of what is missing.
sys.meta_path[:] = [finder for finder in sys.meta_path if "__editable__" not in getattr(finder, "__module__", "")]
import requests
from requests_smithy_retry import *
from requests_smithy_retry import RetryAdapter, RetryConfig, mount, retry_history
from requests_smithy_retry.config.retry_config import OPTIONS
import requests_smithy_retry

assert requests_smithy_retry.__file__.startswith({folder!r}), requests_smithy_retry.__file__
assert all(option.allowed for name, option in OPTIONS.items() if name not in {brought!r})
assert [setting.name for setting in RetryConfig().settings()] == list(OPTIONS)

from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

class Handler(BaseHTTPRequestHandler):
    statuses = [503, 200]
    def do_GET(self):
        self.send_response(self.statuses.pop(0))
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): ...

server = HTTPServer(("127.0.0.1", 0), Handler)
Thread(target=server.serve_forever, daemon=True).start()
session = mount(requests.Session(), backoff=0)
response = session.get(f"http://127.0.0.1:{{server.server_port}}/", timeout=60)
assert [503, 200] == [attempt.status for attempt in retry_history(response).attempts]
"""


TABLE = "features/table.py"
EXPORTS = ("__init__.py", "quotas.py", "classifiers/__init__.py", "smithy/__init__.py")
"""The files that export names: each has a line for a module, or for a name of it."""
PLAIN_OPENER = "from ..wire.connect import Opener"
"""What takes the place of one line of the table."""


def remove(place: str, copy: Path) -> None:
    """Delete a feature, and its lines: those of the table that name it, and those that export its names."""
    shutil.rmtree(copy / place, ignore_errors=True)
    (copy / f"{place}.py").unlink(missing_ok=True)
    name = place.rpartition("/")[2]
    table = (copy / TABLE).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line.replace("from .addresses import AddressOpener as Opener", PLAIN_OPENER) for line in table]
    (copy / TABLE).write_text("".join(line for line in kept if not re.search(rf"\b{name}\b", line)), encoding="utf-8")
    dotted = place.replace("/", ".")
    for file in EXPORTS:
        if (copy / file).exists():
            lines = (copy / file).read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if not re.search(rf"(?<![\w.])\.?{re.escape(dotted)}\b", line)]
            (copy / file).write_text("".join(kept), encoding="utf-8")


def works_without(places: list[str], folder: Path, brought: list[str]) -> None:
    """Run the program in a copy of the package without some modules and folders.

    :param brought: the options that go with them, whose rows are not looked at.
    """
    copy = folder / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for place in places:
        remove(place, copy)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.format(folder=str(folder), brought=brought)],
        env={**os.environ, "PYTHONPATH": str(folder), "NO_PROXY": "*"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr[-2000:])


each_removable = pytest.mark.parametrize(
    "row", [row for row in rows() if not row.places[0].endswith("urllib3_retry")], ids=lambda row: row.places[0]
)
"""Each but the one of an argument that ``HTTPAdapter`` has."""


@each_removable
def test_what_is_left_works_without_it(row: Row, tmp_path: Path) -> None:
    """A 503 and then a 200, ``import *`` and the table of options, in a copy of the package without the feature."""
    works_without(row.places, tmp_path, row.options)


def test_the_heart_works_by_itself(tmp_path: Path) -> None:
    """Without all of them at once, too."""
    places = [place for row in rows() for place in row.places if not place.endswith("urllib3_retry")]
    works_without([*places, "smithy"], tmp_path, [name for row in rows() for name in row.options])
