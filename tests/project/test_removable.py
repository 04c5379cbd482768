"""Each feature can be deleted: what is left imports, has its options, and retries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .test_features import PACKAGE, Row, each_row, rows

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
assert all(option.allowed for option in OPTIONS.values())
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


def without_names(text: str, module: str) -> str:
    """Return a module that exports names without those of another one, as who removes a feature leaves it."""
    from_there = rf"{re.escape(module)}(?:\.\w+)*"
    imports = re.compile(rf"^ *from \.{from_there} import (.+)\n", re.MULTILINE)
    names = {
        word.strip() for found in imports.findall(text) for part in found.split(",") for word in part.split(" as ")
    }
    text = re.sub(rf'^ *"{from_there}": ".*",\n', "", imports.sub("", text), flags=re.MULTILINE)
    return re.sub(rf'^ *"(?:{"|".join(names) or "-"})",\n', "", text, flags=re.MULTILINE)


def works_without(places: list[str], folder: Path) -> None:
    """Run the program in a copy of the package without some modules and folders."""
    copy = folder / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for place in places:
        shutil.rmtree(copy / place, ignore_errors=True)
        (copy / f"{place}.py").unlink(missing_ok=True)
        for exports in ("__init__.py", "quotas.py"):
            text = (copy / exports).read_text(encoding="utf-8")
            (copy / exports).write_text(without_names(text, place.replace("/", ".")), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.format(folder=str(folder))],
        env={**os.environ, "PYTHONPATH": str(folder), "NO_PROXY": "*"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr[-2000:])


@each_row
def test_what_is_left_works_without_it(row: Row, tmp_path: Path) -> None:
    """A 503 and then a 200, ``import *`` and the table of options, in a copy of the package without the feature."""
    works_without(row.places, tmp_path)


def test_the_heart_works_by_itself(tmp_path: Path) -> None:
    """Without all of them at once, too."""
    works_without([place for row in rows() for place in row.places] + ["smithy"], tmp_path)
