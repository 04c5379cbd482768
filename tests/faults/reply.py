"""Faults of a reply: its head cut, malformed or oversized, interim responses, wrong lengths, broken chunks, codings."""

from __future__ import annotations

import gzip
import itertools
import math
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from requests_smithy_retry.testing import WELL, Behaviour, RecordedRequest, Reply, Wire

Framing = Literal["length", "chunked", "close"]
Ending = Literal["keep", "close", "reset", "stall"]

DEFAULT_BODY = WELL.body
_CHUNKED = Reply(body=DEFAULT_BODY, framing="chunked")
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
class _Distorted(Behaviour):
    """A reply that goes out wrong, in one piece, after which the connection ends."""

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        reply: Reply = getattr(self, "reply")  # noqa: B009 - each class below has one, at a place of its own
        wire.stall(reply.delay)
        wire.send(self._bytes(reply, request))
        then: Ending = getattr(self, "then", "close")
        if then == "keep":
            reply.finish(wire, request)
        else:
            wire.end(then)

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        raise NotImplementedError


@dataclass(frozen=True)
class CutHead(_Distorted):
    """Breaks off within the head; by default before the blank line.

    :param at: the number of head bytes sent; negative counts from the end.
    """

    reply: Reply = WELL
    at: int = -2
    then: Ending = "close"

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        return reply.head(request)[: self.at]


@dataclass(frozen=True)
class BadStatusLine(_Distorted):
    """Sends an invalid status line with an otherwise good reply, and closes.

    :param line: the line, without its end.
    """

    line: bytes = b"HTTP/1.1 well OK"
    reply: Reply = WELL

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        _, end, rest = reply.head(request).partition(b"\r\n")
        return self.line + end + rest + reply.framed_body(request)


@dataclass(frozen=True)
class HugeHeader(_Distorted):
    """Sends one huge header line in an otherwise good reply.

    :param size: the size of its value in bytes.
    """

    size: int = 10_000_000
    reply: Reply = WELL
    then = "keep"

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        huge = _with(reply, ("X-Huge", "x" * self.size))
        return huge.head(request) + huge.framed_body(request)


@dataclass(frozen=True)
class EndlessHeaders(Behaviour):
    """Sends header lines until either side closes.

    :param interval: seconds before each line.
    """

    interval: float = 0.0

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        wire.send(b"HTTP/1.1 200 OK\r\n")
        for number in itertools.count():
            wire.stall(self.interval)
            wire.send(b"X-Header-%d: and another one\r\n" % number)


@dataclass(frozen=True)
class Interim(Behaviour):
    """Sends interim (1xx) responses before the final one.

    :param statuses: the interim statuses, in turn.
    :param count: the number of repetitions.
    :param interval: seconds before each interim response.
    """

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
class MissingLastChunk(_Distorted):
    """Sends all chunks of a body, but not the last chunk of size 0.

    :param reply: its body is sent in chunks, whatever its framing.
    """

    reply: Reply = _CHUNKED
    then: Ending = "close"

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        chunked = replace(reply, framing="chunked")
        return chunked.head(request) + chunked.framed_body(request).removesuffix(_LAST_CHUNK)


@dataclass(frozen=True)
class BadChunkSize(_Distorted):
    """Sends a good chunk, and a chunk with an invalid size, and closes.

    :param size: the text in place of the size.
    :param reply: its body makes up the good chunk.
    """

    size: bytes = b"zz"
    reply: Reply = _CHUNKED

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        chunked = replace(reply, framing="chunked")
        body = chunked.framed_body(request)
        bad = self.size + b"\r\nabc\r\n" + _LAST_CHUNK if body else b""
        return chunked.head(request) + body.removesuffix(_LAST_CHUNK) + bad


@dataclass(frozen=True)
class MisstatedLength(_Distorted):
    """Sends a wrong Content-Length: negative, too small, too large, or not a number.

    :param stated: the value as sent.
    :param reply: its whole body is sent.
    :param then: the end of the connection; ``"keep"`` leaves surplus bytes on it if the length is too small.
    """

    stated: str = "-1"
    reply: Reply = WELL
    then: Ending = "close"

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        return _with(reply, ("Content-Length", self.stated)).head(request) + reply.framed_body(request)


@dataclass(frozen=True)
class TwoLengths(_Distorted):
    """Sends two contradictory Content-Lengths, the right one first.

    :param joined: True for one header line, with a comma between the values.
    :param reply: its whole body is sent.
    """

    other: str = "3"
    joined: bool = False
    reply: Reply = WELL
    then: Ending = "close"

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        values = [str(len(reply.body)), self.other]
        values = [", ".join(values)] if self.joined else values
        lines = [("Content-Length", value) for value in values]
        return _with(reply, *lines).head(request) + reply.framed_body(request)


@dataclass(frozen=True)
class LengthAndChunks(_Distorted):
    """Sends a chunked body with a Content-Length; by RFC 9112 the chunks count, and the reply is suspect.

    :param stated: the Content-Length.
    :param reply: its body is sent in chunks.
    """

    stated: str = "3"
    reply: Reply = _CHUNKED
    then: Ending = "close"

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        chunked = replace(reply, framing="chunked")
        return _with(chunked, ("Content-Length", self.stated)).head(request) + chunked.framed_body(request)


@dataclass(frozen=True)
class GarbageAfterReply(_Distorted):
    """Answers correctly, and sends stray bytes on the open connection, in the same segment."""

    garbage: bytes = b"\x00garbage\r\n"
    reply: Reply = WELL
    then = "keep"

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        return reply.head(request) + reply.framed_body(request) + self.garbage


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
