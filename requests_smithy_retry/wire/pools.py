"""Pools whose connections are prepared (contract 14.1): subclasses of urllib3's, set in an adapter's pool managers.

``ConnectionCls`` is never replaced, because others (vcrpy) do that.
"""

from __future__ import annotations

import functools
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import EmptyPoolError

from .connect import Connect
from .forked import leave_to_parent
from .response import RESPONSE_CLASS
from .state import this_thread

KNOWN_CONNECTS = frozenset({HTTPConnection.connect, HTTPSConnection.connect})
"""The ``connect`` methods that are known to end before the first byte of a request is sent."""


def prepare(connection: Any) -> Any:
    """Prepare a new connection, unless its class has a ``connect`` of its own."""
    if getattr(type(connection), "connect", None) in KNOWN_CONNECTS:
        connection.connect = Connect(connection)
        connection.response_class = RESPONSE_CLASS
    return connection


class PreparingPool(HTTPConnectionPool):
    """A mix-in for urllib3's pool classes that prepares each connection."""

    def _new_conn(self) -> Any:
        return prepare(super()._new_conn())


class WaitingPool(PreparingPool):
    """For ``pool_block=True``: the wait for a free connection also ends by the attempt's deadline."""

    def _get_conn(self, timeout: float | None = None) -> Any:
        try:
            timeout = this_thread.seconds(timeout)
        except TimeoutError:
            raise EmptyPoolError(self, "no connection was free before the deadline") from None
        return super()._get_conn(timeout)


@functools.cache
def preparing(pool_class: type[HTTPConnectionPool], waits: bool = False) -> type[HTTPConnectionPool]:
    """Return a subclass of a pool class whose connections are prepared."""
    if issubclass(pool_class, PreparingPool):
        return pool_class
    return type(pool_class.__name__, (WaitingPool if waits else PreparingPool, pool_class), {})


def use_our_pools(manager: Any) -> None:
    """Have a pool manager of urllib3 (direct, proxy or SOCKS) make preparing pools from now on. Idempotent."""
    if not hasattr(manager, "pool_classes_by_scheme"):
        return
    leave_to_parent(manager)
    waits = bool(manager.connection_pool_kw.get("block"))
    classes = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: preparing(pool, waits) for scheme, pool in classes.items()}
