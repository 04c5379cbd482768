"""An HTTP server on loopback that has outages on command, in a process of its own.

It works off requests one after the other at a finite rate, as the simulation's queue does, and has two seconds' worth
of queue, twice the clients' time-out: what they have given up is done all the same; beyond it, 503. Its trouble is
chosen by lines on standard input: `well`, `refuse` (no connection is accepted, and those there are end), `hole` (no
answer), `dead P` (no answer with probability P), `errors P` (503 with probability P), `gone P` (the connection ends
with probability P), `lost P` (the same once the work is done), `slow` (0.5 to 1.5 s later), `throttle P` and `hint P`
(429 to what is more than this part of its rate, `hint` with a `Retry-After` of 2 s), `broken` (503 for the path
`/broken`), `brownout P` (a part of its rate), `weak P` (the same, but as many requests queue as before; what is left
of them is then done at the whole rate).
When standard input closes it prints, as JSON, when each request came, in seconds since the epoch, and ends. Only
requests without a body are understood.
"""

from __future__ import annotations

import heapq
import json
import random
import selectors
import socket
import sys
import time

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ERROR = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
THROTTLED = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"
HINTED = THROTTLED.replace(b"Content", b"Retry-After: 2\r\nContent")
GONE = b""
"""In place of an answer, the connection ends."""
BURST = 5.0
"""The most requests that a server that throttles lets through at once."""


class Server:
    """The state of the service.

    :param rate: requests per second that it works off.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.trouble = ["well"]
        self.speed = rate
        self.longest = 2.0
        self.free_at = 0.0
        self.due: list[tuple[float, int, socket.socket, bytes]] = []
        self.seen: list[float] = []
        self.tokens, self.at = BURST, 0.0

    def hear(self, words: list[str]) -> None:
        """Begin or end a trouble."""
        is_weak, was_weak = words[0] == "weak", self.trouble[0] == "weak"
        before, self.trouble = self.speed, words
        self.speed = self.rate * (float(words[1]) if words[0] in ("brownout", "weak") else 1.0)
        self.longest = 2.0 * self.rate / self.speed if is_weak else 2.0
        if is_weak or was_weak:
            now = time.monotonic()
            self.free_at = now + max(0.0, self.free_at - now) * before / self.speed

    def answer(self, connection: socket.socket, head: bytes = b"") -> None:
        """One request came: decide what becomes of it, and when."""
        now = time.monotonic()
        self.seen.append(time.time())
        kind, *numbers = self.trouble
        much = float(numbers[0]) if numbers else 1.0
        is_hit = bool(numbers) and random.random() < much
        if kind == "hole" or (kind == "dead" and is_hit):
            return
        begin = max(now, self.free_at)
        refusal = self._refusal(kind, much, now, head, is_hit=is_hit)
        if refusal is None and begin - now > self.longest:
            refusal = ERROR
        if refusal is not None:
            self._later(now, connection, refusal)
            return
        self.free_at = begin + 1 / self.speed
        late = 0.5 + random.random() if kind == "slow" else 0.0
        self._later(self.free_at + late, connection, GONE if kind == "lost" and is_hit else OK)

    def _refusal(self, kind: str, much: float, now: float, head: bytes, *, is_hit: bool) -> bytes | None:
        """The answer to a request for which no work is done; None: it is done."""
        if kind in ("throttle", "hint"):
            self.tokens = min(BURST, self.tokens + (now - self.at) * much * self.rate)
            self.at = now
            if self.tokens < 1:
                return HINTED if kind == "hint" else THROTTLED
            self.tokens -= 1
        if (kind == "errors" and is_hit) or (kind == "broken" and head.startswith(b"GET /broken")):
            return ERROR
        return GONE if kind == "gone" and is_hit else None

    def _later(self, at: float, connection: socket.socket, answer: bytes) -> None:
        heapq.heappush(self.due, (at, len(self.seen), connection, answer))

    def send_due(self) -> float | None:
        """Send what is due; seconds until the next is."""
        while self.due and self.due[0][0] <= time.monotonic():
            _, _, connection, answer = heapq.heappop(self.due)
            try:
                if answer == GONE:
                    connection.shutdown(socket.SHUT_RDWR)
                else:
                    connection.sendall(answer)
            except OSError:  # its client has given up
                pass
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
                server.hear(line.split())
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
                    server.answer(key.fileobj, data)
                else:
                    door.hang_up(key.fileobj)


if __name__ == "__main__":
    serve(float(sys.argv[1]))
