"""Checks of values, and their error messages. Pure; it imports nothing from the package."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from requests import PreparedRequest

MOST_BITS = 10_000
"""The longest whole number, in bits: Python refuses to turn a longer one into text."""

LONGEST_TIMEOUT = 2_147_483
"""The longest time-out of a socket, in seconds. Beyond 31 bits of milliseconds, Python raises ``OverflowError``."""

Parse = Callable[[Any], Any]


class BadValue(ValueError):
    """A value that is not allowed. The message says what is."""


def is_finite(value: object) -> TypeGuard[float]:
    """Return True for an int or a float, but not a bool, that is finite and within the range of a float."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def safe_repr(value: object) -> str:
    """Return the ``repr`` of a value for a message; never raise, as Python does for numbers of thousands of digits."""
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"


def header_text(value: object) -> str:
    """Return the text of a request's header field, which requests may be given as bytes."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


class Unshown(dict[str, Any]):
    """A dict whose repr shows only its keys: tools show the locals of a traceback, and the values are secret."""

    def __repr__(self) -> str:
        return f"<{', '.join(self)}>"


def copy_of(request: PreparedRequest) -> PreparedRequest:
    """Return a request's own ``copy()``, but with its class and all its attributes kept."""
    made = copy.copy(request)
    vars(made).update(vars(request.copy()))
    return made


def check_amount(amount: float, name: str = "amount") -> None:
    """Refuse anything but a finite number of 0 or more: -1 would overfill a bucket, nan would break it."""
    if not is_finite(amount) or amount < 0:
        raise ValueError(f"{name}={safe_repr(amount)}: a finite number of tokens, 0 or more, is allowed")


def whole_number(*, none: bool = False) -> Parse:
    """Accept an int of 1 or more, but not a bool, and None if ``none``."""
    allowed = f"a whole number of 1 or more{' or None' if none else ''} is allowed"

    def parse(value: Any) -> int | None:
        if value is None and none:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1 or value.bit_length() > MOST_BITS:
            raise BadValue(allowed)
        return value

    return parse


def number(*, above: float | None = None, none: bool = False) -> Parse:
    """Accept a finite int or float of 0 or more (or strictly above ``above``), and None if ``none``."""
    span = "(0 or more)" if above is None else f"above {above:g}"
    allowed = f"a finite number of seconds {span}{' or None' if none else ''} is allowed"

    def parse(value: Any) -> float | None:
        if value is None and none:
            return None
        if not is_finite(value) or value < 0 or (above is not None and value <= above):
            raise BadValue(allowed)
        return value

    return parse


def suggestion(name: str, known: Iterable[str], show: Callable[[str], str] = str) -> str:
    """Return the hint that follows "there is no such name".

    >>> suggestion("max_atempts", ["max_attempts", "quota"], repr), suggestion("x", ["max_attempts", "quota"])
    ("did you mean 'max_attempts'?", 'there are max_attempts, quota')
    """
    from difflib import get_close_matches  # slow to import, and seldom needed

    known = tuple(known)
    nearest = get_close_matches(name, known, n=1)
    return f"did you mean {show(nearest[0])}?" if nearest else f"there are {', '.join(known)}"


def is_first(seen: dict[str, object], key: str) -> bool:
    """Return True on the first call with this key, and note it in ``seen``."""
    mine = object()  # no lock, which a forked child could inherit held (contract 11.1): setdefault is atomic
    return seen.setdefault(key, mine) is mine


def items_of(
    value: Any,
    allowed: str,
    is_item: Callable[[Any], object],
    *,
    kind: Any = Iterable,
    whole: str = "",
    otherwise: str = "is not one",
) -> tuple[Any, ...]:
    """Return the items of a collection; refuse a string, a single item, and (``otherwise``) a bad item."""
    if isinstance(value, (str, bytes)) or not isinstance(value, kind) or is_item(value):
        raise BadValue(whole or f"{allowed} is allowed")
    items: tuple[Any, ...] = tuple(value)
    for item in items:
        if not is_item(item):
            raise BadValue(f"{allowed} is allowed, and {item!r} {otherwise}")
    return items


def status_codes(value: Any) -> frozenset[int]:
    allowed = "a collection of statuses from 100 to 599"
    codes = items_of(value, allowed, lambda code: isinstance(code, int) and 100 <= code <= 599, kind=Collection)
    return frozenset(map(int, codes))


def most_attempts(strategy: object) -> int | None:
    most = getattr(strategy, "max_attempts", None)
    return most if isinstance(most, int) else None  # a Mock has any attribute


def level_outside() -> int:
    """Return the ``stacklevel`` with which a warning of the calling function points to the program's own code."""
    libraries = {__name__.partition(".")[0], "requests", "urllib3"}
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in libraries:
        frame, level = frame.f_back, level + 1
    return level
