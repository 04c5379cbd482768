"""Behind a SOCKS proxy the deadline holds to the moment (contract 8.1)."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest
import requests
import urllib3
from requests.exceptions import ConnectionError as NotConnected
from requests.exceptions import ConnectTimeout

from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.features.addresses import socks as socks_module
from requests_smithy_retry.features.addresses.socks import open_otherwise
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.wire.state import this_thread
from tests.faults import DEFAULT_BODY, FaultServer, refusing_port
from tests.faults.oracle import tls_contexts
from tests.unit.wire.support import SocksProxy, session

socks = pytest.importorskip("socks")
from urllib3.contrib.socks import SOCKSConnection  # noqa: E402 - it needs PySocks

BOUND = {"operation_timeout": 60, "max_attempts": 1}


def by(proxy: str) -> dict[str, str]:
    return {"http": proxy, "https": proxy}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_a_socks_proxy_works_under_a_deadline(scheme: str, host: str) -> None:
    """It is asked for an address where names are resolved on this side, and for the name otherwise."""
    with FaultServer() as server, SocksProxy() as proxy, session(**BOUND) as made:
        url = server.url.replace("127.0.0.1", host)
        assert DEFAULT_BODY == made.get(url, proxies=by(f"{scheme}://localhost:{proxy.port}")).content
    name = host == "localhost" and scheme == "socks5h"
    assert [b"localhost" if name else b"\x7f\0\0\1"] == proxy.asked


@pytest.mark.filterwarnings("ignore:Unverified")
def test_tls_goes_through_a_socks_proxy_under_a_deadline() -> None:
    """The socket is wrapped as any other."""
    with FaultServer(tls=tls_contexts()[0]) as server, SocksProxy() as proxy, session(**BOUND) as made:
        there = made.get(server.url, proxies=by(f"socks5://127.0.0.1:{proxy.port}"), verify=False)
        assert DEFAULT_BODY == there.content


@pytest.mark.real_time
def test_a_handshake_that_drips_ends_by_the_deadline() -> None:
    """Each byte comes in time, and all of them would take half a minute."""

    def answer(sock: socket.socket, data: bytes, number: int) -> None:
        if number == 0:
            sock.sendall(data)
            return
        # The name of an address belongs to the second answer, at most 255 bytes.
        for byte in data[:3] + b"\3\xff" + bytes(257):
            sock.sendall(bytes([byte]))
            time.sleep(0.1)

    bounded_session = session(operation_timeout=0.5, max_attempts=1)
    with FaultServer() as server, SocksProxy(answer) as proxy, bounded_session as made:
        began = time.monotonic()
        with pytest.raises(ConnectTimeout):
            made.get(server.url, proxies=by(f"socks5h://127.0.0.1:{proxy.port}"))
        assert time.monotonic() - began < 20


def refused(made: requests.Session, port: int, scheme: str = "socks5") -> Any:
    with pytest.raises(NotConnected) as caught:
        made.get("http://127.0.0.1:9/", proxies=by(f"{scheme}://127.0.0.1:{port}"))
    return caught.value


def say_no(sock: socket.socket, data: bytes, number: int) -> None:
    sock.sendall(data if number == 0 else b"\5\5\0\1" + bytes(6))


def test_failures_are_those_without_a_deadline() -> None:
    """A refusing proxy, and one that cannot reach the target."""

    def kinds(**options: Any) -> list[Any]:
        with session(max_attempts=1, **options) as made, SocksProxy(say_no) as proxy, refusing_port() as port:
            return [type(refused(made, number).args[0].reason) for number in (port, proxy.port)]

    assert [urllib3.exceptions.NewConnectionError] * 2 == kinds() == kinds(operation_timeout=60)


def test_each_address_of_a_proxy_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each address of a proxy is tried, as by PySocks."""
    real = socket.getaddrinfo
    with FaultServer() as server, SocksProxy() as proxy, refusing_port() as dead, session(**BOUND) as made:
        found = [real("127.0.0.1", port, 0, socket.SOCK_STREAM)[0] for port in (dead, proxy.port)]
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda host, *rest: found if host == "proxy.test" else real(host, *rest)
        )
        assert DEFAULT_BODY == made.get(server.url, proxies=by("socks5://proxy.test")).content


def connection(**options: Any) -> Any:
    """A connection by SOCKS, to be opened."""
    values = {"socks_version": socks.SOCKS5, "proxy_host": "127.0.0.1", "proxy_port": 9, "rdns": True}
    values |= {"username": None, "password": None, **options}
    return SOCKSConnection(host="a.test", port=80, timeout=30, _socks_options=values)


def opened(given: Any) -> Any:
    with this_thread.under(Deadline(60, FakeClock())):
        return open_otherwise(given, SOCKSConnection._new_conn)


class Connected(Exception):
    """Raised in place of connecting, with what was asked for."""


def test_names_are_resolved_on_this_side_as_pysocks_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """SOCKS4 takes an address of IPv4, SOCKS5 the first that there is."""

    def connect(self: Any, target: Any) -> None:
        raise Connected(target, self.proxy[1:3])

    monkeypatch.setattr(socks.socksocket, "connect", connect)
    monkeypatch.setattr(socket, "gethostbyname", lambda host: "10.0.0.4")
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, port, *rest: [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("10.0.0.5", port))],
    )
    came = []
    for version, rdns in (socks.SOCKS4, False), (socks.SOCKS5, False), (socks.SOCKS4, True), (socks.SOCKS5, True):
        given = connection(socks_version=version, rdns=rdns, proxy_port=None)
        with pytest.raises(Connected) as caught:
            opened(given)
        came.append(caught.value.args)
    proxy = ("10.0.0.5", 1080)
    names = ["10.0.0.4", "10.0.0.5", "a.test", "a.test"]
    assert [((name, 80), proxy) for name in names] == came


def test_a_socks_socket_is_made_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the caller's options and its own end's address; a deadline that has passed is a timeout."""
    monkeypatch.setattr(socks.socksocket, "connect", lambda self, target: None)
    given = connection()
    given.socket_options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    given.source_address = ("127.0.0.1", 0)
    with opened(given) as sock:
        assert (1, "127.0.0.1") == (sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), sock.getsockname()[0])
    with this_thread.under(Deadline(0, FakeClock())), pytest.raises(TimeoutError):
        open_otherwise(connection(), SOCKSConnection._new_conn)


def test_an_interruption_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of a signal's handler is not taken for a proxy's refusal."""
    monkeypatch.setattr(socks_module, "is_interruption", lambda error: True)
    mine = OSError("by the handler")

    def connect(self: Any, target: Any) -> None:
        raise mine

    monkeypatch.setattr(socks.socksocket, "connect", connect)
    with pytest.raises(OSError, match="by the handler") as caught:
        opened(connection())
    assert mine is caught.value


def test_other_ways_to_connect_are_left_alone() -> None:
    """Other ways to connect are called as they are."""
    assert "theirs" == open_otherwise("theirs", lambda given: given)
