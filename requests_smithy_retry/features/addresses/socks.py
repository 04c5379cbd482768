"""Connecting through a SOCKS proxy by the attempt's deadline; a refusal is final (contract 3.4)."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from typing import Any

import urllib3.exceptions as uex

from ...checks import Unshown
from ...interruptions import is_interruption
from ...wire.proxies import ProxyRefusal, bounded
from ...wire.state import this_thread
from .racing import connect_socket
from .resolving import FAILED, Question, in_time, is_numeric, resolve

SOCKS_REFUSALS: dict[str, tuple[str, ...]] = {
    "SOCKS5AuthError": ("",),
    "SOCKS5Error": ("0x02", "0x07", "0x08"),
    "SOCKS4Error": ("0x5c", "0x5d"),
}
"""The errors of PySocks that are refusals, by their class and the protocol's code, with which their text begins."""


def open_otherwise(connection: Any, opener: Callable[[Any], Any]) -> Any:
    """Open the socket of a connection that does not go straight to an address, by the ``_new_conn`` of its class.

    That of a SOCKS connection is replaced by one that ends in time; any other one is called with a single timeout.
    """
    module: Any = sys.modules.get("urllib3.contrib.socks")
    if module is None or opener is not module.SOCKSConnection._new_conn:
        return opener(connection)
    return _open_socks(connection, module.socks)


def _open_socks(connection: Any, socks: Any) -> Any:
    """Connect through a SOCKS proxy, as PySocks does, but with every name and every step by the deadline."""
    options = Unshown(connection._socks_options)
    host = _target(connection, socks, options)
    port = options["proxy_port"] or socks.DEFAULT_PORTS[options["socks_version"]]
    found = resolve(connection, options["proxy_host"].strip("[]"), int(port))
    for number, (family, kind, protocol, _, address) in enumerate(found, 1):
        sock = bounded(socks.socksocket)(family, kind, protocol)
        proxy = (options["socks_version"], address[0], address[1], options["rdns"])
        sock.set_proxy(*proxy, options["username"], options["password"])
        try:
            connect_socket(sock, (host, connection.port), this_thread.seconds(connection.timeout), connection)
            return sock
        except BaseException as error:
            sock.close()
            if not isinstance(error, OSError) or is_interruption(error):
                raise
            if number == len(found):
                note_socks_refusal(error)
                raise _named(connection, error) from error
    raise AssertionError("a proxy has at least one address")  # pragma: no cover - see resolve


def _target(connection: Any, socks: Any, options: Any) -> str:
    """Return the host to ask the proxy for: its name, or its address if names are resolved on this side."""
    host: str = connection.host.strip("[]")
    if options["rdns"] or is_numeric(host):
        return host
    if options["socks_version"] == socks.SOCKS4:
        address: str = in_time(connection, Question(socket.gethostbyname, host, ()))
        return address
    rest = (connection.port, socket.AF_UNSPEC, socket.SOCK_STREAM, socket.IPPROTO_TCP, socket.AI_ADDRCONFIG)
    first: str = in_time(connection, Question(socket.getaddrinfo, host, rest))[0][4][0]
    return first


def _named(connection: Any, error: OSError) -> Exception:
    """Return a failure as urllib3 raises it; a timeout stays plain, and the caller wraps it."""
    cause = getattr(error, "socket_err", None) or error
    if isinstance(cause, TimeoutError):
        return TimeoutError(str(cause))
    return uex.NewConnectionError(connection, f"{FAILED}: {cause}")


def note_socks_refusal(error: OSError) -> None:
    """Mark an error of PySocks, if the proxy refused."""
    told = getattr(error, "socket_err", None) or error  # PySocks wraps its own errors as those of a socket
    if str(told).startswith(SOCKS_REFUSALS.get(type(told).__name__, ())):
        error.__cause__ = ProxyRefusal("answer to SOCKS")
