"""Faults of the connection, seen from a raw socket."""

import socket
import ssl
import time
from contextlib import closing

import pytest

from requests_smithy_retry.testing import (
    DEFAULT_BODY,
    AnswerBeforeUpload,
    CloseAfterReply,
    CloseAfterRequest,
    CloseBeforeRequest,
    CloseDuringHandshake,
    Drip,
    FaultServer,
    HalfClose,
    Reply,
    ResetAfterRequest,
    ResetBeforeRequest,
    Stall,
    StopReading,
    Wire,
    hanging_port,
    refusing_port,
)
from tests.unit.testing.fault_oracle import (
    GET,
    PATIENCE,
    POST,
    ask,
    client,
    connect,
    exchange,
    fetch,
    read_exactly,
    read_to_end,
    send_for_ever,
)

pytestmark = pytest.mark.real_time

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n"
WHOLE = HEAD + DEFAULT_BODY
CLOSING_GET = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


def test_closing_before_the_request():
    """The connection ends as soon as it is accepted, and no request is recorded."""
    with FaultServer([CloseBeforeRequest()]) as server:
        with closing(connect(server)) as sock:
            assert read_to_end(sock) == (b"", "fin")
        assert (server.connections, server.requests) == (1, [])
        assert exchange(server, CLOSING_GET)[1] == "fin"


def test_closing_before_a_request_that_is_picked_by_its_path():
    """The head is read, because the path is in it; the client sees the same end."""
    with FaultServer({"/": [CloseBeforeRequest()]}) as server:
        assert exchange(server, CLOSING_GET) == (b"", "fin")
        assert fetch(server)[0] == 200


def test_resetting_before_the_request():
    """The connection is reset when the first byte has come, and no request is recorded."""
    with FaultServer([ResetBeforeRequest()]) as server, closing(connect(server, 0.05)) as sock:
        assert read_to_end(sock) == (b"", "open")
        sock.settimeout(PATIENCE)
        sock.sendall(GET)
        assert read_to_end(sock) == (b"", "rst")
        assert (server.connections, server.requests) == (1, [])


def test_resetting_at_once():
    """The connection is reset as soon as it is there, at whatever point the client is then."""
    with FaultServer([ResetBeforeRequest(at_once=True)]) as server:
        with pytest.raises(ConnectionError), closing(connect(server)) as sock:
            sock.recv(1)
        assert fetch(server)[0] == 200


def test_a_close_before_the_request_is_no_reset():
    """A client that still sends its request sees an orderly end."""
    with FaultServer([CloseBeforeRequest()]) as server:
        assert exchange(server, POST) == (b"", "fin")


@pytest.mark.parametrize(("fault", "end"), [(CloseAfterRequest(), "fin"), (ResetAfterRequest(), "rst")])
def test_breaking_after_the_request(fault, end):
    """The connection ends without an answer, and the request is recorded with its body."""
    with FaultServer([fault]) as server:
        assert exchange(server, POST) == (b"", end)
        assert server.requests[0].body == b"hello"


def test_half_close_goes_on_reading():
    """After a half-close the client can still send."""
    with FaultServer(HalfClose()) as server, closing(connect(server)) as sock:
        sock.sendall(GET)
        assert read_to_end(sock) == (b"", "fin")
        for _ in range(3):
            sock.sendall(b"more")
            time.sleep(0.002)


def test_half_close_ends():
    """When its time is up, a half-closed connection is closed, and what is sent then is refused."""
    with FaultServer(HalfClose(0.02)) as server, closing(connect(server)) as sock:
        sock.sendall(GET)
        assert read_to_end(sock) == (b"", "fin")
        with pytest.raises(ConnectionError):
            send_for_ever(sock, b"more")


def test_half_close_survives_a_reset_of_the_client():
    """A client that resets a half-closed connection ends it."""
    with FaultServer([HalfClose()]) as server:
        with closing(connect(server)) as sock:
            sock.sendall(GET)
            assert read_to_end(sock) == (b"", "fin")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        assert fetch(server)[0] == 200
        assert server.errors == []


@pytest.mark.parametrize(
    ("point", "before"),
    [
        ("accept", b""),
        ("status", b""),
        ("status-line", b"HTTP/1."),
        ("header", b"HTTP/1.1 200 OK\r\nCont"),
        ("body-start", HEAD),
        ("body", HEAD + DEFAULT_BODY[:22]),
    ],
)
class TestStalls:
    def test_what_comes_before(self, point, before):
        """A stall sends what comes before its point, and then nothing."""
        with FaultServer(Stall(point)) as server, closing(connect(server)) as sock:
            sock.sendall(GET)
            assert read_exactly(sock, len(before)) == before
            sock.settimeout(0.02)
            assert read_to_end(sock) == (b"", "open")

    def test_what_comes_after(self, point, before):
        """When the time of a stall is up, the rest comes, and not before."""
        begin = time.monotonic()
        with FaultServer(Stall(point, 0.05)) as server, closing(connect(server)) as sock:
            sock.sendall(GET)
            assert read_exactly(sock, len(before)) == before
            rest = sock.recv(1)
            assert time.monotonic() - begin >= 0.05
            sock.shutdown(socket.SHUT_WR)
            assert before + rest + read_to_end(sock)[0] == WHOLE


def test_a_stall_may_be_picked_by_path():
    """A stall of accepting that is picked by a path happens once the path is known."""
    with FaultServer({"/": [Stall("accept", 0.05, Reply(201))]}) as server:
        assert fetch(server)[0] == 201


