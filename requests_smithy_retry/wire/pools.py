"""Pools whose connections are prepared (contract 14.1, 14.7): subclasses of urllib3's, in an adapter's pool managers.

``ConnectionCls`` is never replaced, because others (vcrpy) do that.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable
from typing import Any

from urllib3._collections import RecentlyUsedContainer
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import EmptyPoolError, PoolError

from ..clock import SYSTEM_CLOCK, Clock, SystemClock
from . import state
from .addresses import AddressMemory, is_in_disgrace
from .connect import Connect
from .idle import KeptConnections, is_usual_queue, keep_alive
from .proxies import prepare_tunnel
from .response import RESPONSE_CLASS
from .state import this_thread

KNOWN_CONNECTS = frozenset({HTTPConnection.connect, HTTPSConnection.connect})
"""The ``connect`` methods that are known to end before the first byte of a request is sent."""


def prepare(connection: Any, memory: AddressMemory | None = None, *, probes: bool = False) -> Any:
    """Prepare a new connection of urllib3, unless its class has a ``connect`` of its own."""
    if getattr(type(connection), "connect", None) in KNOWN_CONNECTS:
        connection.connect = Connect(connection, memory or AddressMemory(SYSTEM_CLOCK))
        connection.response_class = RESPONSE_CLASS
        prepare_tunnel(connection)
        if probes and not this_thread.plain:
            keep_alive(connection)
    return connection


class PreparingPool(HTTPConnectionPool):
    """A mix-in for urllib3's pool classes that prepares each connection, and closes those that lay idle too long."""

    addresses: AddressMemory | None = None
    """Remembers which addresses failed; None: a memory of its own for each connection."""
    max_idle: float | None = None
    """A connection that lay this long is not used again, in seconds; None: every one is."""
    now: Callable[[], float] = staticmethod(SYSTEM_CLOCK.now)

    def __init__(self, *args: Any, **options: Any) -> None:
        self.probes: bool = "socket_options" not in options  # a caller's own options win
        super().__init__(*args, **options)

    def QueueCls(self, maxsize: int) -> Any:  # type: ignore[override]
        """Make the queue for the connections that are kept."""
        usual: Any = super().QueueCls
        if self.max_idle is None or not is_usual_queue(usual):
            return usual(maxsize)
        return KeptConnections(maxsize, self.max_idle, self.now)

    def _new_conn(self) -> Any:
        return prepare(super()._new_conn(), self.addresses, probes=self.probes)

    def check_kept_connections(self, memory: AddressMemory) -> None:
        """Check each connection that the pool gives out, as long as the memory has a failure.

        While there is none, a request takes its connection without a check.
        """
        self._get_conn = functools.partial(checked_get, weakref.ref(self), memory)  # type: ignore[method-assign]


def checked_get(reference: weakref.ref[Any], memory: AddressMemory, timeout: float | None = None) -> Any:
    """The ``_get_conn`` of a pool that closes a connection to an address that is to be avoided; it connects again.

    The reference to the pool is weak: a cycle would keep its connections open.
    """
    pool: Any = reference()
    connection = None
    try:
        connection = type(pool)._get_conn(pool, timeout)
        if is_in_disgrace(connection):
            connection.close()
            if not connection.auto_open:  # one through a proxy's tunnel, in urllib3 1.26
                connection = pool._new_conn()
        if memory.is_empty:
            pool.__dict__.pop("_get_conn", None)
            if not memory.is_empty:  # another thread's failure, just now
                pool.check_kept_connections(memory)
        return connection
    except BaseException:
        if connection is not None:
            connection.close()  # after an interruption urllib3 does not know of it
        raise


def _new_pool(reference: weakref.ref[Any], addresses: AddressMemory, *args: Any, **kwargs: Any) -> Any:
    """The ``_new_pool`` of a pool manager, which gives each pool the memory of addresses.

    The reference to the manager is weak: a cycle would keep its pools alive.
    """
    manager: Any = reference()
    pool = type(manager)._new_pool(manager, *args, **kwargs)
    if isinstance(pool, PreparingPool):
        pool.addresses = addresses
        addresses.watch(pool)
    return pool


