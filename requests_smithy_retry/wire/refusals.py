"""A proxy's refusals, which are final (contract 3.4): asked again it refuses again, and may lock an account."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from .state import this_thread

GRANTED = 200
PASSING = frozenset({408, 429})
"""The answers to CONNECT below 500 after which another one may be granted."""
SOCKS_REFUSALS: dict[str, tuple[str, ...]] = {
    "SOCKS5AuthError": ("",),
    "SOCKS5Error": ("0x02", "0x07", "0x08"),
    "SOCKS4Error": ("0x5c", "0x5d"),
}
"""The errors of PySocks that are refusals, by their class and the protocol's code, with which their text begins."""


class ProxyRefusal(Exception):
    """The ``__cause__`` of an error by which a proxy refused for good; the error itself is that of plain requests."""


def note_refusal(connection: Any, error: BaseException) -> None:
    """Mark an error that ended the making of a connection, if the proxy refused.

    A proxy that never answers the beginning of TLS speaks HTTP alone, and waits for the end of a line.
    """
    answer = this_thread.answer
    if answer:
        is_refused = answer != GRANTED and answer < 500 and answer not in PASSING
    else:
        proxy, sock = getattr(connection, "proxy", None), connection.sock
        is_within_tls = sock is not None and (isinstance(sock, ssl.SSLSocket) or not isinstance(sock, socket.socket))
        is_refused = isinstance(error, TimeoutError) and getattr(proxy, "scheme", "") == "https" and not is_within_tls
    if is_refused:
        error.__cause__ = ProxyRefusal(f"answer to CONNECT: {answer or 'none'}")


def note_socks_refusal(error: OSError) -> None:
    """Mark an error of PySocks, if the proxy refused."""
    told = getattr(error, "socket_err", None) or error  # PySocks wraps its own errors as those of a socket
    if str(told).startswith(SOCKS_REFUSALS.get(type(told).__name__, ())):
        error.__cause__ = ProxyRefusal("answer to SOCKS")
