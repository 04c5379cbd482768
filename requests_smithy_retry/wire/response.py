"""Responses of prepared connections (contract 13, 14.1, 14.4): their bytes, their heads, and looking ahead.

A :class:`Reader` sits below the buffer that ``http.client`` reads, so each call is one ``recv``. Bytes that are fetched
ahead are read later, so a caller who gets the response loses none. A :class:`CheckedResponse` checks what
``http.client`` lets pass; a valid or merely sloppy head is read as plain ``http.client`` reads it: bare line feeds,
missing reasons.
"""

from __future__ import annotations

import enum
import http.client
import io
import re
import socket
from collections.abc import Callable
from io import BufferedReader
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import urllib3
from requests import Response
from urllib3.exceptions import InvalidHeader

from ..clock import SYSTEM_CLOCK, Deadline, after, earliest
from ..interruptions import is_interruption
from . import private
from .decoding import decoded
from .heads import Head, plain_head
from .state import this_thread, timeout_of

PEEK_BYTES = 65_536
"""The most bytes of a failed response's body to peek at, coded or not."""
PEEK_SECONDS = 1.0
"""The longest wait for it in seconds; the caller's read timeout bounds each part of it."""
UNREAD_BYTES = 1_048_576
"""The longest body, coded or not, that response hooks may find unread."""
MOST_LINE = 1024
"""The longest line of a chunk that is parsed here, in bytes; a longer one is left to urllib3."""
CUT_LAST_CHUNK = re.compile(rb"\n0[^\n]*\Z")
"""The end of a connection within a line that may have been the beginning of a padded size, such as ``00ff``."""
MOST_TAIL = 64
BUFFER = 65_536
"""The bytes that one ``recv`` may bring. The standard library's buffer is as large from Python 3.14 on."""
PREFETCH_PART = 65_536
LAST_CHUNK = b"\n0\r\n\r\n"
"""The end of a chunked body without trailers."""
MOST_INTERIM = 16
"""The most 1xx responses that are skipped."""

MISDIRECTED = 421
"""The status of an answer whose connection does not serve the request's host (RFC 9110 15.5.20): it is closed."""

_recv_into = socket.SocketIO.readinto
_base: Any = http.client.HTTPResponse
_init, _begin, _parse_headers = _base.__init__, _base.begin, http.client.parse_headers
_check_close: Any = getattr(_base, "_check_close", None)
_safe_read: Any = getattr(_base, "_safe_read", None)  # a release may lack it: then this class is not used
_read_status: Any = getattr(_base, "_read_status", None)
_NO_FILE: Any = SimpleNamespace(makefile=lambda mode: None)
"""A stand-in for the socket, from which ``http.client`` would make a file."""


class Watch(Protocol):
    """Stands between a :class:`Reader` and the buffer above, from the first byte of a body on."""

    @property
    def brought(self) -> int:
        """The encoded bytes of the body that came over the current connection."""

    def readinto(self, reader: Reader, buffer: Any) -> int | None:
        """Read what :meth:`Reader.receive` brings, or more."""

    def raise_failure(self) -> None:
        """Raise what the next read would raise, if that is known."""

    def close(self) -> None:
        """Called when the response is closed."""


