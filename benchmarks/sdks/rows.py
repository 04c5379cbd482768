"""The clients and their calls, as `rows.toml` has them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = b"The quick brown fox jumps over the lazy dog.\n" * 200
LIMIT = 1.5
"""The time-out in seconds of each client that takes one."""
SAFE = frozenset(("GET", "HEAD", "OPTIONS", "LIST", "PUT", "DELETE"))


def rows() -> dict[str, dict[str, Any]]:
    """Return the clients by name."""
    text = Path(__file__).with_name("rows.toml").read_text(encoding="utf-8")
    return {row["name"]: row for row in tomllib.loads(text)["client"]}
