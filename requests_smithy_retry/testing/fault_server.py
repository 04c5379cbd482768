"""A scriptable HTTP/1.1 server on loopback, with faults on real sockets, and a port that refuses connections."""

from __future__ import annotations

import itertools
import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import parse_headers, responses
from io import BufferedReader
from typing import Literal

Ending = Literal["close", "reset", "stall"]


class Wire:
    """One accepted connection. It raises ``ConnectionError`` if the other side ends it, or the server closes."""

    def __init__(self, sock: socket.socket, closing: threading.Event) -> None:
        self.sock: socket.socket = sock
        self.file: BufferedReader = sock.makefile("rb")
        self.is_open: bool = True
        self.closing: threading.Event = closing

    def send(self, data: bytes) -> None:
        """Send all of ``data``, even if the other side reads slowly."""
        self.sock.sendall(data)

    def stall(self, seconds: float) -> None:
        """Do nothing for ``seconds``, which may be infinite."""
        if self.closing.wait(None if math.isinf(seconds) else seconds):
            raise ConnectionAbortedError("the server closes")

    def close(self) -> None:
        """Close in an orderly way. Sent bytes still arrive, unless bytes from the other side are unread."""
        self.end("close")

    def reset(self) -> None:
        """Close with a TCP reset (RST); bytes in flight are lost."""
        self.end("reset")

    def end(self, how: Ending) -> None:
        """End the connection by an orderly close, a TCP reset, or silence until the server closes."""
        if how == "stall":
            self.stall(math.inf)
        with suppress(OSError):  # it may be over
            if how == "reset":
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                self.sock.shutdown(socket.SHUT_WR)
        self.is_open = False
        self.file.close()
        self.sock.close()


@dataclass(frozen=True)
class RecordedRequest:
    """A request as it arrived, whole.

    :param target: the request target as sent: a path with its query.
    :param headers: name and value of each header line, in order, in the case that was sent.
    :param body: the bytes of the upload, without the framing of chunks.
    :param connection_id: the number of the connection, from 0 in the order of acceptance.
    :param arrived: the ``time.monotonic()`` after the head was read.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)
    connection_id: int = 0
    arrived: float = 0.0

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        """Return the value of the first header line of that name, in any case; None if there is none."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass(frozen=True)
class Behaviour:
    """The server's reaction to one request. To write your own, override :meth:`act`."""

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        """Answer the request. If the wire is left open, the next request on it is served."""
        raise NotImplementedError


@dataclass(frozen=True)
class Reply(Behaviour):
    """A well-formed reply.

    :param status: status code, with its usual reason phrase.
    :param headers: pairs or a mapping; a Content-Length, Transfer-Encoding or Connection among them replaces our own.
    :param body: left out for HEAD, 204 and 304.
    :param framing: the end of the body: its length, a last chunk, or the end of the connection.
    :param delay: seconds between the request and the reply, 0 or more; infinite: until the server closes.
    """

    status: int = 200
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = ()
    body: bytes = field(default=b"", repr=False)
    framing: Literal["length", "chunked", "close"] = "length"
    delay: float = 0.0

    def __post_init__(self) -> None:
        pairs = self.headers.items() if isinstance(self.headers, Mapping) else self.headers
        object.__setattr__(self, "headers", tuple(pairs))
        if self.framing not in ("length", "chunked", "close"):
            raise ValueError(f"framing={self.framing!r}: 'length', 'chunked' or 'close' is allowed")

    def head(self, request: RecordedRequest) -> bytes:
        """Return status line, headers and blank line."""
        own = {"length": [("Content-Length", str(len(self.body)))], "chunked": [("Transfer-Encoding", "chunked")]}
        pairs = own.get(self.framing, []) if self.status >= 200 and self.status != 204 else []
        pairs += [("Connection", "close")] if self._is_last(request) else []
        given = {pair[0].lower() for pair in self.headers}
        pairs = [*self.headers, *(pair for pair in pairs if pair[0].lower() not in given)]
        lines = [f"HTTP/1.1 {self.status} {responses.get(self.status, 'Unknown')}", *map(": ".join, pairs), "", ""]
        return "\r\n".join(lines).encode("latin-1")

    def framed_body(self, request: RecordedRequest) -> bytes:
        """Return the body as sent over the wire; empty if the reply must not have one."""
        if request.method == "HEAD" or self.status < 200 or self.status in (204, 304):
            return b""
        if self.framing != "chunked":
            return self.body
        pieces = [self.body[start : start + 16384] for start in range(0, len(self.body), 16384)]
        return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*pieces, b""])

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        wire.stall(self.delay)
        wire.send(self.head(request) + self.framed_body(request))
        self.finish(wire, request)

    def finish(self, wire: Wire, request: RecordedRequest) -> None:
        """Close the connection if the framing or the client requires it."""
        if self._is_last(request):
            wire.close()

    def _is_last(self, request: RecordedRequest) -> bool:
        return self.framing == "close" or (request.header("Connection") or "").lower() == "close"


WELL = Reply(body=b"The quick brown fox jumps over the lazy dog.\n")
"""The reply of a healthy server: 200 with a short body."""


class ResetAfterRequest(Behaviour):
    """Reads the whole request and resets the connection (RST) without an answer."""

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        wire.reset()


class CloseAfterRequest(Behaviour):
    """Reads the whole request and closes the connection without an answer."""

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        wire.close()