class Reader(socket.SocketIO):
    """The raw stream of a response, made like a ``SocketIO``."""

    watch: Watch | None = None
    """Sees the body, and may continue it where the connection ends."""
    tail: bytes | None = None
    """The last bytes of a chunked body so far; None: its end is not checked."""
    ahead: bytearray | None = None
    """Bytes fetched ahead, to be read next. Empty: nothing may be read now. None: read from the socket."""
    failure: OSError | None = None
    """The error met while fetching ahead, raised after the bytes before it; the kernel reports it only once."""
    ended: bool = False
    """True once the far end is known to have closed its side."""
    in_all: float | None = None
    """The seconds from the next read of the body to its end; None: no limit."""
    _until: Deadline | None = None

    def readinto(self, buffer: Any) -> int | None:
        if self.in_all is None:
            return self._read(buffer)
        self._until = self._until or after(self.in_all)
        with this_thread.under(earliest(self._until, this_thread.deadline)):
            return self._read(buffer)

    def _read(self, buffer: Any) -> int | None:
        return self.receive(buffer) if self.watch is None else self.watch.readinto(self, buffer)

    def receive(self, buffer: Any) -> int | None:
        """Read bytes that were fetched ahead, or do one ``recv`` that ends by the attempt's deadline.

        :raises http.client.IncompleteRead: at an end that looks like a last chunk, and may be the beginning of a size.
        """
        if self.ahead is not None:
            count = self._read_ahead(buffer)
        elif this_thread.deadline is None:
            count = _recv_into(self, buffer)
        else:
            sock: Any = self._sock  # type: ignore[attr-defined]
            usual = this_thread.set_timeout(sock)
            try:
                count = _recv_into(self, buffer)
            finally:
                # While a tunnel is being made, the socket's timeout bounds the handshake that follows.
                sock.settimeout(this_thread.seconds_or_least(usual) if this_thread.connecting is True else usual)
        if not count:
            self.ended = count is not None
        if self.tail is not None and count is not None:
            self._see_end(buffer, count)
        return count

    def _see_end(self, buffer: Any, count: int) -> None:
        tail = b"" if self.tail is None or count >= MOST_TAIL else self.tail
        self.tail = (tail + bytes(buffer[max(0, count - MOST_TAIL) : count]))[-MOST_TAIL:]
        if not count and CUT_LAST_CHUNK.search(self.tail):
            raise http.client.IncompleteRead(b"")

    def close(self) -> None:
        watch, self.watch = self.watch, None  # a connection keeps its last response, and so would keep the call
        try:
            if watch is not None:
                watch.close()
        finally:
            super().close()

    def release_socket(self) -> None:
        """Release the socket, which its connection has closed; this stream stays open."""
        self._sock._decref_socketios()  # type: ignore[attr-defined]

    def _read_ahead(self, buffer: Any) -> int | None:
        ahead = self.held_ahead
        if not ahead and self.failure is not None:
            failure, self.failure, self.ahead = self.failure, None, None
            try:
                raise failure
            finally:
                del failure  # its traceback refers to this frame
        count = min(len(buffer), len(ahead))
        with memoryview(ahead) as view:
            buffer[:count] = view[:count]
        del ahead[:count]
        if count and not ahead and self.failure is None:
            self.ahead = None
        return count or None

    @property
    def held_ahead(self) -> bytearray:
        """The bytes that were fetched ahead and not read yet."""
        return bytearray() if self.ahead is None else self.ahead

    def in_buffer(self, above: BufferedReader) -> bytes:
        """Return the unread bytes in the buffer above, without making it read more."""
        kept = self.ahead, self.failure, self.ended, self.watch
        self.ahead, self.failure, self.watch = bytearray(), None, None
        try:
            return above.peek()
        finally:
            self.ahead, self.failure, self.ended, self.watch = kept

    def fetch_ahead(self, seconds: float | None) -> bool:
        """Do one ``recv`` and keep its bytes for later reads; return False if no byte came in time, or none will.

        :param seconds: the longest wait, above 0; None: the socket's own timeout, which is the maximum in any case.
            When that one expires, it is kept as a failure.
        """
        if self.ended or self.failure is not None:
            return False
        sock: Any = self._sock  # type: ignore[attr-defined]
        usual = timeout_of(sock)
        is_usual = seconds is None or (usual is not None and usual <= seconds)
        sock.settimeout(usual if is_usual else seconds)
        try:
            part = sock.recv(PREFETCH_PART)
        except OSError as error:
            if is_interruption(error):
                raise
            if is_usual or not isinstance(error, TimeoutError):
                self.failure, self.ahead = error.with_traceback(None), self.held_ahead
            return False
        finally:
            sock.settimeout(usual)
        self.ended = not part
        if part:
            self.ahead = self.held_ahead
            self.ahead += part
        return bool(part)


