"""A connection in its serving thread: send, read, stall, break. Everything ends when the server closes."""

from __future__ import annotations

import math
import selectors
import socket
import ssl
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, TypeVar

Ending = Literal["keep", "close", "reset", "stall"]
"""The end of the connection: none, an orderly close, a TCP reset, or silence until the server closes."""

T = TypeVar("T")
_Selector: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_PIECE = 65536


class HangUp(Exception):
    """The connection is over: the other side broke it, or the server closes."""


def wait_ready(timeout: float, wake: socket.socket, *sockets: tuple[socket.socket, int]) -> bool:
    """Wait until one of the sockets is ready.

    :param timeout: seconds; may be infinite.
    :param wake: a socket that becomes readable when the server closes.
    :param sockets: sockets with the selector events to wait for.
    :returns: False after the timeout.
    :raises HangUp: as soon as the server closes.
    """
    with _Selector() as selector:
        selector.register(wake, selectors.EVENT_READ)
        for sock, events in sockets:
            selector.register(sock, events)
        ready = selector.select(None if math.isinf(timeout) else timeout)
    if any(key.fileobj is wake for key, _ in ready):
        raise HangUp("the server closes")
    return bool(ready)


class Wire:
    """One accepted connection. Only one thread uses it.

    :param sock: a connected TCP socket, which the wire owns from now on.
    :param wake: a socket that becomes readable when the server closes; every wait then ends with :class:`HangUp`.
    """

    def __init__(self, sock: socket.socket, wake: socket.socket) -> None:
        sock.setblocking(False)
        self.sock: socket.socket = sock
        self.wake = wake
        self.is_open: bool = True
        self._buffer = b""

    def start_tls(self, context: ssl.SSLContext) -> None:
        """Do the server side of a TLS handshake.

        :raises HangUp: if it fails.
        """
        try:
            self.sock.getpeername()  # wrap_socket leaks its socket if the client has reset by now
            tls = context.wrap_socket(self.sock, server_side=True, do_handshake_on_connect=False)
        except OSError as error:
            raise HangUp(f"the TLS handshake failed: {error}") from error
        self.sock = tls
        self._when_ready(tls.do_handshake, selectors.EVENT_READ)

    def send(self, data: bytes) -> None:
        """Send all of ``data``, however slowly the other side reads.

        :raises HangUp: if the connection breaks first.
        """
        rest = memoryview(data)
        while rest:
            piece = rest[:_PIECE]
            rest = rest[self._when_ready(lambda: self.sock.send(piece), selectors.EVENT_WRITE) :]  # noqa: B023

    def drip(self, data: bytes, interval: float) -> None:
        """Send ``data`` byte by byte.

        :param interval: seconds to wait before each byte, 0 or more.
        """
        for position in range(len(data)):
            self.stall(interval)
            self.send(data[position : position + 1])

    def stall(self, seconds: float) -> None:
        """Do nothing for ``seconds``, which may be infinite.

        :raises HangUp: as soon as the server closes.
        """
        if seconds > 0:
            wait_ready(seconds, self.wake)

    def receive(self) -> bytes:
        """Wait for at least one byte, and read all there is. ``b""`` means that the other side has closed."""
        if self._buffer:
            data, self._buffer = self._buffer, b""
            return data
        return self._when_ready(lambda: self.sock.recv(_PIECE), selectors.EVENT_READ)

    def receive_now(self) -> bytes | None:
        """Read without waiting: None if there is nothing, ``b""`` if the other side has closed."""
        if self._buffer:
            return self.receive()
        try:
            return self.sock.recv(_PIECE)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None

    def await_input(self) -> None:
        """Wait until the other side has sent something, or closed, without reading."""
        if not self._buffer:
            wait_ready(math.inf, self.wake, (self.sock, selectors.EVENT_READ))

    def put_back(self, data: bytes) -> None:
        """Put back bytes, to be read again first."""
        self._buffer = data + self._buffer

    def has_input(self) -> bool:
        """Wait for the next byte without reading it; return False if either side has closed."""
        data = self.receive() if self.is_open else b""
        self.put_back(data)
        return bool(data)

    def half_close(self) -> None:
        """Close the sending side (FIN, under TLS after a close_notify), and stay open for reading."""
        with suppress(OSError, ValueError):
            if isinstance(self.sock, ssl.SSLSocket):
                self.sock.unwrap()  # sends only; waiting for the answer would block
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def close_after_peer(self, seconds: float = math.inf) -> None:
        """Half-close, discard incoming bytes, and close once the other side has closed.

        The other side sees an orderly end even if it is still sending; a plain close with unread bytes is a reset.

        :param seconds: the longest wait for the other side.
        """
        self.half_close()
        until, reading = time.monotonic() + seconds, (self.sock, selectors.EVENT_READ)
        with suppress(HangUp, OSError):
            while wait_ready(max(until - time.monotonic(), 0), self.wake, reading) and self.receive_now() != b"":
                pass
        self.close()

    def close(self) -> None:
        """Close in an orderly way. Sent bytes still arrive, unless bytes of the other side are unread."""
        if self.is_open:
            self.half_close()
            self.is_open = False
            self.sock.close()

    def reset(self) -> None:
        """Close with a TCP reset (RST); bytes in flight are lost."""
        if self.is_open:
            self.is_open = False
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self.sock.close()

    def end(self, how: Ending) -> None:
        """End the connection in the named way."""
        if how == "close":
            self.close()
        elif how == "reset":
            self.reset()
        elif how == "stall":
            self.stall(math.inf)

    def _when_ready(self, operation: Callable[[], T], events: int) -> T:
        wait_ready(0, self.wake)  # a busy connection never waits, but must end when the server closes
        while True:
            try:
                return operation()
            except ssl.SSLWantReadError:
                wanted = selectors.EVENT_READ
            except ssl.SSLWantWriteError:
                wanted = selectors.EVENT_WRITE
            except BlockingIOError:
                wanted = events
            except OSError as error:
                raise HangUp(f"the other side broke the connection: {error}") from error
            wait_ready(math.inf, self.wake, (self.sock, wanted))
