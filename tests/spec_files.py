"""The published vectors that tests read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SPEC = Path(__file__).parent / "spec"


def adaptive_vectors() -> dict[str, Any]:
    """``adaptive-vectors.json``, as it is in the project's shared ``spec/``; it names the SDK source of each row."""
    found: dict[str, Any] = json.loads((SPEC / "adaptive-vectors.json").read_text())
    return found
