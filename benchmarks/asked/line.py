"""One measure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """What was wanted, and what was got."""

    what: str
    wanted: str
    got: str
    fine: bool = True
