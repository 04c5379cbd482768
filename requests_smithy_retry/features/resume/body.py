"""A body that is watched while it is read (contract 14.6): counted, and continued where it breaks off.

A :class:`WatchedBody` stands between urllib3's response and that of ``http.client``. Only bodies of which something is
to be known have one. Positions are those of the encoded body, without chunk framing.
"""

from __future__ import annotations

import http.client
import io
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import urllib3
import urllib3.exceptions as uex
from requests import Response

from ...interruptions import is_interruption

PART = 65_536
"""The bytes of one read from a connection, where nobody asks for so many."""
MOST = 1_048_576
AHEAD = 8_192
"""The least bytes that are asked of a connection, so that the lines of a file do not cost a call each."""

WIRE = (OSError, http.client.HTTPException, uex.HTTPError)

T = TypeVar("T")
Heard = Callable[[int, int | None, int], None]
"""Takes the bytes of a body that came so far, the number of all, and how often it was continued."""


class WatchedResponse(urllib3.HTTPResponse):
    """The urllib3 response of a watched body."""

    chunk_left: int | None

    def _update_chunk_length(self) -> None:
        # urllib3 would read a line of chunk framing, which after a continuation is not there.
        if self.chunk_left is None:
            self.chunk_left = self._fp.next_chunk()  # type: ignore[union-attr]


