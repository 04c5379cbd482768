"""Making a connection within the attempt's deadline (contract 8.1), and knowing whether it was made.

Resolving a name cannot be interrupted. Everything after it can: the loop over the addresses, the tunnel, TLS.
"""

from __future__ import annotations

import socket
import sys
import weakref
from typing import Any

import urllib3.exceptions as uex
from urllib3.connection import HTTPConnection
from urllib3.util import connection as urllib3_connection

from .state import attempt

_create_connection = urllib3_connection.create_connection


class Connect:
    """``connect`` of one connection, marking in the attempt when it begins and when it is done.

    It knows its connection weakly: a cycle would keep sockets open until the garbage collector comes by.
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: HTTPConnection) -> None:
        self._connection = weakref.ref(connection)

    def __call__(self) -> None:
        """Connect."""
        connection: Any = self._connection()
        assert connection is not None  # it is being called through the connection itself
        attempt.connecting = True
        if attempt.deadline is None:
            type(connection).connect(connection)
        else:
            connection._new_conn = lambda: open_in_time(connection)
            try:
                type(connection).connect(connection)
            finally:
                del connection._new_conn
        attempt.connecting = False


def open_in_time(connection: Any) -> Any:
    """The socket that a connection's own ``_new_conn`` would open, by the attempt's deadline.

    :raises urllib3.exceptions.ConnectTimeoutError: if it has passed.
    """
    try:
        connection.timeout = attempt.seconds(connection.timeout)
        sock = _open(connection)
        # The tunnel and the handshake go by the socket's timeout.
        sock.settimeout(attempt.seconds(connection.timeout))
    except TimeoutError as error:
        message = f"Connection to {connection.host} timed out. (connect timeout={connection.timeout})"
        raise uex.ConnectTimeoutError(connection, message) from error
    return sock


def _open(connection: Any) -> Any:
    opener = type(connection)._new_conn
    if opener is not HTTPConnection._new_conn or urllib3_connection.create_connection is not _create_connection:
        # A SOCKS proxy, or somebody's own way to find a host: then it has one timeout, not one per address.
        return opener(connection)
    addresses = _addresses(connection)
    if addresses is None:
        return opener(connection)  # which fails in the same way, with urllib3's own exception
    for number, address in enumerate(addresses, 1):
        try:
            return _connected(connection, address)
        except TimeoutError:  # noqa: PERF203 - the next address may do
            if number == len(addresses):
                raise
        except OSError as error:
            if number == len(addresses):
                message = f"Failed to establish a new connection: {error}"
                raise uex.NewConnectionError(connection, message) from error
    raise AssertionError("there is at least one address")  # pragma: no cover - see _addresses


def _connected(connection: Any, address: tuple[str, int]) -> Any:
    sock = _create_connection(
        address,
        attempt.seconds(connection.timeout),
        source_address=connection.source_address,
        socket_options=connection.socket_options,
    )
    sys.audit("http.client.connect", connection, connection.host, connection.port)
    return sock


def _addresses(connection: Any) -> list[tuple[str, int]] | None:
    """What the host's name stands for, in the order of the resolver; None if it stands for nothing."""
    host = connection._dns_host.strip("[]")
    try:
        family = urllib3_connection.allowed_gai_family()
        found = socket.getaddrinfo(host, connection.port, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return [(str(address[0]), connection.port) for *_, address in found] or None
