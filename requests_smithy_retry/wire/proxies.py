"""Proxies and TLS: steps end by the attempt's deadline (contract 8.1), and a refusal is final (contract 3.4).

Tunnels and handshakes take several steps, each with the socket's timeout. Here no step gets more than the time that
is left. A proxy that refused would refuse again, and might lock an account.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import ssl
import weakref
from collections.abc import Callable
from typing import Any

from urllib3.connection import HTTPSConnection

from .state import this_thread

GRANTED = 200
PASSING = frozenset({408, 429})
"""The statuses below 500 after which another CONNECT may succeed."""
# A test may have replaced the class by a function that raises.
_found: Any = socket.socket
_plain: Any = _found if isinstance(_found, type) else socket.SocketType
_timeout_of = _plain.gettimeout
_set_timeout = _plain.settimeout  # PySocks overrides it, and checks for a connection


class Bounded:
    """A mix-in for sockets whose every step ends by the attempt's deadline."""

    __slots__ = ()  # so that an existing socket can be given the class

    def gettimeout(self) -> float | None:
        """Return the timeout, or the time that is left while the connection is being made.

        TLS uses it as the timeout of its handshake, when it takes over the socket after some preparation.
        """
        usual: float | None = super().gettimeout()  # type: ignore[misc]
        return this_thread.seconds_or_least(usual) if this_thread.connecting is True else usual

    def recv(self, *args: Any) -> Any:
        return _in_time(self, super().recv, args)  # type: ignore[misc]

    def recv_into(self, *args: Any) -> Any:
        return _in_time(self, super().recv_into, args)  # type: ignore[misc]

    def send(self, *args: Any) -> Any:
        return _in_time(self, super().send, args)  # type: ignore[misc]


def _in_time(sock: Any, step: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    if this_thread.deadline is None:
        return step(*args)
    usual = _timeout_of(sock)
    _set_timeout(sock, this_thread.seconds(usual))
    try:
        return step(*args)
    finally:
        _set_timeout(sock, usual)


@functools.cache
def bounded(socket_class: Any) -> Any:
    """Return a subclass of a socket class whose every step ends by the attempt's deadline."""
    return type(socket_class.__name__, (Bounded, socket_class), {"__slots__": ()})


def bound_handshake(connection: Any, sock: Any) -> None:
    """Bound the TLS handshake by the time that is left when it begins."""
    if isinstance(connection, HTTPSConnection) and not isinstance(sock, Bounded):
        with contextlib.suppress(TypeError):  # a socket class that cannot be changed
            sock.__class__ = bounded(sock.__class__)


def prepare_tunnel(connection: Any) -> None:
    """Bound the TLS inside the tunnel of an HTTPS proxy by the deadline.

    The reference to the connection is weak: a cycle would keep sockets open until the next garbage collection.
    """
    if getattr(getattr(connection, "proxy", None), "scheme", "") != "https":
        return
    reference = weakref.ref(connection)

    def connect_tls_proxy(*args: Any) -> Any:
        below: Any = reference()
        sock: Any = type(below)._connect_tls_proxy(below, *args)
        if issubclass(sock.__class__, ssl.SSLSocket):
            sock.__class__ = bounded(sock.__class__)
        return sock

    connection._connect_tls_proxy = connect_tls_proxy


class ProxyRefusal(Exception):
    """The ``__cause__`` of an error if a proxy refused for good; the error itself is that of plain requests."""


def note_refusal(connection: Any, error: BaseException) -> None:
    """Mark an error from making a connection, if the proxy refused.

    A proxy that never answers the TLS handshake only speaks HTTP, and waits for the end of a line.
    """
    answer = this_thread.answer
    if answer:
        is_refused = answer != GRANTED and answer < 500 and answer not in PASSING
    else:
        proxy, sock = getattr(connection, "proxy", None), connection.sock
        is_within_tls = sock is not None and (isinstance(sock, ssl.SSLSocket) or not isinstance(sock, _plain))
        is_refused = isinstance(error, TimeoutError) and getattr(proxy, "scheme", "") == "https" and not is_within_tls
    if is_refused:
        error.__cause__ = ProxyRefusal(f"answer to CONNECT: {answer or 'none'}")
