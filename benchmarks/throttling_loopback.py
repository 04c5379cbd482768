"""An HTTP server on loopback that throttles: a token bucket for all clients together, in a process of its own.

Beyond the bucket it answers 429 at once. When its standard input closes it prints what it saw, as one JSON list of
`[seconds since the first request, let through]`, and ends. Only requests without a body are understood.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from loopback import END_OF_HEAD, pieces, send, start_server

if TYPE_CHECKING:
    from types import TracebackType

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
THROTTLED = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 9\r\n\r\nslow down"


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
    """Answer until standard input closes; the heads of requests are small, and each comes in one piece."""
    tokens, at = burst, time.monotonic()
    seen: list[tuple[float, bool]] = []
    for connection, data in pieces():
        for _ in range(data.count(END_OF_HEAD)):
            now = time.monotonic()
            tokens, at = min(burst, tokens + (now - at) * rate), now
            is_let_through = tokens >= 1
            tokens -= is_let_through
            seen.append((now, is_let_through))
            send(connection, OK if is_let_through else THROTTLED)
    first = seen[0][0] if seen else 0.0
    print(json.dumps([[round(when - first, 4), ok] for when, ok in seen]))


if __name__ == "__main__":
    serve(float(sys.argv[1]), float(sys.argv[2]))
