"""The fault server of the kit: its replies, faults, script and records, and that nothing is left after it closed."""

import os
import socket
import threading
import time
from contextlib import closing

import pytest

from requests_smithy_retry.testing import (
    Behaviour,
    CloseAfterReply,
    CloseAfterRequest,
    CutBody,
    Drip,
    FaultServer,
    RecordedRequest,
    Reply,
    ResetAfterRequest,
    refusing_port,
)
from tests.faults.oracle import GET, POST, connect, exchange, fetch, read_to_end, until

pytestmark = pytest.mark.real_time

PLAIN, CHUNKED = Reply(body=b"abcdef"), Reply(body=b"abcdef", framing="chunked")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("size", [0, 1, 16384, 100_000])
def test_framings(framing, size):
    """A body of any size arrives whole in each framing; one that does not exist is an error that names these."""
    body = os.urandom(size)
    with FaultServer(Reply(201, {"X-A": "b"}, body, framing)) as server:
        status, headers, received = fetch(server)
    assert (201, "b", body) == (status, headers["X-A"], received)
    with pytest.raises(ValueError, match="framing='chunky': 'length', 'chunked' or 'close' is allowed"):
        Reply(framing="chunky")


@pytest.mark.parametrize(
    ("fault", "answer", "end"),
    [
        (CloseAfterRequest(), b"", "fin"),
        (ResetAfterRequest(), b"", "rst"),
        (CloseAfterReply(PLAIN), HEAD + b"abcdef", "fin"),
        (CloseAfterReply(PLAIN, reset=True, after=0.02), HEAD + b"abcdef", "rst"),
        (CloseAfterReply(Reply(framing="close")), b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "fin"),
        (CutBody(PLAIN), HEAD + b"abc", "fin"),
        (CutBody(PLAIN, 0), HEAD, "fin"),
        (CutBody(PLAIN, -1), HEAD + b"abcde", "fin"),
        (CutBody(CHUNKED, 5), CHUNKED_HEAD + b"6\r\nab", "fin"),
    ],
    ids=repr,
)
def test_faults(fault, answer, end):
    """A fault sends exactly these bytes, ends the connection in its way, and leaves the request on record."""
    with FaultServer([fault]) as server:
        assert (answer, end) == exchange(server, POST)
        assert b"hello" == server.requests[0].body


def test_a_behaviour_of_ones_own():
    """A subclass of Behaviour is given the wire and the request; one without ``act`` is an error."""

    class Echo(Behaviour):
        def act(self, wire, request):
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + request.body)

    with FaultServer([Echo()]) as server:
        assert b"abc" == fetch(server, "POST", body=b"abc")[2]
    with pytest.raises(NotImplementedError):
        Behaviour().act(None, RecordedRequest("GET", "/"))


def test_a_script_can_be_replaced_and_reset():
    """A list is used up, then the default holds; a function sees the request; a reset rewinds and forgets records."""
    with FaultServer([Reply(500), Reply(502)], default=Reply(204)) as server:
        assert [500, 502, 204, 204] == [fetch(server)[0] for _ in range(4)]
        server.script([Reply(501)])
        assert [501, 204] == [fetch(server)[0] for _ in range(2)]
        server.reset()
        assert ([], 0) == (server.requests, server.connections)
        assert 501 == fetch(server)[0]
        server.script(lambda request: Reply(body=request.body[::-1]))
        assert b"cba" == fetch(server, "POST", body=b"abc")[2]


def test_what_is_recorded():
    """Method, target, headers, body, connection and time of each are kept; ``Connection: close`` is honoured."""
    begin, head = time.monotonic(), b"POST /p?q=1 HTTP/1.1\r\nX-A: 1\r\nx-a:  2\r\nContent-Length: 3\r\n"
    with FaultServer() as server:
        data, end = exchange(server, head + b"connection: close\r\n\r\n\0\n\r")
        (request,) = server.requests
    assert (True, "fin") == (b"\r\nConnection: close\r\n" in data, end)
    assert ("POST", "/p?q=1", "/p", b"\0\n\r") == (request.method, request.target, request.path, request.body)
    assert (("X-A", "1"), ("x-a", "2")) == request.headers[:2]
    assert ("1", None, 0) == (request.header("x-A"), request.header("nope"), request.connection_id)
    assert begin <= request.arrived <= time.monotonic()


