"""Faults of the connection: closed, reset or stalled at any phase of the exchange, the upload included."""

from __future__ import annotations

import math
import socket
from dataclasses import dataclass
from typing import Literal

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
    """Resets the connection (RST) when the first byte of the request is there, and none is read."""

    def greet(self, wire: FaultWire) -> None:
        wire.file.peek(1)
        wire.reset()

    def act(self, wire: FaultWire, request: RecordedRequest) -> None:
        wire.reset()


@dataclass(frozen=True)
class HalfClose(Behaviour):
    """Reads the whole request, closes its own direction without an answer, and goes on reading."""

    def act(self, wire: FaultWire, request: RecordedRequest) -> None:
        wire.close_after_peer()


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
    """Answers after the head, and discards the upload until the client closes, so that it gets the answer."""

    reply: Reply = _TOO_LARGE
    begins_after = ReadSoFar.HEAD

    def act(self, wire: FaultWire, request: RecordedRequest) -> None:
        wire.stall(self.reply.delay)
        wire.send(self.reply.head(request) + self.reply.framed_body(request))
        wire.close_after_peer()
