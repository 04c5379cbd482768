"""An HTTP server on loopback that has outages on command, in a process of its own.

It works off requests one after the other at a finite rate, as the simulation's queue does, and has a second's worth of
queue, twice the clients' time-out: what they have given up is done all the same. Its trouble is chosen by lines on
standard input: `well`, `reset` (of each connection on which a request comes), `hole` (no answer), `throttle R` (429
beyond R a second), `errors P` (503 with probability P). When standard input closes it prints, as JSON, when each
request came, in seconds since the epoch, and ends. Only requests without a body are understood.
"""

from __future__ import annotations

import heapq
import json
import random
import selectors
import socket
import struct
import sys
import time

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
RESET = struct.pack("ii", 1, 0)  # a close that does not linger is a reset
ERROR = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
THROTTLED = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"


class Server:
    """The state of the service.

    :param rate: requests per second that it works off.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.trouble = ["well"]
        self.free_at = 0.0
        self.tokens, self.at = 5.0, time.monotonic()
        self.due: list[tuple[float, int, socket.socket, bytes]] = []
        self.seen: list[float] = []

    def answer(self, connection: socket.socket) -> bool:
        """One request came: decide what becomes of it, and when; false if it is a reset."""
        now = time.monotonic()
        self.seen.append(time.time())
        kind = self.trouble[0]
        if kind == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            return False
        if kind == "hole":
            return True
        begin = max(now, self.free_at)
        if kind == "throttle" and self._is_throttled(now, float(self.trouble[1])):
            self._later(now, connection, THROTTLED)
        elif (kind == "errors" and random.random() < float(self.trouble[1])) or begin - now > 1.0:
            self._later(now, connection, ERROR)
        else:
            self.free_at = begin + 1 / self.rate
            self._later(self.free_at, connection, OK)
        return True

    def _is_throttled(self, now: float, rate: float) -> bool:
        self.tokens, self.at = min(5.0, self.tokens + (now - self.at) * rate), now
        if self.tokens < 1:
            return True
        self.tokens -= 1
        return False

    def _later(self, at: float, connection: socket.socket, answer: bytes) -> None:
        heapq.heappush(self.due, (at, len(self.seen), connection, answer))

    def send_due(self) -> float | None:
        """Send what is due; seconds until the next is."""
        while self.due and self.due[0][0] <= time.monotonic():
            _, _, connection, answer = heapq.heappop(self.due)
            try:
                connection.sendall(answer)
            except OSError:  # its client has given up
                pass
        return max(0.0, self.due[0][0] - time.monotonic()) if self.due else None


def serve(rate: float) -> None:
    """Answer until standard input closes."""
    server, selector = Server(rate), selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    selector.register(listener, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    print(listener.getsockname()[1], flush=True)
    while True:
        for key, _ in selector.select(server.send_due()):
            if key.fileobj is sys.stdin:
                line = sys.stdin.readline()
                if line == "":
                    print(json.dumps(server.seen))
                    return
                server.trouble = line.split()
            elif key.fileobj is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(connection, selectors.EVENT_READ)
            else:
                try:
                    data = key.fileobj.recv(65536)
                except OSError:
                    data = b""
                if not data or not server.answer(key.fileobj):
                    selector.unregister(key.fileobj)
                    key.fileobj.close()


if __name__ == "__main__":
    serve(float(sys.argv[1]))
