"""The server that outages are played on: it has them on command, in a process of its own.

It works off requests one after the other at a finite rate, as the simulation's queue does, and has two seconds' worth
of queue, twice the clients' time-out: what they have given up is done all the same; beyond it, 503. Its trouble is
chosen by lines on standard input: `well`, `refuse` (no connection is accepted, and those there are end), `hole` (no
answer), `dead P` (no answer with probability P), `errors P` (503 with probability P), `brownout P` (a part of its
rate). When standard input closes it prints, as JSON, when each request came, in seconds since the epoch, and ends. Only
requests without a body are understood.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import random
import selectors
import socket
import sys
import time

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ERROR = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
LONGEST = 2.0
"""Seconds of work that may be queued."""


class Server:
    """The state of the service.

    :param rate: requests per second that it works off.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.trouble = ["well"]
        self.free_at = 0.0
        self.due: list[tuple[float, int, socket.socket, bytes]] = []
        self.seen: list[float] = []

    def answer(self, connection: socket.socket) -> None:
        """One request came: decide what becomes of it, and when."""
        now = time.monotonic()
        self.seen.append(time.time())
        kind, *numbers = self.trouble
        is_hit = bool(numbers) and random.random() < float(numbers[0])
        if kind == "hole" or (kind == "dead" and is_hit):
            return
        begin = max(now, self.free_at)
        if (kind == "errors" and is_hit) or begin - now > LONGEST:
            self._later(now, connection, ERROR)
            return
        self.free_at = begin + 1 / (self.rate * (float(numbers[0]) if kind == "brownout" else 1.0))
        self._later(self.free_at, connection, OK)

    def _later(self, at: float, connection: socket.socket, answer: bytes) -> None:
        heapq.heappush(self.due, (at, len(self.seen), connection, answer))

    def send_due(self) -> float | None:
        """Send what is due; seconds until the next is."""
        while self.due and self.due[0][0] <= time.monotonic():
            _, _, connection, answer = heapq.heappop(self.due)
            with contextlib.suppress(OSError):  # its client has given up
                connection.sendall(answer)
        return max(0.0, self.due[0][0] - time.monotonic()) if self.due else None


class Door:
    """Where clients come in: it can be shut, which ends every connection, and opened again.

    :param selector: told of what is to be read.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self.selector = selector
        self.listener: socket.socket | None = None
        self.port = 0
        self.connections: set[socket.socket] = set()
        self.open()

    def open(self) -> None:
        """Listen, on the port that was the first."""
        if self.listener is None:
            self.listener = socket.create_server(("127.0.0.1", self.port), backlog=1024)
            self.port = self.listener.getsockname()[1]
            self.selector.register(self.listener, selectors.EVENT_READ)

    def shut(self) -> None:
        """Refuse new connections, and hang up on open ones."""
        if self.listener is not None:
            self.selector.unregister(self.listener)
            self.listener.close()
            self.listener = None
        for connection in tuple(self.connections):
            self.hang_up(connection)

    def accept(self) -> None:
        """Let one in."""
        assert self.listener is not None
        connection, _ = self.listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections.add(connection)
        self.selector.register(connection, selectors.EVENT_READ)

    def hang_up(self, connection: socket.socket) -> None:
        """End one connection."""
        self.connections.discard(connection)
        self.selector.unregister(connection)
        connection.close()


def serve(rate: float) -> None:
    """Answer until standard input closes."""
    server, selector = Server(rate), selectors.DefaultSelector()
    door = Door(selector)
    selector.register(sys.stdin, selectors.EVENT_READ)
    print(door.port, flush=True)
    while True:
        for key, _ in selector.select(server.send_due()):
            if key.fileobj is sys.stdin:
                line = sys.stdin.readline()
                if line == "":
                    print(json.dumps(server.seen))
                    return
                server.trouble = line.split()
                if server.trouble == ["refuse"]:
                    door.shut()
                    break  # what else was ready is shut
                door.open()
            elif key.fileobj is door.listener:
                door.accept()
            elif isinstance(key.fileobj, socket.socket):
                try:
                    data = key.fileobj.recv(65536)
                except OSError:
                    data = b""
                if data:
                    server.answer(key.fileobj)
                else:
                    door.hang_up(key.fileobj)


if __name__ == "__main__":
    serve(float(sys.argv[1]))
