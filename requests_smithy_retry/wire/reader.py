"""Reading a response from its socket: by the deadline, and noticing an early end (contract 14.1).

The reader is below the buffer through which ``http.client`` reads, so each call is one ``recv``.
"""

from __future__ import annotations

import socket
from io import BufferedReader
from typing import Any

from ..clock import Deadline, after, earliest
from ..interruptions import is_interruption
from . import state
from .state import this_thread, timeout_of

_recv_into = socket.SocketIO.readinto
PREFETCH_PART = 16_384


class Reader(socket.SocketIO):
    """The raw stream of a response, made like a ``SocketIO``."""

    ahead: bytearray | None = None
    """Bytes fetched ahead, to be read next. Empty: nothing may be read now. None: read from the socket."""
    failure: OSError | None = None
    """The error met while fetching ahead, raised after the bytes before it; the kernel reports it only once."""
    ended: bool = False
    """True once the far end is known to have closed its side."""

    def readinto(self, buffer: Any) -> int | None:
        """Read bytes that were fetched ahead, or do one ``recv`` that ends by the attempt's deadline."""
        if self.ahead is not None:
            count = self._read_ahead(buffer)
        elif this_thread.deadline is None:
            count = _recv_into(self, buffer)
        else:
            count = self._read_in_time(buffer)
        if not count:
            self.ended = count is not None
        return count

    def _read_ahead(self, buffer: Any) -> int | None:
        ahead = self.held_ahead
        if not ahead and self.failure is not None:
            failure, self.failure, self.ahead = self.failure, None, None
            try:
                raise failure
            finally:
                del failure  # its traceback refers to this frame
        count = min(len(buffer), len(ahead))
        buffer[:count] = ahead[:count]
        del ahead[:count]
        if count and not ahead and self.failure is None:
            self.ahead = None
        return count or None

    def _read_in_time(self, buffer: Any) -> int | None:
        sock: Any = self._sock  # type: ignore[attr-defined]
        usual = this_thread.bound(sock)
        try:
            return _recv_into(self, buffer)
        finally:
            # While a tunnel is being made, the socket's timeout bounds the handshake that follows.
            sock.settimeout(this_thread.rest(usual) if this_thread.connecting is True else usual)

    @property
    def held_ahead(self) -> bytearray:
        """The bytes that were fetched ahead and not read yet."""
        return bytearray() if self.ahead is None else self.ahead

    def in_buffer(self, above: BufferedReader) -> bytes:
        """Return the unread bytes in the buffer above, without making it read more."""
        kept = self.ahead, self.failure, self.ended
        self.ahead, self.failure = bytearray(), None
        try:
            return above.peek()
        finally:
            self.ahead, self.failure, self.ended = kept

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

    def set_timeout(self, seconds: float | None) -> None:
        """Set the timeout of each later ``recv``."""
        self._sock.settimeout(seconds)  # type: ignore[attr-defined]


class BoundedReader(Reader):
    """A reader that bounds the time from the first read of the body to its end, in seconds."""

    seconds: float = 0.0
    _until: Deadline | None = None

    def readinto(self, buffer: Any) -> int | None:
        """Read as usual, within the bound."""
        if self._until is None:
            self._until = after(self.seconds)
        with this_thread.under(earliest(self._until, this_thread.deadline)):
            return super().readinto(buffer)


def reader_of(raw: Any) -> Reader | None:
    """Return the reader below a urllib3 response; None if it was read to its end, or is not on a socket.

    Connections with a ``connect`` of their own (Unix sockets, TLS within TLS) are not prepared. Their reader is the
    standard library's, and is converted here.
    """
    if state.IS_FUTURE:
        return None  # it buffers what it reads, so nobody else may read from the socket
    try:
        below = raw._original_response.fp.raw
    except AttributeError:
        return None
    if below.__class__ is Reader:
        return below
    if type(below) is socket.SocketIO:
        below.__class__ = Reader
    return below if isinstance(below, Reader) else None


def set_read_timeout(raw: Any, seconds: float | None, in_all: float | None = None) -> None:
    """Give an unread response the read timeout that its caller asked for.

    :param raw: the urllib3 response.
    :param seconds: the longest wait for bytes; None for no limit.
    :param in_all: the time that reading all of it may take; None for no limit.
    """
    reader = reader_of(raw)
    if reader is None:
        return
    reader.set_timeout(seconds)
    if in_all is not None:
        reader.__class__ = BoundedReader
        reader.seconds = in_all  # type: ignore[attr-defined]
