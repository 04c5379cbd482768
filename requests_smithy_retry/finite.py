"""What counts as a number (contract 10.1). Pure; it imports nothing of the package."""

from __future__ import annotations

import sys
from typing import TypeGuard


def is_finite(value: object) -> TypeGuard[float]:
    """Whether it is an int or a float (a bool is none) and no larger than a float can be, as an int may be."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def shown(value: object) -> str:
    """A value as a message writes it; never raises. Python turns no number of thousands of digits into text."""
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"
