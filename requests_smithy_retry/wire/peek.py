"""Peeking at a body before it is known whether the rest is wanted (contract 13).

The bytes are fetched ahead of ``http.client``, which reads them later, so a caller who gets the response loses nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from requests import Response

from ..clock import SYSTEM_CLOCK, after, earliest
from .decoding import decoded
from .framing import Chunks, Sized, framing_of
from .reader import Reader, reader_of
from .state import this_thread

PEEK_BYTES = 65_536
"""The most of a failed response's body that is peeked at, coded or not."""
PEEK_SECONDS = 1.0
"""The longest wait for it in seconds; the caller's read timeout bounds each part of it."""
UNREAD_BYTES = 1_048_576
"""The longest body, coded or not, that response hooks may find unread."""


class Peeked(NamedTuple):
    """The beginning of a body.

    :param whole: True if the body is complete, valid and small: reading it takes no time and cannot fail.
    :param prefix: its first 64 KiB at most, decoded.
    """

    whole: bool
    prefix: bytes = b""


def peek(response: Response, most: int = PEEK_BYTES, seconds: float | None = PEEK_SECONDS) -> Peeked | None:
    """Peek at a body of which nothing was read yet; return None if it is not read from a socket.

    :param response: can be read afterwards as if nothing had happened.
    :param most: the limit in bytes, before and after decoding.
    :param seconds: the longest wait; None: as long as the attempt's deadline and the socket's timeout allow.
    """
    raw: Any = response.raw
    reader = reader_of(raw)
    if reader is None:
        return None
    framing = framing_of(raw)
    _fetch(reader, reader.in_buffer(raw._original_response.fp), framing, most, seconds)
    complete, body = framing.is_whole(ended=reader.ended), framing.body
    if not body or not response.headers.get("content-encoding"):
        return Peeked(complete and len(body) <= most, body[:PEEK_BYTES])
    prefix, sound = decoded(response, body, most)
    return Peeked(complete and sound, prefix[:PEEK_BYTES])


def _fetch(reader: Reader, before: bytes, framing: Sized | Chunks, most: int, seconds: float | None) -> None:
    """Fetch ahead until the body is complete, enough of it is there, or the time is up."""
    until = earliest(after(seconds, SYSTEM_CLOCK), this_thread.deadline)
    while True:
        available = before + reader.held_ahead
        if framing.take(available) or len(available) > most:
            return
        left = None if until is None else until.left()
        if (left is not None and left <= 0) or not reader.fetch_ahead(left):
            return
