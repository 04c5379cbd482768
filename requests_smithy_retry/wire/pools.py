"""Pools whose connections are prepared (contract 14.1): subclasses of urllib3's, in an adapter's pool managers.

``ConnectionCls`` is never replaced, because others (vcrpy) do that.

Idle connections: those that are too old are closed instead of reused, and TCP probes keep paths open. A NAT or a load
balancer drops an idle connection silently. A request over such a connection gets no answer, and one that is not
idempotent cannot be sent again.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import socket
import weakref
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import EmptyPoolError, PoolError
from urllib3.poolmanager import RecentlyUsedContainer  # type: ignore[attr-defined]

from ..clock import SYSTEM_CLOCK
from ..interruptions import is_interruption
from ..observing.log import log_short_idle
from . import private
from .connect import Connect, Opener, RecordedConnect
from .proxies import prepare_tunnel
from .response import RESPONSE_CLASS
from .state import Peer, this_thread

KNOWN_CONNECTS = frozenset({HTTPConnection.connect, HTTPSConnection.connect})
"""The ``connect`` methods that are known to end before the first byte of a request is sent."""
SWITCHED = 101
"""The status of an answer after which a connection speaks another protocol."""
LEAST_IDLE = 0.5
"""Seconds. A connection idle for less is always reused: a busy program keeps its connections."""
IDLE_MARGIN = 0.98
"""The limit, as a part of an idle time that was too long: regular requests come a little earlier or later."""
ANNOUNCED = re.compile(r"(?i)(?:^|[,;])[ \t]*timeout[ \t]*=[ \t]*\"?([0-9]{1,9})\"?[ \t]*(?=[,;]|$)")
"""The parameter of a Keep-Alive header that says for how many seconds the server keeps an idle connection."""
PROBE_AFTER = 30
"""The silence after which the kernel probes a connection, in seconds."""
PROBE_EVERY = 10
"""The time between two unanswered probes, in seconds."""
MOST_ORIGINS = 256
"""The most origins whose keys are remembered; with more, all are forgotten."""


def is_stale(connection: Any, now: float, most: float) -> bool:
    """Return True for a kept connection that must not be used again; it may be idle for ``most`` seconds.

    Its answer was not read to the end, or was a 101; another address is better, or was not tried by the operation; or
    it was idle for too long, or for nearly as long as its server keeps it.
    """
    answer = getattr(connection, "_HTTPConnection__response", None)  # until the next request is sent
    if answer is not None and (answer.length or not answer.isclosed() or answer.status == SWITCHED):
        return True
    if getattr(answer, "is_unread", False):
        return True
    peer: Peer | None = getattr(getattr(connection, "connect", None), "peer", None)
    if peer is not None and len(peer.addresses) > 1 and peer.is_avoided(this_thread.tried):
        return True
    since = getattr(connection, "idle_since", None)
    if since is None or now - since < LEAST_IDLE or this_thread.retries_off:
        return False
    return now - since >= idle_limit(answer, most)  # type: ignore[no-any-return]


def idle_limit(answer: Any, most: float) -> float:
    """Return the seconds after which an idle connection is not used again: at most ``most``.

    The server's last answer, if it is known, may have announced when it closes the connection. A request that is sent
    just then is lost, so the limit is one second less.
    """
    heard = () if answer is None else answer.headers.get_all("keep-alive", ())
    announced = [int(seconds) - 1.0 for value in heard for seconds in ANNOUNCED.findall(value)]
    return max(LEAST_IDLE, min([most, *announced]))


def keep_alive_options() -> tuple[tuple[int, int, int], ...]:
    """Return the socket options that enable TCP keep-alive, as far as the platform supports them.

    There are none while no socket can be made.
    """
    try:
        return _taken_options()
    except Exception as error:
        if is_interruption(error):
            raise
        return ()


@functools.cache
def _taken_options() -> tuple[tuple[int, int, int], ...]:
    wanted = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for names, seconds in (("TCP_KEEPIDLE", "TCP_KEEPALIVE"), PROBE_AFTER), (("TCP_KEEPINTVL",), PROBE_EVERY):
        numbers = [getattr(socket, name) for name in names if hasattr(socket, name)]
        wanted += [(socket.IPPROTO_TCP, number, seconds) for number in numbers[:1]]
    taken = []
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        for option in wanted:
            # The kernel may refuse an option whose name exists.
            with contextlib.suppress(OSError):
                sock.setsockopt(*option)
                taken.append(option)
    return tuple(taken)


def prepare(connection: Any, opener: Opener, *, probes: bool = False) -> Any:
    """Prepare a new urllib3 connection; if its class has its own ``connect``, only record whether it sent data."""
    own = getattr(type(connection), "connect", None)
    if own in KNOWN_CONNECTS:
        connection.connect = connect = Connect(connection, opener)
        connection._new_conn = connect.open
        connection.response_class = RESPONSE_CLASS
        prepare_tunnel(connection)
        if probes and not this_thread.retries_off:
            # The connection's own options come later, and win.
            connection.socket_options = [*keep_alive_options(), *(connection.socket_options or ())]
    elif isinstance(connection, HTTPConnection) and type(connection).__setattr__ is object.__setattr__:
        connection.connect = RecordedConnect(connection)  # type: ignore[method-assign]
    return connection


class PreparingPool(HTTPConnectionPool):
    """A mix-in for urllib3's pool classes that prepares each connection, and closes one that must not be used again.

    urllib3 reconnects a closed connection, as it does with one that the server closed.
    """

    addresses: Opener = Opener(SYSTEM_CLOCK)
    """Opens the sockets."""
    learnt_idle_limit: float = math.inf
    """Seconds, slightly fewer than those after which an idle connection was found dead; none is kept for longer."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.probes: bool = "socket_options" not in options  # a caller's own options win
        super().__init__(*args, **options)

    def _new_conn(self) -> Any:
        return prepare(super()._new_conn(), self.addresses, probes=self.probes)

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            conn.idle_since = self.addresses.clock.now()
        super()._put_conn(conn)

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection: Any = None
        try:
            connection = super()._get_conn(timeout)
            most = min(self.addresses.max_idle, self.learnt_idle_limit)
            is_misdirected, this_thread.is_misdirected = this_thread.is_misdirected, False
            if is_misdirected or is_stale(connection, self.addresses.clock.now(), most):
                connection.close()
                if not connection.auto_open:  # one through a proxy's tunnel, in urllib3 1.26
                    connection = self._new_conn()
            return connection
        except BaseException:
            if connection is not None:
                connection.close()  # after an interruption urllib3 does not know of it
            raise

    def _make_request(self, conn: Any, *args: Any, **kwargs: Any) -> Any:
        since = getattr(conn, "idle_since", None)
        lay = None if since is None or conn.sock is None else self.addresses.clock.now() - since
        try:
            return super()._make_request(conn, *args, **kwargs)
        except BaseException as error:
            del args, kwargs  # a traceback leads to this frame, and they have the headers and the body
            if isinstance(error, ConnectionError) and lay is not None and not this_thread.retries_off:
                self._learn_idle_limit(lay)
            raise

    def _learn_idle_limit(self, lay: float) -> None:
        """Keep connections for less than the idle time after which one was found dead."""
        if LEAST_IDLE < lay < min(self.addresses.max_idle, self.learnt_idle_limit):
            if self.learnt_idle_limit == math.inf:
                log_short_idle(f"{self.scheme}://{self.host}:{self.port}", lay)
            self.learnt_idle_limit = lay * IDLE_MARGIN


