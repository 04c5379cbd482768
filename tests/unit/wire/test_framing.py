"""Heads and framings byte by byte, and cut anywhere: what is refused, and what stays accepted (contract 14.4)."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import random
import socket
import sys
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import brotli
import pytest
import requests
from urllib3.response import HTTPResponse

from requests_smithy_retry import retry_options

from .support import session


class CuttingServer:
    """Sends each answer up to an offset and closes; as fast as a single thread can."""

    def __init__(self, answer: bytes, offsets: list[int]) -> None:
        self.answer, self.offsets = answer, offsets
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        for offset in self.offsets:
            sock, _ = self.listener.accept()
            with sock:
                sock.recv(65536)
                sock.sendall(self.answer[:offset])
        self.listener.close()


def get(raw: bytes, method: str = "GET") -> requests.Response:
    """Return the response to an answer of exactly these bytes, after which the server closes."""
    server = CuttingServer(raw, [len(raw)])
    try:
        with session(max_attempts=1) as made:
            return made.request(method, server.url, timeout=60)
    finally:
        server.thread.join()


OK = b"HTTP/1.1 200 OK\r\n"
CODED, CHUNKED = b"Content-Encoding: ", b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = gzip.compress(b"hello", mtime=0)
CODINGS_OF_NOTHING = (b"gzip", b"br", b"gzip, deflate")
LAST_CHUNKS = (b"0\r\n", b"0\n", b"000\r\nX: y", b"0;ext\r\n\r\n")


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", b"hello"),
        (b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", b"hello"),
        (OK + b"content-length:5\r\n\r\nhello", b"hello"),
        (OK + b"Content-Length: 5, 5\r\n\r\nhello", b"hello"),
        (OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (OK + b"Content-Length:\r\n\r\nhello", b"hello"),
        (OK + b"Content-Length: ,5,\r\n\r\nhello", b"hello"),
        *[
            (OK + b"Content-Length:" + length + b"\r\n" + CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", b"hello")
            for length in (b"", b" 9", b" soon")
        ],
        (OK + b"Content-Length: 0\r\n\r\n", b""),
        *[(OK + CODED + coding + b"\r\nContent-Length: 0\r\n\r\n", b"") for coding in CODINGS_OF_NOTHING],
        *[(OK + CODED + coding + b"\r\n" + CHUNKED + b"0\r\n\r\n", b"") for coding in CODINGS_OF_NOTHING],
        *[(OK + CODED + coding + b"\r\n\r\n", b"") for coding in CODINGS_OF_NOTHING],
        (OK + CODED + b"gzip\r\n\r\n" + GZIP + b"\0" * 8, b"hello"),
        (OK + CODED + b"gzip\r\n\r\n" + GZIP + GZIP, b"hellohello"),
        (OK + CODED + b"gzip, gzip\r\n\r\n" + gzip.compress(GZIP, mtime=0), b"hello"),
        (OK + CODED + b"deflate\r\n\r\n" + zlib.compress(b"hello")[2:-4], b"hello"),
        (OK + CODED + b"deflate\r\n\r\n" + zlib.compress(b""), b""),
        (OK + CODED + b"rot13\r\n\r\nuryyb", b"uryyb"),
        (OK + CHUNKED + b"5;x=y\r\nhello\r\n0\r\nTrailer: t\r\n\r\n", b"hello"),
        # The last chunk is the end, whatever follows: trailers may be missing (RFC 9112 8).
        *[(OK + CHUNKED + b"5\r\nhello\r\n" + tail, b"hello") for tail in LAST_CHUNKS],
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 16 + OK + b"\r\nhello", b"hello"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 16 + OK + b"\r\nhello", b"hello"),
        (b"HTTP/1.1 102 Processing\r\nX: y\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK + b"\r\nhello", b"hello"),
    ],
)
def test_what_plain_requests_takes_is_taken(raw: bytes, body: bytes) -> None:
    """Sloppy is not wrong."""
    assert get(raw).content == body


LONG = b"".join(b"line %d of a page\n" % number for number in range(500))
SLICE = gzip.compress(LONG, mtime=0)[:800]


def partial(content_range: bytes, body: bytes) -> bytes:
    """An answer to a request for a range."""
    head = b"HTTP/1.1 206 Partial Content\r\nContent-Encoding: gzip\r\nContent-Range: " + content_range
    return head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize("content_range", [b"bytes 0-799/2000", b"bytes 0-799/*", b"nonsense"])
def test_a_range_of_a_coded_body_need_not_end_its_coding(content_range: bytes) -> None:
    """A range may end within its coding; the part that is there is decoded, as by plain requests."""
    content = get(partial(content_range, SLICE)).content
    assert content != b""
    assert LONG.startswith(content)


@pytest.mark.parametrize("unit", [b"bytes", b"Bytes"])
def test_a_range_that_is_all_of_a_coded_body_ends_its_coding(unit: bytes) -> None:
    """A range that is the whole body was cut if its coding does not end; a unit has any case (RFC 9110 14.1)."""
    with pytest.raises(requests.exceptions.ContentDecodingError):
        get(partial(unit + b" 0-799/800", SLICE))


NO_ANSWER, BAD_HEADER = requests.ConnectionError, requests.exceptions.InvalidHeader
CUT, UNDECODABLE = requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError
BROTLI_BEGINS = b"\x1b\x57\x00\x00"
"""What a decoder makes nothing of yet."""


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"HTTP/1.1 204 No Content\r\n", NO_ANSWER),
        (OK + b"X: y\r\n", NO_ANSWER),
        (OK + b"Content-Length: 0\r\nX: y", NO_ANSWER),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 17 + OK + b"\r\n", NO_ANSWER),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 17 + OK + b"\r\n", NO_ANSWER),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" * 9 + OK, NO_ANSWER),
        (OK + b"Content-Length: -5\r\n\r\nhello", BAD_HEADER),
        (OK + b"Content-Length: 0x5\r\n\r\nhello", BAD_HEADER),
        (OK + b"Content-Length: 5, 6\r\n\r\nhello", BAD_HEADER),
        (OK + b"Content-Length: " + b"9" * 4000 + b"\r\n\r\nhello", requests.RequestException),
        (OK + CHUNKED + b"-1\r\nhello\r\n0\r\n\r\n", CUT),
        (OK + CHUNKED + b"-9\r\nhello\r\n0\r\n\r\n", CUT),
        # A size that was cut after its zeros may have been the beginning of 00ff.
        *[(OK + CHUNKED + b"0003\r\nabc\r\n" + tail, CUT) for tail in (b"0", b"00", b"0\r", b"0;ext")],
        (OK + CODED + b"gzip\r\n\r\n" + GZIP[:5], UNDECODABLE),
        (OK + CODED + b"gzip\r\n\r\n" + GZIP + GZIP[:-9], UNDECODABLE),
        (OK + CODED + b"gzip, gzip\r\n\r\n" + gzip.compress(GZIP, mtime=0)[:-8], UNDECODABLE),
        (OK + CODED + b"gzip\r\n" + CHUNKED + b"5\r\n" + GZIP[:5] + b"\r\n0\r\n\r\n", UNDECODABLE),
        (OK + CODED + b"gzip\r\nContent-Length: 5\r\n\r\n" + GZIP[:5], UNDECODABLE),
        (OK + CODED + b"br\r\n\r\n" + BROTLI_BEGINS, UNDECODABLE),
        (OK + CODED + b"br\r\n" + CHUNKED + b"4\r\n" + BROTLI_BEGINS + b"\r\n0\r\n\r\n", UNDECODABLE),
        (OK + CODED + b"br\r\nContent-Length: 4\r\n\r\n" + BROTLI_BEGINS, UNDECODABLE),
    ],
)
def test_what_is_known_to_be_wrong_is_refused(raw: bytes, error: type[Exception]) -> None:
    """A head or body that is known to be wrong raises a requests exception."""
    with pytest.raises(error):
        get(raw)


def test_a_head_request_needs_no_body() -> None:
    """The length in the answer to HEAD does not announce a body."""
    assert get(OK + b"Content-Length: 5\r\nContent-Encoding: gzip\r\n\r\n", "HEAD").content == b""


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 103 Early Hints\r\nContent-Length: 0\r\n\r\n",
        OK + b"X: y\r\n",
        OK + b"Content-Length: 9\r\n\r\nhello",
        OK + b"Content-Length: -1\r\n\r\nhello",
        OK + CHUNKED + b"5\r\nhello\r\n0",
    ],
)
@pytest.mark.parametrize("way", ["option", "block"])
def test_switched_off_everything_is_taken_as_plain_requests_does(raw: bytes, way: str) -> None:
    """The adapter is a plain ``HTTPAdapter`` then (contract 10.2), for better or worse; and itself again afterwards."""
    server = CuttingServer(raw, [len(raw)] * 3)
    with requests.Session() as plain, session(max_attempts=1, enabled=way == "block") as ours:
        plain.trust_env = False
        expected = outcome(plain, server.url)
        with retry_options(enabled=False):
            assert outcome(ours, server.url) == expected
        afterwards = outcome(ours, server.url)
        assert isinstance(afterwards, type) if way == "block" else afterwards == expected
    server.thread.join()


def test_a_request_within_one_that_is_switched_off_is_not() -> None:
    """An adapter that retries looks at heads, also where it is asked by the body that a switched-off one is sending."""
    cut = OK + b"X: y\r\n"
    inner, outer = CuttingServer(cut, [len(cut)]), CuttingServer(cut, [len(cut)])
    seen: list[Any] = []

    with session(max_attempts=1) as ours, session(enabled=False) as off:

        def body() -> Iterator[bytes]:
            seen.append(outcome(ours, inner.url))
            yield b"x"

        assert off.post(outer.url, data=body(), timeout=60).headers == {"X": "y"}
    assert seen == [requests.exceptions.ConnectionError]
    for server in (inner, outer):
        server.thread.join()


def outcome(by: requests.Session, url: str) -> Any:
    """Return a session's result: the response's parts, or the exception's type."""
    try:
        response = by.get(url, timeout=60)
    except requests.RequestException as error:
        return type(error)
    finally:
        by.close()  # the server closes after each answer; its connection may not look so yet
    return response.status_code, response.headers, response.content


