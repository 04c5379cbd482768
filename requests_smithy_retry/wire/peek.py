"""Peeking at a body before it is known whether the rest is wanted, and where it ends (contract 13).

The bytes are fetched ahead of ``http.client``, which reads them later, so a caller who gets the response loses nothing.
Of a body that is whole, by its length, its chunks or its connection, urllib3 needs no further byte from the socket.
Where it might read on, or object, the body is not whole.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from requests import Response

from ..clock import SYSTEM_CLOCK, after, earliest
from .decoding import decoded
from .reader import Reader, reader_of
from .state import this_thread

PEEK_BYTES = 65_536
"""The most of a failed response's body that is peeked at, coded or not."""
PEEK_SECONDS = 1.0
"""The longest wait for it in seconds; the caller's read timeout bounds each part of it."""
UNREAD_BYTES = 1_048_576
"""The longest body, coded or not, that response hooks may find unread."""
MOST_LINE = 1024
"""The longest line of a chunk that is parsed here, in bytes; a longer one is left to urllib3."""


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
    if _has_enough(reader, before, framing, most):
        return
    until = earliest(after(seconds, SYSTEM_CLOCK), this_thread.deadline)
    left = None if until is None else until.left()
    while (left is None or left > 0) and reader.fetch_ahead(left):
        if _has_enough(reader, before, framing, most):
            return
        left = None if until is None else until.left()


def _has_enough(reader: Reader, before: bytes, framing: Sized | Chunks, most: int) -> bool:
    available = before + reader.held_ahead
    return framing.take(available) or len(available) > most


class Sized:
    """A body that ends at its length or, without one, with the connection.

    :param length: the bytes of the body, or None.
    """

    def __init__(self, length: int | None) -> None:
        self.body: bytes = b""
        self._length = length

    def take(self, data: bytes) -> bool:
        """Inspect all bytes so far; return True if more would change nothing."""
        self.body = data[: self._length]
        return self._length is not None and len(data) >= self._length

    def is_whole(self, *, ended: bool) -> bool:
        """Return True if the body is complete.

        :param ended: True if the connection ended after these bytes.
        """
        return ended if self._length is None else len(self.body) == self._length


class Chunks:
    """A chunked body with its trailers, parsed as urllib3 does."""

    def __init__(self) -> None:
        self._at = self._trailers_at = 0
        self._taken = bytearray()
        self._begun = b""
        self._whole = self._within_line = False

    @property
    def body(self) -> bytes:
        """The contents of the chunks so far."""
        return bytes(self._taken) + self._begun

    def take(self, data: bytes) -> bool:
        """Inspect all bytes so far; return True if more would change nothing."""
        while not self._trailers_at:
            after = data.find(b"\n", self._at) + 1
            if not after:
                return len(data) - self._at > MOST_LINE
            size = _size_in(data[self._at : after])
            if size is None:
                return True
            if size == 0:
                self._trailers_at = after
                break
            self._begun = data[after : after + size]
            if len(data) < after + size + 2:
                return False
            self._taken += self._begun
            self._begun = b""
            self._at = after + size + 2
        return self._take_trailers(data)

    def _take_trailers(self, data: bytes) -> bool:
        while not self._whole:
            after = data.find(b"\n", self._trailers_at) + 1
            self._within_line = not after and len(data) > self._trailers_at
            if not after:
                return False
            self._whole = data[self._trailers_at : after] == b"\r\n"
            self._trailers_at = after
        return True

    def is_whole(self, *, ended: bool) -> bool:
        """Return True if the body is complete; the last line feed may be missing where the connection ended.

        :param ended: True if the connection ended after these bytes.
        """
        return self._whole or (ended and self._trailers_at > 0 and not self._within_line)


def framing_of(raw: Any) -> Sized | Chunks:
    """Return the framing of a body of which nothing was read yet.

    :param raw: the urllib3 response.
    """
    length = raw._original_response.length
    # For a response to HEAD, http.client has a length of 0, whatever the head says.
    return Chunks() if getattr(raw, "chunked", False) and length != 0 else Sized(length)


def _size_in(line: bytes) -> int | None:
    """Return the size in a chunk's line, or None if urllib3 would reject it."""
    try:
        size = int(line.split(b";", 1)[0], 16)
    except ValueError:
        return None
    return size if size >= 0 and len(line) <= MOST_LINE else None
