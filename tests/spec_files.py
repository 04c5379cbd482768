"""The published vectors that tests read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SPEC = Path(__file__).parent / "spec"


def adaptive_vectors() -> dict[str, Any]:
    """``adaptive-vectors.json``, copied from the project's shared specification folder (``spec/``), which names the
    SDK sources of each row."""
    found: dict[str, Any] = json.loads((SPEC / "adaptive-vectors.json").read_text())
    return found
