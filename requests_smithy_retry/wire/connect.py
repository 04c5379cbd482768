"""Connecting within the attempt's deadline (contract 8.1), and recording whether the connection was made.

Name resolution cannot be interrupted. Everything after it can: the loop over the addresses, the tunnel, TLS.
"""

from __future__ import annotations

import socket
import sys
import weakref
from typing import Any

import urllib3.exceptions as uex
from urllib3.connection import HTTPConnection
from urllib3.util import connection as urllib3_connection

from ..interruptions import is_interruption
from .state import this_thread
from .upload import sending

_create_connection = urllib3_connection.create_connection


class Connect:
    """The ``connect`` of one connection, which records in the attempt when it begins and ends.

    Only an attempt's first connection is recorded: one that is made after something was sent belongs to the caller's
    body. A tunnel's head is no byte of the request, so ``send`` is prepared once the tunnel is established.

    The reference to the connection is weak: a cycle would keep sockets open until the next garbage collection.
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: HTTPConnection) -> None:
        self._connection = weakref.ref(connection)

    def __call__(self) -> None:
        """Connect."""
        connection: Any = self._connection()
        assert connection is not None  # it is being called through the connection itself
        connection.__dict__.pop("send", None)
        is_first = this_thread.connecting is None
        if is_first:
            this_thread.connecting = True
        if this_thread.deadline is None:
            type(connection).connect(connection)
        else:
            connection._new_conn = lambda: open_in_time(connection)
            try:
                type(connection).connect(connection)
            finally:
                del connection._new_conn
        if is_first:
            this_thread.connecting = False
        connection.send = sending(connection)


def open_in_time(connection: Any) -> Any:
    """Open the socket as the connection's own ``_new_conn`` does, but by the attempt's deadline.

    :raises urllib3.exceptions.ConnectTimeoutError: if the deadline has passed.
    """
    try:
        connection.timeout = this_thread.seconds(connection.timeout)
        return _opened_in_time(connection)
    except TimeoutError as error:
        message = f"Connection to {connection.host} timed out. (connect timeout={connection.timeout})"
        raise uex.ConnectTimeoutError(connection, message) from error


def _opened_in_time(connection: Any) -> Any:
    sock = _open(connection)
    try:
        # The socket's timeout bounds the tunnel and the handshake.
        sock.settimeout(this_thread.seconds(connection.timeout))
    except BaseException:
        sock.close()  # the connection does not own it yet
        raise
    return sock


def _open(connection: Any) -> Any:
    opener = type(connection)._new_conn
    if opener is not HTTPConnection._new_conn or urllib3_connection.create_connection is not _create_connection:
        # A SOCKS proxy, or a patched lookup: it gets one timeout, not one per address.
        return opener(connection)
    addresses = _addresses(connection)
    if addresses is None:
        return opener(connection)  # fails with urllib3's own exception
    for number, address in enumerate(addresses, 1):
        try:
            return _connected(connection, address)
        except TimeoutError as error:  # noqa: PERF203 - the next address may do
            if number == len(addresses) or is_interruption(error):
                raise
        except OSError as error:
            if is_interruption(error):
                raise
            if number == len(addresses):
                message = f"Failed to establish a new connection: {error}"
                raise uex.NewConnectionError(connection, message) from error
    raise AssertionError("there is at least one address")  # pragma: no cover - see _addresses


def _connected(connection: Any, address: tuple[str, int]) -> Any:
    sock = _create_connection(
        address,
        this_thread.seconds(connection.timeout),
        source_address=connection.source_address,
        socket_options=connection.socket_options,
    )
    sys.audit("http.client.connect", connection, connection.host, connection.port)
    return sock


def _addresses(connection: Any) -> list[tuple[str, int]] | None:
    """Return the addresses of the host, in the resolver's order; None if it cannot be resolved."""
    host = connection._dns_host.strip("[]")
    try:
        family = urllib3_connection.allowed_gai_family()
        found = socket.getaddrinfo(host, connection.port, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        if is_interruption(error):
            raise
        return None
    return [(_with_scope(address), connection.port) for *_, address in found] or None


def _with_scope(address: tuple[Any, ...]) -> str:
    """Return the address as text. An IPv6 link-local address needs its scope, the interface's number."""
    host = str(address[0])
    scope = address[3] if len(address) == 4 and "%" not in host else 0
    return f"{host}%{scope}" if scope else host
