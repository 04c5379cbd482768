"""Sending a request within the attempt's deadline (contract 8.1): a server that stops reading does not outlive it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
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
    view = memoryview(data)
    try:
        for start in range(0, len(view), PIECE):
            connection.sock.settimeout(attempt.seconds(usual))
            type(connection).send(connection, view[start : start + PIECE])
    finally:
        if connection.sock is not None:
            connection.sock.settimeout(usual)
