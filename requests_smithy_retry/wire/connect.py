"""One connection within the attempt's deadline (contract 8.1).

An :class:`Opener` opens its socket; a send ends in time even if the server stops reading.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import urllib3.exceptions as uex
from urllib3.connection import HTTPConnection

from ..clock import Clock
from .proxies import bound_handshake, note_refusal
from .state import Peer, this_thread

if TYPE_CHECKING:
    from ..classifiers.outcome import Outcome

MAX_IDLE = 55.0
"""The seconds for which a connection may be idle by default: common load balancers drop one after a minute."""
PIECE = 16_384
"""The size of a TLS record: urllib3's ``sendall`` over pyOpenSSL applies its timeout to each."""
LARGE_PIECE = 1_048_576
"""The bytes given to the standard library's sockets at once: their timeout bounds a whole ``sendall``."""


class Opener:
    """Opens the sockets of an adapter's connections as urllib3 does; the feature ``addresses`` has its own."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.max_idle: float = MAX_IDLE

    def open(self, connection: Any, connect: Connect) -> Any:
        """Return a connected socket; the ``timeout`` of the connection is the time that is left.

        ``connect`` gets the far end, and the object to close after an interruption.
        """
        sock = connect.opening = type(connection)._new_conn(connection)
        return sock

    def attempt_failed(self, outcome: Outcome, peer: Peer | None, tried: set[tuple[str, str]]) -> None:
        """Record a failed attempt, and add its addresses, each with its origin, to ``tried``."""

    def forget(self) -> None:
        """Forget the addresses that failed."""

    def snapshot(self) -> tuple[Any, ...]:
        """Return the addresses that failed lately."""
        return ()


class RecordedConnect:
    """The ``connect`` and ``send`` of a connection that opens its socket in its own way, such as over a Unix socket.

    They record only whether something was sent: if connecting fails, no byte of the request was written. Only an
    attempt's first connection is recorded: one that is made after something was sent belongs to the caller's body.

    The reference to the connection is weak: a cycle would keep sockets open until the next garbage collection.
    """

    __slots__ = ("_connection", "peer")

    def __init__(self, connection: HTTPConnection) -> None:
        self._connection = weakref.ref(connection)
        self.peer: Peer | None = None
        """The far end; None if it is not connected yet, or not by us."""

    def __call__(self) -> None:
        connection: Any = self._connection()
        assert connection is not None  # it is being called through the connection itself
        connection.__dict__.pop("send", None)
        self.peer = None
        is_first = this_thread.connecting is None
        if is_first:
            this_thread.connecting, this_thread.peer, this_thread.answer = True, None, 0
        self._connect(connection, is_first)
        if is_first:
            this_thread.connecting, this_thread.peer = False, self.peer
        connection.send = self.send

    def _connect(self, connection: Any, is_first: bool) -> None:
        type(connection).connect(connection)

    def send(self, data: Any) -> None:
        this_thread.connecting = False  # also over a connection that was kept alive
        connection: Any = self._connection()
        type(connection).send(connection, data)


class Connect(RecordedConnect):
    """The same, within the attempt's deadline; the address is also recorded in the attempt.

    A tunnel's head is not part of the request, so ``send`` is prepared once the tunnel is established.
    """

    __slots__ = ("_opener", "_plain_send", "opening")

    def __init__(self, connection: HTTPConnection, opener: Opener) -> None:
        super().__init__(connection)
        self._opener = opener
        self._plain_send: Callable[[Any, Any], None] = type(connection).send
        self.opening: Any = None
        """A socket that the connection does not own yet, or its opener; both have a ``close``."""

    def _connect(self, connection: Any, is_first: bool) -> None:
        try:
            super()._connect(connection, is_first)
        except BaseException as error:
            if self.opening is not None:
                self.opening.close()  # an interruption may come before the connection has it
            if is_first and not (this_thread.retries_off and this_thread.deadline is None):
                note_refusal(connection, error)
            raise
        finally:
            self.opening = None

    def open(self) -> Any:
        """Open the socket as the connection's own ``_new_conn`` does, but by the attempt's deadline."""
        connection: Any = self._connection()
        if this_thread.retries_off and this_thread.deadline is None:
            return type(connection)._new_conn(connection)
        try:
            if this_thread.deadline is None:
                return self._opener.open(connection, self)
            connection.timeout = this_thread.seconds(connection.timeout)
            sock = self._opener.open(connection, self)
            # The time left bounds the tunnel and the handshake, too.
            sock.settimeout(this_thread.seconds(connection.timeout))
            bound_handshake(connection, sock)
            return sock
        except TimeoutError as error:
            message = f"Connection to {connection.host} timed out. (connect timeout={connection.timeout})"
            raise uex.ConnectTimeoutError(connection, message) from error
        finally:
            if this_thread.connecting is True:
                this_thread.peer = self.peer

    def send(self, data: Any) -> None:
        # The first step of an attempt over a kept connection is a head: the socket's buffer is empty, and the socket
        # was just given the time that is left.
        try:
            if this_thread.deadline is None or this_thread.connecting is None:
                self._plain_send(self._connection(), data)
            else:
                self._send_in_time(self._connection(), data)
        finally:
            del data  # an error's traceback shows the locals of this frame
        this_thread.connecting, this_thread.peer = False, self.peer  # also over a connection that was kept alive

    def _send_in_time(self, connection: Any, data: Any) -> None:
        try:
            if connection.sock is None and connection.auto_open:
                connection.connect()
            sock = connection.sock
            if sock is None or not isinstance(data, (bytes, bytearray)):
                self._plain_send(connection, data)
                return
            usual = this_thread.set_timeout(sock)
            try:
                if len(data) <= PIECE:  # sent as it is, for stand-in sockets that inspect it
                    self._plain_send(connection, data)
                    return
                size = LARGE_PIECE if type(sock).__module__ in ("socket", "ssl") else PIECE
                for start in range(0, len(data), size):
                    sock.settimeout(this_thread.seconds(usual))
                    self._plain_send(connection, memoryview(data)[start : start + size])
            finally:
                if connection.sock is not None:
                    sock.settimeout(usual)
        finally:
            del data  # as above
