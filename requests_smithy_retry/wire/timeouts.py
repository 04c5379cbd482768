"""Shortening a timeout to the time that is left (contract 8.1), in each shape that ``requests`` takes. Pure."""

from __future__ import annotations

from typing import Any

from urllib3.util import Timeout

LONGEST = 2e6
"""The longest timeout of a socket, in seconds (23 days): it counts milliseconds in an int of 32 bits."""


class TimeLeft(Timeout):
    """A timeout of the same length for connecting and for reading, already checked.

    urllib3 checks both parts of a timeout twice on each request, which costs more than the rest of a deadline.
    """

    def __init__(self, seconds: float) -> None:
        self._connect = self._read = seconds
        self._start_connect = None
        self.total: float | None = None

    def clone(self) -> Timeout:
        """Return a copy that has not begun to measure the time of connecting."""
        return TimeLeft(self._connect)  # type: ignore[arg-type]


def shrunk(timeout: Any, left: float) -> Any:
    """Return the timeout in the same shape, with no part above ``left`` seconds; None becomes a :class:`TimeLeft`.

    A urllib3 ``Timeout`` gets a smaller total, which bounds connecting and reading together.

    :param timeout: seconds, a (connect, read) pair, a urllib3 ``Timeout``, or None.
    :param left: seconds, above 0.
    """
    left = left if left < LONGEST else LONGEST
    if timeout is None:
        return TimeLeft(left)
    if isinstance(timeout, Timeout):
        copy = timeout.clone()
        copy.total = _least(timeout.total, left)
        return copy
    if isinstance(timeout, tuple):
        return tuple(_least(part, left) for part in timeout)
    return _least(timeout, left)


def read_part(timeout: Any) -> float | None:
    """Return the read timeout in seconds from a timeout of any shape; None for no limit."""
    if isinstance(timeout, Timeout):
        copy = timeout.clone()
        copy.start_connect()
        return Timeout.resolve_default_timeout(copy.read_timeout)
    return timeout[1] if isinstance(timeout, tuple) else timeout  # type: ignore[no-any-return]


def _least(part: Any, left: float) -> Any:
    if part is None or part is Timeout.DEFAULT_TIMEOUT:
        return left
    # Leave non-numbers for urllib3 to reject.
    return min(part, left) if isinstance(part, (int, float)) and not isinstance(part, bool) else part
