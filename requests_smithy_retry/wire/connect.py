"""Connecting (contract 8.1, 14.5): to the first address that answers, within the attempt's deadline."""

from __future__ import annotations

import functools
import socket
import sys
import weakref
from typing import Any

import urllib3.exceptions as uex
from urllib3.connection import HTTPConnection
from urllib3.util import Timeout
from urllib3.util import connection as urllib3_connection

from ..interruptions import is_interruption
from .addresses import AddressMemory, Peer
from .proxies import bound_handshake, open_otherwise
from .racing import Candidate, How, Race, candidates
from .resolving import resolve
from .response import RESPONSE_CLASS, ProbeResponse
from .state import this_thread
from .upload import Sending, sending

_create_connection = urllib3_connection.create_connection


class Connect:
    """The ``connect`` of one connection, which records in the attempt when it begins and ends, and to which address.

    Only an attempt's first connection is recorded: one that is made after something was sent belongs to the caller's
    body. A tunnel's head is no byte of the request, so ``send`` is prepared once the tunnel is established.

    The reference to the connection is weak: a cycle would keep sockets open until the next garbage collection.

    :param connection: the connection.
    :param memory: remembers which addresses failed.
    """

    __slots__ = ("_connection", "_memory", "_send", "peer")

    def __init__(self, connection: HTTPConnection, memory: AddressMemory) -> None:
        self._connection = weakref.ref(connection)
        self._memory = memory
        self._send: Sending | None = None
        self.peer: Peer | None = None
        """The far end; None if it is not connected yet, or not by us."""

    def __call__(self) -> None:
        """Connect."""
        connection: Any = self._connection()
        assert connection is not None  # it is being called through the connection itself
        connection.__dict__.pop("send", None)
        is_first = this_thread.connecting is None
        if is_first:
            this_thread.connecting, this_thread.peer = True, None
        self._connect(connection, is_first)
        if is_first:
            this_thread.connecting = self.peer or False
        self._send = self._send or sending(connection)
        self._send.arrive(self.peer)
        connection.send = self._send

    def _connect(self, connection: Any, is_first: bool) -> None:
        self.peer = None
        if this_thread.plain and this_thread.deadline is None:
            type(connection).connect(connection)
            return
        connection._new_conn = lambda: self._open(connection, is_first)
        try:
            type(connection).connect(connection)
        finally:
            del connection._new_conn

    def _open(self, connection: Any, is_first: bool) -> Any:
        """Open the socket as the connection's own ``_new_conn`` does, but by the attempt's deadline.

        :raises urllib3.exceptions.ConnectTimeoutError: if no address answered in time.
        """
        try:
            if this_thread.deadline is not None:
                connection.timeout = this_thread.seconds(connection.timeout)
            sock = self._opened(connection)
            if this_thread.deadline is not None:
                _bound(connection, sock)
        except TimeoutError as error:
            message = f"Connection to {connection.host} timed out. (connect timeout={connection.timeout})"
            raise uex.ConnectTimeoutError(connection, message) from error
        finally:
            if is_first:
                this_thread.peer = self.peer
        return sock

    def _opened(self, connection: Any) -> Any:
        opener = type(connection)._new_conn
        if opener is not HTTPConnection._new_conn or urllib3_connection.create_connection is not _create_connection:
            # A SOCKS proxy, or a patched way to connect: it gets one timeout, not one per address.
            return open_otherwise(connection, opener)
        try:
            sock = self._connected(connection, candidates(_addresses(connection)))
        except TimeoutError:
            raise
        except OSError as error:
            if is_interruption(error):
                raise
            raise _named(connection, error) from error
        sys.audit("http.client.connect", connection, connection.host, connection.port)
        return sock

    def _connected(self, connection: Any, ahead: list[Candidate]) -> Any:
        """Connect to one of the addresses, those that failed lately last, and remember what failed on the way."""
        memory, origin = self._memory, f"{connection.host}:{connection.port}"
        names = tuple(candidate.name for candidate in ahead)
        if len(ahead) > 1:
            ahead = [ahead[names.index(name)] for name in memory.in_order(origin, names, this_thread.tried)]
            memory.begin_probe(origin, ahead[0].name)
        timeout = Timeout.resolve_default_timeout(connection.timeout)
        race = Race(ahead, How(timeout, connection.source_address, connection.socket_options or ()))
        try:
            sock, (name, *_) = race.run()
            self.peer = Peer(memory, origin, name, names, memory.clock.now())
        finally:
            if race.failed:
                self._remember(race.failed, origin, names)
        is_known = memory.is_known(origin, name)
        connection.response_class = functools.partial(ProbeResponse, self.peer) if is_known else RESPONSE_CLASS
        sock.settimeout(timeout)
        return sock

    def _remember(self, failed: dict[str, str], origin: str, names: tuple[str, ...]) -> None:
        """Take note of the addresses that failed. A name's only address has nothing to be remembered for."""
        if self.peer is None:
            self.peer = Peer(self._memory, origin, ", ".join(failed), (), 0.0)
        if len(names) > 1:
            for name, why in failed.items():
                self._memory.failed(origin, name, why)


def _bound(connection: Any, sock: Any) -> None:
    """Have the time that is left bound the tunnel and the handshake, as the socket's timeout."""
    try:
        sock.settimeout(this_thread.seconds(connection.timeout))
        bound_handshake(connection, sock)
    except BaseException:
        sock.close()  # the connection does not own it yet
        raise


def _addresses(connection: Any) -> list[Any]:
    """Look up the host; return the addresses as ``getaddrinfo`` does.

    :raises urllib3.exceptions.LocationParseError: for a host that cannot be a name.
    """
    host = connection._dns_host.strip("[]")
    try:
        host.encode("idna")
    except UnicodeError:
        raise uex.LocationParseError(f"'{host}', label empty or too long") from None
    family = urllib3_connection.allowed_gai_family()
    found = resolve(connection, host, connection.port, family)
    if not found:
        raise OSError("getaddrinfo returns an empty list")
    return found


def _named(connection: Any, error: OSError) -> Exception:
    """Return urllib3's exception for a name without addresses, or a connection that was not made."""
    if isinstance(error, socket.gaierror) and hasattr(uex, "NameResolutionError"):
        return uex.NameResolutionError(connection.host, connection, error)
    return uex.NewConnectionError(connection, f"Failed to establish a new connection: {error}")
