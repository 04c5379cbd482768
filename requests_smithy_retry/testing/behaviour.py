"""The behaviour of a server for one request, and its replies: well formed, or with a compressed body."""

from __future__ import annotations

import enum
import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Literal

from .recorded_request import RecordedRequest
from .wire import Wire

DEFAULT_BODY = b"The quick brown fox jumps over the lazy dog.\n"

Framing = Literal["length", "chunked", "close"]
"""The end of a body: by Content-Length, by a last chunk, or by closing the connection."""

Headers = Mapping[str, str] | Sequence[tuple[str, str]]

_CHUNK = 16384


class ReadSoFar(enum.IntEnum):
    """The part of the request that the server has read when a behaviour begins."""

    NOTHING = 0
    """Nothing; the TCP connection is made, and a TLS handshake has not begun."""
    HANDSHAKE = 1
    """The TLS handshake, if any, but no byte of the request."""
    HEAD = 2
    """The head, but not the upload."""
    REQUEST = 3
    """The whole request."""


@dataclass(frozen=True)
class Behaviour:
    """The server's reaction to one request. Override :meth:`act` for one of your own."""

    @property
    def begins_after(self) -> ReadSoFar:
        """The part of the request that is read first.

        A behaviour picked by the request's path begins after the head at the earliest; one picked by a function begins
        after the whole request.
        """
        return ReadSoFar.REQUEST

    def greet(self, wire: Wire) -> Behaviour | None:
        """Act before the request is read; called only if the behaviour begins before the head.

        :returns: the behaviour for the request that follows; None for the next step of the script.
        """
        raise NotImplementedError

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Answer the request. If the wire is left open, the next request on it is served.

        :param request: the request as far as it was read.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Reply(Behaviour):
    """A well-formed reply.

    :param status: status code, with its usual reason phrase.
    :param headers: pairs or a mapping; a Content-Length, Transfer-Encoding or Connection among them replaces our own.
    :param body: left out for HEAD, 204 and 304.
    :param framing: the end of the body; ``"close"`` closes the connection.
    :param delay: seconds between the request and the reply, 0 or more.
    """

    status: int = 200
    headers: Headers = ()
    body: bytes = field(default=b"", repr=False)
    framing: Framing = "length"
    delay: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", _pairs(self.headers))
        if self.framing not in ("length", "chunked", "close"):
            raise ValueError(f"framing={self.framing!r}: 'length', 'chunked' or 'close' is allowed")

    def has_body(self, request: RecordedRequest) -> bool:
        """Return True if a reply with this status to this request has a body."""
        return request.method != "HEAD" and self.status >= 200 and self.status not in (204, 304)

    def status_line(self) -> bytes:
        """Return the first line, with its line end."""
        try:
            phrase = HTTPStatus(self.status).phrase
        except ValueError:
            phrase = "Unknown"
        return f"HTTP/1.1 {self.status} {phrase}\r\n".encode("latin-1")

    def header_lines(self, request: RecordedRequest, framing: Sequence[tuple[str, str]] | None = None) -> bytes:
        """Return all header lines with their line ends, without the blank line.

        :param framing: wrong lines for the framing, in place of the right ones.
        """
        pairs = _pairs(self.headers)
        given = {name.lower() for name, _ in pairs}
        has_none = self.status < 200 or self.status == 204 or self.framing == "close"
        length = ("Content-Length", str(len(self.body)))
        right = [] if has_none else [("Transfer-Encoding", "chunked") if self.framing == "chunked" else length]
        own = right if framing is None else [*framing]
        if self.framing == "close" or not request.keep_alive:
            own.append(("Connection", "close"))
        lines = [*pairs, *((name, value) for name, value in own if name.lower() not in given)]
        return "".join(f"{name}: {value}\r\n" for name, value in lines).encode("latin-1")

    def head(self, request: RecordedRequest, framing: Sequence[tuple[str, str]] | None = None) -> bytes:
        """Return status line, headers and blank line; ``framing`` as in :meth:`header_lines`."""
        return self.status_line() + self.header_lines(request, framing) + b"\r\n"

    def plain_body(self, request: RecordedRequest) -> bytes:
        """Return the body without chunks; empty if the reply must not have one."""
        return self.body if self.has_body(request) else b""

    def framed_body(self, request: RecordedRequest) -> bytes:
        """Return the body as sent over the wire; empty if the reply must not have one."""
        if self.framing == "chunked" and self.has_body(request):
            return chunks(self.body) + b"0\r\n\r\n"
        return self.plain_body(request)

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Send the reply; close the connection if the framing or the client requires it."""
        wire.stall(self.delay)
        wire.send(self.head(request) + self.framed_body(request))
        self.finish(wire, request)

    def finish(self, wire: Wire, request: RecordedRequest) -> None:
        """Close the connection if the framing or the client requires it."""
        if self.framing == "close" or not request.keep_alive:
            wire.close()


def _pairs(headers: Headers) -> tuple[tuple[str, str], ...]:
    return tuple(headers.items() if isinstance(headers, Mapping) else headers)


def chunks(body: bytes) -> bytes:
    """Frame a body in chunks of at most 16 KiB, without the last chunk."""
    pieces = (body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


WELL = Reply(body=DEFAULT_BODY)
"""The reply of a healthy server: 200 with a short body."""


def try_later(
    status: int = 503, retry_after: str | float = "1", *, header: str = "Retry-After", body: bytes = b""
) -> Reply:
    """Make a reply that says that the service is busy, with a hint when to come back.

    :param status: usually 503 or 429.
    :param retry_after: the hint, sent as it is: seconds, a date, or nonsense.
    :param header: the header that carries it.
    """
    return Reply(status, ((header, str(retry_after)),), body)


def coded_reply(
    coding: str = "gzip",
    body: bytes = DEFAULT_BODY,
    *,
    coded: bytes | None = None,
    cut_to: int | None = None,
    corrupt_at: int | None = None,
    status: int = 200,
    framing: Framing = "length",
) -> Reply:
    """Make a reply with a Content-Encoding.

    :param coding: ``"gzip"``, ``"deflate"`` (zlib, as RFC 9110 has it), or any other together with ``coded``.
    :param body: the body to compress.
    :param coded: the compressed bytes, in place of ``body``.
    :param cut_to: the number of compressed bytes to keep; negative counts from the end. The framing fits the cut body,
        so that only the coding shows that something is missing.
    :param corrupt_at: flip all bits of the compressed byte at this position.
    :raises ValueError: for a coding that cannot be made here.
    """
    if coded is None:
        if coding not in _ENCODERS:
            raise ValueError(f"coding={coding!r}: 'gzip' and 'deflate' are made here, any other needs coded=")
        coded = _ENCODERS[coding](body)
    data = bytearray(coded)
    if corrupt_at is not None:
        data[corrupt_at] ^= 0xFF
    return Reply(status, {"Content-Encoding": coding}, bytes(data[:cut_to]), framing)


def gzip_bomb(size: int = 64 << 20, status: int = 200) -> Reply:
    """Make a reply that inflates to ``size`` zero bytes, from about a thousandth of that.

    :param size: bytes after decoding.
    """
    return Reply(status, {"Content-Encoding": "gzip"}, _compressed_zeros(size))


_ENCODERS: dict[str, Callable[[bytes], bytes]] = {"gzip": partial(gzip.compress, mtime=0), "deflate": zlib.compress}


@lru_cache(maxsize=4)
def _compressed_zeros(size: int) -> bytes:
    compressor = zlib.compressobj(wbits=31)
    whole, rest = divmod(size, 1 << 20)
    pieces = [compressor.compress(bytes(1 << 20)) for _ in range(whole)]
    return b"".join([*pieces, compressor.compress(bytes(rest)), compressor.flush()])
