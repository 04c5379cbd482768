"""The response class of prepared connections (contract 14.2, 14.4), which checks what ``http.client`` lets pass.

A valid or merely sloppy head is read as plain ``http.client`` reads it: bare line feeds, missing reasons.
"""

from __future__ import annotations

import functools
import http.client
from io import BufferedReader
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import urllib3
from urllib3.exceptions import InvalidHeader

from .reader import Reader
from .state import this_thread

if TYPE_CHECKING:
    from .addresses import Peer

MOST_INTERIM = 16
"""The most 1xx responses that are skipped."""


_NO_FILE: Any = SimpleNamespace(makefile=lambda mode: None)  # noqa: ARG005
"""A stand-in for the socket, of which ``http.client`` would make a file."""


class _Buffer(BufferedReader):
    """The buffer above a :class:`Reader`."""


class _ChunkBuffer(_Buffer):
    """The buffer of a chunked body, which rejects a cut last chunk."""

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        # The connection ended within a line that may have been the beginning of a padded size, such as ``00ff``.
        if line.startswith(b"0") and not line.endswith(b"\n") and self.raw.ended:  # type: ignore[attr-defined]
            raise http.client.IncompleteRead(line)
        return line


class CheckedResponse(http.client.HTTPResponse):
    """A response that skips interim responses and rejects a head that is cut or contradicts itself."""

    fp: Any
    headers: http.client.HTTPMessage
    msg: http.client.HTTPMessage
    length: int | None
    plain = False
    """True while retries are switched off."""
    had_chunk: bool = False
    """True once a chunk was not empty."""
    interim: int = 0
    """The number of 1xx responses that were read past."""

    def __init__(self, sock: Any, debuglevel: int = 0, method: str | None = None, url: str | None = None) -> None:
        try:
            sock._io_refs += 1  # as makefile does: the socket lives until fp is closed
        except (AttributeError, TypeError):
            # TLS within TLS, or a stand-in: it makes its own file, which a deadline bounds by its timeout alone.
            _init(self, sock, debuglevel, method, url)
        else:
            _init(self, _NO_FILE, debuglevel, method, url)
            self.fp = _Buffer(Reader(sock, "r"))

    def begin(self) -> None:
        """Read the head.

        :raises http.client.RemoteDisconnected: if it ends before its blank line.
        :raises InvalidHeader: for an invalid Content-Length, or one beside chunks (RFC 9112 6.3).
        """
        _begin(self)
        if not self.length and not this_thread.plain:
            self._check_head()

    def _read_status(self) -> tuple[str, int, str]:
        """Read the line of the status, and count the 1xx responses: ``begin`` itself reads past every 100.

        :raises http.client.HTTPException: if there are too many.
        """
        read: tuple[str, int, str] = _read_status(self)
        if read[1] < 200 and not this_thread.plain and _is_interim(read[1]):
            self.interim += 1
            if self.interim > MOST_INTERIM:
                raise http.client.HTTPException(f"got more than {MOST_INTERIM} interim responses")
        return read

    def _check_head(self) -> None:
        """Check a head that announces no length, so that a cut would not be noticed later."""
        while _is_interim(self.status):
            self.headers = self.msg = None  # type: ignore[assignment]
            _begin(self)
        if getattr(getattr(self.fp, "raw", None), "ended", False):
            raise http.client.RemoteDisconnected("Remote end closed connection within the head of its response")
        if self.status == 101:
            self.will_close = True  # the rest of this connection is not HTTP
        if self.length is None:
            self._check_length()
        if self.chunked and isinstance(self.fp, _Buffer):
            self.fp.__class__ = _ChunkBuffer

    def _check_length(self) -> None:
        """Check the Content-Length where ``http.client`` found no usable one. Empty elements count for none."""
        text = ", ".join(self.headers.get_all("content-length", ()))
        values = {value.strip() for value in text.split(",")} - {""}
        if not values:
            return
        if self.chunked:
            raise InvalidHeader(f"Content-Length ({text[:100]}) beside Transfer-Encoding")
        value = values.pop()
        if values or not (value.isascii() and value.isdigit() and len(value) < 20):
            raise InvalidHeader(f"Content-Length is invalid: {text[:100]}")
        self.length = int(value)  # the same value, repeated

    def _safe_read(self, amt: int) -> bytes:
        if amt < 0:
            # A chunk of negative size, which the buffer would take for "everything".
            raise http.client.IncompleteRead(b"")
        if amt:
            self.had_chunk = True
        data: bytes = _safe_read(self, amt)
        return data


def _is_interim(status: int) -> bool:
    return status < 200 and status != 101


class _ReadsToLength(CheckedResponse):
    """For urllib3 1.26, which does not check that a length was reached."""

    def read(self, amt: int | None = None) -> bytes:
        data = super().read(amt)
        if not data and amt and self.length and not self.plain:
            raise http.client.IncompleteRead(b"", self.length)
        return data


RESPONSE_CLASS = CheckedResponse if hasattr(urllib3, "BaseHTTPResponse") else _ReadsToLength
"""The response class of prepared connections."""


class _ProbeResponse(RESPONSE_CLASS):  # type: ignore[misc, valid-type]
    """A response from an address that failed lately: a status below 500 clears it."""

    def __init__(self, peer: Peer, sock: Any, *others: Any, **named: Any) -> None:
        super().__init__(sock, *others, **named)
        self._peer = peer

    def begin(self) -> None:
        super().begin()
        if self.status < 500:
            self._peer.memory.succeeded(self._peer.origin, self._peer.address)


def probing(peer: Peer) -> Any:
    """Return the response class of a connection to an address that failed lately."""
    return functools.partial(_ProbeResponse, peer)


_base: Any = http.client.HTTPResponse
_init, _begin, _safe_read, _read_status = _base.__init__, _base.begin, _base._safe_read, _base._read_status
