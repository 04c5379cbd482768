"""Faults of a reply's head, framing and coding, seen from a raw socket and from http.client."""

import contextlib
import gzip
import http.client
import time
import zlib
from contextlib import closing

import pytest

from requests_smithy_retry.testing import (
    DEFAULT_BODY,
    BadChunkSize,
    BadStatusLine,
    CutBody,
    CutHead,
    EndlessBody,
    EndlessHeaders,
    FaultServer,
    GarbageAfterReply,
    HugeHeader,
    Interim,
    LengthAndChunks,
    MissingLastChunk,
    MisstatedLength,
    Reply,
    SwitchProtocols,
    TwoLengths,
    coded_reply,
    fault_catalogue,
    gzip_bomb,
)
from tests.unit.testing.fault_oracle import GET, answer_before_silence, connect, exchange, fetch, read_to_end

pytestmark = pytest.mark.real_time

OK = b"HTTP/1.1 200 OK\r\n"
PLAIN, CHUNKED = Reply(body=b"abcdef"), Reply(body=b"abcdef", framing="chunked")
LENGTH_HEAD = OK + b"Content-Length: 6\r\n\r\n"
CHUNKED_HEAD = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("fault", "sent"),
    [
        (CutBody(PLAIN), LENGTH_HEAD + b"abc"),
        (CutBody(PLAIN, 0), LENGTH_HEAD),
        (CutBody(PLAIN, -1), LENGTH_HEAD + b"abcde"),
        (CutBody(CHUNKED, 5), CHUNKED_HEAD + b"6\r\nab"),
        (MissingLastChunk(PLAIN), CHUNKED_HEAD + b"6\r\nabcdef\r\n"),
        (BadChunkSize(b"zz", PLAIN), CHUNKED_HEAD + b"6\r\nabcdef\r\nzz\r\nabc\r\n0\r\n\r\n"),
        (MisstatedLength("-1", PLAIN), OK + b"Content-Length: -1\r\n\r\nabcdef"),
        (TwoLengths("3", reply=PLAIN), OK + b"Content-Length: 6\r\nContent-Length: 3\r\n\r\nabcdef"),
        (TwoLengths("3", joined=True, reply=PLAIN), OK + b"Content-Length: 6, 3\r\n\r\nabcdef"),
        (
            LengthAndChunks("3", PLAIN),
            OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n",
        ),
        (CutHead(PLAIN), LENGTH_HEAD[:-2]),
        (CutHead(PLAIN, 9), b"HTTP/1.1 "),
        (BadStatusLine(b"HTTP/1.1 OK", PLAIN), b"HTTP/1.1 OK\r\nContent-Length: 6\r\n\r\nabcdef"),
        (SwitchProtocols(), b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: whatever\r\n\r\n"),
        (EndlessBody(piece=b"ab", pieces=2), OK + b"Connection: close\r\n\r\nabab"),
        (EndlessBody(piece=b"ab", pieces=2, framing="chunked"), CHUNKED_HEAD + b"2\r\nab\r\n2\r\nab\r\n"),
        (EndlessBody(201, b"ab", 0.01, "length", 1), b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\nab" % 2**40),
    ],
)  # fmt: skip
def test_bytes_sent_before_the_close(fault, sent):
    """The fault sends exactly these bytes, and the connection ends in an orderly way."""
    with FaultServer([fault]) as server:
        assert exchange(server) == (sent, "fin")


@pytest.mark.parametrize(
    "fault",
    [
        CutBody(PLAIN, then="reset"),
        MissingLastChunk(PLAIN, then="reset"),
        MisstatedLength("9", PLAIN, then="reset"),
        CutHead(PLAIN, then="reset"),
        SwitchProtocols(then="reset"),
    ],
)
def test_endings_by_reset(fault):
    """The fault can end in a reset."""
    with FaultServer([fault]) as server:
        assert exchange(server)[1] == "rst"


def test_endings_by_silence():
    """A cut can end in a silence that lasts until the server closes."""
    with FaultServer([CutBody(PLAIN, then="stall")]) as server:
        assert answer_before_silence(server, len(LENGTH_HEAD + b"abc")) == (LENGTH_HEAD + b"abc", "open")


def test_a_length_too_small_leaves_the_rest_in_a_kept_connection():
    """With ``then="keep"`` the next answer on the connection begins with the surplus of the last."""
    short = OK + b"Content-Length: 3\r\n\r\n"
    with FaultServer([MisstatedLength("3", PLAIN, then="keep"), PLAIN]) as server:
        expected = short + b"abcdef" + LENGTH_HEAD + b"abcdef"
        assert answer_before_silence(server, len(expected), GET + GET) == (expected, "open")
        assert server.connections == 1


def test_garbage_after_an_answer():
    """The garbage follows the answer on a connection that stays open."""
    with FaultServer([GarbageAfterReply(b"!!", PLAIN)]) as server:
        expected = LENGTH_HEAD + b"abcdef!!"
        assert answer_before_silence(server, len(expected)) == (expected, "open")


def test_a_huge_header():
    """The reply has one header line of the stated size, and is good otherwise."""
    with FaultServer([HugeHeader(1_000_000, PLAIN)]) as server:
        data, _ = exchange(server, GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert data == OK + b"X-Huge: " + b"x" * 1_000_000 + b"\r\nContent-Length: 6\r\nConnection: close\r\n\r\nabcdef"


def test_endless_headers():
    """Header lines come for as long as the client reads, without a blank line."""
    with FaultServer(EndlessHeaders(0.0001)) as server, closing(connect(server)) as sock:
        sock.sendall(GET)
        data = b""
        while len(data) < 3000:
            data += sock.recv(4096)
        assert data.startswith(OK + b"X-Header-0: and another one\r\nX-Header-1: ")
        assert b"\r\n\r\n" not in data


def test_interim_responses():
    """Interim responses come in turn and as often as said, before the final one."""
    with FaultServer([Interim((100, 103), 2, 0.001, CutHead(PLAIN))]) as server:
        interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"
        assert exchange(server) == (interim * 2 + LENGTH_HEAD[:-2], "fin")


@pytest.mark.parametrize(("coding", "decode"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)])
def test_codings(coding, decode):
    """A coded reply carries its coding and decodes to the body; cut or corrupted it does not, under a true length."""
    replies = [coded_reply(coding), coded_reply(coding, cut_to=-5), coded_reply(coding, corrupt_at=-2)]
    with FaultServer(replies) as server:
        _, headers, body = fetch(server)
        assert (headers["Content-Encoding"], decode(body)) == (coding, DEFAULT_BODY)
        _, headers, cut = fetch(server)
        assert (headers["Content-Length"], cut) == (str(len(body) - 5), body[:-5])
        corrupted = fetch(server)[2]
        assert len(corrupted) == len(body)
        for broken in (cut, corrupted):
            with pytest.raises((EOFError, OSError, zlib.error)):
                decode(broken)


def test_codings_of_the_caller():
    """Bytes that the caller compressed are sent as they are; a coding that cannot be made is refused."""
    assert coded_reply("br", coded=b"xyz", cut_to=2) == Reply(200, {"Content-Encoding": "br"}, b"xy")
    with pytest.raises(ValueError, match="coded="):
        coded_reply("br")


def test_a_gzip_bomb():
    """A bomb is a thousandth of what it inflates to."""
    reply = gzip_bomb(5_000_000, 503)
    assert len(reply.body) < 10_000
    assert gzip.decompress(reply.body) == bytes(5_000_000)


def whole_by_http_client(server):
    status, headers, body = fetch(server)
    coding = headers.get("Content-Encoding")
    return status, {"gzip": gzip.decompress, "deflate": zlib.decompress, None: bytes}[coding](body)


def test_catalogue_names_are_unique():
    """The catalogue has a row for each kind of fault, with unique names."""
    names = [row.name for row in fault_catalogue()]
    assert len(names) == len(set(names)) > 50


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
            seen = whole_by_http_client(server)
        except (OSError, EOFError, ValueError, http.client.HTTPException, zlib.error) as error:
            seen = error
    intact = (seen == (200, DEFAULT_BODY)) != (row.name in HTTP_CLIENT_IS_WRONG)
    assert intact == (row.outcome == "whole"), seen


@pytest.mark.parametrize("row", [row for row in rows("broken", "unknowable") if row.id != "endless-headers"])
def test_a_reply_to_head_never_has_a_body(row):
    """A faulty answer to HEAD, where one comes, ends with its head: the fault is not a body out of place."""
    with FaultServer([row.behaviour]) as server, closing(connect(server, 0.03)) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(b"HEAD / HTTP/1.1\r\n\r\n")
        assert read_to_end(sock)[0].partition(b"\r\n\r\n")[2] == b""


@pytest.mark.parametrize("row", rows("slow"))
def test_slow_rows_of_the_catalogue(row):
    """A slow answer has not ended after a while, though bytes may keep coming."""
    with FaultServer(row.behaviour) as server, closing(connect(server, 0.03)) as sock:
        sock.sendall(GET)
        until = time.monotonic() + 0.03
        with contextlib.suppress(TimeoutError):
            while time.monotonic() < until:
                assert sock.recv(65536)
