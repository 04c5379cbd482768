"""Heads and framings byte by byte: what is refused, and what stays accepted as plain requests does (contract 14.4)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from requests_smithy_retry import retry_options

from .support import session
from .test_cuts import CuttingServer


def get(raw: bytes, method: str = "GET") -> requests.Response:
    """Return the response to an answer of exactly these bytes, after which the server closes."""
    server = CuttingServer(raw, [len(raw)])
    try:
        with session(max_attempts=1) as made:
            return made.request(method, server.url, timeout=60)
    finally:
        server.thread.join()


OK = b"HTTP/1.1 200 OK\r\n"
GZIP = gzip.compress(b"hello", mtime=0)


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
        (OK + b"Content-Length:\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (OK + b"Content-Length: soon\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (OK + b"Content-Length: 0\r\n\r\n", b""),
        (OK + b"Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", b""),
        (OK + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b""),
        (OK + b"Content-Encoding: gzip\r\n\r\n" + GZIP + b"\0" * 8, b"hello"),
        (OK + b"Content-Encoding: gzip\r\n\r\n" + GZIP + GZIP, b"hellohello"),
        (OK + b"Content-Encoding: gzip, gzip\r\n\r\n" + gzip.compress(GZIP, mtime=0), b"hello"),
        (OK + b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(b"hello")[2:-4], b"hello"),
        (OK + b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(b""), b""),
        (OK + b"Content-Encoding: rot13\r\n\r\nuryyb", b"uryyb"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nTrailer: t\r\n\r\n", b"hello"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", b"hello"),
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


def test_a_range_that_is_all_of_a_coded_body_ends_its_coding() -> None:
    """A range that is the whole body was cut if its coding does not end."""
    with pytest.raises(requests.exceptions.ContentDecodingError):
        get(partial(b"bytes 0-799/800", SLICE))


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"HTTP/1.1 204 No Content\r\n", requests.ConnectionError),
        (OK + b"X: y\r\n", requests.ConnectionError),
        (OK + b"Content-Length: 0\r\nX: y", requests.ConnectionError),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 17 + OK + b"\r\n", requests.ConnectionError),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 17 + OK + b"\r\n", requests.ConnectionError),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" * 9 + OK, requests.ConnectionError),
        (OK + b"Content-Length: -5\r\n\r\nhello", requests.exceptions.InvalidHeader),
        (OK + b"Content-Length: 0x5\r\n\r\nhello", requests.exceptions.InvalidHeader),
        (OK + b"Content-Length: 5, 6\r\n\r\nhello", requests.exceptions.InvalidHeader),
        (OK + b"Content-Length: " + b"9" * 4000 + b"\r\n\r\nhello", requests.RequestException),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nhello\r\n0\r\n\r\n", requests.exceptions.ChunkedEncodingError),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n-9\r\nhello\r\n0\r\n\r\n", requests.exceptions.ChunkedEncodingError),
        (OK + b"Content-Encoding: gzip\r\n\r\n" + GZIP[:5], requests.exceptions.ContentDecodingError),
        (OK + b"Content-Encoding: gzip\r\n\r\n" + GZIP + GZIP[:-9], requests.exceptions.ContentDecodingError),
        (
            OK + b"Content-Encoding: gzip, gzip\r\n\r\n" + gzip.compress(GZIP, mtime=0)[:-8],
            requests.exceptions.ContentDecodingError,
        ),
        (
            OK + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + GZIP[:5] + b"\r\n0\r\n\r\n",
            requests.exceptions.ContentDecodingError,
        ),
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
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0",
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
