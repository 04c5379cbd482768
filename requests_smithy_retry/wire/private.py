"""The private names of urllib3 and the standard library that ``wire/`` relies on, and why (contract 11.5).

Releases may change them. If one is missing, urllib3 keeps its own pools, and the adapter retries without this layer
(contract 14): deadlines that bound an attempt, bodies that are checked or resumed, several addresses.
"""

from __future__ import annotations

import functools
import http.client
import io
import socket
import warnings
from typing import Any

import urllib3.connection
from requests import PreparedRequest, Response
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.poolmanager import RecentlyUsedContainer  # type: ignore[attr-defined]

from ..checks import level_outside
from ..errors import RetryConfigWarning

IS_FUTURE = hasattr(urllib3, "AsyncPoolManager")
"""True if urllib3-future has replaced urllib3: below its pools, everything is different."""

NAMES: dict[str, tuple[str, str]] = {
    "HTTPConnectionPool._get_conn": ("urllib3/connectionpool.py", "looks at a kept connection before it is used"),
    "HTTPConnectionPool._put_conn": ("urllib3/connectionpool.py", "notes when a connection was put back"),
    "HTTPConnectionPool._new_conn": ("urllib3/connectionpool.py", "prepares a new connection"),
    "HTTPConnectionPool._make_request": ("urllib3/connectionpool.py", "sees a kept connection that is dead"),
    "PoolManager._new_pool": ("urllib3/poolmanager.py", "gives each pool what opens its sockets"),
    "RecentlyUsedContainer._maxsize": ("urllib3/_collections.py", "begins with as many empty pools in a forked child"),
    "HTTPConnection._new_conn": (
        "urllib3/connection.py",
        "opens the socket by the deadline, to one of several addresses",
    ),
    "HTTPConnection._dns_host": ("urllib3/connection.py", "is the name to be resolved"),
    "HTTPSConnection._connect_tls_proxy": ("urllib3/connection.py", "bounds the handshake with a proxy"),
    "connection._HTTPConnection__response": (
        "http/client.py",
        "tells over which connection an answer came, and for how long that is kept",
    ),
    "HTTPResponse._fp": ("urllib3/response.py", "is the body, or what a cache put before it"),
    "HTTPResponse._original_response": ("urllib3/response.py", "has the framing of the body"),
    "HTTPResponse._connection": ("urllib3/response.py", "is let go, or drained"),
    "HTTPResponse._pool": ("urllib3/response.py", "gets back the connection of a rest"),
    "HTTPResponse._decoder": ("urllib3/response.py", "tells whether a coded body is whole"),
    "client.HTTPResponse._safe_read": ("http/client.py", "sees a body that ends too soon"),
    "client.HTTPResponse._read_status": ("http/client.py", "skips answers before the last one"),
    "client.HTTPResponse._check_close": ("http/client.py", "tells by the fields whether a connection is kept"),
    "Response._content": ("requests/models.py", "tells whether a body was read"),
    "Response._content_consumed": ("requests/models.py", "is set with a body that was read ahead"),
    "PreparedRequest._body_position": ("requests/models.py", "is where a body that was sent began"),
    "SocketIO._sock": ("socket.py", "gets the time that is left before each read"),
    "socket._io_refs": ("socket.py", "keeps a socket open while its body is read"),
    "socket._decref_socketios": ("socket.py", "closes it before the body goes on over another one"),
}
"""By owner and name: the file, and what it is used for. Found in urllib3 1.26.18 to 2.8.0 and in its main branch of
2026-07-21, in requests 2.31.0 to 2.34.2 and in its main branch of 2026-08-03, and in Python 3.10 to 3.15 and PyPy 3.11.
``tests/project/releases.py`` checks again.
"""

LACKING = (
    "not found in urllib3 {urllib3}, on this Python: {names}. Retries work, but a deadline does not bound an attempt, "
    "bodies are not checked or resumed, and addresses that fail are not remembered. A newer release of "
    "requests_smithy_retry may know what replaces it"
)


class _NoSocket:
    """A stand-in for a socket, which cannot be made everywhere: its methods do nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: None


def _owners(socket_class: Any, reader_class: Any, connection_class: Any) -> dict[str, Any]:
    """Return the owners of the names; None if a program has replaced the library's own."""
    plain = [kind for kind in getattr(socket_class, "__mro__", ()) if kind.__module__ == socket.__name__]
    connection = connection_class("localhost")
    return {
        "HTTPConnectionPool": HTTPConnectionPool,
        "PoolManager": urllib3.PoolManager,
        "RecentlyUsedContainer": RecentlyUsedContainer(1),
        "HTTPConnection": connection,
        "HTTPSConnection": HTTPSConnection,
        "connection": connection,
        "HTTPResponse": urllib3.HTTPResponse(io.BytesIO(), preload_content=False),
        "Response": Response(),
        "PreparedRequest": PreparedRequest(),
        "client.HTTPResponse": http.client.HTTPResponse,
        "SocketIO": reader_class(_NoSocket(), "r"),
        "socket": plain[0] if plain else None,
    }


def missing() -> tuple[str, ...]:
    """Return the names that the installed release lacks; warn if there are any. No socket is made."""
    # Programs and tests replace these classes for a while, so the result is cached by class.
    return _missing_in(socket.socket, socket.SocketIO, urllib3.connection.HTTPConnection)


@functools.lru_cache(maxsize=8)
def _missing_in(*classes: Any) -> tuple[str, ...]:
    owners = _owners(*classes)
    lacking = []
    for name in NAMES:
        owner, _, attribute = name.rpartition(".")
        if owners[owner] is not None and not hasattr(owners[owner], attribute):
            lacking.append(name)
    if lacking and not IS_FUTURE:
        text = LACKING.format(names=", ".join(lacking), urllib3=urllib3.__version__)  # type: ignore[attr-defined]
        warnings.warn(text, RetryConfigWarning, stacklevel=level_outside())
    return tuple(lacking)


_found_all = False
"""True once all names were found; a missing one is looked for again, as it may be due to a test's stand-in."""


def are_known() -> bool:
    """Return True if urllib3 and Python have all names of :data:`NAMES`, so that connections can be prepared."""
    global _found_all
    if not _found_all:
        _found_all = not (IS_FUTURE or missing())
    return _found_all