class WatchedBody:
    """The encoded body of one response, over one connection after another.

    :param raw: the urllib3 response, which reads from this object. The reference to it is weak: a cycle would keep
        sockets open until the next garbage collection.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = weakref.ref(raw)
        self._current: Any = raw._fp
        self._ahead = b""
        self._announced = 0
        self._is_over = False
        self._failure: Exception | None = None
        self.total: int | None = getattr(raw._fp, "length", None)
        """The length of the encoded body; None while the server has not told."""
        self._until = self.total
        self.received: int = 0
        """The bytes that came so far, over all connections."""
        self.began_at: int = 0
        """The position of the first byte that the current connection brought."""
        self.pieces: int = 1
        """The number of connections that the body came over."""
        self.mend: Callable[[WatchedBody, Exception], None] | None = None
        """Has the body continue over another connection, or raises the exception for its reader."""
        self.heard: Heard | None = None
        """Is told after each part that came."""

    @property
    def brought(self) -> int:
        """The bytes that came over the current connection."""
        return self.received - self.began_at

    @property
    def is_on_a_wire(self) -> bool:
        """True if it is read from a connection, not from what a recording or a cache has put in between."""
        return isinstance(self._current, http.client.HTTPResponse)

    def __getattr__(self, name: str) -> Any:
        if name == "_current":  # of a copy, which has nothing yet
            raise AttributeError(name)
        return getattr(self._current, name)

    @property
    def fp(self) -> Any:
        """The file below; an empty one at the end, from which urllib3 reads the lines after the last chunk."""
        return io.BytesIO() if self._is_over or self._current.fp is None else self._current.fp

    def isclosed(self) -> bool:
        """Return True once the end was read."""
        return self._is_over

    @property
    def closed(self) -> bool:
        return self.isclosed()

    def close(self) -> None:
        self._is_over, self._failure = True, None
        self._current.close()

    @property
    def pool(self) -> Any:
        return getattr(self._raw(), "_pool", None)

    def read(self, amt: int | None = None) -> bytes:
        """Read ``amt`` bytes, or all; fewer only at the end, or before an error, which the next read raises."""
        if amt is None or amt < 0:
            return b"".join(iter(self.read1, b""))
        if amt <= len(self._ahead):
            return self._take(amt)
        parts: list[bytes] = []
        try:
            while amt > 0 and (part := self._receive(amt)):
                parts.append(part)
                amt -= len(part)
        except BaseException as error:
            if not parts or not isinstance(error, WIRE) or is_interruption(error):
                self._ahead = b"".join(parts) + self._ahead  # for the next read
                raise
            self._failure = error.with_traceback(None)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read1(self, amt: int | None = None) -> bytes:
        """Read the bytes of one ``recv``, at most ``amt``."""
        if amt == 0:
            return b""
        data = self._receive(PART if amt is None or amt < 0 else amt)
        if self.received == self.total and not self._ahead and not self._is_over:
            self._mended(lambda: self._from_wire(PART))  # urllib3 does not read on: here is the end
        return data

    def _safe_read(self, amt: int) -> bytes:
        """Read exactly ``amt`` bytes of a chunk, or its end."""
        if self._announced == 0:
            return b"\r\n"
        if amt <= len(self._ahead):
            self._announced -= amt
            return self._take(amt)
        parts: list[bytes] = []
        left = amt
        try:
            while left > 0:
                part = self._receive(left)
                if not part:
                    raise uex.IncompleteRead(self.received, left)
                parts.append(part)
                left -= len(part)
        except BaseException:
            self._ahead = b"".join(parts) + self._ahead  # for the next read, once the body is mended
            raise
        self._announced -= amt
        return b"".join(parts)

    def next_chunk(self) -> int:
        """Return the size of the next chunk, as the server sent it; 0 at the end."""
        self._announced = 0 if self._is_over and not self._ahead else self._mended(self._next_chunk)
        return self._announced

    def take_over(self, other: Any, until: int | None, total: int | None) -> None:
        """Go on with the body of another response, whose first byte is the next one here, up to a position."""
        raw = self._raw()
        assert raw is not None  # the response is being read
        self.close_connection()
        for name in ("_connection", "_pool", "_sock_shutdown"):
            setattr(raw, name, getattr(other, name, None))
        before = raw._original_response
        raw._original_response = self._current = other._fp
        # The cookies of the first head are the body's: requests looks for them here.
        self._current.msg = before.msg
        self._current.had_chunk = True
        other._connection = other._fp = None  # what was read over it is told by the rest
        self._is_over = False
        self._until, self.total = until, total
        self.began_at = self.received
        self.pieces += 1

    def close_connection(self) -> None:
        """Close the connection that broke off, and give its place back to the pool."""
        raw: Any = self._raw()
        self._current.close()
        connection = getattr(raw, "_connection", None)
        if connection is not None:
            connection.close()
            raw.release_conn()

    def prove(self) -> None:
        """Receive the first bytes of a continuation, to be read later."""
        self._ahead += self._from_wire(PART)

    def _receive(self, most: int) -> bytes:
        """Return up to ``most`` bytes; no byte only at the end. If the wire breaks off, go on over another one."""
        if self._is_over and not self._ahead:
            return b""
        return self._mended(lambda: self._from_here(most))

    def _from_here(self, most: int) -> bytes:
        if not self._ahead:
            data = self._from_wire(max(most, AHEAD))
            if len(data) <= most:
                return data
            self._ahead = data
        return self._take(most)

    def _take(self, most: int) -> bytes:
        """Return bytes that were received before they were asked for."""
        data, self._ahead = self._ahead[:most], self._ahead[most:]
        return data

    def _mended(self, read: Callable[[], T]) -> T:
        while True:
            try:
                if self._failure is not None:
                    self._raise_failure()
                return read()
            except (OSError, http.client.HTTPException) as error:  # noqa: PERF203 - it goes on elsewhere
                if is_interruption(error):
                    raise
                if self.total is not None and self.received >= self.total:
                    self.close_connection()  # all of it came, though not the end of its framing
                    continue
                if self.mend is None:
                    raise
                self.mend(self, error)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        assert failure is not None
        try:
            raise failure
        finally:
            del failure  # its traceback refers to this frame

    def _from_wire(self, most: int) -> bytes:
        current = self._current
        most = min(most, MOST)  # each read makes room for as many, of which one recv fills few
        data: bytes = current.read1(most) if self.is_on_a_wire else current.read(most)
        if not data:
            self._end()
            return data
        self.received += len(data)
        if self._until is not None and self.received > self._until:
            raise uex.ProtocolError(f"the server sent more than the {self._until} bytes that it announced")
        if getattr(current, "length", None) == 0:
            current.close()  # read1 leaves that to the next call before Python 3.13
        if self.heard is not None:
            self.heard(self.received, self.total, self.pieces - 1)
        return data

    def _next_chunk(self) -> int:
        current = self._current
        if self._ahead:
            return len(self._ahead)
        if current.chunked and not current.isclosed():
            size: int | None = current._get_chunk_left()
            if size is not None and size < 0:
                raise http.client.IncompleteRead(b"")
        else:  # after a continuation the chunks are our own
            size = None if current.isclosed() else min(PART, (self.total or 0) - self.received)
        if not size:
            self._end()
        return size or 0

    def _end(self) -> None:
        """Record that the current connection brings no more; raise ``IncompleteRead`` if there is more of the body."""
        missing = getattr(self._current, "length", None) or 0
        if self.total is not None:
            missing = self.total - self.received
        if missing > 0:
            self._current.close()
            raise uex.IncompleteRead(self.received, missing)
        self._is_over = True


def skip(raw: Any, left: int) -> None:
    """Read past the first bytes of a response of which nothing was read yet."""
    while left > 0:
        data = raw._fp.read(min(left, PART))
        if not data:
            raise uex.IncompleteRead(0, left)
        left -= len(data)


def watch(response: Response, heard: Heard | None = None) -> WatchedBody | None:
    """Have a body watched of which nothing was read yet; return None for one of a stand-in for urllib3's response."""
    raw: Any = response.raw
    below = getattr(raw, "_fp", None)
    is_ours = raw.__class__ is urllib3.HTTPResponse and below is not None
    # Of chunks behind another transfer coding (``gzip, chunked``) urllib3 alone knows.
    if not is_ours or (raw.chunked and not (isinstance(below, http.client.HTTPResponse) and below.chunked)):
        return None
    body = raw._fp = WatchedBody(raw)
    body.heard = heard
    raw.__class__ = WatchedResponse
    return body