class CheckedResponse(http.client.HTTPResponse):
    """A response that skips interim responses and rejects a head that is cut or contradicts itself."""

    fp: Any
    headers: http.client.HTTPMessage
    msg: http.client.HTTPMessage
    version: int
    code: int
    status: int
    reason: str
    chunked: bool
    will_close: bool
    length: int | None
    retries_off = False
    """True while retries are switched off."""
    is_unread: bool = False
    """True if it was closed with bytes in its buffer: its connection has the rest, and can carry no other answer."""

    def close(self) -> None:
        reader = getattr(self.fp, "raw", None) if self.chunked is True else None  # else its length decides
        try:
            if isinstance(reader, Reader) and not reader.closed:
                self.is_unread = bool(reader.held_ahead or reader.in_buffer(self.fp))
        finally:
            super().close()

    def __init__(self, sock: Any, debuglevel: int = 0, method: str | None = None, url: str | None = None) -> None:
        self.answers_head: bool = method == "HEAD"
        if hasattr(type(sock), "_io_refs"):
            # As makefile does: the socket lives until fp is closed. While a tunnel is made, only its connection holds
            # the socket: Python 3.10 leaves the answer to CONNECT open.
            sock._io_refs += this_thread.connecting is not True
            _init(self, _NO_FILE, debuglevel, method, url)
            self.fp = BufferedReader(Reader(sock, "r"), BUFFER)
        else:
            # TLS within TLS, or a stand-in: it makes its own file, which a deadline bounds by its timeout alone.
            _init(self, sock, debuglevel, method, url)

    def begin(self) -> None:
        """Read the head.

        :raises http.client.RemoteDisconnected: if it ends before its blank line.
        :raises InvalidHeader: for an invalid Content-Length; one beside chunks is ignored (RFC 9112 6.3).
        """
        head = None
        is_replaced = _base.begin is not _begin or http.client.parse_headers is not _parse_headers  # by a program
        if not is_replaced and self.headers is None and self.debuglevel == 0 and isinstance(self.fp, BufferedReader):
            head = plain_head(self.fp.peek())
        if head is None:
            _base.begin(self)
        else:
            self._take(head)
        if this_thread.retries_off:
            return
        if not self.length:
            self._check_head()
        if self.status == MISDIRECTED:
            self.will_close = this_thread.is_misdirected = True

    def _take(self, head: Head) -> None:
        """Take over the values of a head, as ``http.client`` does."""
        self.fp.read(head.end)
        self.version, self.reason, self.chunked = head.version, head.reason, head.chunked
        self.code = self.status = head.status
        self.headers = self.msg = head.fields
        if head.chunked:
            self.chunk_left: Any = None
        self.length = 0 if self.answers_head or head.status in (204, 304) else head.length
        self.will_close = _check_close(self) or not (head.chunked or self.length is not None)

    def _read_status(self) -> tuple[str, int, str]:
        """Read a status, skipping interim responses; ``begin`` itself skips any number of 100, and no other."""
        read: tuple[str, int, str] = _read_status(self)
        interim = 0
        while read[1] < 200 and read[1] != 101 and not this_thread.retries_off:
            interim += 1
            if interim > MOST_INTERIM:
                raise http.client.HTTPException(f"got more than {MOST_INTERIM} interim responses")
            http.client.parse_headers(self.fp)
            read = _read_status(self)
        if this_thread.connecting is True:
            this_thread.answer = read[1]
        return read

    def _check_head(self) -> None:
        """Check a head that announces no length: a cut would not be noticed later."""
        if getattr(getattr(self.fp, "raw", None), "ended", False):
            raise http.client.RemoteDisconnected("Remote end closed connection within the head of its response")
        if self.length is None and not self.chunked:
            self._check_length()
        reader = getattr(self.fp, "raw", None)
        if self.chunked and isinstance(reader, Reader):
            reader.tail = reader.in_buffer(self.fp)[-MOST_TAIL:]

    def _check_length(self) -> None:
        """Check the Content-Length where ``http.client`` found no usable one. Empty elements are ignored."""
        text = ", ".join(self.headers.get_all("content-length", ()))
        values = {value.strip() for value in text.split(",")} - {""}
        if not values:
            return
        value = values.pop()
        if values or not (value.isascii() and value.isdigit() and len(value) < 20):
            raise InvalidHeader(f"Content-Length is invalid: {text[:100]}")
        self.length = int(value)  # the same value, repeated

    def _safe_read(self, amt: int) -> bytes:
        """Read exactly ``amt`` bytes, as ``http.client`` does: a chunk, the end of one, or a whole body.

        :raises http.client.IncompleteRead: also for a negative size, which the buffer would take for "everything".
        """
        data: bytes = self.fp.read(amt) if 0 <= amt <= 65_536 else self._read_much(amt)
        if len(data) == amt:
            return data
        cut = http.client.IncompleteRead(data, amt - len(data))
        del data  # a traceback leads to this frame
        self._raise_failure()
        raise cut

    def _read_much(self, amt: int) -> bytes:
        if amt < 0:
            raise http.client.IncompleteRead(b"")
        try:
            return _safe_read(self, amt)  # type: ignore[no-any-return]
        except http.client.IncompleteRead:
            self._raise_failure()
            raise

    def _raise_failure(self) -> None:
        watch: Watch | None = getattr(getattr(self.fp, "raw", None), "watch", None)
        if watch is not None:
            watch.raise_failure()


class _ReadsToLength(CheckedResponse):
    """For urllib3 1.26, which neither checks that a length was reached nor shows whether anything was decoded."""

    had_chunk: bool = False
    """True once a chunk was not empty."""

    def _safe_read(self, amt: int) -> bytes:
        data = super()._safe_read(amt)
        self.had_chunk = self.had_chunk or amt > 0
        return data

    def read(self, amt: int | None = None) -> bytes:
        data = super().read(amt)
        if not data and amt and self.length and not self.retries_off:
            raise http.client.IncompleteRead(b"", self.length)
        return data


