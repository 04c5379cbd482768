"""The public fault server with TLS, with faults before a request is read, and with a record of uploads that are cut."""

from __future__ import annotations

import enum
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from io import BufferedReader
from typing import Any

from urllib3.util.wait import wait_for_read

from requests_smithy_retry import testing
from requests_smithy_retry.testing import WELL, Behaviour, RecordedRequest
from requests_smithy_retry.testing.fault_server import Ending, Step, Steps


class ReadSoFar(enum.IntEnum):
    """The part of the request that the server has read when a behaviour begins."""

    NOTHING = 0
    """Nothing; the TCP connection is made, and a TLS handshake has not begun."""
    HANDSHAKE = 1
    """The TLS handshake, if any, but no byte of the request."""
    HEAD = 2
    """The head, but not the upload."""
    REQUEST = 3
    """The whole request."""


@dataclass(frozen=True)
class EarlyFault(Behaviour):
    """A behaviour that begins before the whole request is read."""

    begins_after = ReadSoFar.HANDSHAKE

    def greet(self, wire: FaultWire) -> Behaviour | None:
        """Act before the head is read; return the behaviour for the request, None for the next step of the script."""
        raise NotImplementedError

    def act(self, wire: Any, request: RecordedRequest) -> None:
        """Act late, where a function of the script chose it."""
        self.greet(wire)


class FaultWire(testing.Wire):
    """A connection that may have TLS, and may be half closed."""

    def start_tls(self, context: ssl.SSLContext) -> None:
        """Do the server side of a TLS handshake."""
        self.file.close()
        try:
            self.sock.getpeername()  # wrap_socket leaks its socket if the client has reset by now
            self.sock = context.wrap_socket(self.sock, server_side=True, do_handshake_on_connect=False)
            self.file = self.sock.makefile("rb")
            self.sock.do_handshake()
        except OSError as error:
            raise ConnectionAbortedError(f"the TLS handshake failed: {error}") from error

    def drip(self, data: bytes, interval: float) -> None:
        """Send ``data`` byte by byte, and wait ``interval`` seconds before each."""
        for position in range(len(data)):
            self.stall(interval)
            self.send(data[position : position + 1])

    def receive_now(self) -> bytes | None:
        """Read without waiting: None if there is nothing, ``b""`` if the other side has closed."""
        self.sock.settimeout(0)
        try:
            return self.sock.recv(65536)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        finally:
            self.sock.settimeout(None)

    def half_close(self) -> None:
        """Close the sending side (FIN, under TLS after a close_notify), and stay open for reading."""
        with suppress(OSError, ValueError):
            if isinstance(self.sock, ssl.SSLSocket):
                self.sock.settimeout(0)  # sends only; waiting for the answer would block
                self.sock.unwrap()
        with suppress(OSError):
            self.sock.settimeout(None)
            self.sock.shutdown(socket.SHUT_WR)

    def close_after_peer(self) -> None:
        """Half-close, discard incoming bytes, and close once the other side has closed.

        The other side sees an orderly end even if it is still sending; a plain close with unread bytes is a reset.
        """
        self.half_close()
        with suppress(OSError):
            while (data := self.receive_now()) != b"":
                if data is None:
                    wait_for_read(self.sock)
        self.close()

    def end(self, how: Ending) -> None:
        if how == "close" and self.is_open:
            self.half_close()
        super().end(how)


@dataclass(frozen=True)
class Recorded(RecordedRequest):
    """A request as far as it was read.

    :param body_complete: False if the upload was cut, malformed, without its last chunk, or not read on purpose.
    """

    body_complete: bool = True


