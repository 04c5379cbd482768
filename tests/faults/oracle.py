"""Raw sockets and http.client: what really comes over the wire, seen by nobody's library."""

import http.client
import socket
import ssl
import time
from contextlib import closing

import pytest

GET = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
POST = b"POST /up HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello"

PATIENCE = 60.0
"""Seconds until a socket gives up: longer than a busy machine may leave this process or the server's threads asleep."""


def connect(server, timeout=PATIENCE):
    return socket.create_connection((server.host, server.port), timeout)


def read_to_end(sock):
    """Everything up to the end, and how it ended: "fin", "rst", or "open" when the socket's timeout came first."""
    data = b""
    try:
        while piece := sock.recv(65536):
            data += piece
    except TimeoutError:
        return data, "open"
    except ConnectionResetError:
        return data, "rst"
    return data, "fin"


def read_exactly(sock, size):
    """Return ``size`` bytes, however they are cut into pieces; fewer if the connection ends before."""
    data = b""
    while len(data) < size and (piece := sock.recv(size - len(data))):
        data += piece
    return data


def answer_before_silence(server, size, request=GET):
    """Return the first ``size`` bytes of the answer with what else comes within a moment, and how it ends."""
    with closing(connect(server)) as sock:
        sock.sendall(request)
        data = read_exactly(sock, size)
        sock.settimeout(0.02)
        more, end = read_to_end(sock)
        return data + more, end


def until(condition):
    """Wait for the server's threads."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.001)


def exchange(server, request=GET, timeout=PATIENCE):
    with closing(connect(server, timeout)) as sock:
        try:
            sock.sendall(request)
        except ConnectionError:
            return b"", "rst"
        return read_to_end(sock)


def fetch(server, method="GET", path="/", body=None, headers=None, timeout=PATIENCE, context=None):
    """Status, headers and body as http.client reads them."""
    with closing(client(server, timeout, context)) as connection:
        return ask(connection, method, path, body, headers)


def client(server, timeout=PATIENCE, context=None):
    if context is None:
        return http.client.HTTPConnection(server.host, server.port, timeout=timeout)
    return http.client.HTTPSConnection(server.host, server.port, timeout=timeout, context=context)


def ask(connection, method="GET", path="/", body=None, headers=None):
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    return response.status, dict(response.getheaders()), response.read()


def tls_contexts():
    """A context for the server at 127.0.0.1, and one for clients that trust it."""
    trustme = pytest.importorskip("trustme")  # PyPy has it not, as it needs cryptography
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(server)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return server, trusting
