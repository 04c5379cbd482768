"""Faults of a reply's head: cut, malformed, oversized, or preceded by interim responses."""

from __future__ import annotations

from dataclasses import dataclass

from .behaviour import WELL, Behaviour, Reply
from .recorded_request import RecordedRequest
from .wire import Ending, Wire


@dataclass(frozen=True)
class CutHead(Behaviour):
    """Breaks off within the head; by default before the blank line.

    :param reply: the reply to cut.
    :param at: the number of head bytes sent; negative counts from the end.
    :param then: the end of the connection.
    """

    reply: Reply = WELL
    at: int = -2
    then: Ending = "close"

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Send a part of the head, and break off."""
        wire.stall(self.reply.delay)
        wire.send(self.reply.head(request)[: self.at])
        wire.end(self.then)


@dataclass(frozen=True)
class BadStatusLine(Behaviour):
    """Sends an invalid status line with an otherwise good reply.

    :param line: the line, without its end.
    :param reply: gives headers and body.
    """

    line: bytes = b"HTTP/1.1 well OK"
    reply: Reply = WELL

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Send the reply under the wrong line, and close."""
        wire.stall(self.reply.delay)
        rest = self.reply.header_lines(request) + b"\r\n" + self.reply.framed_body(request)
        wire.send(self.line + b"\r\n" + rest)
        wire.close()


@dataclass(frozen=True)
class HugeHeader(Behaviour):
    """Sends one huge header line in an otherwise good reply.

    :param size: the size of its value in bytes.
    :param reply: the reply.
    """

    size: int = 10_000_000
    reply: Reply = WELL

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Send the reply with the header."""
        wire.stall(self.reply.delay)
        head = self.reply.status_line() + b"X-Huge: " + b"x" * self.size + b"\r\n" + self.reply.header_lines(request)
        wire.send(head + b"\r\n" + self.reply.framed_body(request))
        self.reply.finish(wire, request)


@dataclass(frozen=True)
class EndlessHeaders(Behaviour):
    """Sends header lines until the client closes.

    :param interval: seconds before each line.
    :param status: the status of the reply.
    """

    interval: float = 0.0
    status: int = 200

    def act(self, wire: Wire, request: RecordedRequest) -> None:  # noqa: ARG002
        """Send until either side closes."""
        wire.send(Reply(self.status).status_line())
        number = 0
        while True:
            wire.stall(self.interval)
            wire.send(b"X-Header-%d: and another one\r\n" % number)
            number += 1


@dataclass(frozen=True)
class Interim(Behaviour):
    """Sends interim (1xx) responses before the final one.

    :param statuses: the interim statuses, in turn.
    :param count: the number of repetitions.
    :param interval: seconds before each interim response.
    :param reply: the final response.
    """

    statuses: tuple[int, ...] = (103,)
    count: int = 1
    interval: float = 0.0
    reply: Behaviour = WELL

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Send the interim responses, and answer."""
        for status in self.statuses * self.count:
            wire.stall(self.interval)
            wire.send(Reply(status).status_line() + b"\r\n")
        self.reply.act(wire, request)


@dataclass(frozen=True)
class SwitchProtocols(Behaviour):
    """Answers 101 to a client that did not ask for another protocol.

    :param then: the end of the connection.
    """

    then: Ending = "close"

    def act(self, wire: Wire, request: RecordedRequest) -> None:  # noqa: ARG002
        """Send the 101."""
        wire.send(Reply(101).status_line() + b"Connection: Upgrade\r\nUpgrade: whatever\r\n\r\n")
        wire.end(self.then)
