"""One measure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One measure: the bound that was wanted, and the figure that was got."""

    what: str
    wanted: str
    got: str
    fine: bool = True
