"""Looking at the beginning of a failed response's body before it is known whether the rest is wanted (contract 13).

What is looked at is fetched ahead of ``http.client`` and read by it later, so that nothing is lost for a caller who
gets the response.
"""

from __future__ import annotations

import http.client
import io
from typing import Any, NamedTuple

import urllib3
import urllib3.exceptions as uex
from requests import Response

from ..clock import SYSTEM_CLOCK
from ..deadline import after, earliest
from .reader import Reader, reader_of
from .state import attempt

PEEK_BYTES = 65_536
"""So much of a failed response's body is looked at, coded or not."""
PEEK_SECONDS = 1.0
"""So long is waited for it."""
DECODE_PART = 1024


class Peeked(NamedTuple):
    """What was there.

    :param whole: the body is there to its end, and it is small; reading it takes no time.
    :param prefix: else: how it begins, decoded, at most 64 KiB.
    """

    whole: bool
    prefix: bytes = b""


def peek(response: Response) -> Peeked | None:
    """Look at a body of which nothing was read yet; None where there is no looking ahead (not our connection).

    :param response: it can be read afterwards as if nothing had happened.
    """
    reader = reader_of(response.raw)
    if reader is None:
        return None
    original: Any = response.raw._original_response
    reader.ahead = b""
    try:
        available = original.fp.peek()
        complete = _fetch(original, reader, available)
        available += reader.ahead
    finally:
        reader.ahead = reader.ahead or None
    body = available if not original.chunked else _unchunked(available)[0]
    coding = response.headers.get("content-encoding")
    if complete and (coding is None or not body):
        return Peeked(whole=True)
    prefix = body[:PEEK_BYTES] if coding is None else _decoded(body, coding)
    return Peeked(complete and len(prefix) < PEEK_BYTES, prefix)


def _fetch(original: Any, reader: Reader, before: bytes) -> bool:
    """Fetch ahead until the body is complete (True), or there is enough of it, or the time is up."""
    until = earliest(after(PEEK_SECONDS, SYSTEM_CLOCK), attempt.deadline)
    assert until is not None
    while True:
        available = before + (reader.ahead or b"")
        if reader.ended or _is_complete(original, available):
            return True
        left = until.left()
        if len(available) >= PEEK_BYTES or left <= 0:
            return False
        if not reader.fetch_ahead(left) and not reader.ended:
            return False


def _is_complete(original: Any, available: bytes) -> bool:
    if not original.chunked:
        return original.length is not None and len(available) >= original.length
    return available.endswith(b"\r\n") and _unchunked(available)[1]


def _unchunked(available: bytes) -> tuple[bytes, bool]:
    """The contents of chunks, as far as they go, and whether the last chunk is there."""
    reading: Any = http.client.HTTPResponse(_Bytes(available), method="GET")  # type: ignore[arg-type]
    reading.headers, reading.chunked, reading.chunk_left, reading.length = {}, True, None, None
    body = b""
    try:
        while part := reading.read1(PEEK_BYTES):
            body += part
    except (http.client.HTTPException, ValueError):
        return body, False
    return body, True


class _Bytes:
    """Bytes as a socket to read from."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:  # noqa: ARG002
        """The bytes as a file."""
        return io.BytesIO(self._data)


def _decoded(body: bytes, coding: str) -> bytes:
    """The beginning of a coded body, decoded; in small parts, because a bomb grows a thousandfold."""
    raw = urllib3.HTTPResponse(io.BytesIO(body), headers={"content-encoding": coding}, preload_content=False)
    prefix = b""
    try:
        for part in raw.stream(DECODE_PART, decode_content=True):
            prefix += part
            if len(prefix) >= PEEK_BYTES:
                break
    except uex.HTTPError:
        pass
    return prefix[:PEEK_BYTES]
