"""What must be known below ``super().send`` (contract 14.1): whether the request can have reached the server.

It is seen by subclasses of urllib3's connection pools, put into the pool managers of an adapter. Their ``_new_conn``
prepares each connection; ``ConnectionCls`` is never replaced, because others (vcrpy) do that.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool


class AttemptState(threading.local):
    """What this thread's current attempt has come to. Reset before each attempt; an attempt stays in its thread."""

    connecting = False
    """A connection was begun and not finished, so that no byte of the request was written."""


attempt = AttemptState()

KNOWN_CONNECTS = frozenset({HTTPConnection.connect, HTTPSConnection.connect})
"""The ``connect`` methods whose end is known to come before the first byte of a request."""


class _Connect:
    """``connect`` of one connection, marking in the attempt when it begins and when it is done.

    It knows its connection weakly: a cycle would keep sockets open until the garbage collector comes by.
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: HTTPConnection) -> None:
        self._connection = weakref.ref(connection)

    def __call__(self) -> None:
        connection = self._connection()
        assert connection is not None  # it is being called through the connection itself
        attempt.connecting = True
        type(connection).connect(connection)
        attempt.connecting = False


def prepare(connection: Any) -> Any:
    """Prepare a new connection. One whose class connects in its own way is left alone: then nothing is known."""
    if getattr(type(connection), "connect", None) in KNOWN_CONNECTS:
        connection.connect = _Connect(connection)
    return connection


class PreparingPool(HTTPConnectionPool):
    """A pool whose connections are prepared. Mixed into each of urllib3's own pool classes."""

    def _new_conn(self) -> Any:
        return prepare(super()._new_conn())


@functools.cache
def preparing(pool_class: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    """A subclass of a pool class whose connections are prepared."""
    if issubclass(pool_class, PreparingPool):
        return pool_class
    return type(pool_class.__name__, (PreparingPool, pool_class), {})


def watch(manager: Any) -> None:
    """Have a pool manager (direct, proxy or SOCKS) make preparing pools from now on. Idempotent."""
    classes = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: preparing(pool) for scheme, pool in classes.items()}
