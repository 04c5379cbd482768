"""Faults of the connection: closed, reset or stalled at any phase of the exchange, the upload included."""

from __future__ import annotations

import math
import socket
from dataclasses import dataclass
from typing import Literal, get_args

from requests_smithy_retry.testing import WELL, Behaviour, RecordedRequest, Reply

from .server import EarlyFault, FaultWire, ReadSoFar

StallPoint = Literal["accept", "status", "status-line", "header", "body-start", "body"]
"""Before reading; before the status; within the status line; within a header; before the body; within the body."""


_TOO_LARGE = Reply(413, {"Connection": "close"})


@dataclass(frozen=True)
class CloseBeforeRequest(EarlyFault):
    """Closes the connection before a byte of the request is read; the client sees an orderly end, not a reset."""

    def greet(self, wire: FaultWire) -> None:
        wire.close_after_peer()


@dataclass(frozen=True)
class ResetBeforeRequest(EarlyFault):
    """Resets the connection (RST) before a byte of the request is read.

    :param at_once: True to reset as soon as the connection is made, so that the client meets the reset while
        connecting, sending or reading, at random. By default the reset waits for the client's first bytes.
    """

    at_once: bool = False

    def greet(self, wire: FaultWire) -> None:
        if not self.at_once:
            wire.file.peek(1)
        wire.reset()

    def act(self, wire: FaultWire, request: RecordedRequest) -> None:
        wire.reset()


@dataclass(frozen=True)
class HalfClose(Behaviour):
    """Reads the whole request, closes its own direction without an answer, and goes on reading.

    :param seconds: the time until it closes; None: until the other side does, or the server closes.
    """

    seconds: float | None = None

    def act(self, wire: FaultWire, request: RecordedRequest) -> None:
        wire.close_after_peer(self.seconds)


@dataclass(frozen=True)
class Stall(EarlyFault):
    """Falls silent at one point of the exchange, then goes on as if nothing had happened.

    On a TLS server, ``"accept"`` is before the handshake.

    :param seconds: the length of the silence, 0 or more; by default until the server closes.
    :param reply: the reply around the silence. A point within the reply needs a :class:`Reply`.
    """

    at: StallPoint = "status"
    seconds: float = math.inf
    reply: Behaviour = WELL

    def __post_init__(self) -> None:
        if self.at not in get_args(StallPoint):
            raise ValueError(f"at={self.at!r}: one of {', '.join(get_args(StallPoint))} is allowed")
        if self.at not in ("accept", "status") and not isinstance(self.reply, Reply):
            raise ValueError(f"at={self.at!r}: a stall within the answer needs a Reply, not {self.reply!r}")

    @property
    def begins_after(self) -> ReadSoFar:
        """Before the handshake, or after the request."""
        return ReadSoFar.NOTHING if self.at == "accept" else ReadSoFar.REQUEST

    def greet(self, wire: FaultWire) -> Behaviour:
        wire.stall(self.seconds)
        return self.reply

    def act(self, wire: FaultWire, request: RecordedRequest) -> None:
        if not isinstance(self.reply, Reply) or self.at in ("accept", "status"):
            wire.stall(self.seconds)
            self.reply.act(wire, request)
            return
        head, body = self.reply.head(request), self.reply.framed_body(request)
        wire.stall(self.reply.delay)
        position = {
            "status-line": len(b"HTTP/1."),
            "header": head.index(b"\r\n") + 6,
            "body-start": len(head),
            "body": len(head) + len(body) // 2,
        }[self.at]
        wire.send((head + body)[:position])
        wire.stall(self.seconds)
        wire.send((head + body)[position:])
        self.reply.finish(wire, request)


@dataclass(frozen=True)
class StopReading(EarlyFault):
    """Reads the head and then stops reading, so that a large upload stalls; finally resets the connection.

    The client can still send what both systems buffer (some MiB on loopback).

    :param seconds: the time before the reset, 0 or more; by default until the server closes.
    """

    seconds: float = math.inf
    begins_after = ReadSoFar.HEAD

    def act(self, wire: FaultWire, request: RecordedRequest) -> None:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.stall(self.seconds)
        wire.reset()


@dataclass(frozen=True)
class AnswerBeforeUpload(EarlyFault):
    """Answers after the head, without reading the upload, and ends the connection.

    :param polite: True to discard the upload until the client closes, so that the client gets the answer; False to
        reset at once, as for a closed socket with unread bytes, so that the answer may be lost.
    """

    reply: Reply = _TOO_LARGE
    polite: bool = True
    begins_after = ReadSoFar.HEAD

    def act(self, wire: FaultWire, request: RecordedRequest) -> None:
        wire.stall(self.reply.delay)
        wire.send(self.reply.head(request) + self.reply.framed_body(request))
        if self.polite:
            wire.close_after_peer()
        else:
            wire.reset()