@dataclass(frozen=True)
class CloseAfterReply(Behaviour):
    """Answers correctly, and then closes the connection without a ``Connection: close``.

    :param reset: True for a TCP reset, False for an orderly close.
    :param after: seconds between the answer and the close.
    """

    reply: Reply = WELL
    reset: bool = False
    after: float = 0.0

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        self.reply.act(wire, request)
        wire.stall(self.after)
        wire.end("reset" if self.reset else "close")


@dataclass(frozen=True)
class CutBody(Behaviour):
    """Sends the whole head and a part of the body, then breaks off: a short Content-Length, or a cut chunk.

    :param at: the number of body bytes sent, chunk framing included; negative counts from the end; None is half.
    """

    reply: Reply = WELL
    at: int | None = None
    then: Ending = "close"

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        wire.stall(self.reply.delay)
        body = self.reply.framed_body(request)
        wire.send(self.reply.head(request) + body[: len(body) // 2 if self.at is None else self.at])
        wire.end(self.then)


@dataclass(frozen=True)
class Drip(Behaviour):
    """Sends the head or the body one byte at a time, so that no single read of the client times out.

    :param interval: seconds before each byte.
    """

    part: Literal["head", "body"] = "body"
    interval: float = 0.1
    reply: Reply = WELL

    def act(self, wire: Wire, request: RecordedRequest) -> None:
        wire.stall(self.reply.delay)
        for part, data in (("head", self.reply.head(request)), ("body", self.reply.framed_body(request))):
            size, interval = (1, self.interval) if part == self.part else (len(data) + 1, 0.0)
            for start in range(0, len(data), size):
                wire.stall(interval)
                wire.send(data[start : start + size])
        self.reply.finish(wire, request)


Step = Behaviour | Callable[[RecordedRequest], Behaviour]
Steps = Step | Sequence[Step]


class FaultServer:
    """A server that runs from construction to :meth:`close`, with one thread per connection and keep-alive.

    :param script: the behaviours: a sequence with one for each request, or a single one for every request. Each may be
        a function of the :class:`RecordedRequest`; the ``with`` block raises its exceptions.
    :param host: a loopback address to listen on.
    :param port: 0 picks a free one. The port of a closed server can be reused at once.
    :param default: the behaviour after the end of the script.
    """

    connections: int = 0
    """The number of accepted connections."""
    _wire_class = Wire

    def __init__(
        self, script: Steps = (), *, host: str = "127.0.0.1", port: int = 0, default: Behaviour = WELL
    ) -> None:
        self._default = default
        self._closing = threading.Event()
        self._requests: list[RecordedRequest] = []
        self._serving: list[tuple[threading.Thread, Wire]] = []
        self._error: Exception | None = None
        self.script(script)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=128)
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.host: str = host
        self.port: int = self._listener.getsockname()[1]
        self.url: str = f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
        """The base URL, ``http://host:port``."""
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    @property
    def requests(self) -> list[RecordedRequest]:
        """The requests so far, in the order in which they were read to their end: a copy."""
        return list(self._requests)

    def script(self, steps: Steps) -> None:
        """Replace the script."""
        self._steps = steps
        self._turns = iter(steps) if isinstance(steps, Sequence) else itertools.repeat(steps)

    def reset(self) -> None:
        """Forget requests and connections, and restart the script. Open connections stay open."""
        self._requests, self.connections = [], 0
        self.script(self._steps)

    def close(self) -> None:
        """Stop listening, and end all connections and their threads. Idempotent."""
        if not self._closing.is_set():
            self._closing.set()
            with socket.socket(self._listener.family) as waker:
                waker.connect_ex((self.host, self.port))
        self._acceptor.join()
        for thread, wire in self._serving:
            with suppress(OSError):  # it may be over
                wire.sock.shutdown(socket.SHUT_RDWR)
            thread.join(5)  # a function of the script may never return

    def __enter__(self) -> FaultServer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()
        if error is None and self._error is not None:
            raise self._error

    def _accept(self) -> None:
        with self._listener:
            while True:
                wire = self._wire_class(self._listener.accept()[0], self._closing)
                if self._closing.is_set():
                    return wire.close()
                thread = threading.Thread(target=self._serve, args=(wire, self.connections), daemon=True)
                self.connections += 1
                thread.start()
                self._serving = [*(pair for pair in self._serving if pair[0].is_alive()), (thread, wire)]

    def _serve(self, wire: Wire, connection: int) -> None:
        try:
            while wire.is_open and (request := _read_request(wire.file, connection)):
                self._requests.append(request)
                step = next(self._turns, self._default)
                (step if isinstance(step, Behaviour) else step(request)).act(wire, request)
        except ConnectionError:
            pass
        except Exception as error:
            self._error = error
            wire.reset()
        finally:
            wire.close()


def _read_request(file: BufferedReader, connection: int) -> RecordedRequest | None:
    """Read a request; return None if the client ends it early, or sends no HTTP."""
    try:
        method, target, _ = file.readline().decode("latin-1").split()
        headers, arrived = parse_headers(file), time.monotonic()
        body = bytearray(file.read(size := int(headers.get("Content-Length", 0))))
        if len(body) < size:
            return None
        if headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(file.readline().partition(b";")[0], 16):
                body += file.read(size)
                file.readline()
            file.readline()
    except ValueError:
        return None
    return RecordedRequest(method, target, tuple(headers.items()), bytes(body), connection, arrived)


@contextmanager
def refusing_port(host: str = "127.0.0.1") -> Iterator[int]:
    """Yield a port that refuses connections and is reserved inside the block."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        sock.bind((host, 0))
        yield sock.getsockname()[1]