class WaitingPool(PreparingPool):
    """For ``pool_block=True``: the wait for a free connection also ends by the attempt's deadline."""

    def _get_conn(self, timeout: float | None = None) -> Any:
        try:
            timeout = this_thread.seconds(timeout)
        except TimeoutError:
            raise EmptyPoolError(self, "no connection was free before the deadline") from None
        return super()._get_conn(timeout)

    def _put_conn(self, conn: Any) -> None:
        # An interruption may have left one place too many. urllib3 closed the connection; its request succeeded.
        with contextlib.suppress(PoolError):
            super()._put_conn(conn)


@functools.lru_cache(256)
def preparing(pool_class: type[HTTPConnectionPool], waits: bool = False) -> type[HTTPConnectionPool]:
    """Return a subclass of a pool class whose connections are prepared.

    It is cached, because ``requests.get`` makes an adapter for each call.
    """
    if issubclass(pool_class, PreparingPool):
        return pool_class
    return type(pool_class.__name__, (WaitingPool if waits else PreparingPool, pool_class), {})


def _new_pool(reference: weakref.ref[Any], addresses: Opener, *args: Any, **kwargs: Any) -> Any:
    """The ``_new_pool`` of a pool manager, which gives each pool the opener of its sockets.

    The reference to the manager is weak: a cycle would keep its pools alive.
    """
    manager: Any = reference()
    pool = type(manager)._new_pool(manager, *args, **kwargs)
    if isinstance(pool, PreparingPool):
        pool.addresses = addresses
    return pool


