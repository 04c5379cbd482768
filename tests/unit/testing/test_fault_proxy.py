"""The small proxy: forwarding, tunnels, and its faults."""

import http.client
import math
import socket
import ssl
from contextlib import closing

import pytest

from requests_smithy_retry.testing import (
    CutBody,
    FaultProxy,
    FaultServer,
    Forget,
    Forward,
    Reply,
    ResetAfterRequest,
    Stall,
    refusing_port,
)
from tests.unit.testing.fault_oracle import PATIENCE, client, exchange, fetch, tls_contexts

pytestmark = pytest.mark.real_time


def tunnel(proxy, server, timeout=PATIENCE, context=None):
    """A GET through a CONNECT tunnel."""
    with closing(client(proxy, timeout, context)) as connection:
        connection.set_tunnel(server.host, server.port)
        connection.request("GET", "/inside")
        response = connection.getresponse()
        return response.status, response.read()


def test_forwarding():
    """A request in absolute form reaches its target in origin form, with its body, and the answer comes back."""
    with FaultServer(Reply(201, {"X-A": "b"}, b"there")) as server, FaultProxy() as proxy:
        status, headers, body = fetch(proxy, "POST", server.url + "/p?q=1", b"upload", {"Proxy-Connection": "x"})
        assert (status, headers["X-A"], headers["Connection"], body) == (201, "b", "close", b"there")
        (request,) = server.requests
        assert (request.method, request.target, request.body) == ("POST", "/p?q=1", b"upload")
        assert request.header("Proxy-Connection") is None
        assert (proxy.requests[0].target, proxy.tunnels) == (server.url + "/p?q=1", 0)


def test_forwarding_a_chunked_upload():
    """A chunked upload is forwarded with a length."""
    with FaultServer() as server, FaultProxy() as proxy:
        fetch(proxy, "PUT", server.url, iter([b"ab", b"cd"]))
        assert (server.requests[0].body, server.requests[0].target) == (b"abcd", "/")


def test_tunnels():
    """CONNECT opens a tunnel to the target, which is counted."""
    with FaultServer(Reply(body=b"there")) as server, FaultProxy() as proxy:
        assert tunnel(proxy, server) == (200, b"there")
        assert (proxy.tunnels, server.requests[0].target) == (1, "/inside")


def test_tunnels_carry_tls():
    """TLS passes through a tunnel end to end; large bodies too."""
    tls, trusting = tls_contexts()
    body = bytes(1_000_000)
    with FaultServer(Reply(body=body), tls=tls) as server, FaultProxy() as proxy:
        assert tunnel(proxy, server, context=trusting) == (200, body)


def test_a_proxy_may_speak_tls():
    """A proxy with a context speaks TLS with its client."""
    tls, trusting = tls_contexts()
    with FaultServer(Reply(body=b"there")) as server, FaultProxy(tls=tls) as proxy:
        assert proxy.url.startswith("https:")
        assert fetch(proxy, path=server.url, context=trusting)[2] == b"there"


def test_faults_of_the_target_pass():
    """A cut, a close and a reset of the target look the same through the proxy."""
    with FaultServer([CutBody(), ResetAfterRequest(), ResetAfterRequest()]) as server, FaultProxy() as proxy:
        with pytest.raises(http.client.IncompleteRead):
            fetch(proxy, path=server.url)
        with pytest.raises(ConnectionResetError):
            fetch(proxy, path=server.url)
        with pytest.raises(ConnectionResetError):
            tunnel(proxy, server)
        assert proxy.errors == []


def test_a_reset_before_forwarding():
    """A proxy can read a request whole and reset before its target sees any of it."""
    with FaultServer() as server, FaultProxy([ResetAfterRequest()]) as proxy:
        with pytest.raises(ConnectionResetError):
            fetch(proxy, "POST", server.url, b"upload")
        assert (proxy.requests[0].body, server.connections) == (b"upload", 0)
        assert fetch(proxy, path=server.url)[0] == 200


def test_a_refused_tunnel():
    """A CONNECT can be refused with any status."""
    with FaultServer() as server, FaultProxy([Reply(407)]) as proxy:
        with pytest.raises(OSError, match="407"):
            tunnel(proxy, server)
        assert (proxy.tunnels, server.connections) == (1, 0)


def test_stalled_tunnels():
    """A CONNECT can be left without an answer, or be answered late."""
    with FaultServer() as server, FaultProxy([Stall(), Stall("status", 0.05, Forward())]) as proxy:
        with pytest.raises(TimeoutError):
            tunnel(proxy, server, timeout=0.05)
        proxy.wait_for_requests(1)
        assert tunnel(proxy, server)[0] == 200


def test_targets_out_of_reach():
    """A target that refuses, or is no target, is answered 502."""
    with refusing_port() as port, FaultProxy() as proxy:
        assert fetch(proxy, path=f"http://127.0.0.1:{port}/")[0] == 502
        assert fetch(proxy, path="/no-proxy-request")[0] == 502
        assert exchange(proxy, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())[0].startswith(b"HTTP/1.1 502")


def test_a_proxy_closes_with_tunnels_open():
    """Closing the proxy ends tunnels that are in use."""
    with FaultServer([Stall()]) as server:
        with FaultProxy() as proxy:
            connection = client(proxy)
            connection.set_tunnel(server.host, server.port)
            connection.request("GET", "/")
            server.wait_for_requests(1)
        with pytest.raises((ConnectionError, http.client.HTTPException, ssl.SSLError)):
            connection.getresponse()
        connection.close()


def test_what_is_sent_before_the_tunnel_stands():
    """Bytes that a client sends right behind its CONNECT go through the tunnel."""
    with FaultServer(Reply(body=b"there")) as server, FaultProxy() as proxy:
        connect = f"CONNECT {server.host}:{server.port} HTTP/1.1\r\n\r\n".encode()
        data, end = exchange(proxy, connect + b"GET /early HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert (data.endswith(b"there"), end, server.requests[0].target) == (True, "fin", "/early")


@pytest.mark.parametrize("idle", [0, math.inf])
def test_a_forgotten_path_swallows_what_is_sent(idle):
    """After the silence, or when told so, nothing arrives and nobody is told till the client ends; a new path works."""
    nat = Forget(idle=idle)
    with FaultServer(Reply(body=b"there")) as server, FaultProxy(nat) as proxy:
        if idle:
            assert tunnel(proxy, server) == (200, b"there")
        with closing(client(proxy, 60)) as connection:
            connection.set_tunnel(server.host, server.port)
            connection.connect()
            nat.forget()
            connection.request("GET", "/inside")
            connection.sock.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.getresponse()
            connection.sock.settimeout(60)
            connection.sock.sendall(b"and more")
            connection.sock.shutdown(socket.SHUT_WR)
            assert connection.sock.recv(1) == b""
        assert len(server.requests) == (1 if idle else 0)
        if idle:
            assert tunnel(proxy, server) == (200, b"there")