# 1,000 cuts at random offsets

CUTS = 250
BODY = random.Random(4).randbytes(3000) + b"a line that compresses\n" * 200
HASH = hashlib.sha256(BODY).digest()
CODINGS = {"identity": BODY, "gzip": gzip.compress(BODY), "deflate": zlib.compress(BODY)}
CODINGS["members"] = gzip.compress(BODY[:4000]) + gzip.compress(BODY[4000:])
CODINGS["br"] = brotli.compress(BODY)
if "zstd" in HTTPResponse.CONTENT_DECODERS:  # from urllib3 2 on
    zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")

    CODINGS["zstd"] = zstd.compress(BODY)


def answer(coding: str, framing: str) -> bytes:
    data = CODINGS[coding]
    name = {"identity": "identity", "members": "gzip"}.get(coding, coding)
    # Each request has a connection of its own: over one that is just being closed, the server would not see it.
    head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: {name}\r\nX-Filler: {'x' * 200}\r\n"
    if framing == "length":
        return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data
    parts = (data[at : at + 700] for at in range(0, len(data), 700))
    # Sizes are padded, as many a server's are: cut after the first 0, one looks like the last chunk.
    chunks = b"".join(b"%04x\r\n%b\r\n" % (len(part), part) for part in parts)
    return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks + b"0000\r\n\r\n"


@pytest.fixture(params=[(coding, framing) for coding in CODINGS for framing in ("length", "chunked")], ids="-".join)
def cut(request: pytest.FixtureRequest) -> Iterator[tuple[CuttingServer, bytes]]:
    whole = answer(*request.param)
    draw = random.Random(str(request.param))
    server = CuttingServer(whole, [draw.randrange(len(whole) + 1) for _ in range(CUTS // 2)])
    yield server, whole
    server.thread.join(60)
    assert not server.thread.is_alive()


@pytest.mark.untraced
def test_a_cut_response_is_never_taken_for_whole(cut: tuple[CuttingServer, bytes]) -> None:
    """Equal to what was meant, or a requests exception; and equal only where nothing that matters was missing."""
    server, whole = cut
    with session(max_attempts=1) as made:
        for offset in server.offsets:
            try:
                content = made.get(server.url, timeout=60).content
            except requests.RequestException:
                continue
            assert hashlib.sha256(content).digest() == HASH
            assert offset >= len(whole) - len(b"\r\n")
