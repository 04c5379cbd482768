"""Sending a request within the attempt's deadline (contract 8.1): a server that stops reading does not outlive it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from urllib3.connection import HTTPConnection

from .state import attempt, timeout_of

PIECE = 16_384
"""One TLS record: ``sendall`` bounds the whole call over plain sockets, over TLS each record by itself."""


def sending(connection: HTTPConnection) -> Callable[[Any], None]:
    """A ``send`` for one connection, which it knows weakly: a cycle would keep sockets open."""
    reference, plain = weakref.ref(connection), type(connection).send

    def send(data: Any) -> None:
        if attempt.deadline is None:
            plain(reference(), data)  # type: ignore[arg-type]  # it is being called through the connection itself
        else:
            _send_in_time(reference(), data)

    return send


def _send_in_time(connection: Any, data: Any) -> None:
    if connection.sock is None and connection.auto_open:
        connection.connect()
    if not isinstance(data, (bytes, bytearray)) or connection.sock is None:
        type(connection).send(connection, data)
        return
    usual = timeout_of(connection.sock)
    try:
        # What is little is sent as it is, for sockets that stand in for real ones and look at it.
        for piece in (data,) if len(data) <= PIECE else _pieces(memoryview(data)):
            connection.sock.settimeout(attempt.seconds(usual))
            type(connection).send(connection, piece)
    finally:
        if connection.sock is not None:
            connection.sock.settimeout(usual)


def _pieces(data: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]
