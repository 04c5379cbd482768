"""The response class of prepared connections (contract 14.2, 14.4): heads that ``http.client`` takes for good.

What is valid, or only sloppy, is read as plain ``http.client`` reads it: bare line feeds, missing reasons.
"""

from __future__ import annotations

import http.client
from io import BufferedReader
from typing import Any

import urllib3
from urllib3.exceptions import InvalidHeader

from .reader import Reader
from .state import attempt

MOST_INTERIM = 16
"""So many 1xx answers are read past."""


class _NoFile:
    """Stands in for the socket where ``http.client`` would make a file of it."""

    def makefile(self, mode: str) -> None:
        """Make none."""


_NO_FILE: Any = _NoFile()


class _Buffer(BufferedReader):
    """The buffer above a :class:`Reader`."""


class _ChunkBuffer(_Buffer):
    """Where a body is chunked: its last chunk is there only if its line is."""

    def readline(self, size: int | None = -1, /) -> bytes:
        """Read a line.

        :raises http.client.IncompleteRead: if the connection ends within a line that begins as a last chunk does: it
            may have been the beginning of a padded size, such as ``00ff``.
        """
        line = super().readline(size)
        if line.startswith(b"0") and not line.endswith(b"\n") and self.raw.ended:  # type: ignore[attr-defined]
            raise http.client.IncompleteRead(line)
        return line


class CheckedResponse(http.client.HTTPResponse):
    """Reads past interim answers and refuses a head that is cut or contradicts itself."""

    fp: Any
    headers: http.client.HTTPMessage
    msg: http.client.HTTPMessage
    length: int | None
    plain = False
    """Retries are switched off."""

    def __init__(self, sock: Any, debuglevel: int = 0, method: str | None = None, url: str | None = None) -> None:
        try:
            sock._io_refs += 1  # as makefile does: the socket lives until fp is closed
        except (AttributeError, TypeError):
            # TLS within TLS, or a stand-in (some have a function of any name): it makes its own file, which a deadline
            # reaches by its timeout alone.
            _init(self, sock, debuglevel, method, url)
        else:
            _init(self, _NO_FILE, debuglevel, method, url)
            self.fp = _Buffer(Reader(sock, "r"))

    def begin(self) -> None:
        """Read the head.

        :raises http.client.RemoteDisconnected: if it ends before its blank line.
        :raises InvalidHeader: for a length that is none, or that stands beside chunks (RFC 9112 6.3).
        """
        _begin(self)
        if not self.length and not attempt.plain:
            self._look_closer()

    def _look_closer(self) -> None:
        """No body is stated, so that nothing which is missing would be missed later on."""
        for _ in range(MOST_INTERIM):
            if not _is_interim(self.status):
                break
            self.headers = self.msg = None  # type: ignore[assignment]
            _begin(self)
        if _is_interim(self.status):
            raise http.client.HTTPException(f"got more than {MOST_INTERIM} interim responses")
        if getattr(getattr(self.fp, "raw", None), "ended", False):
            raise http.client.RemoteDisconnected("Remote end closed connection within the head of its response")
        if self.status == 101:
            self.will_close = True  # what follows on this connection is not HTTP, whoever asked for it
        if self.length is None:
            self._check_length()
        if self.chunked and isinstance(self.fp, _Buffer):
            self.fp.__class__ = _ChunkBuffer

    def _check_length(self) -> None:
        """The body is chunked, or ends with the connection, or its length is nonsense."""
        lengths = self.headers.get_all("content-length")
        if lengths is None:
            return
        text = ", ".join(lengths)
        if self.chunked:
            raise InvalidHeader(f"Content-Length ({text[:100]}) beside Transfer-Encoding")
        values = {value.strip() for value in text.split(",")}
        if len(values) != 1 or not _is_length(value := values.pop()):
            raise InvalidHeader(f"Content-Length is none: {text[:100]}")
        self.length = int(value)  # the same one several times over

    def _safe_read(self, amt: int) -> bytes:
        if amt < 0:
            # A chunk of negative size. The buffer would take it for "everything", or for a programming error.
            raise http.client.IncompleteRead(b"")
        data: bytes = _safe_read(self, amt)
        return data


def _is_length(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) < 20


def _is_interim(status: int) -> bool:
    return status < 200 and status != 101


class _ReadsToLength(CheckedResponse):
    """For urllib3 1.26, which does not ask whether a length was reached."""

    def read(self, amt: int | None = None) -> bytes:
        """Read, as ``http.client`` does.

        :raises http.client.IncompleteRead: if the body ends before its length.
        """
        data = super().read(amt)
        if not data and amt and self.length and not self.plain:
            raise http.client.IncompleteRead(b"", self.length)
        return data


RESPONSE_CLASS = CheckedResponse if hasattr(urllib3, "BaseHTTPResponse") else _ReadsToLength
"""What prepared connections read with."""

_base: Any = http.client.HTTPResponse
_init, _begin, _safe_read = _base.__init__, _base.begin, _base._safe_read
