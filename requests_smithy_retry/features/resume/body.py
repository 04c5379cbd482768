"""A body that is watched while it is read (contract 14.6): counted, and continued where it breaks off.

A :class:`WatchedBody` sits next to the socket, below everything that reads a response. ``http.client`` and urllib3 read
what looks like the bytes of one connection, in the framing that its head announced, however many connections brought
them. Positions are those of the encoded body, without chunk framing.
"""

from __future__ import annotations

import http.client
import weakref
from collections.abc import Callable
from typing import Any

import urllib3.exceptions as uex

from ...core.port import Sent
from ...interruptions import is_interruption
from ...wire.response import Reader, reader_of

PART = 65_536
"""The bytes that are skipped at once."""
LEAST = 8_192
"""The fewest bytes to ask of a connection."""
MOST_LINE = 65_536
"""The longest line of a chunk's size, in bytes, as in ``http.client``."""

WIRE = (OSError, http.client.HTTPException)

Heard = Callable[[int, int | None, int], None]
"""Takes the received bytes of a body, its length, and how often it was continued."""


class Chunks:
    """The framing of a chunked body: parsed while it comes, and made for a continuation."""

    def __init__(self) -> None:
        self.is_over: bool = False
        """The last chunk has begun."""
        self.is_bad: bool = False
        """A line is not a size, so what follows is unknown."""
        self._announced = 0
        """The bytes of all chunks that have begun."""
        self._left = 0
        """Those of the last one that are still to come, with its CRLF."""
        self._line = b""
        """The beginning of a line whose end is still to come."""

    @property
    def received(self) -> int:
        """The bytes of the body that came so far."""
        return self._announced - max(0, self._left - 2)

    def take(self, buffer: Any, count: int) -> int:
        """Count the next bytes of a buffer; return how many of them are well-formed."""
        if self._left >= count or self.is_over:
            self._left -= 0 if self.is_over else count
            return count
        before, data = len(self._line), self._line + bytes(buffer[:count])
        at, end, announced, self._line = self._left, len(data), self._announced, b""
        line, size, step, goes_on = b"?", 0, 0, data.startswith
        while at < end:
            if not goes_on(line, at):  # most servers send chunks of one size
                line = data[at : data.find(b"\n", at) + 1]
                size = size_in(line)
                step = len(line) + size + 2
                if size <= 0:
                    self._left, self._announced = 0, announced
                    self.is_over, self._line = size == 0, b"" if line else data[at:]
                    self.is_bad = (size < 0 and line != b"") or len(self._line) > MOST_LINE
                    return (max(at, before) if size < 0 and line else end) - before
            announced += size
            at += step
        self._left, self._announced = at - end, announced
        return end - before

    def made(self, data: bytes) -> bytes:
        """Return chunks for the next bytes of a continued body, or for its end, after completing what is still open.

        :raises uex.ProtocolError: if that cannot follow.
        """
        is_end, line, self._line = not data, self._line, b""
        framed, last = b"", b"\r\n\r\n" if line else b"0\r\n\r\n"  # zeros may become a size or the last chunk
        if line.strip(b"0"):
            # The line of a size was cut: the part that came is the size, as the full one is no smaller.
            size, framed = size_meant(line, data), b"\r\n"[line.endswith(b"\r") :]
            self._left, last = (size + 2, b"0\r\n\r\n") if size else (0, b"\r\n")
        if self._left > 2:
            if is_end:
                raise uex.ProtocolError(f"a chunk was to have {self._left - 2} bytes more than the body has")
            part, data = data[: self._left - 2], data[self._left - 2 :]
            framed, self._left = framed + part, self._left - len(part)
        if self._left <= 2:
            framed, self._left = framed + b"\r\n"[2 - self._left :], 0
            framed += b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            framed += last if is_end else b""
        return framed


def size_meant(line: bytes, rest: bytes) -> int:
    """Return the size in a chunk's line that broke off, before the rest of the body.

    :raises uex.ProtocolError: if the rest does not follow it.
    """
    size = size_in(line)
    if size < 0 or (size == 0 and rest):
        raise uex.ProtocolError("a chunk's line broke off, and the rest does not follow it")
    return size


def size_in(line: bytes) -> int:
    """Return the size in a chunk's line, as ``http.client`` reads it; -1: it has none, or a negative one."""
    try:
        return max(-1, int(line.split(b";", 1)[0], 16))
    except ValueError:
        return -1