UPLOAD = b"PUT / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n"


@pytest.mark.parametrize("cut", range(0, 40, 7))
def test_chunked_uploads(cut):
    """A chunked upload is recorded without its framing, wherever the segments are cut, and the connection goes on."""
    data = UPLOAD + b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"
    with FaultServer() as server, closing(connect(server)) as sock:
        sock.sendall(data[: len(data) - cut])
        time.sleep(0.01)
        sock.sendall(data[len(data) - cut :] + GET)
        until(lambda: len(server.requests) == 2)
        assert [("PUT", b"abc0123456789"), ("GET", b"")] == [(sent.method, sent.body) for sent in server.requests]


@pytest.mark.parametrize(
    "sent",
    [
        *(b"", b"hello\r\n\r\n", POST.replace(b"5", b"9"), POST.replace(b"5", b"soon")),
        *(UPLOAD + b"3\r\nabc\r\n", UPLOAD + b"3\r\nabc\r\nzz\r\n\r\n"),
    ],
)
def test_what_is_no_whole_request_is_not_recorded(sent):
    """A connection that ends within a request, or talks no HTTP, leaves no record and gets no answer."""
    with FaultServer() as server:
        with closing(connect(server)) as sock:
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_WR)
            assert b"" == read_to_end(sock)[0]
        assert ([], 1) == (server.requests, server.connections)


def test_nothing_is_left_after_close():
    """Whatever goes on, a close ends it, and leaves no thread and no file descriptor."""
    files, threads = set(os.listdir("/proc/self/fd")), set(threading.enumerate())
    server = FaultServer([Reply(delay=float("inf")), Drip(interval=60)])
    socks = [connect(server) for _ in range(5)]
    for number, sock in enumerate(socks[:2], 1):
        sock.sendall(GET)
        until(lambda number=number: len(server.requests) == number)
    socks[2].close()
    socks[3].sendall(POST[:-1])
    server.close()
    server.close()
    assert set() == set(threading.enumerate()) - threads
    for sock in socks:
        sock.close()
    assert set() == set(os.listdir("/proc/self/fd")) - files
    with pytest.raises(ConnectionRefusedError):
        connect(server)


def test_ipv6():
    """A server on the IPv6 loopback has brackets in its URL."""
    with FaultServer(host="::1") as server:
        assert f"http://[::1]:{server.port}" == server.url
        assert 200 == fetch(server)[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_that_refuses(host):
    """No process listens on a refusing port, and none can take it."""
    with refusing_port(host) as port:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, port), 1)
        with pytest.raises(OSError, match="in use"):
            FaultServer(host=host, port=port)


def test_an_error_in_the_script_is_raised_at_the_end():
    """What a function of the script raises comes out of the block, unless the block has an error of its own."""
    with pytest.raises(ZeroDivisionError), FaultServer(lambda _: 1 / 0) as server:
        assert "rst" == exchange(server)[1]
    with pytest.raises(KeyError), FaultServer(lambda _: 1 / 0) as server:
        raise KeyError(exchange(server))


@pytest.mark.parametrize(
    ("slow", "least"), [(Reply(delay=0.05), 0.05), (Drip("head", 0.002), 0.07), (Drip("body", 0.002), 0.09)]
)
def test_an_answer_can_be_slow(slow, least):
    """A delay passes before the status, and an interval before each byte of the part that drips."""
    begin = time.monotonic()
    with FaultServer(slow) as server:
        assert 200 == fetch(server)[0]
        assert time.monotonic() - begin >= least
