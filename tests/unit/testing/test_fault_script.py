"""The fault server's scripts, and its records of requests."""

import http.client
import os
import socket
import threading
import time
from contextlib import closing

import pytest

from requests_smithy_retry.testing import (
    FaultServer,
    Reply,
    ResetAfterRequest,
    ResetBeforeRequest,
)
from tests.unit.testing.fault_oracle import GET, POST, ask, client, connect, exchange, fetch, read_to_end

pytestmark = pytest.mark.real_time


def open_files():
    return set(os.listdir("/proc/self/fd"))


def test_a_list_is_used_up():
    """Each step of a list is taken once, in order, and then the default."""
    with FaultServer([Reply(500), Reply(502)], default=Reply(204)) as server:
        assert [fetch(server)[0] for _ in range(4)] == [500, 502, 204, 204]


def test_a_function_sees_the_request():
    """A function gets the whole request and returns what to do."""
    with FaultServer(lambda request: Reply(body=request.body[::-1])) as server:
        assert fetch(server, "POST", body=b"abc")[2] == b"cba"


def test_scripts_by_path():
    """Each path has its own turns; a whole target goes first, and other paths get the default."""
    script = {"/a": [Reply(500)], "/b": Reply(501), "/b?x=1": lambda _: Reply(502), "/c": [ResetBeforeRequest()]}
    with FaultServer(script) as server:
        paths = ["/a?q", "/a", "/b?x=2", "/b?x=1", "/b", "/d"]
        assert [fetch(server, path=path)[0] for path in paths] == [500, 200, 501, 502, 501, 200]
        assert exchange(server, GET.replace(b"/ ", b"/c ")) == (b"", "rst")


def test_a_script_can_be_replaced_and_reset():
    """A new script takes effect at the next request; a reset rewinds it and forgets the records."""
    with FaultServer([Reply(500)]) as server:
        server.script([Reply(501)])
        assert [fetch(server)[0] for _ in range(2)] == [501, 200]
        server.reset()
        assert (server.requests, server.connections, server.errors) == ([], 0, [])
        assert fetch(server)[0] == 501


def test_what_is_recorded():
    """Method, target, headers, body, connection, time and index of each request are kept."""
    begin = time.monotonic()
    with FaultServer() as server:
        exchange(
            server,
            b"POST /p?q=1 HTTP/1.1\r\nX-A: 1\r\nx-a:  2 \r\nContent-Length: 3\r\nConnection: close\r\n\r\n\0\n\r",
        )
        (request,) = server.requests
    assert (request.method, request.target, request.path, request.body) == ("POST", "/p?q=1", "/p", b"\0\n\r")
    assert request.headers[:2] == (("X-A", "1"), ("x-a", "2"))
    assert (request.header("x-A"), request.header("nope"), request.header_values("X-A")) == ("1", None, ["1", "2"])
    assert (request.connection_id, request.index, request.body_complete) == (0, 0, True)
    assert begin <= request.arrived <= time.monotonic()
    with pytest.raises(AttributeError):
        request.method = "GET"


CHUNKED = b"PUT / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n"


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_chunked_uploads(cut):
    """A chunked upload is recorded without its framing, wherever the segments are cut, and the connection goes on."""
    data = CHUNKED + b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n"
    with FaultServer() as server, closing(connect(server)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(data[: len(data) - cut])
        time.sleep(0.01)
        sock.sendall(data[len(data) - cut :] + GET)
        first, second = server.wait_for_requests(2)
        assert (first.body, first.body_complete, second.method) == (b"abc0123456789", True, "GET")


@pytest.mark.parametrize(
    "upload",
    [
        CHUNKED + b"3\r\nabc\r\n",
        CHUNKED + b"5\r\nabc",
        CHUNKED + b"3\r\nabc\r\nzz\r\n\r\n",
        CHUNKED + b"3\r\nabcdef\r\n",
        CHUNKED + b"3\r\nabc\r\n-1\r\n\r\n",
        POST.replace(b"5", b"9").replace(b"hello", b"abc"),
    ],
)
def test_a_bad_upload_is_recorded_as_incomplete(upload):
    """An upload that is cut or malformed is kept as far as it came, marked incomplete, and not answered."""
    with FaultServer() as server, closing(connect(server)) as sock:
        sock.sendall(upload)
        sock.shutdown(socket.SHUT_WR)
        assert read_to_end(sock)[0] == b""
        (request,) = server.wait_for_requests(1)
        assert (request.body, request.body_complete) == (b"abc", False)


def test_a_length_that_is_no_number_is_incomplete():
    """An upload whose length is no number is marked incomplete."""
    with FaultServer() as server:
        exchange(server, b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n")
        assert not server.requests[0].body_complete


@pytest.mark.parametrize("junk", [b"", b"GET / HT", b"hello\r\n\r\n", b"x" * (1 << 20) + b"x"])
def test_what_is_no_request_is_not_recorded(junk):
    """A connection that closes, breaks off within the head or talks no HTTP leaves no record."""
    with FaultServer() as server:
        with closing(connect(server)) as sock:
            sock.sendall(junk)
            sock.shutdown(socket.SHUT_WR)
            assert read_to_end(sock)[0] == b""
        assert (server.requests, server.connections) == ([], 1)


def test_waiting_for_requests():
    """Waiting returns the requests once there are enough, and says how many came if there are not."""
    with FaultServer() as server:
        late = threading.Timer(0.05, fetch, [server])
        late.start()
        assert len(server.wait_for_requests(1)) == 1
        late.join()
        with pytest.raises(TimeoutError, match="1 requests came"):
            server.wait_for_requests(2, timeout=0.01)


def test_many_threads():
    """Every step is taken once and every request recorded once, with 16 clients at a time."""
    with FaultServer([Reply(500 + number) for number in range(64)]) as server:
        statuses = []
        clients = [
            threading.Thread(target=lambda: statuses.extend(fetch(server)[0] for _ in range(4))) for _ in range(16)
        ]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        assert sorted(statuses) == list(range(500, 564))
        assert [request.index for request in server.requests] == list(range(64))


def test_a_step_after_an_answer_meets_the_next_request_of_the_connection():
    """On a connection kept alive, a fault that reads nothing strikes when the next request comes."""
    with FaultServer([Reply(), ResetBeforeRequest(), ResetAfterRequest()]) as server, closing(client(server)) as kept:
        ask(kept)
        with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
            ask(kept)
        assert len(server.requests) == 1
