"""One connection within the attempt's deadline (contract 8.1, 14.5).

It is made to the first address that answers, and sends in time even to a server that stops reading.
"""

from __future__ import annotations

import itertools
import socket
import sys
import weakref
from collections.abc import Callable
from typing import Any

import urllib3.exceptions as uex
from urllib3.connection import HTTPConnection
from urllib3.util import connection as urllib3_connection

from ..interruptions import is_interruption
from .proxies import bound_handshake, note_refusal, open_otherwise
from .racing import Candidate, How, Race, connect_socket
from .resolving import Found, not_connected, resolve
from .response import RESPONSE_CLASS, probing
from .state import NoMemory, Peer, this_thread

PIECE = 16_384
"""The size of a TLS record, to each of which urllib3's ``sendall`` over pyOpenSSL applies its timeout."""

_create_connection = urllib3_connection.create_connection


class Connect:
    """The ``connect`` and ``send`` of one connection, which record in the attempt what was done, and at which address.

    Only an attempt's first connection is recorded: one that is made after something was sent belongs to the caller's
    body. A tunnel's head is no byte of the request, so ``send`` is prepared once the tunnel is established.

    The reference to the connection is weak: a cycle would keep sockets open until the next garbage collection.
    """

    __slots__ = ("_connection", "_made", "_memory", "_plain_send", "peer")

    def __init__(self, connection: HTTPConnection, memory: NoMemory) -> None:
        self._connection = weakref.ref(connection)
        self._memory = memory
        self._plain_send: Callable[[Any, Any], None] = type(connection).send
        self._made: Any = None
        """A socket that is not the connection's yet, or the race that opens it."""
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
        try:
            type(connection).connect(connection)
        except BaseException as error:
            if self._made is not None:
                self._made.close()  # an interruption may come before the connection has it
            if is_first and not (this_thread.retries_off and this_thread.deadline is None):
                note_refusal(connection, error)
            raise
        finally:
            self._made = None
        if is_first:
            this_thread.connecting, this_thread.peer = False, self.peer
        connection.send = self.send

    def open(self) -> Any:
        """Open the socket as the connection's own ``_new_conn`` does, but by the attempt's deadline."""
        connection: Any = self._connection()
        if this_thread.retries_off and this_thread.deadline is None:
            return type(connection)._new_conn(connection)
        try:
            if this_thread.deadline is None:
                return self._opened(connection)
            connection.timeout = this_thread.seconds(connection.timeout)
            sock = self._opened(connection)
            # What is left bounds the tunnel and the handshake, too.
            sock.settimeout(this_thread.seconds(connection.timeout))
            bound_handshake(connection, sock)
            return sock
        except TimeoutError as error:
            message = f"Connection to {connection.host} timed out. (connect timeout={connection.timeout})"
            raise uex.ConnectTimeoutError(connection, message) from error
        finally:
            if this_thread.connecting is True:
                this_thread.peer = self.peer

    def _opened(self, connection: Any) -> Any:
        opener = type(connection)._new_conn
        if opener is not HTTPConnection._new_conn or urllib3_connection.create_connection is not _create_connection:
            # A SOCKS proxy, or a patched way to connect: it gets one timeout, not one per address.
            self._made = open_otherwise(connection, opener)
            return self._made
        timeout: Any = connection.timeout
        if timeout.__class__ is object:  # that of the socket module, before a tunnel in urllib3 1.26
            timeout = socket.getdefaulttimeout()
        host = connection._dns_host.strip("[]")
        try:
            found = resolve(connection, host, connection.port, urllib3_connection.allowed_gai_family())
            sock = self._connected(connection, found, timeout)
        except UnicodeError:
            raise uex.LocationParseError(f"'{host}', label empty or too long") from None
        except OSError as error:
            if isinstance(error, TimeoutError) or is_interruption(error):
                raise
            raise not_connected(connection, connection.host, error) from error
        sys.audit("http.client.connect", connection, connection.host, connection.port)
        return sock

    def _connected(self, connection: Any, found: Found, timeout: float | None) -> Any:
        """Connect to one of the addresses."""
        memory, origin = self._memory, f"{connection._dns_host}:{connection.port}"
        ahead = candidates(found)
        if len(ahead) > 1:
            how = How(timeout, connection.source_address, connection.socket_options or ())
            sock, name = self._raced(origin, ahead, how)
            sock.settimeout(timeout)
        else:
            name, family, proto, at = ahead[0]
            self.peer = Peer(memory, origin, name, (name,), memory.clock.now())
            sock = self._made = socket.socket(family, socket.SOCK_STREAM, proto)
            connect_socket(sock, at, this_thread.seconds(timeout), connection)
        assert self.peer is not None
        connection.response_class = probing(self.peer) if memory.is_known(origin, name) else RESPONSE_CLASS
        return sock

    def _raced(self, origin: str, ahead: list[Candidate], how: How) -> tuple[Any, str]:
        """Connect to one of several addresses, those that failed lately last, and remember what failed on the way."""
        memory, names = self._memory, tuple([candidate.name for candidate in ahead])
        ahead = [ahead[names.index(name)] for name in memory.in_order(origin, names, this_thread.tried)]
        memory.begin_probe(origin, ahead[0].name)
        race = self._made = Race(ahead, how)
        try:
            sock, (name, *_) = race.run()
            self.peer = Peer(memory, origin, name, names, memory.clock.now())
        finally:
            if self.peer is None:
                self.peer = Peer(memory, origin, ", ".join(race.failed or names[:1]), (), 0.0)
            for failed, why in race.failed.items():
                memory.failed(origin, failed, why)
        return sock, name

    def send(self, data: Any) -> None:
        # The first step of an attempt over a kept connection is a head: the socket's buffer is empty, and the socket
        # was just given the time that is left.
        if this_thread.deadline is None or this_thread.connecting is None:
            self._plain_send(self._connection(), data)
        else:
            self._send_in_time(self._connection(), data)
        this_thread.connecting, this_thread.peer = False, self.peer  # also over a connection that was kept alive

    def _send_in_time(self, connection: Any, data: Any) -> None:
        if connection.sock is None and connection.auto_open:
            connection.connect()
        sock = connection.sock
        if sock is None or not isinstance(data, (bytes, bytearray)):
            self._plain_send(connection, data)
            return
        usual = this_thread.bound(sock)
        try:
            if len(data) <= PIECE:  # sent as it is, for stand-in sockets that inspect it
                self._plain_send(connection, data)
                return
            for start in range(0, len(data), PIECE):
                sock.settimeout(this_thread.seconds(usual))
                self._plain_send(connection, memoryview(data)[start : start + PIECE])
        finally:
            if connection.sock is not None:
                sock.settimeout(usual)


def candidates(found: Found) -> list[Candidate]:
    """Return the resolver's addresses in its order, families alternating (RFC 8305 section 4), each once."""
    families: dict[int, dict[str, Candidate]] = {}
    for family, _, proto, _, sockaddr in found:
        name = str(sockaddr[0])
        if len(sockaddr) == 4 and sockaddr[3] and "%" not in name:
            name = f"{name}%{sockaddr[3]}"  # a link-local address of IPv6 needs its scope, the interface's number
        candidate = Candidate(name, family, proto, sockaddr)
        if len(found) == 1:
            return [candidate]
        families.setdefault(family, {}).setdefault(name, candidate)
    rows = itertools.zip_longest(*map(dict.values, families.values()))
    return list(filter(None, itertools.chain.from_iterable(rows)))
