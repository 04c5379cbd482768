"""What an attempt and the connections below it know of each other (contract 14.1)."""

from __future__ import annotations

import socket

from requests_smithy_retry.wire.state import timeout_of


class Wrapped:
    """As urllib3 wraps a socket of pyOpenSSL's: it cannot be asked for its timeout."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock


def test_the_timeout_of_a_socket_is_found() -> None:
    """Also of one that can only be told."""
    with socket.socket() as sock:
        assert timeout_of(sock) is timeout_of(Wrapped(sock)) is None
        sock.settimeout(2.5)
        assert (timeout_of(sock), timeout_of(Wrapped(sock))) == (2.5, 2.5)
