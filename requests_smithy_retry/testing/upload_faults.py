"""Faults of an upload: a server that does not read it, or answers too early."""

from __future__ import annotations

import math
import socket
from dataclasses import dataclass

from .behaviour import Behaviour, ReadSoFar, Reply
from .recorded_request import RecordedRequest
from .wire import Wire

_SMALL_BUFFER = 4096
_TOO_LARGE = Reply(413, {"Connection": "close"})


@dataclass(frozen=True)
class StopReading(Behaviour):
    """Reads the head and then stops reading, so that a large upload stalls; at last it resets the connection.

    The client can still send what both systems buffer (some MiB on loopback).

    :param seconds: the time before the reset, 0 or more; by default until the server closes.
    """

    seconds: float = math.inf

    @property
    def begins_after(self) -> ReadSoFar:
        """Before the upload."""
        return ReadSoFar.HEAD

    def act(self, wire: Wire, request: RecordedRequest) -> None:  # noqa: ARG002
        """Read nothing, and reset."""
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
        wire.stall(self.seconds)
        wire.reset()


@dataclass(frozen=True)
class AnswerBeforeUpload(Behaviour):
    """Answers after the head, without reading the upload, and ends the connection.

    :param reply: the answer.
    :param polite: True to discard the upload until the client closes, so that the client gets the answer; False to
        reset at once, as for a closed socket with unread bytes, so that the answer may be lost.
    """

    reply: Reply = _TOO_LARGE
    polite: bool = True

    @property
    def begins_after(self) -> ReadSoFar:
        """Before the upload."""
        return ReadSoFar.HEAD

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Answer and close."""
        wire.stall(self.reply.delay)
        wire.send(self.reply.head(request) + self.reply.framed_body(request))
        if self.polite:
            wire.close_after_peer()
        else:
            wire.reset()