def test_stalls_are_checked():
    """A point that does not exist is refused, and so is a stall within a behaviour that is not a reply."""
    with pytest.raises(ValueError, match="'lunch'"):
        Stall("lunch")
    with pytest.raises(ValueError, match="needs a Reply"):
        Stall("body", reply=ResetAfterRequest())
    assert Stall("status", reply=ResetAfterRequest()).reply == ResetAfterRequest()


@pytest.mark.parametrize(("part", "drops"), [("head", len(HEAD)), ("body", 45)])
def test_drips(part, drops):
    """Each byte of the dripping part is sent after the interval, and everything arrives."""
    with FaultServer(Drip(part, 0.002)) as server:
        begin = time.monotonic()
        assert exchange(server, CLOSING_GET)[0].endswith(DEFAULT_BODY)
        assert time.monotonic() - begin >= drops * 0.002


@pytest.mark.parametrize(("reset", "end"), [(False, "fin"), (True, "rst")])
def test_closing_after_an_answer(reset, end):
    """The answer arrives whole and does not announce the end that follows."""
    with FaultServer([CloseAfterReply(reset=reset, after=0.02)]) as server:
        assert exchange(server) == (WHOLE, end)


def test_an_announced_close_after_an_answer():
    """An answer that closes by itself is left as it is."""
    with FaultServer([CloseAfterReply(Reply(framing="close"))]) as server:
        assert exchange(server) == (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "fin")


def test_a_handshake_fault_without_tls():
    """Without TLS a fault of the handshake breaks the connection at the first bytes, or when its path is known."""
    with FaultServer([CloseDuringHandshake()]) as server, closing(connect(server, 0.05)) as sock:
        assert read_to_end(sock) == (b"", "open")
        sock.settimeout(PATIENCE)
        sock.sendall(b"\x16")
        assert read_to_end(sock) == (b"", "fin")


def test_a_server_that_stops_reading():
    """A large upload stands still, and is recorded as not read."""
    with FaultServer([StopReading()]) as server, closing(connect(server)) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")
        server.wait_for_requests(1)
        sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            send_for_ever(sock, bytes(1_000_000))
        assert (server.requests[0].body, server.requests[0].body_complete) == (b"", False)


def test_a_server_that_stops_reading_for_a_time():
    """An upload that is not read is reset in the end."""
    with FaultServer([StopReading(0.02)]) as server, closing(connect(server)) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")
        assert read_to_end(sock) == (b"", "rst")


def test_an_early_answer_reaches_a_client_that_still_sends():
    """A polite early answer arrives though the upload is never read."""
    with FaultServer([AnswerBeforeUpload()]) as server:
        status, headers, _ = fetch(server, "PUT", body=bytes(3_000_000))
        assert (status, headers["Connection"], server.requests[0].body_complete) == (413, "close", False)


def test_an_impolite_early_answer_ends_in_a_reset():
    """An early answer that closes at once resets a client that still sends, which may lose the answer by that."""
    with FaultServer([AnswerBeforeUpload(Reply(503), polite=False)]) as server:
        request = b"POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n" + bytes(3_000_000)
        assert exchange(server, request)[1] == "rst"


def test_an_early_answer_to_a_request_without_upload():
    """A request without a body is complete when it is answered early."""
    with FaultServer([AnswerBeforeUpload()]) as server:
        assert fetch(server)[0] == 413
        assert server.requests[0].body_complete


def test_an_unread_upload_is_not_taken_for_a_request():
    """Bytes that follow an early answer on its connection are thrown away."""
    with FaultServer([AnswerBeforeUpload()]) as server, closing(client(server)) as connection:
        ask(connection, "PUT", "/", b"GET / HTTP/1.1\r\n\r\n")
        assert ask(connection)[0] == 200
        assert [request.method for request in server.requests] == ["PUT", "GET"]


def test_a_wire_is_closed_once():
    """Closing or resetting a wire again does nothing."""
    near, far = socket.socketpair()
    wire = Wire(near, far)
    with far:
        wire.reset()
        wire.reset()
        wire.close()
    assert not wire.is_open


def test_a_wire_under_tls_waits_until_there_is_room_to_write():
    """A full socket is waited for, not taken for a broken one."""
    full = [ssl.SSLWantWriteError()]

    class Full(socket.socket):
        def send(self, data):
            if full:
                raise full.pop()
            return super().send(data)

    near, far = socket.socketpair()
    wake, waker = socket.socketpair()
    with Full(fileno=near.detach()) as sock, far, wake, waker:
        Wire(sock, wake).send(b"abc")
        assert (b"abc", []) == (far.recv(10), full)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_that_refuses(host):
    """No process listens on a refusing port, and none can take it."""
    with refusing_port(host) as port:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, port), 1)
        with pytest.raises(OSError, match="in use"):
            FaultServer(host=host, port=port)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_that_hangs(host):
    """A connection to a port with a full backlog is neither made nor refused."""
    with hanging_port(host) as port, pytest.raises(TimeoutError):
        socket.create_connection((host, port), 0.05)


def test_a_system_without_a_backlog_limit(monkeypatch):
    """Where a full backlog cannot be had, the helper says so."""
    monkeypatch.setattr("select.select", lambda _r, writable, _x, _timeout: ([], writable, []))
    with pytest.raises(RuntimeError, match="backlog"):
        hanging_port().__enter__()
