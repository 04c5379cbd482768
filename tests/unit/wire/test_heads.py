"""Heads that are taken apart here (contract 14.4): what is found is what ``http.client`` finds."""

from __future__ import annotations

import http.client
import io
from http.client import HTTPResponse
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from requests_smithy_retry.wire.heads import plain_head
from requests_smithy_retry.wire.response import CheckedResponse
from tests.faults import FaultServer

from .support import session

BODY = b"5\r\nhello\r\n0\r\n\r\n"
NAMES = ["Content-Length", "content-length", "Transfer-Encoding", "Content-Type", "Connection", "Keep-Alive"]
NAMES += ["Proxy-Connection", "Set-Cookie", "X", "From ", "", "a b", "ü"]
VALUES = ["5", "0", "-1", "+5", "5 ", "5, 5", "9" * 5000, "chunked", "Chunked", "gzip, chunked", "close", "keep-alive"]
VALUES += ["text/plain", "multipart/mixed; boundary=x", "message/rfc822", "Multipart/x", "a=1; Path=/", "", "a\tb", "é"]
PLAIN = ["Content-Length: 5", "content-length: 0", "Content-Length:6", "Transfer-Encoding: chunked", "X:", "X: a\tb "]
PLAIN += [
    "transfer-encoding: Chunked",
    "Transfer-Encoding: gzip, chunked",
    "Connection: close",
    "connection: Keep-Alive",
]
PLAIN += [
    "Keep-Alive: timeout=5",
    "Proxy-Connection: keep-alive",
    "Content-Type: text/plain",
    "Set-Cookie: a=1; Path=/",
]
plain_lines = st.builds(lambda text: f"{text}\r\n".encode(), st.sampled_from(PLAIN))
odd_lines = st.builds(
    lambda name, colon, value, end: f"{name}{colon}{value}{end}".encode("latin-1"),
    st.sampled_from(NAMES),
    st.sampled_from([": ", ":", ":  \t", " : "]),
    st.sampled_from(VALUES) | st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=5),
    st.sampled_from(["\r\n", "\r\n", "\r\n", "\n", "\r\n folded\r\n"]),
)
firsts = st.builds(
    lambda version, status, reason: f"{version} {status}{reason}\r\n".encode("latin-1"),
    st.sampled_from(["HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "http/1.1"]),
    st.sampled_from([200, 204, 304, 404, 503, 999]),
    st.sampled_from([" OK", "", " ", "  Not  Found ", " é", " a\tb"]),
)


class Socket:
    """A socket from which some bytes come."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(io.BytesIO(self.data))  # type: ignore[arg-type]


def begun(kind: Any, data: bytes, method: str) -> dict[str, Any]:
    """Return all that a response knows once its head was read, and what is left to read."""
    response = kind(Socket(data), method=method)
    response.begin()
    left = None if response.fp is None else response.fp.read()
    known = {
        name: value for name, value in vars(response).items() if name not in ("fp", "headers", "msg", "answers_head")
    }
    return {**known, "left": left, "fields": vars(response.headers), "is one": response.headers is response.msg}


@given(
    st.just(b"HTTP/1.1 200 OK\r\n") | firsts,
    st.lists(plain_lines, min_size=1) | st.lists(odd_lines, max_size=6),
    st.sampled_from(["GET", "HEAD"]),
)
@example(b"HTTP/1.1 200 OK\r\n", [b"Content-Length: 5\r\n", b"Content-Length: 6\r\n"], "GET")
@example(b"HTTP/1.1 200 OK\r\n", [b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n"], "HEAD")
def test_a_plain_head_is_what_the_standard_library_finds(first: bytes, fields: list[bytes], method: str) -> None:
    """Status, fields in their order, framing, whether the connection is kept, and the bytes behind it."""
    data = b"".join((first, *fields, b"\r\n", BODY))
    if plain_head(data) is not None:
        assert begun(HTTPResponse, data, method) == begun(CheckedResponse, data, method)


USUAL = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n"


def test_the_usual_head_is_plain() -> None:
    """So the parser of e-mail is not asked."""
    head = plain_head(USUAL + b"hello")
    assert head is not None
    assert (len(USUAL), 11, 200, "OK", False, 5) == (*head[:4], head.chunked, head.length)
    assert [("Content-Type", "application/json"), ("Content-Length", "5")] == head.fields.items()


@pytest.mark.parametrize(
    "data",
    [
        USUAL[:-2],
        USUAL.replace(b"200", b"100"),
        USUAL.replace(b"\r\n", b"\n"),
        USUAL.replace(b"5", b"9" * 5000),
        USUAL.replace(b"5", b"-5"),
        USUAL.replace(b"application/json", b"multipart/mixed"),
        USUAL.replace(b"application/json", b"Message/rfc822"),
        USUAL.replace(b"application/json", b"caf\xe9"),
        USUAL.replace(b"Content-Type:", b"Content-Type :"),
        USUAL.replace(b"Content-Type: ", b"Content-Type:\r\n "),
        USUAL.replace(b"\r\n\r\n", b"\r\n" + b"X: 1\r\n" * 70 + b"\r\n"),
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"",
    ],
)
def test_any_other_head_is_left_to_the_standard_library(data: bytes) -> None:
    """One that is cut, not final, folded, of many fields, or unusual in any way."""
    assert plain_head(data) is None


@pytest.mark.parametrize(("owner", "name"), [(http.client, "parse_headers"), (HTTPResponse, "begin")])
def test_what_a_program_puts_in_the_place_of_the_standard_librarys_reads_each_head(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    """As with plain requests: a parser of the program's own sees a plain head as well."""
    plain, seen = getattr(owner, name), []

    def own(*given: Any, **named: Any) -> Any:
        seen.append(name)
        return plain(*given, **named)

    monkeypatch.setattr(owner, name, own)
    with FaultServer() as server, session() as made:
        assert made.get(server.url).status_code == 200
    assert seen == [name]
