"""Shrinking a timeout to the time that is left (contract 8.1), in each shape that ``requests`` takes. Pure."""

from __future__ import annotations

from typing import Any

from urllib3.util import Timeout

LONGEST = 2e6
"""No deadline gives a socket more seconds than that (23 days): it counts milliseconds in an int of 32 bits."""


def shrunk(timeout: Any, left: float) -> Any:
    """The timeout, none of its parts above ``left`` seconds, in the same shape; None becomes a number.

    A urllib3 ``Timeout`` gets a smaller total, which bounds connecting and reading together.

    :param timeout: seconds, a (connect, read) pair, a urllib3 ``Timeout``, or None.
    :param left: seconds, above 0.
    """
    left = min(left, LONGEST)
    if isinstance(timeout, Timeout):
        copy = timeout.clone()
        copy.total = _least(timeout.total, left)
        return copy
    if isinstance(timeout, tuple):
        return tuple(_least(part, left) for part in timeout)
    return _least(timeout, left)


def read_part(timeout: Any) -> float | None:
    """The seconds that one read may take by a timeout of any shape; None: for ever."""
    if isinstance(timeout, Timeout):
        copy = timeout.clone()
        copy.start_connect()
        return Timeout.resolve_default_timeout(copy.read_timeout)
    return timeout[1] if isinstance(timeout, tuple) else timeout  # type: ignore[no-any-return]


def _least(part: Any, left: float) -> Any:
    if part is None or part is Timeout.DEFAULT_TIMEOUT:
        return left
    # What is no number is left as it is: urllib3 refuses it, deadline or not.
    return min(part, left) if isinstance(part, (int, float)) and not isinstance(part, bool) else part
