"""Reading a response's bytes from its socket: in time, and noticing an end that comes too early (contract 14.1).

``http.client`` reads through a buffer; this is what stands below the buffer, so each call is one ``recv``.
"""

from __future__ import annotations

import socket
from typing import Any

from .state import attempt, timeout_of

_recv_into = socket.SocketIO.readinto
PREFETCH_PART = 16_384


class Reader(socket.SocketIO):
    """The raw side of a response. Made as ``SocketIO`` is."""

    ahead: bytes | None = None
    """Bytes fetched ahead, to be read next. Empty: nothing may be read now. None: read from the socket."""
    ended: bool = False
    """The far end has closed its side, and that was seen."""

    def readinto(self, buffer: Any) -> int | None:
        """Read what there is: what was fetched ahead, or one ``recv`` that ends by the attempt's deadline."""
        if attempt.deadline is None and self.ahead is None:
            count = _recv_into(self, buffer)
        else:
            count = self._read_specially(buffer)
        if not count:
            self.ended = count is not None
        return count

    def _read_specially(self, buffer: Any) -> int | None:
        return self._read_in_time(buffer) if self.ahead is None else self._read_ahead(buffer)

    def _read_ahead(self, buffer: Any) -> int | None:
        ahead = self.ahead or b""
        count = min(len(buffer), len(ahead))
        buffer[:count], rest = ahead[:count], ahead[count:]
        if ahead:
            self.ahead = rest or None
        return count or None

    def _read_in_time(self, buffer: Any) -> int | None:
        sock: Any = self._sock  # type: ignore[attr-defined]
        usual = timeout_of(sock)
        sock.settimeout(attempt.seconds(usual))
        try:
            return _recv_into(self, buffer)
        finally:
            # While a tunnel is being made, the handshake that follows goes by the socket's timeout.
            sock.settimeout(_rest(usual) if attempt.connecting else usual)

    def fetch_ahead(self, seconds: float) -> bool:
        """Do one ``recv`` whose bytes are kept for later reads. False: nothing came in time, or nothing will.

        :param seconds: how long it may take, above 0.
        """
        sock: Any = self._sock  # type: ignore[attr-defined]
        usual = timeout_of(sock)
        sock.settimeout(seconds)
        try:
            part = sock.recv(PREFETCH_PART)
        except OSError:
            return False
        finally:
            sock.settimeout(usual)
        self.ahead = (self.ahead or b"") + part
        self.ended = not part
        return bool(part)

    def set_timeout(self, seconds: float | None) -> None:
        """What each later ``recv`` may take."""
        self._sock.settimeout(seconds)  # type: ignore[attr-defined]


def _rest(usual: float | None) -> float | None:
    try:
        return attempt.seconds(usual)
    except TimeoutError:
        return 1e-3  # the next step on this socket fails at once, as it must


def reader_of(raw: Any) -> Reader | None:
    """The reader below a urllib3 response; None where it is read out, or not one of ours."""
    original = getattr(raw, "_original_response", None)
    below = getattr(getattr(original, "fp", None), "raw", None)
    return below if isinstance(below, Reader) else None


def set_read_timeout(raw: Any, seconds: float | None) -> None:
    """Give a response that is handed on unread the read timeout that its caller asked for."""
    reader = reader_of(raw)
    if reader is not None:
        reader.set_timeout(seconds)
