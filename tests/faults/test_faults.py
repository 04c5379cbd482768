"""The faults of the suite's own server and proxy, seen from raw sockets and from http.client."""

import contextlib
import gzip
import http.client
import math
import socket
import ssl
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
    EndlessHeaders,
    FaultProxy,
    FaultServer,
    Forget,
    Forward,
    GarbageAfterReply,
    HalfClose,
    HugeHeader,
    Interim,
    LengthAndChunks,
    MissingLastChunk,
    MisstatedLength,
    Reply,
    ResetAfterRequest,
    ResetBeforeRequest,
    Stall,
    StopReading,
    TwoLengths,
    coded_reply,
    fault_catalogue,
    gzip_bomb,
    hanging_port,
    refusing_port,
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
    send_for_ever,
    tls_contexts,
)

pytestmark = [pytest.mark.real_time, pytest.mark.once]

OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = Reply(body=b"abcdef")
HEAD = OK + b"Content-Length: 6\r\n\r\n"
CHUNKED_HEAD = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LARGE_POST = b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"


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


@pytest.mark.parametrize("fault", [MissingLastChunk(then="reset"), CutHead(then="reset"), ResetBeforeRequest()])
def test_endings_by_reset(fault):
    """The fault ends in a reset."""
    with FaultServer([fault]) as server:
        assert "rst" == exchange(server)[1]


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


def test_resetting_before_the_request():
    """The connection is reset when the first byte has come, and no request is recorded."""
    with FaultServer([ResetBeforeRequest()]) as server, closing(connect(server, 0.05)) as sock:
        assert (b"", "open") == read_to_end(sock)
        sock.settimeout(PATIENCE)
        sock.sendall(GET)
        assert ((b"", "rst"), 1, []) == (read_to_end(sock), server.connections, server.requests)


def test_resetting_at_once():
    """The connection is reset as soon as it is there, at whatever point the client is then."""
    with FaultServer([ResetBeforeRequest(at_once=True)]) as server:
        with pytest.raises(ConnectionError), closing(connect(server)) as sock:
            sock.recv(1)
        assert 200 == fetch(server)[0]


def test_a_step_after_an_answer_meets_the_next_request_of_the_connection():
    """On a connection kept alive, a fault that reads nothing strikes when the next request comes."""
    with FaultServer([Reply(), ResetBeforeRequest(), ResetAfterRequest()]) as server, closing(client(server)) as kept:
        ask(kept)
        with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
            ask(kept)
        assert 1 == len(server.requests)


def test_half_close_goes_on_reading():
    """After a half-close the client can still send, until its time is up."""
    with FaultServer([HalfClose(), HalfClose(0.02)]) as server:
        with closing(connect(server)) as sock:
            sock.sendall(GET)
            assert (b"", "fin") == read_to_end(sock)
            for _ in range(3):
                sock.sendall(b"more")
                time.sleep(0.002)
        with closing(connect(server)) as sock:
            sock.sendall(GET)
            assert (b"", "fin") == read_to_end(sock)
            with pytest.raises(ConnectionError):
                send_for_ever(sock, b"more")


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


def test_stalls_are_checked():
    """A point that does not exist is refused, and so is a stall within a behaviour that is not a reply."""
    with pytest.raises(ValueError, match="'lunch'"):
        Stall("lunch")
    with pytest.raises(ValueError, match="needs a Reply"):
        Stall("body", reply=ResetAfterRequest())


def test_a_server_that_stops_reading():
    """A large upload stands still, is recorded as not read, and is reset in the end."""
    with FaultServer([StopReading(0.2)]) as server, closing(connect(server)) as sock:
        sock.sendall(LARGE_POST)
        server.wait_for_requests(1)
        with pytest.raises(ConnectionError):
            send_for_ever(sock, bytes(1_000_000))
        assert (b"", False) == (server.requests[0].body, server.requests[0].body_complete)


def test_an_early_answer_reaches_a_client_that_still_sends():
    """A polite early answer arrives though the upload is never read; what follows it is no request."""
    with FaultServer([AnswerBeforeUpload()]) as server, closing(client(server)) as connection:
        assert 413 == ask(connection, "PUT", "/", b"GET / HTTP/1.1\r\n\r\n" * 100_000)[0]
        assert 200 == ask(connection)[0]
        assert [("PUT", False), ("GET", True)] == [(sent.method, sent.body_complete) for sent in server.requests]


