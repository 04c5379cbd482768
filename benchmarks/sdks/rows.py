"""The clients and their calls, as `rows.toml` has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..command import toml

DATA = b"The quick brown fox jumps over the lazy dog.\n" * 200
LIMIT = 1.5
"""The time-out in seconds of each client that takes one."""
SAFE = frozenset(("GET", "HEAD", "OPTIONS", "LIST", "PUT", "DELETE"))


def rows() -> dict[str, dict[str, Any]]:
    """Return the clients by name."""
    return {row["name"]: row for row in toml(Path(__file__).with_name("rows.toml"))["client"]}
