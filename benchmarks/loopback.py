"""The server that times are measured against: cheap, keep-alive, on loopback, in a process of its own.

It answers each request with the fixed 200 that the first part of the path names, in one piece, so that the client does
the same work every time and the server is never the slower side. A body is skipped by its Content-Length. Other servers
are started in the same way.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import re
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BODY = b'{"status": "ok", "items": [1, 2, 3]}'


def answer_of(body: bytes, *lines: bytes, chunk: int = 0) -> bytes:
    """Return a 200 with a body: in chunks of so many bytes, or with its length."""
    framing = b"Transfer-Encoding: chunked" if chunk else b"Content-Length: %d" % len(body)
    if chunk:
        parts = (body[at : at + chunk] for at in range(0, len(body), chunk))
        body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    head = (b"HTTP/1.1 200 OK", b"Content-Type: application/json", framing, b"Server: loopback", *lines)
    return b"\r\n".join((*head, b"", body))


ANSWER = answer_of(BODY)
LINES = {b"gzip": b"Content-Encoding: gzip", b"etag": b'ETag: "v1"'}
END_OF_HEAD = b"\r\n\r\n"
LENGTH = re.compile(rb"\ncontent-length: *(\d+)", re.IGNORECASE)
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


@functools.cache
def answer_to(kind: bytes) -> bytes:
    """Return the answer for the first part of a path: of ``SIZE-CHUNK-LINE``, JSON of about so many bytes; else the
    usual one.
    """
    size, _, rest = kind.partition(b"-")
    if not size.isdigit():
        return ANSWER
    chunk, _, line = rest.partition(b"-")
    items = [{"id": number, "name": f"user {number * 7919 % 1000}"} for number in range(int(size) // 33)]
    body = json.dumps({"status": "ok", "items": items}).encode()
    body = gzip.compress(body) if line == b"gzip" else body
    return answer_of(body, *([LINES[line]] if line else []), chunk=int(chunk))


def serve() -> None:
    """Answer until standard input closes. No client sends its next request before it has the answer."""
    begun = dict[Any, tuple[bytes, int]]()
    """The head of each unfinished request, and how many bytes of its body are still to come."""
    for connection, data in pieces():
        head, left = begun.pop(connection, (b"", 0))
        if not data:
            continue
        has_head = left > 0
        if has_head:
            left -= len(data)
        else:
            head, ended, rest = (head + data).partition(END_OF_HEAD)
            has_head = bool(ended)
            length = LENGTH.search(head) if has_head else None
            left = int(length[1]) - len(rest) if length else 0
        if has_head and not left:
            send(connection, answer_to(head.split(b"/", 2)[1]))
        else:
            begun[connection] = head, left


if __name__ == "__main__":
    serve()
