"""A cheap keep-alive HTTP server on loopback, in a process of its own.

It measures nothing. It answers each request head with one fixed 200 in one segment, so that the client does
the same work every time and the server is never the slower side. Only requests without a body are
understood. The child ends with its parent's handle on it, or by itself when its standard input closes.
"""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
from types import TracebackType

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


def serve() -> None:
    """Answer until standard input closes."""
    selector = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    selector.register(listener, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    print(listener.getsockname()[1], flush=True)
    partial: dict[socket.socket, bytes] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is sys.stdin:
                return
            if key.fileobj is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(connection, selectors.EVENT_READ)
                partial[connection] = b""
            elif not _answer(key.fileobj, partial):
                selector.unregister(key.fileobj)
                partial.pop(key.fileobj)
                key.fileobj.close()


def _answer(connection: socket.socket, partial: dict[socket.socket, bytes]) -> bool:
    """Answer every whole request head that has come; false when the client is gone."""
    try:
        data = connection.recv(65536)
        if not data:
            return False
        *heads, partial[connection] = (partial[connection] + data).split(END_OF_HEAD)
        if heads:
            connection.sendall(ANSWER * len(heads))
    except OSError:
        return False
    return True


if __name__ == "__main__":
    serve()
