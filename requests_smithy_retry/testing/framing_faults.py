"""Faults of a body's framing: wrong lengths, broken chunks, endless bodies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .behaviour import DEFAULT_BODY, WELL, Behaviour, Framing, Reply, chunks
from .recorded_request import RecordedRequest
from .wire import Ending, Wire

_CHUNKED = Reply(body=DEFAULT_BODY, framing="chunked")


@dataclass(frozen=True)
class CutBody(Behaviour):
    """Sends the whole head and a part of the body, then breaks off: a short Content-Length, or a cut chunk.

    With the framing ``"close"`` no client can notice, unless the body is coded.

    :param reply: the reply to cut.
    :param at: the number of body bytes sent, chunk framing included; negative counts from the end; None is half.
    :param then: the end of the connection.
    """

    reply: Reply = WELL
    at: int | None = None
    then: Ending = "close"

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Send a part, and break off."""
        wire.stall(self.reply.delay)
        body = self.reply.framed_body(request)
        wire.send(self.reply.head(request) + body[: len(body) // 2 if self.at is None else self.at])
        wire.end(self.then)


@dataclass(frozen=True)
class MissingLastChunk(Behaviour):
    """Sends all chunks of a body, but not the last chunk of size 0.

    :param reply: its body is sent in chunks, whatever its framing.
    :param then: the end of the connection.
    """

    reply: Reply = _CHUNKED
    then: Ending = "close"

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Send the chunks, and break off."""
        wire.stall(self.reply.delay)
        head = self.reply.head(request, [("Transfer-Encoding", "chunked")])
        wire.send(head + chunks(self.reply.plain_body(request)))
        wire.end(self.then)


@dataclass(frozen=True)
class BadChunkSize(Behaviour):
    """Sends a good chunk, and a chunk with an invalid size.

    :param size: the text in place of the size.
    :param reply: its body makes up the good chunk.
    """

    size: bytes = b"zz"
    reply: Reply = _CHUNKED

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Send both chunks, and close."""
        head = self.reply.head(request, [("Transfer-Encoding", "chunked")])
        wire.stall(self.reply.delay)
        bad = self.size + b"\r\nabc\r\n0\r\n\r\n" if self.reply.has_body(request) else b""
        wire.send(head + chunks(self.reply.plain_body(request)) + bad)
        wire.close()


@dataclass(frozen=True)
class MisstatedLength(Behaviour):
    """Sends a wrong Content-Length: negative, too small, too large, or not a number.

    :param stated: the value as sent.
    :param reply: its whole body is sent.
    :param then: the end of the connection; ``"keep"`` leaves surplus bytes on it if the length is too small.
    """

    stated: str = "-1"
    reply: Reply = WELL
    then: Ending = "close"

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Send the whole body under the wrong length."""
        wire.stall(self.reply.delay)
        head = self.reply.head(request, [("Content-Length", self.stated)])
        wire.send(head + self.reply.plain_body(request))
        wire.end(self.then)


@dataclass(frozen=True)
class TwoLengths(Behaviour):
    """Sends two contradictory Content-Lengths, the right one first.

    :param other: the second value.
    :param joined: True for one header line, with a comma between the values.
    :param reply: its whole body is sent.
    :param then: the end of the connection.
    """

    other: str = "3"
    joined: bool = False
    reply: Reply = WELL
    then: Ending = "close"

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Send the whole body under both lengths."""
        values = [str(len(self.reply.body)), self.other]
        values = [", ".join(values)] if self.joined else values
        wire.stall(self.reply.delay)
        head = self.reply.head(request, [("Content-Length", value) for value in values])
        wire.send(head + self.reply.plain_body(request))
        wire.end(self.then)


@dataclass(frozen=True)
class LengthAndChunks(Behaviour):
    """Sends a chunked body with a Content-Length; by RFC 9112 the chunks count, and the reply is suspect.

    :param stated: the Content-Length.
    :param reply: its body is sent in chunks.
    :param then: the end of the connection.
    """

    stated: str = "3"
    reply: Reply = _CHUNKED
    then: Ending = "close"

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Send the chunks under the length."""
        framing = [("Content-Length", self.stated), ("Transfer-Encoding", "chunked")]
        wire.stall(self.reply.delay)
        body = replace(self.reply, framing="chunked").framed_body(request)
        wire.send(self.reply.head(request, framing) + body)
        wire.end(self.then)


@dataclass(frozen=True)
class GarbageAfterReply(Behaviour):
    """Answers correctly, and sends stray bytes on the open connection.

    :param garbage: the bytes.
    :param reply: the answer.
    """

    garbage: bytes = b"\x00garbage\r\n"
    reply: Reply = WELL

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Answer, with the garbage in the same segment."""
        wire.stall(self.reply.delay)
        wire.send(self.reply.head(request) + self.reply.framed_body(request) + self.garbage)
        self.reply.finish(wire, request)


@dataclass(frozen=True)
class EndlessBody(Behaviour):
    """Sends an endless body, fast or with an interval.

    :param status: the status of the reply.
    :param piece: the bytes that are repeated.
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
        """Send until either side closes."""
        reply = Reply(self.status, framing=self.framing)
        wire.send(reply.head(request, [("Content-Length", str(1 << 40))] if self.framing == "length" else None))
        piece = chunks(self.piece) if self.framing == "chunked" else self.piece
        left = self.pieces if reply.has_body(request) else 0
        while left > 0:
            wire.stall(self.interval)
            wire.send(piece)
            left -= 1
        wire.close()
