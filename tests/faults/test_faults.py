"""The faults of the suite's own server and proxy, seen from raw sockets and from http.client."""

import contextlib
import gzip
import http.client
import math
import socket
import time
import zlib
from contextlib import closing

import pytest

from tests.faults import (
    DEFAULT_BODY,
    AnswerBeforeUpload,
    BadChunkSize,
    BadStatusLine,
    CloseBeforeRequest,
    CutBody,
    CutHead,
    EndlessBody,
    FaultProxy,
    FaultServer,
    Forget,
    GarbageAfterReply,
    HalfClose,
    HugeHeader,
    Interim,
    LengthAndChunks,
    MissingLastChunk,
    MisstatedLength,
    Reply,
    ResetAfterRequest,
    Stall,
    TwoLengths,
    fault_catalogue,
    hanging_port,
)
from tests.faults.oracle import (
    GET,
    PATIENCE,
    answer_before_silence,
    ask,
    client,
    connect,
    exchange,
    fetch,
    read_exactly,
    read_to_end,
    tls_contexts,
)

pytestmark = [pytest.mark.real_time, pytest.mark.once]

OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = Reply(body=b"abcdef")
HEAD = OK + b"Content-Length: 6\r\n\r\n"
CHUNKED_HEAD = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def contexts():
    return tls_contexts()


