"""Pools whose connections are prepared (contract 14.1, 14.7): subclasses of urllib3's, in an adapter's pool managers.

``ConnectionCls`` is never replaced, because others (vcrpy) do that.

Connections that lie idle: too old ones are closed instead of used, and TCP probes keep paths open. A NAT or a load
balancer forgets an idle connection without telling anybody. A request over such a connection gets no answer, and one
that is not idempotent cannot be sent again.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import queue
import re
import socket
import threading
import weakref
from collections.abc import Callable
from typing import Any

from urllib3._collections import RecentlyUsedContainer
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import EmptyPoolError, PoolError

from ..clock import SYSTEM_CLOCK, Clock
from . import state
from .addresses import AddressMemory, is_in_disgrace
from .connect import Connect
from .proxies import prepare_tunnel
from .response import RESPONSE_CLASS
from .state import this_thread

KNOWN_CONNECTS = frozenset({HTTPConnection.connect, HTTPSConnection.connect})
"""The ``connect`` methods that are known to end before the first byte of a request is sent."""
MAX_IDLE = 55.0
"""A connection that lay this long is not used again, in seconds: common load balancers drop one after a minute."""
LEAST_IDLE = 0.5
"""A connection that lay for less is used in any case, in seconds: a busy program keeps its connections."""
ANNOUNCED = re.compile(r"(?i)(?:^|[,;])[ \t]*timeout[ \t]*=[ \t]*\"?([0-9]{1,9})\"?[ \t]*(?=[,;]|$)")
"""The parameter of a Keep-Alive header that says for how many seconds the server keeps an idle connection."""
PROBE_AFTER = 30
"""The silence after which the kernel probes a connection, in seconds."""
PROBE_EVERY = 10
"""The time between two probes that nobody answers, in seconds."""


class KeptConnections:
    """The connections of a pool, each with the time at which it was put back.

    It stands in for the last-in, first-out queue of urllib3, and takes less time: each request passes through it twice.
    One that lay for :data:`MAX_IDLE`, or nearly as long as its server keeps it, is closed when it is taken out. urllib3
    then connects it anew, as it does with a connection that the server closed.
    """

    def __init__(self, maxsize: int, now: Callable[[], float]) -> None:
        self.maxsize = maxsize
        self._most: float = maxsize if maxsize > 0 else math.inf
        self._now = now
        self._kept: list[tuple[float, Any]] = []
        self.mutex: Any = threading.Lock()  # by the name that it has in the standard library
        self._put_back = threading.Condition(self.mutex)
        self._waiters = 0
        self._interrupted = 0
        self.qsize: Callable[[], int] = self._kept.__len__

    @property
    def queue(self) -> list[Any]:
        """The connections, as tools that look into a pool expect them here; the list is a copy."""
        return [connection for _, connection in self._kept]

    def empty(self) -> bool:
        return not self._kept

    def full(self) -> bool:
        return len(self._kept) >= self._most

    def put_nowait(self, connection: Any) -> None:
        self.put(connection, block=False)

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def put(self, connection: Any, block: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002
        """Put a connection back; a pool never waits for room."""
        with self.mutex:
            if connection is None and self._interrupted:
                self._interrupted -= 1
                return
            if len(self._kept) >= self._most:
                raise queue.Full
            # One step: a signal's handler may raise between two.
            self._kept.append((self._now(), connection))
            if self._waiters:
                self._put_back.notify()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take out the connection that was used last, closed if it lay too long.

        :param timeout: how long, in seconds; None: until there is one.
        :raises queue.Empty: if there is none, or none in time.
        """
        with self.mutex:
            if not self._kept and not (block and self._wait(timeout)):
                raise queue.Empty
            since, connection = self._kept.pop()
        if connection is not None:
            lay = self._now() - since
            if lay >= LEAST_IDLE and lay >= most_idle(connection) and not this_thread.plain:
                connection.close()
        return connection

    def _wait(self, timeout: float | None) -> bool:
        self._waiters += 1
        try:
            return self._put_back.wait_for(lambda: self._kept, timeout)  # type: ignore[return-value]
        except BaseException:
            self._interrupted += 1  # urllib3 gives back a place all the same
            raise
        finally:
            self._waiters -= 1


def most_idle(connection: Any) -> float:
    """Return the seconds after which an idle connection is not used again.

    Its server may have told in its last answer when it closes it. What is sent just then is lost, so a second is left
    for the way, if there is one.
    """
    answer = getattr(connection, "_HTTPConnection__response", None)  # until the next request is sent
    heard = () if answer is None else answer.headers.get_all("keep-alive", ())
    announced = [int(seconds) - 1.0 for value in heard for seconds in ANNOUNCED.findall(value)]
    return max(LEAST_IDLE, min([MAX_IDLE, *announced]))


