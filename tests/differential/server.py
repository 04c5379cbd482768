"""A server that plays a script: for each path answers in turn, the last one again and again."""

from __future__ import annotations

import gzip
import re
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

Step = tuple[int | None, list[bytes], str]
"""How many bytes of the upload are read before the answer (None: all), its pieces, and what comes then."""

STATUS_LINES = {200: "OK", 404: "Not Found"}
HEADS = re.compile(rb"(HTTP/1.1 1.*?\r\n\r\n)*.*?\r\n\r\n", re.DOTALL)
CODE = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
    "gzip, gzip": lambda data: gzip.compress(gzip.compress(data, mtime=0), mtime=0),
    "gzip, deflate": lambda data: zlib.compress(gzip.compress(data, mtime=0)),
    "x-unknown": bytes,
}


@dataclass(frozen=True)
class Answer:
    """What the server sends; every field has a plain value, to which a failing program is cut down."""

    status: int = 200
    headers: tuple[str, ...] = ()
    body: bytes = b""
    coding: str = ""
    framing: str = "length"
    """"length", "chunked" or "close"."""
    chunk: int = 1000
    cut: int = 0
    """So many bytes are missing at the end."""
    damaged: int = 0
    """So many bytes before the end of the coded body one is wrong."""
    before: tuple[int, ...] = ()
    """Interim answers."""
    pieces: int = 1
    reads: int | None = None
    then: str = "keep"
    """"keep", "close", "reset", "drain": read what comes and say nothing; "rest": keep, and serve ranges."""

    def entity(self) -> bytes:
        """Return the coded body."""
        data = bytearray(CODE[self.coding](self.body) if self.coding else self.body)
        if 0 < self.damaged <= len(data):
            data[-self.damaged] ^= 0x55
        return bytes(data)

    def head_and_body(self) -> tuple[bytes, bytes]:
        """Return both as they are sent, uncut."""
        data = self.entity()
        framing = {"chunked": ["Transfer-Encoding: chunked"], "close": []}.get(
            self.framing, [f"Content-Length: {len(data)}"]
        )
        coding = [f"Content-Encoding: {self.coding}"] if self.coding else []
        if self.framing == "chunked":
            parts = [data[at : at + self.chunk] for at in range(0, len(data), self.chunk)]
            data = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""])
        reason = STATUS_LINES.get(self.status, "Other")
        lines = [f"HTTP/1.1 {self.status} {reason}", *framing, *coding, *self.headers, "", ""]
        interim = "".join(f"HTTP/1.1 {status} Wait\r\n\r\n" for status in self.before)
        return (interim + "\r\n".join(lines)).encode("latin-1"), data

    def step(self) -> Step:
        """Return the bytes and what comes then."""
        head, data = self.head_and_body()
        if self.then == "rest":
            return self.reads, [head, data], "rest"
        whole = head + data
        whole = whole[: max(len(whole) - self.cut, 0)]
        then = "close" if self.then == "keep" and (self.cut or self.framing == "close") else self.then
        if self.pieces == 1:
            return self.reads, [whole], then
        size = max(len(whole) // self.pieces, 1)
        return self.reads, [whole[at : at + size] for at in range(0, len(whole) or 1, size)], then

    def simpler(self) -> list[Answer]:
        """List the same with one field made plain, or half a body."""
        plain = [replace(self, **{name: value}) for name, value in vars(Answer()).items()]
        fewer = [replace(self, headers=tuple(h for h in self.headers if h != header)) for header in self.headers]
        shorter = [
            replace(self, body=self.body[:size]) for size in (2, 9, len(self.body) // 2) if size < len(self.body)
        ]
        return [answer for answer in plain + fewer + shorter if answer != self]


def converse(sock: Any, script: Any, log: Any, number: int, closing: set[int]) -> None:
    """Answer each request on a connection by the script, and write down what came."""
    with sock, sock.makefile("rb") as file:
        while head := b"".join(takewhile(bytes.strip, iter(file.readline, b""))):
            steps = script[
                re.sub(r"^http://[^/]+", "", re.split(rb"[ ?]", head)[1].decode())
            ]  # as a proxy gets it, too
            reads, pieces, then = steps.pop(0) if len(steps) > 1 else steps[0]
            length, body = re.search(rb"(?i)\r\ncontent-length: (\d+)", head), b""
            if reads is not None or length:
                body = file.read(int(length[1]) if reads is None else reads)
            elif b"Transfer-Encoding" in head:
                while size := int(file.readline() or b"0", 16):
                    body += file.read(size + 2)[:-2]
                file.readline()
            log.append((number, head, body if reads is None else b"%d bytes read" % len(body)))
            asked = re.search(rb"(?i)\r\nrange: bytes=(\d+)-", head)
            tag = re.search(rb"\r\nETag: .*\r\n", pieces[0])
            if then == "rest" and asked and tag:
                at, whole = int(asked[1]), pieces[1]
                status, span = b"206 Partial Content", b"%d-%d" % (at, len(whole) - 1)
                if at >= len(whole):
                    status, span = b"416 Range Not Satisfiable", b"*"
                rest = b"\r\nContent-Range: bytes %b/%d\r\n" % (span, len(whole))
                rest += b"Content-Length: %d\r\n\r\n" % len(whole[at:]) + whole[at:]
                pieces = [b"HTTP/1.1 " + status + tag[0][:-2] + rest]
            if head.startswith(b"HEAD "):
                pieces = [HEADS.match(b"".join(pieces))[0]]
            if then in ("close", "reset"):
                closing.add(number)
            for at, piece in enumerate(pieces):
                time.sleep(0.0005 if at else 0)
                sock.sendall(piece.replace(b"PORT", b"%d" % sock.getsockname()[1]))
            if then == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            while then == "drain" and sock.recv(65536):
                pass
            if then not in ("keep", "rest"):
                return


class Run:
    """One run of a script: what came, and over how many connections."""

    def __init__(self, script: dict[str, list[Step]]) -> None:
        self.script = script
        self.log: list[tuple[int, bytes, bytes]] = []
        self.connections = 0
        self.open: set[int] = set()
        self.closing: set[int] = set()
        """Connections that the server is about to close: what a program does next finds them closed."""

    def serve(self, sock: socket.socket, number: int) -> None:
        """Converse on one connection until it ends."""
        try:
            converse(sock, self.script, self.log, number, self.closing)
        except (OSError, KeyError):
            pass  # the client has gone, or a path that a smaller program has not
        finally:
            self.closing.discard(number)
            self.open.discard(number)


class Server:
    """Accepts connections for the run of the moment."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.run = Run({})
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                sock = self.listening.accept()[0]
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            run = self.run
            run.connections += 1
            run.open.add(run.connections)
            threading.Thread(target=run.serve, args=(sock, run.connections), daemon=True).start()

    def begin(self, script: dict[str, list[Step]]) -> Run:
        """Play another script from now on."""
        self.run = Run(script)
        return self.run

    def close(self) -> None:
        """Accept no more."""
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()


def settled(is_so: Callable[[], bool], seconds: float = 1.0) -> bool:
    """Wait a moment for something that another thread does."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.0002)
    return True
