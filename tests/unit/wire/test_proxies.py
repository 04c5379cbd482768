"""Behind a proxy the deadline holds to the moment (contract 8.1): TLS within TLS."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest
import requests
import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.wire import proxies
from requests_smithy_retry.wire.proxies import bounded, prepare_tunnel
from requests_smithy_retry.wire.state import this_thread
from tests.faults import DEFAULT_BODY, Drip, FaultProxy, FaultServer, Forward, Reply
from tests.faults.oracle import tls_contexts

from .support import session

BOUND = {"operation_timeout": 60, "max_attempts": 1}


def by(proxy: str) -> dict[str, str]:
    return {"http": proxy, "https": proxy}


@pytest.mark.parametrize("seconds", [None, 5.0])
def test_a_bounded_socket_keeps_its_timeout(seconds: float | None) -> None:
    """Each step has the time that is left, and then the socket is as before; past the deadline there is no step."""
    here, there = socket.socketpair()
    with here, there:
        kind = bounded(socket.socket)
        here = kind(fileno=here.detach())
        here.settimeout(seconds)
        for deadline in (None, Deadline(60, FakeClock())):
            with this_thread.under(deadline):
                here.send(b"abc")
                there.sendall(b"defg")
                assert (b"abc", b"de", 2) == (there.recv(9), here.recv(2), here.recv_into(bytearray(9)))
        with this_thread.under(Deadline(0, FakeClock())), pytest.raises(TimeoutError):
            here.recv(1)
        assert (seconds, kind) == (here.gettimeout(), bounded(socket.socket))
        here.close()


def test_a_handshake_has_the_time_that_is_left_when_it_begins() -> None:
    """TLS asks the socket for its timeout after it has made its context, which takes a while."""
    clock = FakeClock()
    with socket.socket() as sock, this_thread.under(Deadline(10, clock)):
        sock.settimeout(10)
        proxies.bound_handshake(HTTPSConnection("a.test"), sock)
        seen = []
        for connecting, seconds in ((True, 4), (True, 10), (False, 0)):
            this_thread.connecting = connecting
            clock.advance(seconds)
            seen.append(sock.gettimeout())
        assert [6, 1e-3, 10] == seen


@pytest.mark.parametrize(
    ("made", "sock"),
    [(HTTPConnection, socket.socket()), (HTTPSConnection, bounded(socket.socket)()), (HTTPSConnection, object())],
)
def test_other_sockets_are_left_as_they_are(made: Any, sock: Any) -> None:
    """A socket stays as it is without TLS, after its handshake, and where it cannot be wrapped."""
    before = type(sock)
    proxies.bound_handshake(made("a.test"), sock)
    assert before is type(sock)
    getattr(sock, "close", int)()


@pytest.mark.filterwarnings("ignore:Unverified")
@pytest.mark.parametrize("options", [{}, BOUND])
def test_tls_within_tls_works(options: Any) -> None:
    """TLS within TLS works with and without a deadline."""
    tls = tls_contexts()[0]
    with FaultServer(tls=tls) as server, FaultProxy(tls=tls) as proxy, session(**options) as made:
        assert DEFAULT_BODY == made.get(server.url, proxies=by(proxy.url), verify=False).content
        assert (1, 1) == (proxy.tunnels, len(server.requests))


@pytest.mark.real_time
@pytest.mark.filterwarnings("ignore:Unverified")
@pytest.mark.parametrize(
    ("way", "answer"),
    [
        (Forward(drip=0.1), Reply()),
        (Forward(), Drip("head", 0.1, Reply(body=b"x" * 200))),
        (Forward(), Drip("body", 0.1, Reply(body=b"x" * 200))),
    ],
)
def test_tls_within_tls_ends_by_the_deadline(way: Any, answer: Any) -> None:
    """In the handshake, the head and the body: each byte comes in time, and all of them take a minute and more."""
    tls, behind = tls_contexts()[0], session(operation_timeout=1, max_attempts=1)
    with FaultServer(answer, tls=tls) as server, FaultProxy(way, tls=tls) as proxy, behind as made:
        began = time.monotonic()
        with pytest.raises(requests.exceptions.Timeout):
            made.get(server.url, proxies=by(proxy.url), verify=False)
        assert time.monotonic() - began < 15


def test_only_a_proxy_that_speaks_tls_makes_a_difference() -> None:
    """Only a proxy over TLS needs preparation; a connection of another kind is left as it is."""

    class Strange:
        """A connection whose TLS is another library's."""

        def __init__(self, proxy: Any) -> None:
            self.proxy = proxy

        def _connect_tls_proxy(self, host: str, sock: str) -> str:
            return f"{host} over {sock}"

    plain, tls = (Strange(urllib3.util.parse_url(url)) for url in ("http://a.test", "https://a.test"))
    for made in (plain, tls, object()):
        prepare_tunnel(made)
    assert ({"proxy": plain.proxy}, "host over sock") == (vars(plain), tls._connect_tls_proxy("host", "sock"))
