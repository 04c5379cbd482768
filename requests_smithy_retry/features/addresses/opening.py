"""Opening the socket of a connection to the first of its addresses that answers, by the attempt's deadline."""

from __future__ import annotations

import functools
import itertools
import socket
import sys
from types import ModuleType
from typing import Any

import urllib3.exceptions as uex
from urllib3 import connection as connections
from urllib3.util import connection as urllib3_connection

from ...classifiers.outcome import Outcome
from ...classifiers.transport_faults import is_timeout, is_transient
from ...interruptions import is_interruption
from ...wire.connect import Connect
from ...wire.response import RESPONSE_CLASS
from ...wire.state import this_thread
from .memory import AddressMemory, Peer
from .racing import Candidate, How, Race, connect_socket
from .resolving import Found, not_connected, resolve
from .socks import open_otherwise


def is_own(function: object, module: ModuleType) -> bool:
    """Return True if a function is the module's own, and no program has replaced it."""
    return getattr(function, "__globals__", None) is vars(module)


class AddressOpener(AddressMemory):
    """Opens sockets, and remembers which addresses failed."""

    def open(self, connection: Any, connect: Connect) -> Any:
        opener = type(connection)._new_conn
        if not (is_own(opener, connections) and is_own(urllib3_connection.create_connection, urllib3_connection)):
            # A SOCKS proxy, or a patched way to connect: it gets one timeout, not one per address.
            connect.opening = open_otherwise(connection, opener)
            return connect.opening
        timeout: Any = connection.timeout
        if timeout.__class__ is object:  # that of the socket module, before a tunnel in urllib3 1.26
            timeout = socket.getdefaulttimeout()
        host = connection._dns_host.strip("[]")
        try:
            found = resolve(connection, host, connection.port, urllib3_connection.allowed_gai_family())
            sock = self._connected(connection, connect, found, timeout)
        except UnicodeError:
            raise uex.LocationParseError(f"'{host}', label empty or too long") from None
        except OSError as error:
            if isinstance(error, TimeoutError) or is_interruption(error):
                raise
            raise not_connected(connection, connection.host, error) from error
        sys.audit("http.client.connect", connection, connection.host, connection.port)
        return sock

    def attempt_failed(self, outcome: Outcome, peer: Any, tried: set[tuple[str, str]]) -> None:
        if peer is None:
            return
        error, response = outcome.error, outcome.response
        if error is not None and is_transient(error):
            tried.add((peer.origin, peer.address))
            # A kept connection may break because it was idle for too long, which is not the address's fault.
            if is_timeout(error) or peer.since >= outcome.started:
                peer.failed(type(error).__name__)
        elif error is None and response is not None and response.status_code >= 500:
            tried.add((peer.origin, peer.address))
            peer.failed(str(response.status_code), answers=True)

    def _connected(self, connection: Any, connect: Connect, found: Found, timeout: float | None) -> Any:
        """Connect to one of the addresses, and note which."""
        origin, ahead = f"{connection._dns_host}:{connection.port}", candidates(found)
        if len(ahead) > 1:
            how = How(timeout, connection.source_address, connection.socket_options or ())
            sock = self._raced(connect, origin, ahead, how)
            sock.settimeout(timeout)
        else:
            name, family, proto, at = ahead[0]
            connect.peer = Peer(self, origin, name, (name,), self.clock.now())
            sock = connect.opening = socket.socket(family, socket.SOCK_STREAM, proto)
            connect_socket(sock, at, this_thread.seconds(timeout), connection)
        peer: Any = connect.peer
        is_probe = self.faults and self.is_known(origin, peer.address)
        connection.response_class = functools.partial(_ProbeResponse, peer) if is_probe else RESPONSE_CLASS
        return sock

    def _raced(self, connect: Connect, origin: str, ahead: list[Candidate], how: How) -> Any:
        """Connect to one of several addresses, those that failed lately last, and remember what failed on the way."""
        names = tuple([candidate.name for candidate in ahead])
        ahead = [ahead[names.index(name)] for name in self.in_order(origin, names, this_thread.tried)]
        self.begin_probe(origin, ahead[0].name)
        race = connect.opening = Race(ahead, how)
        try:
            sock, (name, *_) = race.run()
            connect.peer = Peer(self, origin, name, names, self.clock.now())
        finally:
            if connect.peer is None:
                connect.peer = Peer(self, origin, ", ".join(race.failed or names[:1]), (), 0.0)
            for failed, why in race.failed.items():
                self.failed(origin, failed, why)
        return sock


def candidates(found: Found) -> list[Candidate]:
    """Return the resolver's addresses in its order, families alternating (RFC 8305 section 4), each once."""
    families: dict[int, dict[str, Candidate]] = {}
    for family, _, proto, _, sockaddr in found:
        name = str(sockaddr[0])
        if len(sockaddr) == 4 and sockaddr[3] and "%" not in name:
            name = f"{name}%{sockaddr[3]}"  # a link-local address of IPv6 needs its scope, the interface's number
        candidate = Candidate(name, family, proto, sockaddr)
        if len(found) == 1:
            return [candidate]
        families.setdefault(family, {}).setdefault(name, candidate)
    rows = itertools.zip_longest(*map(dict.values, families.values()))
    return list(filter(None, itertools.chain.from_iterable(rows)))


class _ProbeResponse(RESPONSE_CLASS):  # type: ignore[misc, valid-type]
    """A response from an address that failed lately: a status below 500 clears it."""

    def __init__(self, peer: Peer, sock: Any, *others: Any, **named: Any) -> None:
        self._peer = peer  # first: an interruption after the socket changed hands would leave it open
        super().__init__(sock, *others, **named)

    def begin(self) -> None:
        super().begin()
        if self.status < 500:
            self._peer.memory.succeeded(self._peer.origin, self._peer.address)