RESPONSE_CLASS: type[CheckedResponse] = CheckedResponse if hasattr(urllib3, "BaseHTTPResponse") else _ReadsToLength


def reader_of(raw: Any) -> Reader | None:
    """Return the reader below a urllib3 response; None if it was read to its end, or is not on a socket.

    Connections with a ``connect`` of their own (Unix sockets, TLS within TLS) are not prepared. Their reader is the
    standard library's, and is converted here.
    """
    if not private.are_known():
        return None  # urllib3-future buffers what it reads, so nothing else may read from the socket
    try:
        below = raw._original_response.fp.raw
    except AttributeError:
        return None
    if type(below) is socket.SocketIO:
        below.__class__ = Reader
    return below if isinstance(below, Reader) else None


def holds_all(raw: Any) -> bool:
    """Return True if an unread body of a known length and without a coding is in the buffer: reading it cannot fail."""
    reader = reader_of(raw)
    if reader is None or reader.ahead is not None or raw.chunked or "content-encoding" in raw.headers:
        return False
    original = raw._original_response
    return 0 < (original.length or 0) <= BUFFER and len(reader.in_buffer(original.fp)) >= original.length


def set_read_timeout(raw: Any, seconds: float | None, in_all: float | None = None) -> None:
    """Give an unread response the read timeout that its caller asked for, and a limit for all of it."""
    reader = reader_of(raw)
    if reader is not None:
        reader._sock.settimeout(seconds)  # type: ignore[attr-defined]
        reader.in_all = in_all


class Arrived(enum.Enum):
    """The part of an unread body that has arrived."""

    WHOLE = enum.auto()
    """All of it."""
    COMING = enum.auto()
    """Its beginning; the rest is long or late."""
    BROKEN = enum.auto()
    """Its beginning, and no more will come."""


def arrived(raw: Any, most: int, seconds: float | None) -> Arrived | None:
    """Return how much of an unread body has arrived, without decoding it; None if it is not read from a socket.

    :param most: the longest body that is waited for, in bytes.
    :param seconds: the longest wait; None: as long as the attempt's deadline and the socket's timeout allow.
    """
    reader = reader_of(raw)
    if reader is None:
        return None
    framing, before = framing_of(raw), reader.in_buffer(raw._original_response.fp)

    def is_complete() -> bool:
        return framing.is_complete(before, reader.held_ahead, ended=reader.ended)

    if not framing.is_above(most):
        _fetch(reader, lambda: is_complete() or len(before) + len(reader.held_ahead) > most, seconds)
    if is_complete():
        return Arrived.WHOLE
    return Arrived.BROKEN if reader.ended or reader.failure is not None else Arrived.COMING


class Peeked(NamedTuple):
    """At most the first 64 KiB of a body, decoded; ``whole`` if it is complete and valid, so reading it cannot fail."""

    whole: bool
    prefix: bytes = b""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(whole={self.whole}, {len(self.prefix)} bytes)"


def peek(response: Response, most: int = PEEK_BYTES, seconds: float | None = PEEK_SECONDS) -> Peeked | None:
    """Peek at an unread body; return None if it is not read from a socket.

    If a body is whole, by its length, its chunks or its connection, urllib3 needs no further byte from the socket.
    If urllib3 might read on, or raise, the body is not whole.

    :param most: the limit in bytes, before and after decoding.
    :param seconds: the longest wait; None: as long as the attempt's deadline and the socket's timeout allow.
    """
    raw: Any = response.raw
    reader = reader_of(raw)
    if reader is None:
        return None
    framing = framing_of(raw)
    complete = framing.is_whole(ended=False)
    if not complete:  # it has a byte at least
        before = reader.in_buffer(raw._original_response.fp)
        _fetch(reader, lambda: framing.take(data := before + reader.held_ahead) or len(data) > most, seconds)
        complete = framing.is_whole(ended=reader.ended)
    body = framing.body
    if not body or not response.headers.get("content-encoding"):
        return Peeked(complete and len(body) <= most, body[:PEEK_BYTES])
    prefix, sound = decoded(response, body, most)
    return Peeked(complete and sound, prefix[:PEEK_BYTES])