class WaitingPool(PreparingPool):
    """For ``pool_block=True``: the wait for a free connection also ends by the attempt's deadline."""

    def _get_conn(self, timeout: float | None = None) -> Any:
        try:
            timeout = this_thread.seconds(timeout)
        except TimeoutError:
            raise EmptyPoolError(self, "no connection was free before the deadline") from None
        return super()._get_conn(timeout)

    def _put_conn(self, conn: Any) -> None:
        try:
            super()._put_conn(conn)
        except PoolError:
            # An interruption left a place too many. urllib3 closed the connection; its request went well.
            pass


def preparing(
    pool_class: type[HTTPConnectionPool],
    waits: bool = False,
    max_idle: float | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> type[HTTPConnectionPool]:
    """Return a subclass of a pool class whose connections are prepared.

    :param max_idle: the age from which on an idle connection is not used, in seconds; None: no age.
    """
    if issubclass(pool_class, PreparingPool):
        return pool_class
    is_usual = isinstance(clock, SystemClock)  # a copied adapter has a copy of it
    make: Any = _kept_class if is_usual else _class
    made: type[HTTPConnectionPool] = make(pool_class, waits, max_idle, SYSTEM_CLOCK if is_usual else clock)
    return made


def _class(pool_class: Any, waits: bool, max_idle: float | None, clock: Clock) -> Any:
    values = {"max_idle": max_idle, "now": staticmethod(clock.now)}
    return type(pool_class.__name__, (WaitingPool if waits else PreparingPool, pool_class), values)


_kept_class = functools.lru_cache(256)(_class)
"""The same class for the same arguments, made once: ``requests.get`` makes an adapter for each call."""


def use_our_pools(manager: Any, addresses: AddressMemory, max_idle: float | None = None) -> None:
    """Have a pool manager of urllib3 (direct, proxy or SOCKS) make preparing pools from now on. Idempotent.

    :param max_idle: the age from which on an idle connection is not used, in seconds; None: no age.
    """
    if state.IS_FUTURE or not hasattr(manager, "pool_classes_by_scheme"):
        return
    leave_to_parent(manager)
    waits = bool(manager.connection_pool_kw.get("block"))
    classes = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {
        scheme: preparing(pool, waits, max_idle, addresses.clock) for scheme, pool in classes.items()
    }
    if hasattr(type(manager), "_new_pool") and getattr(manager._new_pool, "args", ())[1:] != (addresses,):
        manager._new_pool = functools.partial(_new_pool, weakref.ref(manager), addresses)


# A connection that was kept alive before a fork is one socket in two processes: each would read the other's responses.
# In the child, pool managers begin with no pools. The parent's connections are neither used nor closed.
_managers: weakref.WeakSet[Any] = weakref.WeakSet()
_left_alone: list[Any] = []
"""Pools of the parent, never released: finalizing one takes its lock, which another thread may have held."""


def leave_to_parent(manager: Any) -> None:
    """Have a pool manager begin without pools in every child forked from now on; keep no strong reference to it.

    A manager of another kind, which keeps its pools in another way, is left alone.
    """
    if isinstance(getattr(manager, "pools", None), RecentlyUsedContainer):
        _managers.add(manager)


def begin_without_pools(manager: Any) -> None:
    """Give the manager an empty container of pools, configured like the old one."""
    pools = manager.pools
    _left_alone.append(pools)
    manager.pools = RecentlyUsedContainer(pools._maxsize, pools.dispose_func)


def _in_child() -> None:  # pragma: no cover - runs in the child, whose end by os._exit leaves no measurement
    for manager in tuple(_managers):
        begin_without_pools(manager)


if hasattr(os, "register_at_fork"):  # pragma: no branch - absent only where there is no fork
    os.register_at_fork(after_in_child=_in_child)