def test_an_impolite_early_answer_ends_in_a_reset():
    """An early answer that closes at once resets a client that still sends, which may lose the answer by that."""
    with FaultServer([AnswerBeforeUpload(Reply(503), polite=False)]) as server:
        assert "rst" == exchange(server, LARGE_POST + bytes(3_000_000))[1]


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
        (request,) = server.wait_for_requests(1)
        assert (b"abc", False) == (request.body, request.body_complete)


@pytest.mark.parametrize("junk", [b"", b"GET / HT", b"hello\r\n\r\n", b"\r\n"])
def test_what_is_no_request_is_not_recorded(junk):
    """A connection that closes, breaks off within the head or talks no HTTP leaves no record."""
    with FaultServer() as server:
        with closing(connect(server)) as sock:
            sock.sendall(junk)
            sock.shutdown(socket.SHUT_WR)
            assert b"" == read_to_end(sock)[0]
        assert [] == server.requests


@pytest.mark.parametrize(("coding", "decode"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)])
def test_codings(coding, decode):
    """A coded reply carries its coding and decodes to the body; cut or corrupted it does not."""
    assert DEFAULT_BODY == decode(coded_reply(coding).body)
    assert coding == dict(coded_reply(coding).headers)["Content-Encoding"]
    for broken in (coded_reply(coding, cut_to=-5), coded_reply(coding, corrupt_at=-2)):
        with pytest.raises((EOFError, OSError, zlib.error)):
            decode(broken.body)
    assert bytes(5_000_000) == gzip.decompress(gzip_bomb(5_000_000).body)


