"""Faults of the upload's way: a server that does not read it, or answers before it has."""

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
    """Reads the head, and no byte of the upload more than the system already took; a large upload stands still.

    What the two systems buffer (some MiB on loopback) still goes off the client's hands.

    :param seconds: how long, from 0 on; by default until the server closes. Then it resets the connection.
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
    """Answers as soon as it has the head, without reading the upload, and ends the connection.

    :param reply: the answer.
    :param polite: throw the upload away until the client closes, so that the client gets the answer; otherwise reset
        at once, as a system does when a socket with unread bytes is closed, and the answer may be lost.
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