@functools.cache
def keep_alive_options() -> tuple[tuple[int, int, int], ...]:
    """Return the socket options that switch TCP keep-alive on, as far as the platform takes them."""
    wanted = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for names, seconds in (("TCP_KEEPIDLE", "TCP_KEEPALIVE"), PROBE_AFTER), (("TCP_KEEPINTVL",), PROBE_EVERY):
        numbers = [getattr(socket, name) for name in names if hasattr(socket, name)]
        wanted += [(socket.IPPROTO_TCP, number, seconds) for number in numbers[:1]]
    taken = []
    for option in wanted:
        # The name may exist, and the kernel may still refuse it.
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.setsockopt(*option)
            taken.append(option)
    return tuple(taken)


def prepare(connection: Any, memory: AddressMemory | None = None, *, probes: bool = False) -> Any:
    """Prepare a new connection of urllib3, unless its class has a ``connect`` of its own."""
    if getattr(type(connection), "connect", None) in KNOWN_CONNECTS:
        connection.connect = Connect(connection, memory or AddressMemory(SYSTEM_CLOCK))
        connection.response_class = RESPONSE_CLASS
        prepare_tunnel(connection)
        if probes and not this_thread.plain:
            # What the connection's own options say of it comes later, and wins.
            connection.socket_options = [*keep_alive_options(), *(connection.socket_options or ())]
    return connection


class PreparingPool(HTTPConnectionPool):
    """A mix-in for urllib3's pool classes that prepares each connection, and closes those that lay idle too long."""

    addresses: AddressMemory | None = None
    """Remembers which addresses failed; None: a memory of its own for each connection."""
    now: Callable[[], float] = staticmethod(SYSTEM_CLOCK.now)

    def __init__(self, *args: Any, **options: Any) -> None:
        self.probes: bool = "socket_options" not in options  # a caller's own options win
        super().__init__(*args, **options)

    def QueueCls(self, maxsize: int) -> Any:  # type: ignore[override]
        usual: Any = super().QueueCls
        # Only that of urllib3's own pools is replaced, not a program's own; gevent may have replaced it before.
        is_urllib3s = isinstance(usual, type) and usual.__name__ == "LifoQueue"
        return KeptConnections(maxsize, self.now) if is_urllib3s else usual(maxsize)

    def _new_conn(self) -> Any:
        return prepare(super()._new_conn(), self.addresses, probes=self.probes)

    def check_kept_connections(self, memory: AddressMemory) -> None:
        """Check each connection that the pool gives out, until the memory has no failure any more."""
        self._get_conn = functools.partial(checked_get, weakref.ref(self), memory)  # type: ignore[method-assign]


def checked_get(reference: weakref.ref[Any], memory: AddressMemory, timeout: float | None = None) -> Any:
    """The ``_get_conn`` of a pool that closes a connection to an address that is to be avoided; it connects again.

    The reference to the pool is weak: a cycle would keep its connections open.
    """
    pool: Any = reference()
    connection = None
    try:
        connection = type(pool)._get_conn(pool, timeout)
        if is_in_disgrace(connection, this_thread.tried):
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
        # An interruption may have left a place too many. urllib3 closed the connection; its request went well.
        with contextlib.suppress(PoolError):
            super()._put_conn(conn)


def preparing(
    pool_class: type[HTTPConnectionPool], waits: bool = False, clock: Clock = SYSTEM_CLOCK
) -> type[HTTPConnectionPool]:
    """Return a subclass of a pool class whose connections are prepared, and not used if they lay idle too long."""
    if issubclass(pool_class, PreparingPool):
        return pool_class
    make: Any = _kept_class if clock.now is SYSTEM_CLOCK.now else _class
    return make(pool_class, waits, clock.now)  # type: ignore[no-any-return]


def _class(pool_class: Any, waits: bool, now: Callable[[], float]) -> Any:
    bases = (WaitingPool if waits else PreparingPool, pool_class)
    return type(pool_class.__name__, bases, {"now": staticmethod(now)})


_kept_class = functools.lru_cache(256)(_class)
"""The same class for the same arguments, made once: ``requests.get`` makes an adapter for each call."""


def use_our_pools(manager: Any, addresses: AddressMemory) -> None:
    """Have a pool manager of urllib3 (direct, proxy or SOCKS) make preparing pools from now on. Idempotent."""
    if state.IS_FUTURE or not hasattr(manager, "pool_classes_by_scheme"):
        return
    leave_to_parent(manager)
    waits = bool(manager.connection_pool_kw.get("block"))
    classes = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {
        scheme: preparing(pool, waits, addresses.clock) for scheme, pool in classes.items()
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
