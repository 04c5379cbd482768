"""The fault server under TLS."""

import socket
import ssl
import time
from contextlib import closing

import pytest

from requests_smithy_retry.testing import (
    DEFAULT_BODY,
    AnswerBeforeUpload,
    CloseBeforeRequest,
    CloseDuringHandshake,
    CutBody,
    EndlessBody,
    FaultServer,
    HalfClose,
    Reply,
    ResetAfterRequest,
    ResetBeforeRequest,
    Stall,
)
from tests.unit.testing.fault_oracle import ask, client, connect, fetch, read_to_end, tls_contexts, until

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def contexts():
    return tls_contexts()


@pytest.fixture
def tls(contexts):
    return contexts[0]


@pytest.fixture
def trusting(contexts):
    return contexts[1]


def test_https(tls, trusting):
    """Requests and large bodies pass over TLS, both ways, on one connection, under an https URL."""
    body = bytes(range(256)) * 4000
    with FaultServer(Reply(body=body), tls=tls) as server, closing(client(server, context=trusting)) as connection:
        assert server.url == f"https://127.0.0.1:{server.port}"
        assert ask(connection, "POST", "/", body) == ask(connection)
        assert (server.connections, server.requests[0].body) == (1, body)


def test_an_end_is_announced(tls, trusting):
    """An orderly end sends a close_notify, so that a client can tell it from a cut."""
    with (
        FaultServer(Reply(body=b"x", framing="close"), tls=tls) as server,
        trusting.wrap_socket(connect(server), server_hostname="127.0.0.1", suppress_ragged_eofs=False) as sock,
    ):
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert read_to_end(sock)[0].endswith(b"\r\n\r\nx")


@pytest.mark.parametrize("fault", [CloseBeforeRequest(), HalfClose(), CutBody(), AnswerBeforeUpload()])
def test_orderly_ends(tls, trusting, fault):
    """Faults that end in an orderly way do so under TLS: no reset, and then the next connection is served."""
    with FaultServer([fault], tls=tls) as server:
        with trusting.wrap_socket(connect(server), server_hostname="127.0.0.1") as sock:
            sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
            assert read_to_end(sock)[1] == "fin"
        assert fetch(server, context=trusting)[2] == DEFAULT_BODY


@pytest.mark.parametrize("fault", [ResetBeforeRequest(), ResetAfterRequest()])
def test_resets(tls, trusting, fault):
    """A reset is a TCP reset under TLS, too; ssl calls it an EOF when it meets the reset while sending."""
    with FaultServer([fault], tls=tls) as server, pytest.raises((ConnectionError, ssl.SSLEOFError)):
        fetch(server, context=trusting)


def test_a_handshake_that_is_never_answered(tls, trusting):
    """A stall of accepting under TLS leaves the handshake unanswered."""
    with FaultServer([Stall("accept")], tls=tls) as server, pytest.raises(TimeoutError, match="handshake"):
        fetch(server, timeout=0.05, context=trusting)


@pytest.mark.parametrize(
    ("fault", "error"), [(CloseDuringHandshake(), ssl.SSLEOFError), (CloseDuringHandshake(True), ConnectionResetError)]
)
def test_breaking_the_handshake(tls, trusting, fault, error):
    """The connection ends within the handshake, as said."""
    with FaultServer([fault], tls=tls) as server, pytest.raises((error, ConnectionResetError)):
        fetch(server, context=trusting)


def test_a_handshake_that_fails_is_no_error(tls, trusting):
    """Clients that distrust the certificate, talk no TLS or are gone do not disturb the server."""
    with FaultServer(tls=tls) as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            fetch(server, context=ssl.create_default_context())
        with closing(connect(server)) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            read_to_end(sock)
        assert fetch(server, context=trusting)[0] == 200
        assert (server.errors, len(server.requests)) == ([], 1)


def test_a_client_that_is_gone_before_the_handshake(tls):
    """A client that resets while the server stalls before the handshake ends the connection quietly."""
    with FaultServer([Stall("accept", 0.05)], tls=tls) as server:
        with closing(connect(server)) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        until(lambda: server._threads and not any(thread.is_alive() for thread in server._threads))
        assert (server.connections, server.errors) == (1, [])


def test_a_client_that_does_not_read(tls, trusting):
    """A server that cannot send on because its client does not read closes all the same, or it says that it cannot."""
    server = FaultServer(EndlessBody(), tls=tls)
    with trusting.wrap_socket(connect(server), server_hostname="127.0.0.1") as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        server.wait_for_requests(1)
        time.sleep(0.05)
        server.close()
