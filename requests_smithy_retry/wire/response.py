"""The response class of prepared connections (contract 14.2, 14.4): heads that ``http.client`` takes for good.

What is valid, or only sloppy, is read as plain ``http.client`` reads it: bare line feeds, missing reasons.
"""

from __future__ import annotations

import http.client
from typing import Any

from urllib3.exceptions import InvalidHeader

from .reader import buffered

MOST_INTERIM = 16
"""So many 1xx answers are read past."""


class _NoFile:
    """Stands in for the socket where ``http.client`` would make a file of it."""

    def makefile(self, mode: str) -> None:  # noqa: ARG002
        """Make none."""


_NO_FILE: Any = _NoFile()


class CheckedResponse(http.client.HTTPResponse):
    """Reads past interim answers and refuses a head that contradicts itself."""

    def __init__(self, sock: Any, debuglevel: int = 0, method: str | None = None, url: str | None = None) -> None:
        http.client.HTTPResponse.__init__(self, _NO_FILE, debuglevel, method, url)
        self.fp = buffered(sock, self)

    def _read_status(self) -> tuple[str, int, str]:
        answer = _read_status(self)
        if answer[1] < 200 and answer[1] != 101:
            answer = self._read_past_interim(answer)
        return answer

    def _read_past_interim(self, answer: tuple[str, int, str]) -> tuple[str, int, str]:
        for _ in range(MOST_INTERIM):
            http.client.parse_headers(self.fp)
            answer = _read_status(self)
            if answer[1] >= 200 or answer[1] == 101:
                return answer
        raise http.client.HTTPException(f"got more than {MOST_INTERIM} interim responses")

    def begin(self) -> None:
        """Read the head.

        :raises InvalidHeader: for a length that is none, or that stands beside chunks (RFC 9112 6.3).
        """
        _begin(self)
        if self.length is None:
            self._check_length()
        elif self.status == 101:
            self.will_close = True  # what follows on this connection is not HTTP, whoever asked for it

    def _check_length(self) -> None:
        """There is no length to go by: the body is chunked, ends with the connection, or the length is nonsense."""
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
        return _safe_read(self, amt)


def _is_length(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) < 20


_base: Any = http.client.HTTPResponse
_begin, _read_status, _safe_read = _base.begin, _base._read_status, _base._safe_read