class FaultServer(testing.FaultServer):
    """The public server, with :class:`EarlyFault` in its script.

    An early fault strikes the next connection, or the next request on an open one.

    :param tls: serve TLS with this context (server side, with a certificate).
    """

    _wire_class = FaultWire

    def __init__(
        self,
        script: Steps = (),
        *,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        default: Behaviour = WELL,
    ) -> None:
        self._tls = tls
        self._taking = threading.Lock()
        super().__init__(script, host=host, port=port, default=default)
        if tls is not None:
            self.url = self.url.replace("http", "https", 1)

    def script(self, steps: Steps) -> None:
        with self._taking:
            super().script(steps)
            self._ahead = next(self._turns, None)

    def _serve(self, wire: Any, connection: int) -> None:
        try:
            self._converse(wire, connection)
        except (ConnectionError, ssl.SSLError, EOFError):
            pass
        except Exception as error:
            self._error = error
            wire.reset()
        finally:
            wire.close()

    def _converse(self, wire: FaultWire, connection: int) -> None:
        step = self._greet(wire, ReadSoFar.NOTHING)
        if self._tls is not None and wire.is_open:
            wire.start_tls(self._tls)
        while wire.is_open:
            step = step or self._greet(wire, ReadSoFar.HANDSHAKE)
            if wire.is_open:
                self._exchange(wire, connection, step)
            step = None
            if not (wire.is_open and wire.file.peek(1)):
                return

    def _greet(self, wire: FaultWire, read: ReadSoFar) -> Behaviour | None:
        with self._taking:
            step = self._ahead
            if not isinstance(step, EarlyFault) or step.begins_after > read:
                return None
            self._ahead = next(self._turns, None)
        return step.greet(wire)

    def _take(self) -> Step:
        with self._taking:
            step, self._ahead = self._ahead, next(self._turns, None)
        return step or self._default

    def _exchange(self, wire: FaultWire, connection: int, step: Step | None) -> None:
        request = Recorded(*_read_head(wire.file), connection_id=connection, arrived=time.monotonic())
        step = step or self._take()
        if isinstance(step, EarlyFault) and step.begins_after <= ReadSoFar.HEAD:
            request = replace(request, body_complete=not _has_upload(request))
            self._requests.append(request)
        else:
            body, complete = _read_upload(wire.file, request)
            request = replace(request, body=body, body_complete=complete)
            self._requests.append(request)
            if not complete:
                wire.close()
                return
        (step if isinstance(step, Behaviour) else step(request)).act(wire, request)


def _read_head(file: BufferedReader) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    lines = []
    while line := _read_line(file):
        lines.append(line)
    words = lines[0].split(" ") if lines else []
    if len(words) != 3:
        raise EOFError("the client sent no HTTP")
    pairs = (line.partition(":") for line in lines[1:])
    return words[0], words[1], tuple((name, value.strip()) for name, _, value in pairs)


def _has_upload(request: RecordedRequest) -> bool:
    return _is_chunked(request) or request.header("Content-Length") not in (None, "0")


def _is_chunked(request: RecordedRequest) -> bool:
    return (request.header("Transfer-Encoding") or "").lower() == "chunked"


def _read_upload(file: BufferedReader, request: RecordedRequest) -> tuple[bytes, bool]:
    """Read the upload that the head announced: the bytes that came, and True if they are all."""
    body = bytearray()
    try:
        if _is_chunked(request):
            while size := int(_read_line(file).partition(";")[0], 16):
                _read_exactly(file, size, body)
                _read_line(file)
            _read_line(file)
        else:
            _read_exactly(file, int(request.header("Content-Length") or 0), body)
    except (ConnectionError, ssl.SSLError, EOFError, ValueError):
        return bytes(body), False
    return bytes(body), True


def _read_exactly(file: BufferedReader, size: int, body: bytearray) -> None:
    while size > 0:
        piece = file.read1(min(size, 65536))
        if not piece:
            raise EOFError("the upload ends early")
        body += piece
        size -= len(piece)


def _read_line(file: BufferedReader) -> str:
    line = file.readline().decode("latin-1")
    if not line.endswith("\n"):
        raise EOFError("the client ended the request early")
    return line.rstrip("\r\n")


@contextmanager
def hanging_port(host: str = "127.0.0.1") -> Iterator[int]:
    """Yield a port whose backlog is full, so that a connection attempt is neither accepted nor refused.

    :raises RuntimeError: on a system that accepts beyond the backlog.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family))
        listener.bind((host, 0))
        listener.listen(0)
        for _ in range(16):
            filler = stack.enter_context(socket.socket(family))
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
            if not select.select([], [filler], [], 0.05)[1]:
                break
        else:
            raise RuntimeError("this system accepts connections beyond a full backlog")
        yield listener.getsockname()[1]
