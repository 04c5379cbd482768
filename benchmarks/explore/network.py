"""What simulates sockets and names: bytes arrive at their moment, in any pieces, with any end.

The server is another module's: :attr:`Network.connected` and :attr:`Network.sent` are told what clients do.
"""

from __future__ import annotations

import errno
import itertools
import os
import socket
from collections import deque
from typing import Any, NamedTuple

from .tasks import Task, tasks

DATA, END, RESET = "data", "end", "reset"


class Arrival(NamedTuple):
    """The part of an answer that reaches the client.

    :param at: when.
    :param kind: bytes, the end of the stream, or a reset.
    """

    at: float
    kind: str
    data: bytes = b""


class Link:
    """One connection as the server sees it."""

    def __init__(self, address: str, port: int) -> None:
        self.address = address
        self.port = port
        self.arriving: deque[Arrival] = deque()
        self.is_deaf = False
        """The far end takes no bytes any more: the next ones are answered by a reset."""
        self.room: int | None = None
        """Bytes that it will still take before it stops reading; None: all."""
        self.stall = 0.0
        """Seconds after which it breaks off when there is no room."""
        self.state: Any = None


class Network:
    """All that is not the client. A run replaces its attributes."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.open: dict[int, FakeSocket] = {}
        self.numbers = itertools.count(1000)
        self.world: Any = None
        self.pid = os.getpid()

    def resolve(self, host: str, port: int, *how: Any) -> Any:
        """Return the addresses of a name, as ``getaddrinfo`` does."""
        return self.world.resolve(host, port)


net = Network()


class FakeSocket:
    """A client's socket."""

    _io_refs = 0

    def __init__(self, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, proto: int = 0) -> None:
        self._number = next(net.numbers)
        net.open[self._number] = self
        self._timeout: float | None = None
        self._closed = False
        self.link: Link | None = None
        self.reader: Task | None = None
        self.error = 0
        self.connected_at: float | None = None
        """When the connection will be there, for one that is under way."""
        self.fails_with = 0
        self.pid = net.pid

    def __enter__(self) -> FakeSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        return self._number if self._number in net.open else -1

    def settimeout(self, seconds: float | None) -> None:
        if seconds is not None and seconds < 0:
            raise ValueError("Timeout value out of range")
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        return self._timeout

    def setsockopt(self, *_: Any) -> None:
        """Do nothing."""

    def bind(self, address: Any) -> None:
        """Do nothing."""

    def getsockopt(self, *_: Any) -> int:
        return self.error

    def connect(self, address: Any) -> None:
        """Connect as the world has it: in time, too late, or not at all."""
        seconds, error = net.world.connect(self, address)
        if self._timeout == 0.0 and seconds > 0:
            self.connected_at, self.fails_with = tasks.now + seconds, error
            raise BlockingIOError(errno.EINPROGRESS, "Operation now in progress")
        if self._timeout is not None and seconds > self._timeout:
            self.connected_at, self.fails_with = tasks.now + seconds, error
            tasks.wait(self._timeout)
            raise TimeoutError("timed out")
        tasks.wait(seconds) if seconds else tasks.pause()
        if error:
            raise OSError(error, os.strerror(error))

    def sendall(self, data: Any) -> None:
        """Send to the world."""
        self._check()
        assert self.link is not None
        net.world.sending(self)
        tasks.pause()
        if self.link.is_deaf:
            code = errno.EPIPE if self._number % 2 else errno.ECONNRESET
            raise OSError(code, os.strerror(code))
        data = bytes(data)
        room = self.link.room
        if room is not None and len(data) > room:
            net.world.sent(self, data[:room])
            self.link.room = 0
            self._wait(self.link.stall)
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        if room is not None:
            self.link.room = room - len(data)
        net.world.sent(self, data)

    def _wait(self, seconds: float) -> None:
        """Wait for something that takes so long; raise when the timeout is over before."""
        if self._timeout is not None and self._timeout < seconds:
            tasks.wait(self._timeout)
            raise TimeoutError("timed out")
        tasks.wait(seconds)

    def recv_into(self, buffer: Any, *_: Any) -> int:
        part = self.recv(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def recv(self, most: int) -> bytes:
        """Return what is there, as soon as something is."""
        self._check()
        assert self.link is not None
        net.world.receiving(self)
        tasks.pause()
        arriving = self.link.arriving
        until = None if self._timeout is None else tasks.now + self._timeout
        while not arriving or arriving[0].at > tasks.now:
            if until is not None and until <= tasks.now:
                raise TimeoutError("timed out")
            wait = None if until is None else until - tasks.now
            if arriving:
                due = arriving[0].at - tasks.now
                wait = due if wait is None else min(wait, due)
            if wait is None:
                raise AssertionError("a client waits for ever for a server that sends nothing more")
            tasks.wait(wait)
            self._check()
        first = arriving[0]
        if first.kind is END:
            return b""
        if first.kind is RESET:
            arriving[0] = Arrival(0.0, END)
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        arriving.popleft()
        if len(first.data) > most:
            arriving.appendleft(Arrival(first.at, DATA, first.data[most:]))
        return first.data[:most]

    def _check(self) -> None:
        if self._number not in net.open:
            raise OSError(errno.EBADF, "Bad file descriptor")
        if self.pid != net.pid:
            net.world.report("a child uses a connection of its parent")

    def is_readable(self) -> bool:
        """Return True if ``recv`` would return at once."""
        return bool(self.link and self.link.arriving and self.link.arriving[0].at <= tasks.now)

    def makefile(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the package makes its own reader")

    def shutdown(self, _: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        self._closed = True
        if self._io_refs <= 0:
            self._really_close()

    def _decref_socketios(self) -> None:
        if self._io_refs > 0:
            self._io_refs -= 1
        if self._closed:
            self.close()

    def _really_close(self) -> None:
        net.open.pop(self._number, None)


class FakeSelector:
    """Waits for the first of several connections that are being made."""

    def __init__(self) -> None:
        self._socks: list[FakeSocket] = []

    def __enter__(self) -> FakeSelector:
        return self

    def __exit__(self, *_: object) -> None:
        self._socks.clear()

    def register(self, sock: FakeSocket, _: int) -> None:
        self._socks.append(sock)

    def unregister(self, sock: FakeSocket) -> None:
        self._socks.remove(sock)

    def select(self, seconds: float | None = None) -> list[tuple[Any, int]]:
        until = None if seconds is None else tasks.now + seconds
        while True:
            there = [sock for sock in self._socks if sock.connected_at is not None and sock.connected_at <= tasks.now]
            if there or (until is not None and until <= tasks.now):
                break
            moments = [sock.connected_at for sock in self._socks if sock.connected_at is not None]
            tasks.wait(min([*moments, *([] if until is None else [until])]) - tasks.now)
        for sock in there:
            sock.error = sock.fails_with
        return [(_Key(sock), 2) for sock in there]


class _Key(NamedTuple):
    fileobj: FakeSocket


def wait_for_read(sock: FakeSocket, timeout: float | None = None) -> bool:
    """Stand in for urllib3's function of that name, which it asks of connections that lay in a pool."""
    return sock.is_readable()