class WatchedBody:
    """The encoded body of one response, over one connection after another.

    :param raw: the urllib3 response. The reference to it is weak: a cycle would keep sockets open until the next
        garbage collection.
    :param reader: its reader, which calls this object.
    :param sent: the attempt that brings it.
    :param heard: called after each part that came.
    """

    def __init__(self, raw: Any, reader: Reader, sent: Sent, heard: Heard | None) -> None:
        self._raw = weakref.ref(raw)
        self.brought_by: Sent = sent
        """The attempt that the current connection belongs to."""
        original = raw._original_response
        self._chunks = Chunks() if original.chunked else None
        self._rest: Any = None
        """The response that the body goes on with, as ``http.client`` reads it."""
        self._ahead = b""
        """Its received bytes, framed."""
        self._failure: Exception | None = None
        self._heard = heard
        self._is_stopped = False
        """A listener raised: the error is not one of the connection, whatever its class."""
        self._length: int | None = original.length
        self.total: int | None = original.length
        """The length of the encoded body; None while it is unknown."""
        self.until: int | None = self.total
        """The position at which the current connection ends."""
        self.received: int = 0
        """The bytes that came so far, over all connections."""
        self.began_at: int = 0
        """The position of the first byte that the current connection brought."""
        self.pieces: int = 1
        """The number of connections that the body came over."""
        self.mend: Callable[[WatchedBody, Exception], None] | None = None
        """Continues the body over another connection, or raises the exception for its reader."""
        buffered = reader.in_buffer(original.fp)
        self._take(buffered, len(buffered[: self.total]))

    @property
    def brought(self) -> int:
        """The bytes that came over the current connection."""
        return self.received - self.began_at

    @property
    def pool(self) -> Any:
        return getattr(self._raw(), "_pool", None)

    def readinto(self, reader: Reader, buffer: Any) -> int | None:
        """Read the next bytes; 0: there are no more. If the connection breaks, go on over another one."""
        while True:
            try:
                is_first = self.pieces == 1 and self._failure is None
                return self._read(reader, buffer) if is_first else self._go_on(buffer)
            except WIRE as error:  # noqa: PERF203 - it goes on elsewhere
                if self._is_stopped or self._ends_by_itself or is_interruption(error):
                    raise
                if not self._breaks_off(reader, error):
                    raise
                if self._failure is not None:
                    return 0

    def _breaks_off(self, reader: Reader, error: Exception) -> bool:
        """Continue the body, or keep its error until the received bytes are read; False if there are none.

        :raises uex.HTTPError: the error that ends it.
        """
        if self.mend is None or getattr(self._raw(), "_connection", None) is None:  # a program has given it back
            self._failure = error.with_traceback(None) if self._is_owed() else None
            return self._failure is not None
        self.close_connection(reader)
        try:
            self.mend(self, error)
        except uex.HTTPError as ending:
            if not self._is_owed():
                raise
            self._failure = ending.with_traceback(None)
            error.__traceback__ = None  # of its cause: it leads to this body
        return True

    def raise_failure(self) -> None:
        """Raise the exception that ended the body after the last bytes that were given out, if there is one."""
        failure, self._failure = self._failure, None
        try:
            if failure is not None:
                raise failure
        finally:
            del failure  # its traceback refers to this frame

    def take_over(self, other: Any, until: int | None, total: int | None, sent: Sent) -> None:
        """Go on with the body of another urllib3 response, whose first byte is the next one here, up to a position."""
        raw: Any = self._raw()
        assert raw is not None  # the response is being read
        for name in ("_connection", "_pool", "_sock_shutdown"):
            setattr(raw, name, getattr(other, name, None))
        self._rest = other._fp
        other._connection = other._fp = None  # the rest reports what was read over it
        self.until, self.total, self.brought_by = until, total, sent
        self.began_at = self.received
        self.pieces += 1

    def extend(self, until: int, total: int | None) -> bool:
        """Treat what the first connection brings as the beginning of a body. False: its framing does not allow that."""
        raw: Any = self._raw()
        if self._chunks is not None or self.total not in (None, until):
            return False
        self.until = until
        self.total = self._length = raw._original_response.length = raw.length_remaining = total
        return True

    def prove(self) -> None:
        """Receive the first bytes of a continuation, to be read later."""
        self._ahead += self._continued(LEAST)

    def end(self, total: int | None) -> None:
        """End the body: all of it was received."""
        self.total = self.until = self.received if total is None else total
        self.pieces += 1

    def close_connection(self, reader: Reader | None = None) -> None:
        """Close the connection that broke off, and free its place in the pool."""
        raw: Any = self._raw()
        connection = getattr(raw, "_connection", None)
        if self._rest is not None:
            self._rest.close()
        if connection is not None:
            if reader is not None:
                connection._HTTPConnection__response = None  # it is being read, and stays open
            connection.close()
            raw.release_conn()
        if reader is not None:
            reader.release_socket()

    def close(self) -> None:
        """Close the connection of the rest, unless that was read to its end."""
        if self._rest is not None and not self._rest.isclosed():
            self.close_connection()

    @property
    def _ends_by_itself(self) -> bool:
        """True after the last chunk: a later error is one of the trailers."""
        return self.pieces == 1 and self._chunks is not None and self._chunks.is_over

    def _read(self, reader: Reader, buffer: Any) -> int | None:
        """Read from the first connection."""
        if self.until is not None and self.until - self.received < len(buffer):
            buffer = memoryview(buffer)[: max(0, self.until - self.received)]
        is_bad = self._chunks is not None and self._chunks.is_bad
        count = reader.receive(buffer) if len(buffer) and not is_bad else 0
        if count:
            count = self._take(buffer, count)
        if count == 0 and self._is_cut:
            raise uex.IncompleteRead(self.received, max(0, (self.total or 0) - self.received))
        return count

    def _go_on(self, buffer: Any) -> int:
        """Read from the rest."""
        self.raise_failure()
        if not self._ahead:
            self._ahead = self._continued(max(LEAST, len(buffer)))
        count = min(len(buffer), len(self._ahead))
        buffer[:count] = self._ahead[:count]
        self._ahead = self._ahead[count:]
        return count

    @property
    def _is_cut(self) -> bool:
        """True if the first connection has ended before the body. A body without a length ends with its connection."""
        if self._chunks is not None:
            return not self._chunks.is_over
        return self.total is not None and self.received < self.total

    def _take(self, buffer: Any, count: int) -> int:
        """Count bytes of the first connection; return how many of them are well-formed."""
        if self._chunks is None:
            self.received += count
        else:
            count = self._chunks.take(buffer, count)
            self.received = self._chunks.received
        if self._heard is not None:
            self._tell()
        return count

    def _tell(self) -> None:
        if self._heard is not None and self.received > self.began_at:
            try:
                self._heard(self.received, self.total, self.pieces - 1)
            except Exception:
                self._is_stopped = True
                raise

    def _continued(self, most: int) -> bytes:
        """Return bytes of the rest, framed as the first head announced; none at the end."""
        data = b"" if self.received == self.total else self._from_rest(most)
        return data if self._chunks is None else self._chunks.made(data)

    def _from_rest(self, most: int) -> bytes:
        data: bytes = self._rest.read1(most)
        if not data and self.until is not None:
            raise uex.IncompleteRead(self.received, self.until - self.received)
        self.received += len(data)
        if self.received == self.until:
            self._end_rest()
        if self.until is not None and self.received > self.until:
            raise uex.ProtocolError(f"the server sent more than the {self.until} bytes that it announced")
        self._tell()
        return data

    def _end_rest(self) -> None:
        """Read the end of the rest's framing, after which its connection can be used again."""
        rest = self._rest
        if rest.length == 0:
            rest.close()  # read1 leaves that to the next call before Python 3.13
        try:
            self.received += len(rest.read1(1))
        except WIRE as error:
            if is_interruption(error):
                raise
            rest.close()
            raw: Any = self._raw()
            raw._connection.close()

    def _is_owed(self) -> bool:
        """Return True if received bytes were not read yet: a reader gets them before an error.

        Only for a body with a length does ``http.client`` tell a short read from the end.
        """
        original = getattr(self._raw(), "_original_response", None)
        left = getattr(original, "length", None)
        given = self.received if left is None or self._length is None else self._length - left
        return self._chunks is None and self.received > given


def skip(raw: Any, left: int) -> None:
    """Skip the first bytes of an unread response."""
    while left > 0:
        data = raw._fp.read(min(left, PART))
        if not data:
            raise uex.IncompleteRead(0, left)
        left -= len(data)


def watch(raw: Any, sent: Sent, heard: Heard | None = None) -> WatchedBody | None:
    """Watch an unread body; return None if there is none, or if it is not read from a socket."""
    reader, original = reader_of(raw), getattr(raw, "_original_response", None)
    if reader is None or original is None or raw._fp is not original or original.length == 0:
        return None
    if bool(raw.chunked) != bool(original.chunked):
        return None  # only urllib3 knows of chunks behind another transfer coding (``gzip, chunked``)
    reader.tail = None  # its own framing sees the end
    reader.watch = body = WatchedBody(raw, reader, sent, heard)
    return body
