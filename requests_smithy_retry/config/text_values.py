"""Values from text, as people write them in environment variables (contract 10.2). Pure.

The text is read in every way it can be read, and the option takes the first that it accepts. So an option needs no
parser of text of its own, and one that is added later is covered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..checks import Refused
from ..errors import RetryConfigError
from .retry_config import OPTIONS

BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
"""In any case."""

UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
"""The units that may follow a number, in seconds."""

_INTEGER = r"[+-]?[0-9]{1,300}"
_NUMBER = r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,4})?"
_WITH_UNIT = rf"(?i)({_NUMBER})\s*({'|'.join(UNITS)})"


def parse_text(name: str, text: str, source: str) -> Any:
    """The value of an option from text."""
    text = text.strip()
    allowed = OPTIONS[name].allowed
    refused = f"{allowed} is allowed"
    for value in _readings(text, seconds="seconds" in allowed):
        try:
            return OPTIONS[name].parse(value)
        except Refused as refusal:  # noqa: PERF203 - a handful of readings, once per adapter
            if isinstance(value, frozenset) and refused.endswith(" is allowed"):  # it says which of the items is bad
                refused = str(refusal)
    raise RetryConfigError(name, text, source, refused)


def _readings(text: str, *, seconds: bool) -> Iterator[Any]:
    """Yield every possible meaning of a text, the plainest first."""
    if text.lower() == "none":
        yield None
    yield from _numbers(text, seconds)
    if text.lower() in BOOLEANS:
        yield BOOLEANS[text.lower()]
    yield text
    items = [item.strip() for item in text.split(",")]
    if len(items) == 2:
        yield tuple(None if item.lower() == "none" else next(_numbers(item, seconds), item) for item in items)
    present = [item for item in items if item != ""]
    yield frozenset(int(item) if re.fullmatch(_INTEGER, item) else item for item in present)
    yield frozenset(present)


def _numbers(text: str, seconds: bool) -> Iterator[float]:
    if re.fullmatch(_INTEGER, text):
        yield int(text)
    elif re.fullmatch(_NUMBER, text):
        yield float(text)
    match = re.fullmatch(_WITH_UNIT, text) if seconds else None
    if match is not None:
        # 1.1 ms is 0.0011 s, not 0.0011000000000000001.
        yield round(float(match[1]) * UNITS[match[2].lower()], 9)
