"""A cheap keep-alive HTTP server on loopback, in a process of its own.

It measures nothing. It answers each request head with one fixed 200 in one segment, so that the client does
the same work every time and the server is never the slower side. Only requests without a body are
understood. The child ends with its parent's handle on it, or by itself when its standard input closes.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

BODY = b'{"status": "ok", "items": [1, 2, 3]}'
ANSWER = (
    b"HTTP/1.1 200 OK\r\n"
    b"Content-Type: application/json\r\n"
    b"Content-Length: " + str(len(BODY)).encode() + b"\r\n"
    b"Server: loopback\r\n\r\n" + BODY
)
END_OF_HEAD = b"\r\n\r\n"


def start_server(file: str, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Run a server in a child process that prints its port first. Returns the child and the origin it serves."""
    child = subprocess.Popen(
        [sys.executable, file, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    port = child.stdout.readline().strip()
    if not port:
        child.wait(5)
        raise RuntimeError("the loopback server did not start")
    return child, f"http://127.0.0.1:{port}"


class LoopbackServer:
    """Context manager: start the child, know its `origin`, end it."""

    def __enter__(self) -> LoopbackServer:
        self._child, self.origin = start_server(__file__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.stdin.close()
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(5)
        self._child.stdout.close()


def pieces(wait: Callable[[], float | None] | None = None) -> Iterator[tuple[Any, bytes]]:
    """Listen on loopback, print the port, and yield the bytes that come until standard input closes.

    :param wait: returns the seconds of the next look at the sockets, at most; each look then ends with ``(None, b"")``.
    :returns: connections and bytes; no bytes mean that the client is gone.
    """
    selector = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    selector.register(listener, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    print(listener.getsockname()[1], flush=True)
    while True:
        for key, _ in selector.select(None if wait is None else wait()):
            connection: Any = key.fileobj
            if connection is sys.stdin:
                return
            if connection is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(connection, selectors.EVENT_READ)
                continue
            try:
                data = connection.recv(65536)
            except OSError:
                data = b""
            yield connection, data
            if not data:
                selector.unregister(connection)
                connection.close()
        if wait is not None:
            yield None, b""


def send(connection: socket.socket, answer: bytes) -> None:
    """Send, unless the client has gone."""
    with contextlib.suppress(OSError):
        connection.sendall(answer)


def serve() -> None:
    """Answer until standard input closes."""
    partial: dict[socket.socket, bytes] = {}
    for connection, data in pieces():
        if not data:
            partial.pop(connection, None)
            continue
        *heads, partial[connection] = (partial.get(connection, b"") + data).split(END_OF_HEAD)
        if heads:
            send(connection, ANSWER * len(heads))


if __name__ == "__main__":
    serve()