@pytest.mark.parametrize(
    ("fault", "sent"),
    [
        (MissingLastChunk(PLAIN), CHUNKED_HEAD + b"6\r\nabcdef\r\n"),
        (BadChunkSize(b"zz", PLAIN), CHUNKED_HEAD + b"6\r\nabcdef\r\nzz\r\nabc\r\n0\r\n\r\n"),
        (MisstatedLength("-1", PLAIN), OK + b"Content-Length: -1\r\n\r\nabcdef"),
        (TwoLengths("3", reply=PLAIN), OK + b"Content-Length: 6\r\nContent-Length: 3\r\n\r\nabcdef"),
        (TwoLengths("3", joined=True, reply=PLAIN), OK + b"Content-Length: 6, 3\r\n\r\nabcdef"),
        (
            LengthAndChunks("3", PLAIN),
            OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n",
        ),
        (CutHead(PLAIN), HEAD[:-2]),
        (BadStatusLine(b"HTTP/1.1 OK", PLAIN), b"HTTP/1.1 OK\r\nContent-Length: 6\r\n\r\nabcdef"),
        (Interim((103,), 2, 0.001, CutHead(PLAIN)), b"HTTP/1.1 103 Wait\r\n\r\n" * 2 + HEAD[:-2]),
        (EndlessBody(piece=b"ab", pieces=2), OK + b"Connection: close\r\n\r\nabab"),
        (EndlessBody(piece=b"ab", pieces=2, framing="chunked"), CHUNKED_HEAD + b"2\r\nab\r\n2\r\nab\r\n"),
        (EndlessBody(201, b"ab", 0.01, "length", 1), b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\nab" % 2**40),
        (CloseBeforeRequest(), b""),
    ],
)  # fmt: skip
def test_bytes_sent_before_the_close(fault, sent):
    """The fault sends exactly these bytes, and the connection ends in an orderly way."""
    with FaultServer([fault]) as server:
        assert (sent, "fin") == exchange(server, GET.replace(b"\r\n\r\n", b"\r\nHost: x\r\n\r\n"))


@pytest.mark.parametrize(
    ("fault", "sent"),
    [
        (MisstatedLength("3", PLAIN, then="keep"), OK + b"Content-Length: 3\r\n\r\nabcdef" + HEAD + b"abcdef"),
        (GarbageAfterReply(b"!!", PLAIN), HEAD + b"abcdef!!" + HEAD + b"abcdef"),
        (HugeHeader(9, PLAIN), HEAD.replace(b"OK\r\n", b"OK\r\nX-Huge: xxxxxxxxx\r\n") + b"abcdef" + HEAD + b"abcdef"),
    ],
)  # fmt: skip
def test_faults_that_keep_the_connection(fault, sent):
    """The next answer comes on the same connection, behind what was too much."""
    with FaultServer([fault, PLAIN]) as server:
        assert ((sent, "open"), 1) == (answer_before_silence(server, len(sent), GET + GET), server.connections)


@pytest.mark.parametrize(
    ("point", "before"),
    [
        ("accept", b""),
        ("status", b""),
        ("status-line", b"HTTP/1."),
        ("header", b"HTTP/1.1 200 OK\r\nCont"),
        ("body-start", HEAD),
        ("body", HEAD + b"abc"),
    ],
)
def test_stalls(point, before):
    """A stall sends what comes before its point, then nothing until its time is up, then the rest."""
    begin = time.monotonic()
    with FaultServer(Stall(point, 0.05, PLAIN)) as server, closing(connect(server)) as sock:
        sock.sendall(GET)
        assert before == read_exactly(sock, len(before))
        rest = sock.recv(1)
        assert time.monotonic() - begin >= 0.05
        sock.shutdown(socket.SHUT_WR)
        assert HEAD + b"abcdef" == before + rest + read_to_end(sock)[0]


def test_an_early_answer_reaches_a_client_that_still_sends():
    """A polite early answer arrives though the upload is never read; what follows it is no request."""
    with FaultServer([AnswerBeforeUpload()]) as server, closing(client(server)) as connection:
        assert 413 == ask(connection, "PUT", "/", b"GET / HTTP/1.1\r\n\r\n" * 100_000)[0]
        assert 200 == ask(connection)[0]
        assert [("PUT", False), ("GET", True)] == [(sent.method, sent.body_complete) for sent in server.requests]


@pytest.mark.parametrize(
    "upload",
    [
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n\r\n",
        b"Content-Length: 9\r\n\r\nabc",
    ],
)
def test_a_bad_upload_is_recorded_as_incomplete(upload):
    """An upload that is cut or malformed is kept as far as it came, marked incomplete, and not answered."""
    with FaultServer() as server, closing(connect(server)) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\n" + upload)
        sock.shutdown(socket.SHUT_WR)
        assert b"" == read_to_end(sock)[0]
        assert [(b"abc", False)] == [(request.body, request.body_complete) for request in server.requests]


HTTP_CLIENT_IS_WRONG = {
    "interim-102",  # takes it for the final response
    "interim-103",
    "interim-several",
    "length-negative",  # takes it for no length at all
    "length-no-number",
    "two-lengths",  # takes the first
    "two-lengths-joined",
}


def rows(*outcomes):
    return [pytest.param(row, id=row.name) for row in fault_catalogue() if row.outcome in outcomes]


@pytest.mark.parametrize("row", rows("whole", "broken", "unknowable"))
def test_outcomes_of_the_catalogue(row):
    """A row marked whole arrives whole, and a broken one fails in http.client, except for those that it gets wrong."""
    with FaultServer(row.behaviour) as server:
        try:
            status, headers, body = fetch(server)
            coding = headers.get("Content-Encoding")
            seen = status, {"gzip": gzip.decompress, "deflate": zlib.decompress, None: bytes}[coding](body)
        except (OSError, EOFError, ValueError, http.client.HTTPException, zlib.error) as error:
            seen = error
    intact = (seen == (200, DEFAULT_BODY)) != (row.name in HTTP_CLIENT_IS_WRONG)
    assert (row.outcome == "whole") == intact, seen


@pytest.mark.parametrize("row", rows("slow"))
def test_slow_rows_of_the_catalogue(row):
    """A slow answer has not ended after a while, though bytes may keep coming."""
    with FaultServer(row.behaviour) as server, closing(connect(server, 0.03)) as sock:
        sock.sendall(GET)
        until = time.monotonic() + 0.03
        with contextlib.suppress(TimeoutError):
            while time.monotonic() < until:
                assert sock.recv(65536)


@pytest.mark.parametrize("fault", [CloseBeforeRequest(), HalfClose(), CutBody(), AnswerBeforeUpload()])
def test_orderly_ends_under_tls(contexts, fault):
    """Faults that end in an orderly way say so by a close_notify, and the next connection is served."""
    tls, trusting = contexts
    with FaultServer([fault], tls=tls) as server:
        with trusting.wrap_socket(connect(server), server_hostname="127.0.0.1", suppress_ragged_eofs=False) as sock:
            sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
            assert "fin" == read_to_end(sock)[1]
        assert DEFAULT_BODY == fetch(server, context=trusting)[2]


def tunnel(proxy, server, timeout=PATIENCE, context=None):
    """A GET through a CONNECT tunnel."""
    with closing(client(proxy, timeout, context)) as connection:
        connection.set_tunnel(server.host, server.port)
        connection.request("GET", "/inside")
        response = connection.getresponse()
        return response.status, response.read()


@pytest.mark.parametrize("is_tls", [False, True])
def test_tunnels(contexts, is_tls):
    """CONNECT opens a tunnel to the target, which is counted; TLS and large bodies pass through it."""
    body = bytes(1_000_000)
    tls, trusting = contexts if is_tls else (None, None)
    with FaultServer(Reply(body=body), tls=tls) as server, FaultProxy() as proxy:
        assert (200, body) == tunnel(proxy, server, context=trusting)
        assert (1, "/inside") == (proxy.tunnels, server.requests[0].target)


def test_faults_of_the_target_pass():
    """A cut, a close and a reset of the target look the same through the proxy."""
    with FaultServer([CutBody(), ResetAfterRequest(), ResetAfterRequest()]) as server, FaultProxy() as proxy:
        with pytest.raises(http.client.IncompleteRead):
            fetch(proxy, path=server.url)
        with pytest.raises(ConnectionResetError):
            fetch(proxy, path=server.url)
        with pytest.raises(ConnectionResetError):
            tunnel(proxy, server)


@pytest.mark.parametrize("idle", [0, math.inf])
def test_a_forgotten_path_swallows_what_is_sent(idle):
    """After the silence, or when told so, nothing arrives and nobody is told till the client ends; a new path works."""
    nat = Forget(idle=idle)
    with FaultServer(Reply(body=b"there")) as server, FaultProxy(nat) as proxy:
        if idle:
            assert (200, b"there") == tunnel(proxy, server)
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
            assert b"" == connection.sock.recv(1)
        assert (1 if idle else 0) == len(server.requests)
        if idle:
            assert (200, b"there") == tunnel(proxy, server)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_that_hangs(host):
    """A connection to a port with a full backlog is neither made nor refused."""
    with hanging_port(host) as port, pytest.raises(TimeoutError):
        socket.create_connection((host, port), 0.05)