def use_our_pools(manager: Any, addresses: Opener) -> None:
    """Make a urllib3 pool manager (direct, proxy or SOCKS) use preparing pools from now on. Idempotent."""
    if not private.are_known() or not hasattr(manager, "pool_classes_by_scheme"):
        return
    leave_to_parent(manager)
    waits = bool(manager.connection_pool_kw.get("block"))
    classes = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: preparing(pool, waits) for scheme, pool in classes.items()}
    if hasattr(type(manager), "_new_pool") and getattr(manager._new_pool, "args", ())[1:] != (addresses,):
        manager._new_pool = functools.partial(_new_pool, weakref.ref(manager), addresses)


OWN_POOLS = ("get_connection_with_tls_context", "get_connection")
"""The methods by which an adapter finds the pool for a request; the second one with requests before 2.32."""


def use_our_connections(adapter: HTTPAdapter, opener: Opener, usual: type[HTTPAdapter] = HTTPAdapter) -> None:
    """Prepare the connections of pools that an adapter finds in its own way, as one for Unix sockets does.

    Idempotent. The references are weak: a cycle would keep the pools alive. A method of ``usual`` is not its own.
    """
    if not private.are_known():
        return
    for name in OWN_POOLS:
        find = getattr(type(adapter), name, None)
        if find is not None and find is not getattr(usual, name, None) and name not in vars(adapter):
            vars(adapter)[name] = functools.partial(_find_pool, weakref.ref(adapter), find, opener)


def _find_pool(adapter: weakref.ref[Any], find: Any, opener: Opener, *args: Any, **kwargs: Any) -> Any:
    return prepare_pool(find(adapter(), *args, **kwargs), opener)


def prepare_pool(pool: Any, opener: Opener) -> Any:
    """Return the pool; if it is not ours, make it prepare its connections from now on."""
    is_of_another_make = isinstance(pool, HTTPConnectionPool) and not isinstance(pool, PreparingPool)
    if is_of_another_make and private.are_known() and "_new_conn" not in vars(pool):
        vars(pool)["_new_conn"] = functools.partial(_new_connection, weakref.ref(pool), opener)
    return pool


def _new_connection(reference: weakref.ref[Any], opener: Opener) -> Any:
    pool: Any = reference()
    return prepare(type(pool)._new_conn(pool), opener)


class PoolKeys:
    """The pool keys of one adapter, by the beginning of a URL and how certificates are checked.

    Without them, requests parses the URL of each request and puts some thirty fields into a key. Only the key is
    cached. Each look-up goes to the pool manager, which controls eviction, ``close()`` and the order of use.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, Any], tuple[Any, dict[str, Any], Any]] = {}

    def pool(self, manager: Any, origin: str, checks: Any) -> Any:
        """Return the manager's pool for an origin; None if it has none, or its key is not known."""
        known = self._known.get((origin, checks))
        if known is None or known[0] is not manager or known[1] != manager.connection_pool_kw:
            return None
        return manager.pools.get(known[2])

    def remember(self, manager: Any, origin: str, checks: Any, pool: Any) -> None:
        """Remember the key under which a manager of urllib3's own class keeps a pool."""
        if type(manager) is not PoolManager or "@" in origin:  # a password is not kept
            return
        pools = manager.pools
        with pools.lock:
            keys = [key for key, kept in getattr(pools, "_container", {}).items() if kept is pool]
        if keys:
            if len(self._known) >= MOST_ORIGINS:
                self._known.clear()
            self._known[origin, checks] = manager, dict(manager.connection_pool_kw), keys[0]


def verify_key(verify: Any) -> Any:
    """Return what ``verify`` adds to a pool's key: True, False, or a path and whether it is a folder; else None."""
    if isinstance(verify, str):
        return verify, os.path.isdir(verify)
    return verify if isinstance(verify, bool) else None


# A connection that was kept alive before a fork is one socket in two processes: each would read the other's responses.
# In the child, pool managers begin with no pools. The parent's connections are neither used nor closed.
_managers: weakref.WeakSet[Any] = weakref.WeakSet()
_left_alone: list[Any] = []
"""Pools of the parent, never released: finalizing one takes its lock, which another thread may have held."""


def leave_to_parent(manager: Any) -> None:
    """Make a pool manager begin without pools in every child forked from now on; keep no strong reference to it.

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
