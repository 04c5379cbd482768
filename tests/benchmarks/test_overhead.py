"""The benchmark of a first-try success runs and tells plain from plain by nothing (issue 2)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_time  # waiting for a child process sleeps between looks

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "overhead.py"


def test_a_second_plain_adapter_adds_nothing_and_an_empty_subclass_one_call(tmp_path):
    """The counts of the real script: 0 for the control, exactly one frame for handing `send` on."""
    file = tmp_path / "figures.json"
    command = [sys.executable, str(SCRIPT), "--quick", "--only", "subclass", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    counts = json.loads(file.read_text())["counts"]
    assert {kind: counts["control"][kind]["median"] for kind in counts["control"]} == {
        "bytecodes": 0,
        "python_calls": 0,
        "c_calls": 0,
    }
    assert counts["subclass"]["python_calls"]["median"] == 1
    assert 0 < counts["subclass"]["bytecodes"]["median"] < 20
