"""Looking at the beginning of a body (contract 13): what is found, and that nothing is lost by it."""

from __future__ import annotations

import gzip
import zlib

import pytest
import requests

from requests_smithy_retry.testing import FaultServer, Reply
from requests_smithy_retry.wire import Peeked, peek
from requests_smithy_retry.wire.peek import PEEK_BYTES, _decoded, _unchunked

from .support import session

SHORT, LONG = b"short", b"a line of a long body\n" * 20_000


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("coding", [None, "gzip"])
@pytest.mark.parametrize("body", [SHORT, LONG], ids=["short", "long"])
def test_nothing_is_lost(framing: str, coding: str | None, body: bytes) -> None:
    """A look shows the beginning, or that all is there; reading gives the body as if there had been none."""
    sent = gzip.compress(body) if coding else body
    headers = {} if coding is None else {"Content-Encoding": coding}
    with FaultServer([Reply(400, headers, sent, framing=framing)]) as server, session() as made:
        response = made.get(server.url, stream=True)
        peeked = peek(response)
        assert peeked is not None
        assert peeked.whole is (body is SHORT)
        assert body.startswith(peeked.prefix)
        assert peeked.whole or len(peeked.prefix) >= PEEK_BYTES - 1024
        assert response.content == body


def test_what_is_not_ours_is_not_looked_at() -> None:
    """A mock has no socket below it."""
    assert peek(requests.Response()) is None


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        (b"3\r\nabc\r\n0\r\n\r\n", (b"abc", True)),
        (b"3\r\nabc\r\n4\r\nde", (b"abcde", False)),
        (b"3\r\nabc\r\n", (b"abc", False)),
        (b"zz\r\nabc", (b"", False)),
        (b"", (b"", False)),
    ],
)
def test_the_contents_of_chunks(available: bytes, expected: tuple[bytes, bool]) -> None:
    """As far as they go, and whether that is to the end."""
    assert _unchunked(available) == expected


@pytest.mark.parametrize(
    ("body", "coding", "expected"),
    [
        (gzip.compress(SHORT), "gzip", SHORT),
        (zlib.compress(SHORT), "deflate", SHORT),
        (gzip.compress(bytes(10 * PEEK_BYTES)), "gzip", bytes(PEEK_BYTES)),
        (b"not compressed at all", "gzip", b""),
        (SHORT, "of-no-kind", SHORT),
    ],
)
def test_the_beginning_of_a_coded_body(body: bytes, coding: str, expected: bytes) -> None:
    """At most 64 KiB, however much it would grow to; what cannot be decoded shows nothing."""
    assert _decoded(body, coding) == expected


def test_whole_needs_no_prefix() -> None:
    """It is about to be read."""
    assert Peeked(whole=True).prefix == b""
