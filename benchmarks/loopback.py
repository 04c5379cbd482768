"""The server that times are measured against: cheap, keep-alive, on loopback, in a process of its own.

It answers each request head with one fixed 200 in one segment, so that the client does the same work every time and the
server is never the slower side. Only requests without a body are understood. Other servers are started in the same way.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BODY = b'{"status": "ok", "items": [1, 2, 3]}'
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    + str(len(BODY)).encode()
    + b"\r\nServer: loopback\r\n\r\n"
    + BODY
)
END_OF_HEAD = b"\r\n\r\n"
ROOT = Path(__file__).resolve().parents[1]


def start_server(module: str, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Run a module that serves in a child process and prints its port first; return the child and its origin."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    port = child.stdout.readline().strip()
    if not port:
        child.wait(5)
        raise RuntimeError("the loopback server did not start")
    return child, f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def loopback() -> Iterator[str]:
    """Run the server; yields its origin. It ends when its standard input closes."""
    child, origin = start_server("loopback")
    try:
        yield origin
    finally:
        child.communicate(timeout=30)


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