def peek_streamed(response: Response) -> Peeked | None:
    """Peek at a body that its caller streams, if it is JSON, and short by its length or a chunked error; else None.

    The wait is shorter than the socket's timeout, so that it is not kept as a failure of the caller's read.
    """
    raw: Any = response.raw
    reader = reader_of(raw)
    if "json" not in str(response.headers.get("content-type", "")).lower():
        return None
    if reader is None:
        return _peek_in_memory(response)
    length = raw._original_response.length
    is_short = response.status_code >= 400 and raw.chunked if length is None else length <= PEEK_BYTES
    usual = timeout_of(reader._sock)  # type: ignore[attr-defined]
    seconds = PEEK_SECONDS if usual is None else min(PEEK_SECONDS, 0.9 * usual)
    return peek(response, seconds=seconds) if is_short else None


def _peek_in_memory(response: Response) -> Peeked | None:
    """Peek at the body of a mock, which is in memory, if it is short."""
    file = getattr(response.raw, "_fp", None)
    body = file.getvalue()[file.tell() :] if isinstance(file, io.BytesIO) else b""
    is_seen = response.status_code >= 400 or "content-length" in response.headers
    if not is_seen or not 0 < len(body) <= PEEK_BYTES:
        return None
    is_coded = bool(response.headers.get("content-encoding"))
    return Peeked(True, decoded(response, body, PEEK_BYTES)[0] if is_coded else body)


def _fetch(reader: Reader, is_enough: Callable[[], bool], seconds: float | None) -> None:
    """Fetch ahead until there is enough, no byte will come, or the time is up."""
    until: Deadline | None = None
    while not is_enough():
        until = until or earliest(after(seconds, SYSTEM_CLOCK), this_thread.deadline)
        left = None if until is None else until.left()
        if (left is not None and left <= 0) or not reader.fetch_ahead(left):
            return


class LengthFraming:
    """A body that ends at its length or, without one, with the connection."""

    def __init__(self, length: int | None) -> None:
        self.body: bytes = b""
        self._length = length

    def is_above(self, most: int) -> bool:
        """Return True if it announced more than ``most`` bytes."""
        return self._length is not None and self._length > most

    def is_complete(self, before: bytes, ahead: bytearray, *, ended: bool) -> bool:
        """Return True if these bytes are all of it, given whether the connection ended after them."""
        return ended if self._length is None else len(before) + len(ahead) >= self._length

    def take(self, data: bytes) -> bool:
        """Inspect all bytes so far; return True if more would change nothing."""
        self.body = data[: self._length]
        return self._length is not None and len(data) >= self._length

    def is_whole(self, *, ended: bool) -> bool:
        """Return True if the body is complete, given whether the connection ended after these bytes."""
        return ended if self._length is None else len(self.body) == self._length


class ChunkedFraming:
    """A chunked body with its trailers, parsed as urllib3 does."""

    def __init__(self) -> None:
        self._at = self._trailers_at = 0
        self._taken = bytearray()
        self._begun = b""
        self._whole = self._within_line = False

    @property
    def body(self) -> bytes:
        return bytes(self._taken) + self._begun

    def is_above(self, most: int) -> bool:
        """Return False: chunks announce no length."""
        return False

    def is_complete(self, before: bytes, ahead: bytearray, *, ended: bool) -> bool:
        """Return True if these bytes are all of it. They are parsed only for trailers, or an ended connection."""
        tail = before[-len(LAST_CHUNK) :] + ahead[-len(LAST_CHUNK) :]
        if tail.endswith(LAST_CHUNK) or tail == LAST_CHUNK[1:]:
            return True
        if not (ended or tail.endswith(b"\r\n\r\n")):
            return False
        self.take(before + ahead)
        return self.is_whole(ended=ended)

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
        while not self._whole:
            after = data.find(b"\n", self._trailers_at) + 1
            self._within_line = not after and len(data) > self._trailers_at
            if not after:
                return False
            self._whole = data[self._trailers_at : after] == b"\r\n"
            self._trailers_at = after
        return True

    def is_whole(self, *, ended: bool) -> bool:
        """Return True if the body is complete; the last line feed may be missing where the connection ended."""
        return self._whole or (ended and self._trailers_at > 0 and not self._within_line)


def framing_of(raw: Any) -> LengthFraming | ChunkedFraming:
    length = raw._original_response.length
    # For a response to HEAD, http.client has a length of 0, whatever the head says.
    return ChunkedFraming() if getattr(raw, "chunked", False) and length != 0 else LengthFraming(length)


def _size_in(line: bytes) -> int | None:
    """Return the size in a chunk's line, or None if urllib3 would reject it."""
    try:
        size = int(line.split(b";", 1)[0], 16)
    except ValueError:
        return None
    return size if size >= 0 and len(line) <= MOST_LINE else None
