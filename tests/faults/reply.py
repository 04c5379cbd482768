"""Faults of a reply: its head cut, malformed or oversized, interim responses, wrong lengths, broken chunks, codings."""

from __future__ import annotations

import gzip
import itertools
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from requests_smithy_retry.testing import WELL, Behaviour, RecordedRequest, Reply, Wire

Framing = Literal["length", "chunked", "close"]
Ending = Literal["keep", "close", "reset", "stall"]

DEFAULT_BODY = WELL.body
_LAST_CHUNK = b"0\r\n\r\n"


def try_later(status: int = 503, retry_after: str | float = "1", *, header: str = "Retry-After") -> Reply:
    """Make a reply that says that the service is busy, with a hint when to come back."""
    return Reply(status, {header: str(retry_after)})


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
    """
    if coded is None:
        coded = gzip.compress(body, mtime=0) if coding == "gzip" else zlib.compress(body)
    data = bytearray(coded)
    if corrupt_at is not None:
        data[corrupt_at] ^= 0xFF
    return Reply(status, {"Content-Encoding": coding}, bytes(data[:cut_to]), framing)


@lru_cache(maxsize=4)
def gzip_bomb(size: int = 64 << 20, status: int = 200) -> Reply:
    """Make a reply that inflates to ``size`` zero bytes, from about a thousandth of that."""
    compressor = zlib.compressobj(wbits=31)
    whole, rest = divmod(size, 1 << 20)
    pieces = [compressor.compress(bytes(1 << 20)) for _ in range(whole)]
    return Reply(
        status, {"Content-Encoding": "gzip"}, b"".join([*pieces, compressor.compress(bytes(rest)), compressor.flush()])
    )


def _with(reply: Reply, *headers: tuple[str, str]) -> Reply:
    """Return a reply with lines for the framing in place of the right ones, which are sent as they are."""
    return replace(reply, headers=(*reply.headers, *headers))


@dataclass(frozen=True)
class Distorted(Behaviour):
    """A reply that goes out wrong, in one piece, after which the connection ends, or is kept."""

    reply: Reply
    bytes_of: Callable[[Reply, RecordedRequest], bytes] = field(repr=False)
    then: Ending = "close"

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        wire.stall(self.reply.delay)
        wire.send(self.bytes_of(self.reply, request))
        if self.then == "keep":
            self.reply.finish(wire, request)
        else:
            wire.end(self.then)


def _whole(reply: Reply, request: RecordedRequest) -> bytes:
    return reply.head(request) + reply.framed_body(request)


def CutHead(reply: Reply = WELL, at: int = -2, then: Ending = "close") -> Distorted:
    """Break off within the head: after ``at`` bytes; by default, or for -2, before the blank line."""
    return Distorted(reply, lambda reply, request: reply.head(request)[:at], then)


def BadStatusLine(line: bytes = b"HTTP/1.1 well OK", reply: Reply = WELL) -> Distorted:
    """Send an invalid status line, given without its end, with an otherwise good reply."""
    return Distorted(reply, lambda reply, request: line + _whole(reply, request)[reply.head(request).index(b"\r\n") :])


def HugeHeader(size: int = 10_000_000, reply: Reply = WELL) -> Distorted:
    """Send one header line whose value has so many bytes, in an otherwise good reply."""
    return Distorted(_with(reply, ("X-Huge", "x" * size)), _whole, "keep")


def MissingLastChunk(reply: Reply = WELL, then: Ending = "close") -> Distorted:
    """Send all chunks of a reply's body, but not the last chunk of size 0."""
    chunked = replace(reply, framing="chunked")
    return Distorted(chunked, lambda reply, request: _whole(reply, request).removesuffix(_LAST_CHUNK), then)


def BadChunkSize(size: bytes = b"zz", reply: Reply = WELL) -> Distorted:
    """Send a reply's body as a good chunk, and then one with this text in place of its size."""

    def bytes_of(reply: Reply, request: RecordedRequest) -> bytes:
        bad = size + b"\r\nabc\r\n" + _LAST_CHUNK if reply.framed_body(request) else b""
        return _whole(reply, request).removesuffix(_LAST_CHUNK) + bad

    return Distorted(replace(reply, framing="chunked"), bytes_of)


def MisstatedLength(stated: str = "-1", reply: Reply = WELL, then: Ending = "close") -> Distorted:
    """State a wrong Content-Length, and send the whole body; ``then="keep"`` leaves its surplus on the connection."""
    return Distorted(_with(reply, ("Content-Length", stated)), _whole, then)


def TwoLengths(other: str = "3", joined: bool = False, reply: Reply = WELL) -> Distorted:
    """State two Content-Lengths, the right one first; ``joined`` in one header line, with a comma between them."""
    values = [str(len(reply.body)), other]
    lines = [("Content-Length", value) for value in ([", ".join(values)] if joined else values)]
    return Distorted(_with(reply, *lines), _whole)


def LengthAndChunks(stated: str = "3", reply: Reply = WELL) -> Distorted:
    """Send a chunked body with a Content-Length; by RFC 9112 the chunks count, and the reply is suspect."""
    return Distorted(_with(replace(reply, framing="chunked"), ("Content-Length", stated)), _whole)


def GarbageAfterReply(garbage: bytes = b"\x00garbage\r\n", reply: Reply = WELL) -> Distorted:
    """Answer correctly, and send stray bytes on the open connection, in the same segment."""
    return Distorted(reply, lambda reply, request: _whole(reply, request) + garbage, "keep")


@dataclass(frozen=True)
class EndlessHeaders(Behaviour):
    """Sends header lines until either side closes, one after each interval of seconds."""

    interval: float = 0.0

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\n")
        for number in itertools.count():
            wire.stall(self.interval)
            wire.send(b"X-Header-%d: and another one\r\n" % number)


@dataclass(frozen=True)
class Interim(Behaviour):
    """Sends interim (1xx) responses before the final one: the statuses in turn, so often, so many seconds apart."""

    statuses: tuple[int, ...] = (103,)
    count: int = 1
    interval: float = 0.0
    reply: Behaviour = WELL

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        for status in self.statuses * self.count:
            wire.stall(self.interval)
            wire.send(b"HTTP/1.1 %d Wait\r\n\r\n" % status)
        self.reply.act(wire, request)


@dataclass(frozen=True)
class SwitchProtocols(Behaviour):
    """Answers 101 to a client that did not ask for another protocol."""

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: whatever\r\n\r\n")
        wire.close()


@dataclass(frozen=True)
class EndlessBody(Behaviour):
    """Sends an endless body, fast or with an interval, until either side closes.

    :param interval: seconds before each piece.
    :param framing: ``"length"`` announces 1 TiB.
    :param pieces: the number of pieces before it closes; by default until either side closes.
    """

    status: int = 200
    piece: bytes = b"x" * 8192
    interval: float = 0.0
    framing: Framing = "close"
    pieces: float = math.inf

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        reply = Reply(self.status, body=self.piece, framing=self.framing)
        length = [("Content-Length", str(1 << 40))] if self.framing == "length" else []
        wire.send(_with(reply, *length).head(request))
        piece = reply.framed_body(request).removesuffix(_LAST_CHUNK)
        left = self.pieces if piece else 0
        while left > 0:
            wire.stall(self.interval)
            wire.send(piece)
            left -= 1
        wire.close()
