"""The fault server itself: replies, keep-alive, and what is left after it closed."""

import os
import socket
import threading
import time
from contextlib import closing

import pytest

from requests_smithy_retry.testing import (
    DEFAULT_BODY,
    Behaviour,
    EndlessBody,
    FaultServer,
    ReadSoFar,
    RecordedRequest,
    Reply,
    Stall,
    StopReading,
    Wire,
    try_later,
)
from tests.unit.testing.fault_oracle import GET, POST, ask, client, connect, exchange, fetch, until

pytestmark = pytest.mark.real_time


def open_files():
    return set(os.listdir("/proc/self/fd"))


def test_it_is_well_without_a_script():
    """A server without a script answers 200 with the default body."""
    with FaultServer() as server:
        assert fetch(server) == (200, {"Content-Length": "45"}, DEFAULT_BODY)


def test_connections_are_kept_alive():
    """Two requests of one client arrive on one connection."""
    with FaultServer() as server, closing(client(server)) as connection:
        ask(connection)
        ask(connection, "POST", "/", b"x")
        assert server.connections == 1
        assert [request.connection_id for request in server.requests] == [0, 0]


def test_a_client_may_ask_to_close():
    """``Connection: close`` in a request is honoured and repeated in the answer."""
    with FaultServer() as server:
        data, end = exchange(server, b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n")
        assert b"\r\nConnection: close\r\n" in data
        assert end == "fin"


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("size", [0, 1, 16384, 100_000])
def test_framings(framing, size):
    """A body of any size arrives whole in each framing."""
    body = os.urandom(size)
    with FaultServer(Reply(201, {"X-A": "b"}, body, framing)) as server:
        status, headers, received = fetch(server)
    assert (status, headers["X-A"], received) == (201, "b", body)


@pytest.mark.parametrize("status", [204, 304])
def test_some_statuses_have_no_body(status):
    """204 and 304 are answered without a body, and the connection goes on."""
    with FaultServer([Reply(status, body=b"x")]) as server, closing(client(server)) as connection:
        assert ask(connection)[::2] == (status, b"")
        assert ask(connection)[0] == 200
        assert server.connections == 1


def test_head_has_no_body():
    """HEAD is answered with the length of the body and without the body."""
    with FaultServer() as server:
        assert fetch(server, "HEAD") == (200, {"Content-Length": "45"}, b"")


def test_own_headers_replace_ours():
    """A Content-Length given with a reply replaces the computed one; pairs may repeat a name."""
    with FaultServer(Reply(200, [("content-length", "7"), ("A", "1"), ("A", "2")])) as server:
        data, _ = exchange(server, b"HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert data == b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\nA: 1\r\nA: 2\r\nConnection: close\r\n\r\n"


def test_an_unknown_status_is_sent():
    """A status without a registered phrase is sent all the same."""
    with FaultServer(Reply(599)) as server:
        assert fetch(server)[0] == 599


def test_an_unknown_framing_is_refused():
    """A framing that does not exist is an error that names the allowed ones."""
    with pytest.raises(ValueError, match="'chunked'"):
        Reply(framing="chunky")


def test_a_reply_can_be_delayed():
    """A delay passes before the status."""
    begin = time.monotonic()
    with FaultServer(Reply(delay=0.05)) as server:
        fetch(server)
        assert time.monotonic() - begin >= 0.05


def test_try_later_carries_the_hint():
    """A 503 or 429 carries the hint as it was given, in the header that was named."""
    with FaultServer([try_later(), try_later(429, 86400, body=b"no"), try_later(503, "x", header="X-H")]) as server:
        assert fetch(server)[:2] == (503, {"Retry-After": "1", "Content-Length": "0"})
        assert fetch(server) == (429, {"Retry-After": "86400", "Content-Length": "2"}, b"no")
        assert fetch(server)[1]["X-H"] == "x"


def watch_reading(monkeypatch):
    """Return a list of the bytes that the servers have read so far, which grows."""
    receive, read = Wire.receive, []

    def receive_and_tell(self):
        data = receive(self)
        read.append(data)
        return data

    monkeypatch.setattr(Wire, "receive", receive_and_tell)
    return read


def test_nothing_is_left_after_close(monkeypatch):
    """Whatever goes on, a close ends it, and leaves no thread and no file descriptor."""
    files, threads = open_files(), set(threading.enumerate())
    read = watch_reading(monkeypatch)
    server, silent = FaultServer([Stall(), EndlessBody(), StopReading()]), FaultServer([Stall("accept")])
    socks = [*(connect(server) for _ in range(6)), connect(silent)]
    for sock in socks[:3]:
        sock.sendall(GET)
        server.wait_for_requests(socks.index(sock) + 1)
    socks[3].close()
    socks[4].sendall(POST[:-1])
    until(lambda: any(data.endswith(POST[:-1]) for data in read))
    silent.close()
    server.close()
    server.close()
    assert set() == set(threading.enumerate()) - threads
    for sock in socks:
        sock.close()
    assert set() == open_files() - files
    assert server.requests[-1].body == b"hell"
    with pytest.raises(ConnectionRefusedError):
        connect(server)


def test_close_ends_a_connection_that_is_always_busy():
    """A client that reads an endless body as fast as it comes does not hold up the close."""
    server = FaultServer(EndlessBody())
    reader = threading.Thread(target=exchange, args=[server])
    reader.start()
    server.wait_for_requests(1)
    server.close()
    reader.join()


def test_a_port_can_be_taken_again():
    """A server can come back on the port of one that closed, though connections of that were open."""
    with FaultServer() as server, closing(client(server)) as connection:
        ask(connection)
    with FaultServer(port=server.port) as again:
        assert fetch(again)[0] == 200


def test_ipv6():
    """A server on the IPv6 loopback has brackets in its URL."""
    with FaultServer(host="::1") as server:
        assert server.url == f"http://[::1]:{server.port}"
        assert fetch(server)[0] == 200


def test_an_error_in_the_script_is_raised_at_the_end():
    """An exception of a script's function resets the connection, and comes out of the ``with`` block."""
    server = FaultServer(lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError), server:
        assert exchange(server) == (b"", "rst")
    assert isinstance(server.errors[0], ZeroDivisionError)


def test_an_error_of_the_test_goes_first():
    """An exception raised within the ``with`` block is not hidden by one of the script."""

    def erring():
        with FaultServer(lambda _: 1 / 0) as server:
            exchange(server)
            raise KeyError

    with pytest.raises(KeyError):
        erring()


def test_a_function_that_hangs_is_named():
    """A close that cannot end a function of the script says so in bounded time."""
    release = threading.Event()
    server = FaultServer(lambda _: release.wait() and Reply(), close_timeout=0.05)
    with closing(connect(server)) as sock:
        sock.sendall(GET)
        server.wait_for_requests(1)
        with pytest.raises(RuntimeError, match=f"fault-server-{server.port}-0"):
            server.close()
        release.set()
    for thread in threading.enumerate():
        if thread.name.startswith(f"fault-server-{server.port}"):
            thread.join()


def test_a_client_that_went_before_it_was_accepted(monkeypatch):
    """A connection that is gone before it is accepted does not end the server."""
    accept, gone = socket.socket.accept, [ConnectionAbortedError()]

    def failing_once(self):
        if gone:
            raise gone.pop()
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", failing_once)
    with FaultServer() as server:
        assert fetch(server)[0] == 200
    assert not gone


def test_a_behaviour_of_ones_own():
    """A subclass of Behaviour is told the wire and the request, and can say that it begins early."""

    class Chatter(Behaviour):
        @property
        def begins_after(self):
            return ReadSoFar.HANDSHAKE

        def greet(self, wire):
            wire.send(b"220 hello\r\n")

    with FaultServer([Chatter(), Reply(204)]) as server:
        data, _ = exchange(server, b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert data.startswith(b"220 hello\r\nHTTP/1.1 204")


def test_a_behaviour_must_do_something():
    """A Behaviour without methods is an error of the script."""
    with pytest.raises(NotImplementedError):
        Behaviour().greet(None)
    with pytest.raises(NotImplementedError):
        Behaviour().act(None, RecordedRequest("GET", "/"))
    assert Behaviour().begins_after is ReadSoFar.REQUEST
