"""The private names of urllib3 and the standard library that ``wire/`` hangs on, and why (contract 11.5).

Releases may change them. Where one is missing, urllib3 keeps its own pools, and the adapter retries without what is
below them (contract 14): deadlines that bound an attempt, bodies that are whole, resumed ones, several addresses.
"""

from __future__ import annotations

import functools
import http.client
import io
import socket
import warnings
from typing import Any

import urllib3
from requests import PreparedRequest, Response
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.poolmanager import RecentlyUsedContainer  # type: ignore[attr-defined]

from ..errors import RetryConfigWarning

IS_FUTURE = hasattr(urllib3, "AsyncPoolManager")
"""True where urllib3-future has taken the place of urllib3: below its pools, all is different."""

NAMES: dict[str, str] = {
    "HTTPConnectionPool._get_conn": "looks at a kept connection before it is used",
    "HTTPConnectionPool._put_conn": "notes when a connection was put back",
    "HTTPConnectionPool._new_conn": "prepares a new connection",
    "PoolManager._new_pool": "gives each pool the memory of addresses",
    "RecentlyUsedContainer._maxsize": "begins with as many empty pools in a forked child",
    "HTTPConnection._new_conn": "opens the socket by the deadline, to one of several addresses",
    "HTTPConnection._dns_host": "is the name to be resolved",
    "HTTPSConnection._connect_tls_proxy": "bounds the handshake with a proxy",
    "connection._HTTPConnection__response": "tells over which connection an answer came, and for how long that is kept",
    "HTTPResponse._fp": "is the body, watched as it is read",
    "HTTPResponse._original_response": "has the framing of the body",
    "HTTPResponse._connection": "is let go, or drained",
    "HTTPResponse._pool": "gets back the connection of a rest",
    "HTTPResponse._decoder": "tells whether a coded body is whole",
    "client.HTTPResponse._safe_read": "sees a body that ends too soon",
    "client.HTTPResponse._read_status": "skips answers before the last one",
    "client.HTTPResponse._get_chunk_left": "sees the last chunk",
    "Response._content": "tells whether a body was read",
    "Response._content_consumed": "is set with a body that was read ahead",
    "PreparedRequest._body_position": "is where a body that was sent began",
    "SocketIO._sock": "gets the time that is left before each read",
    "socket._io_refs": "keeps a socket open while its body is read",
}
"""Each by what has it, with what it is used for."""

OPTIONAL: dict[str, str] = {
    "_sock_shutdown": "goes along with a connection, since urllib3 2.3",
    "_decoders": "are those of several codings",
    "_obj": "is the decoder of one coding",
    "_state": "of gzip: what follows the end is swallowed",
    "_socks_options": "names a SOCKS proxy",
    "_SUPPRESS_INSTRUMENTATION_KEY": "keeps OpenTelemetry from telling of an attempt twice",
}
"""Those that are used where they are there, and nothing hangs on."""

LACKING = (
    "not found in urllib3 {urllib3}, on this Python: {names}. Retries work, but a deadline does not bound an attempt, "
    "bodies are not checked or resumed, and addresses that fail are not remembered. A newer release of "
    "requests_smithy_retry may know what replaces it"
)


def _owners() -> dict[str, Any]:
    connection = HTTPConnection("localhost")
    sock = socket.socket()
    sock.close()
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
        "SocketIO": socket.SocketIO(sock, "r"),
        "socket": sock,
    }


@functools.cache
def missing() -> tuple[str, ...]:
    """Return the names that the installed release lacks; warn if there is any."""
    owners = _owners()
    lacking = []
    for name in NAMES:
        owner, _, attribute = name.rpartition(".")
        if not hasattr(owners[owner], attribute):
            lacking.append(name)
    if lacking and not IS_FUTURE:
        from importlib.metadata import version  # only here

        text = LACKING.format(names=", ".join(lacking), urllib3=version("urllib3"))
        warnings.warn(text, RetryConfigWarning, stacklevel=2)
    return tuple(lacking)


@functools.cache
def are_known() -> bool:
    """Return True if what is below urllib3's pools is as it is known here."""
    return not (IS_FUTURE or missing())
