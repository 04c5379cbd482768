"""An HTTP server on loopback that throttles: a token bucket for all clients together, in a process of its own.

Beyond the bucket it answers 429 at once. When its standard input closes it prints what it saw, as one JSON list of
`[seconds since the first request, let through]`, and ends. Only requests without a body are understood.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from loopback import start_server

if TYPE_CHECKING:
    from types import TracebackType

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
THROTTLED = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 9\r\n\r\nslow down"
END_OF_HEAD = b"\r\n\r\n"


class ThrottlingServer:
    """Context manager: start the child, know its `origin`; after the end, `seen` is what it saw."""

    def __init__(self, rate: float, burst: float) -> None:
        self._arguments = [str(rate), str(burst)]
        self.seen: list[tuple[float, bool]] = []

    def __enter__(self) -> ThrottlingServer:
        self._child, self.origin = start_server(__file__, *self._arguments)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            said, _ = self._child.communicate(timeout=5)
            self.seen = [(when, bool(ok)) for when, ok in json.loads(said)]
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(5)


def serve(rate: float, burst: float) -> None:
    """Answer until standard input closes."""
    selector = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    selector.register(listener, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    print(listener.getsockname()[1], flush=True)
    tokens, at = burst, time.monotonic()
    seen: list[tuple[float, bool]] = []
    while True:
        for key, _ in selector.select():
            if key.fileobj is sys.stdin:
                first = seen[0][0] if seen else 0.0
                print(json.dumps([[round(when - first, 4), ok] for when, ok in seen]))
                return
            if key.fileobj is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(connection, selectors.EVENT_READ)
                continue
            heads = _read(key.fileobj)
            if heads is None:
                selector.unregister(key.fileobj)
                key.fileobj.close()
                continue
            for _ in range(heads):
                now = time.monotonic()
                tokens, at = min(burst, tokens + (now - at) * rate), now
                is_let_through = tokens >= 1
                tokens -= is_let_through
                seen.append((now, is_let_through))
                key.fileobj.sendall(OK if is_let_through else THROTTLED)


def _read(connection: socket.socket) -> int | None:
    """Return the number of request heads that came (small ones, in one piece); None when the client is gone."""
    try:
        data = connection.recv(65536)
    except OSError:
        return None
    return data.count(END_OF_HEAD) if data else None


if __name__ == "__main__":
    serve(float(sys.argv[1]), float(sys.argv[2]))
