"""Sending a request within the attempt's deadline (contract 8.1), even to a server that stops reading."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from urllib3.connection import HTTPConnection

from .state import this_thread

if TYPE_CHECKING:
    from .addresses import Peer

PIECE = 16_384
"""The size of a TLS record, to each of which urllib3's ``sendall`` over pyOpenSSL applies its timeout."""


class Sending(Protocol):
    """The ``send`` of one connection."""

    def __call__(self, data: Any) -> None:
        """Send, within the attempt's deadline."""
        ...

    def arrive(self, peer: Peer | None) -> None:
        """Take note of the connection's far end; None if it is not known.

        A connection that was closed may connect within ``send``, which then has to know the new one.
        """
        ...


def sending(connection: HTTPConnection) -> Sending:
    """Return a ``send`` for one connection, with a weak reference to it: a cycle would keep sockets open."""
    reference, plain = weakref.ref(connection), type(connection).send
    reached: Peer | bool = False

    def send(data: Any) -> None:
        # The first step of an attempt over a kept connection is a head: the socket's buffer is empty, and the socket
        # was just given the time that is left.
        if this_thread.deadline is None or this_thread.connecting is None:
            plain(reference(), data)  # type: ignore[arg-type]  # it is being called through the connection itself
        else:
            _send_in_time(plain, reference(), data)
        this_thread.connecting = reached  # also over a connection that was kept alive

    def arrive(peer: Peer | None) -> None:
        nonlocal reached
        reached = peer or False

    sender: Any = send
    sender.arrive = arrive
    return sender  # type: ignore[no-any-return]


def _send_in_time(plain: Callable[[Any, Any], None], connection: Any, data: Any) -> None:
    if connection.sock is None and connection.auto_open:
        connection.connect()
    sock = connection.sock
    if sock is None or not isinstance(data, (bytes, bytearray)):
        plain(connection, data)
        return
    usual = this_thread.bound(sock)
    try:
        if len(data) <= PIECE:  # sent as it is, for stand-in sockets that inspect it
            plain(connection, data)
            return
        for piece in _pieces(memoryview(data)):
            sock.settimeout(this_thread.seconds(usual))
            plain(connection, piece)
    finally:
        if connection.sock is not None:
            sock.settimeout(usual)


def _pieces(data: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]
