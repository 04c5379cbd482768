"""The package inside a zipapp, where no file of it is read by its path, and vendored, where it has another name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

import requests_smithy_retry

from .released import USE

PACKAGE = Path(requests_smithy_retry.__file__).parent
PROGRAM = """
import sys
sys.modules[sys.argv[1]] = None
import warnings
warnings.filterwarnings("ignore", message=".*doesn't match a supported version|.*character detection")
import requests
warnings.simplefilter("error")
"""


@pytest.mark.once
@pytest.mark.parametrize("lacking", ["nothing", "charset_normalizer", "simplejson"])
def test_a_program_in_a_zipapp_retries(tmp_path: Path, lacking: str) -> None:
    """Also where requests has not what it can do without."""
    shutil.copytree(PACKAGE, tmp_path / "app" / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "app" / "__main__.py").write_text(f"{PROGRAM}{USE}print(sys.modules[mount.__module__].__file__)\n")
    zipapp.create_archive(tmp_path / "app", tmp_path / "app.pyz")
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, tmp_path / "app.pyz", lacking]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert str(tmp_path / "app.pyz" / PACKAGE.name / "adapter.py") == done.stdout.strip(), done.stderr


@pytest.mark.once
def test_a_vendored_copy_retries(tmp_path: Path) -> None:
    """As docs/howto/ship-it-in-your-library.md says: in another package, with none of its own name installed."""
    vendor = tmp_path / "yoursdk" / "_vendor"
    shutil.copytree(PACKAGE, vendor / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    (vendor / "__init__.py").touch()
    program = USE.replace("from requests_smithy_retry", "from yoursdk._vendor.requests_smithy_retry")
    hidden = f"import sys\nsys.modules['{PACKAGE.name}'] = None\n"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", f"{hidden}{program}print(mount.__module__)"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert "yoursdk._vendor.requests_smithy_retry.adapter" == done.stdout.strip(), done.stderr