HTTP_CLIENT_IS_WRONG = {
    "interim-102",  # takes it for the final response
    "interim-103",
    "interim-several",
    "length-negative",  # takes it for no length at all
    "length-no-number",
    "two-lengths",  # takes the first
    "two-lengths-joined",
    "length-and-chunks",  # lets the chunks count, as it may, but says nothing
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


@pytest.mark.parametrize("row", [row for row in rows("broken", "unknowable") if row.id != "endless-headers"])
def test_a_reply_to_head_never_has_a_body(row):
    """A faulty answer to HEAD, where one comes, ends with its head: the fault is not a body out of place."""
    with FaultServer([row.behaviour]) as server, closing(connect(server, 0.03)) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(b"HEAD / HTTP/1.1\r\n\r\n")
        assert b"" == read_to_end(sock)[0].partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("row", rows("slow"))
def test_slow_rows_of_the_catalogue(row):
    """A slow answer has not ended after a while, though bytes may keep coming."""
    with FaultServer(row.behaviour) as server, closing(connect(server, 0.03)) as sock:
        sock.sendall(GET)
        until = time.monotonic() + 0.03
        with contextlib.suppress(TimeoutError):
            while time.monotonic() < until:
                assert sock.recv(65536)


def test_endless_headers():
    """Header lines come for as long as the client reads, without a blank line."""
    with FaultServer(EndlessHeaders(0.0001)) as server, closing(connect(server)) as sock:
        sock.sendall(GET)
        data = read_exactly(sock, 3000)
        assert (True, False) == (data.startswith(OK + b"X-Header-0: and another one\r\n"), b"\r\n\r\n" in data)


def test_https(contexts):
    """Requests and large bodies pass over TLS, both ways, on one connection, under an https URL."""
    tls, trusting = contexts
    body = bytes(range(256)) * 4000
    with FaultServer(Reply(body=body), tls=tls) as server, closing(client(server, context=trusting)) as connection:
        assert f"https://127.0.0.1:{server.port}" == server.url
        assert ask(connection, "POST", "/", body) == ask(connection)
        assert (1, body) == (server.connections, server.requests[0].body)


@pytest.mark.parametrize("fault", [CloseBeforeRequest(), HalfClose(), CutBody(), AnswerBeforeUpload()])
def test_orderly_ends_under_tls(contexts, fault):
    """Faults that end in an orderly way say so by a close_notify, and the next connection is served."""
    tls, trusting = contexts
    with FaultServer([fault], tls=tls) as server:
        with trusting.wrap_socket(connect(server), server_hostname="127.0.0.1", suppress_ragged_eofs=False) as sock:
            sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
            assert "fin" == read_to_end(sock)[1]
        assert DEFAULT_BODY == fetch(server, context=trusting)[2]


@pytest.mark.parametrize("fault", [ResetBeforeRequest(), ResetAfterRequest()])
def test_resets_under_tls(contexts, fault):
    """A reset is a TCP reset under TLS, too; ssl calls it an EOF when it meets the reset while sending."""
    with FaultServer([fault], tls=contexts[0]) as server, pytest.raises((ConnectionError, ssl.SSLEOFError)):
        fetch(server, context=contexts[1])


def test_a_handshake_that_is_never_answered(contexts):
    """A stall of accepting under TLS leaves the handshake unanswered."""
    with FaultServer([Stall("accept")], tls=contexts[0]) as server, pytest.raises(TimeoutError, match="handshake"):
        fetch(server, timeout=0.05, context=contexts[1])


def test_a_handshake_that_fails_is_no_error(contexts):
    """Clients that distrust the certificate, talk no TLS or are gone do not disturb the server."""
    tls, trusting = contexts
    with FaultServer([Stall("accept", 0.02)], tls=tls) as server:
        with closing(connect(server)) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        with pytest.raises(ssl.SSLCertVerificationError):
            fetch(server, context=ssl.create_default_context())
        with closing(connect(server)) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            read_to_end(sock)
        assert 200 == fetch(server, context=trusting)[0]


def test_a_client_that_does_not_read_tls(contexts):
    """A server that cannot send on because its client does not read closes all the same."""
    server = FaultServer(EndlessBody(), tls=contexts[0])
    with contexts[1].wrap_socket(connect(server), server_hostname="127.0.0.1") as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        server.wait_for_requests(1)
        server.close()
    assert not any(thread.is_alive() for thread, _ in server._serving)


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
        upload = iter([b"up", b"load"])
        status, headers, body = fetch(proxy, "POST", server.url + "/p?q=1", upload, {"Proxy-Connection": "x"})
        assert (201, "b", "close", b"there") == (status, headers["X-A"], headers["Connection"], body)
        (request,) = server.requests
        assert ("POST", "/p?q=1", b"upload", None) == (
            request.method,
            request.target,
            request.body,
            request.header("Proxy-Connection"),
        )
        assert (server.url + "/p?q=1", 0) == (proxy.requests[0].target, proxy.tunnels)


@pytest.mark.parametrize("is_tls", [False, True])
def test_tunnels(contexts, is_tls):
    """CONNECT opens a tunnel to the target, which is counted; TLS and large bodies pass through it."""
    body = bytes(1_000_000)
    tls, trusting = contexts if is_tls else (None, None)
    with FaultServer(Reply(body=body), tls=tls) as server, FaultProxy() as proxy:
        assert (200, body) == tunnel(proxy, server, context=trusting)
        assert (1, "/inside") == (proxy.tunnels, server.requests[0].target)


def test_a_proxy_may_speak_tls(contexts):
    """A proxy with a context speaks TLS with its client."""
    with FaultServer(Reply(body=b"there")) as server, FaultProxy(tls=contexts[0]) as proxy:
        assert b"there" == fetch(proxy, path=server.url, context=contexts[1])[2]


def test_faults_of_the_target_pass():
    """A cut, a close and a reset of the target look the same through the proxy."""
    with FaultServer([CutBody(), ResetAfterRequest(), ResetAfterRequest()]) as server, FaultProxy() as proxy:
        with pytest.raises(http.client.IncompleteRead):
            fetch(proxy, path=server.url)
        with pytest.raises(ConnectionResetError):
            fetch(proxy, path=server.url)
        with pytest.raises(ConnectionResetError):
            tunnel(proxy, server)


def test_faults_of_the_proxy():
    """A proxy resets before its target sees anything, refuses a tunnel, and answers one late."""
    script = [ResetAfterRequest(), Reply(407), Stall("status", 0.05, Forward())]
    with FaultServer() as server, FaultProxy(script) as proxy:
        with pytest.raises(ConnectionResetError):
            fetch(proxy, "POST", server.url, b"upload")
        with pytest.raises(OSError, match="407"):
            tunnel(proxy, server)
        assert (b"upload", 1, 0) == (proxy.requests[0].body, proxy.tunnels, server.connections)
        assert 200 == tunnel(proxy, server)[0]


def test_targets_out_of_reach():
    """A target that refuses, or is no target, is answered 502."""
    with refusing_port() as port, FaultProxy() as proxy:
        assert 502 == fetch(proxy, path=f"http://127.0.0.1:{port}/")[0]
        assert 502 == fetch(proxy, path="/no-proxy-request")[0]


def test_a_proxy_closes_with_tunnels_open():
    """Closing the proxy ends tunnels that are in use."""
    with FaultServer([Stall()]) as server:
        with FaultProxy() as proxy:
            connection = client(proxy)
            connection.set_tunnel(server.host, server.port)
            connection.request("GET", "/")
            server.wait_for_requests(1)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            connection.getresponse()
        connection.close()


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
