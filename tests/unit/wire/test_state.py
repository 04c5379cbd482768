"""The facts that an attempt and the connections below it share (contract 14.1)."""

from __future__ import annotations

import socket

import requests

from requests_smithy_retry import mount
from requests_smithy_retry.testing import FaultServer, Reply
from requests_smithy_retry.wire.state import timeout_of


class Wrapped:
    """As urllib3 wraps a socket of pyOpenSSL's: it cannot be asked for its timeout."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock


def test_the_timeout_of_a_socket_is_found() -> None:
    """The timeout of a wrapped socket, which has only a setter, is found as well."""
    with socket.socket() as sock:
        assert timeout_of(sock) is timeout_of(Wrapped(sock)) is None
        sock.settimeout(2.5)
        assert (timeout_of(sock), timeout_of(Wrapped(sock))) == (2.5, 2.5)


def test_a_bound_that_no_socket_can_hold_bounds_nothing() -> None:
    """An ``operation_timeout`` of 300 years, for example, is a way to ask for no bound."""
    with (
        FaultServer(default=Reply(200, body=b"well")) as server,
        mount(requests.Session(), operation_timeout=1e10) as session,
    ):
        assert session.post(server.url, data=b"x" * 100_000).content == b"well"
