"""Faults of a reply: its head cut, malformed or oversized, interim responses, wrong lengths, broken chunks."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

from .behaviour import DEFAULT_BODY, WELL, Behaviour, Framing, Reply, chunks
from .recorded_request import RecordedRequest
from .wire import Ending, Wire

_CHUNKED = Reply(body=DEFAULT_BODY, framing="chunked")


@dataclass(frozen=True)
class _Distorted(Behaviour):
    """A reply that goes out wrong, in one piece, after which the connection ends."""

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        reply: Reply = getattr(self, "reply")  # noqa: B009 - each class below has one, at a place of its own
        wire.stall(reply.delay)
        wire.send(self._bytes(reply, request))
        if self._may_stay:
            reply.finish(wire, request)
        else:
            wire.end(getattr(self, "then", "close"))

    _may_stay = False
    """The connection is left as after a good reply."""

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        raise NotImplementedError  # pragma: no cover - each class below has it


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
        return self.line + b"\r\n" + reply.header_lines(request) + b"\r\n" + reply.framed_body(request)


@dataclass(frozen=True)
class HugeHeader(_Distorted):
    """Sends one huge header line in an otherwise good reply.

    :param size: the size of its value in bytes.
    """

    size: int = 10_000_000
    reply: Reply = WELL
    _may_stay = True

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        huge = b"X-Huge: " + b"x" * self.size + b"\r\n"
        return reply.status_line() + huge + reply.header_lines(request) + b"\r\n" + reply.framed_body(request)


@dataclass(frozen=True)
class EndlessHeaders(Behaviour):
    """Sends header lines until either side closes.

    :param interval: seconds before each line.
    """

    interval: float = 0.0
    status: int = 200

    def act(self, wire: Wire, request: RecordedRequest) -> None:  # noqa: ARG002
        wire.send(Reply(self.status).status_line())
        for number in itertools.count():  # pragma: no branch - the connection ends first
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
            wire.send(Reply(status).status_line() + b"\r\n")
        self.reply.act(wire, request)


@dataclass(frozen=True)
class SwitchProtocols(Behaviour):
    """Answers 101 to a client that did not ask for another protocol."""

    then: Ending = "close"

    def act(self, wire: Wire, request: RecordedRequest) -> None:  # noqa: ARG002
        wire.send(Reply(101).status_line() + b"Connection: Upgrade\r\nUpgrade: whatever\r\n\r\n")
        wire.end(self.then)


@dataclass(frozen=True)
class CutBody(_Distorted):
    """Sends the whole head and a part of the body, then breaks off: a short Content-Length, or a cut chunk.

    With the framing ``"close"`` no client can notice, unless the body is coded.

    :param at: the number of body bytes sent, chunk framing included; negative counts from the end; None is half.
    """

    reply: Reply = WELL
    at: int | None = None
    then: Ending = "close"

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        body = reply.framed_body(request)
        return reply.head(request) + body[: len(body) // 2 if self.at is None else self.at]


@dataclass(frozen=True)
class MissingLastChunk(_Distorted):
    """Sends all chunks of a body, but not the last chunk of size 0.

    :param reply: its body is sent in chunks, whatever its framing.
    """

    reply: Reply = _CHUNKED
    then: Ending = "close"

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        return reply.head(request, [("Transfer-Encoding", "chunked")]) + chunks(reply.plain_body(request))


@dataclass(frozen=True)
class BadChunkSize(_Distorted):
    """Sends a good chunk, and a chunk with an invalid size, and closes.

    :param size: the text in place of the size.
    :param reply: its body makes up the good chunk.
    """

    size: bytes = b"zz"
    reply: Reply = _CHUNKED

    def _bytes(self, reply: Reply, request: RecordedRequest) -> bytes:
        bad = self.size + b"\r\nabc\r\n0\r\n\r\n" if reply.has_body(request) else b""
        return reply.head(request, [("Transfer-Encoding", "chunked")]) + chunks(reply.plain_body(request)) + bad


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
        return reply.head(request, [("Content-Length", self.stated)]) + reply.plain_body(request)


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
        return reply.head(request, [("Content-Length", value) for value in values]) + reply.plain_body(request)


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
        framing = [("Content-Length", self.stated), ("Transfer-Encoding", "chunked")]
        return reply.head(request, framing) + replace(reply, framing="chunked").framed_body(request)


@dataclass(frozen=True)
class GarbageAfterReply(_Distorted):
    """Answers correctly, and sends stray bytes on the open connection, in the same segment."""

    garbage: bytes = b"\x00garbage\r\n"
    reply: Reply = WELL
    _may_stay = True

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
        reply = Reply(self.status, framing=self.framing)
        wire.send(reply.head(request, [("Content-Length", str(1 << 40))] if self.framing == "length" else None))
        piece = chunks(self.piece) if self.framing == "chunked" else self.piece
        left = self.pieces if reply.has_body(request) else 0
        while left > 0:
            wire.stall(self.interval)
            wire.send(piece)
            left -= 1
        wire.close()
