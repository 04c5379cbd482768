"""What lets a test run a plan: in a process of its own, because there the package has switch points."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from .plans import Plan

ROOT = Path(__file__).resolve().parents[2]


def replay(*plans: Plan, seconds: float = 600) -> list[str]:
    """Return what the plans violate.

    :param seconds: after which a run counts as hanging.
    """
    command = [sys.executable, "-m", "benchmarks.explore", "--replay"]
    text = "\n".join(map(repr, plans))
    ran = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, timeout=seconds, check=False)
    if ran.returncode not in (0, 1):
        raise RuntimeError(ran.stderr)
    found: list[str] = json.loads(ran.stdout.splitlines()[-1])
    return found
