"""The rules for continuing a body: which may be, how the rest is asked for, and what fits."""

from __future__ import annotations

import io
import itertools
import ssl
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import urllib3.exceptions
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry.core.port import Sent
from requests_smithy_retry.features.resume.body import Chunks, watch
from requests_smithy_retry.features.resume.mending import as_failure, broken_off
from requests_smithy_retry.features.resume.rules import Piece, Resumable, resumable
from tests.support import prepare


def answer(status: int = 200, **headers: str) -> requests.Response:
    """A response with a head and nothing else."""
    response = requests.Response()
    response.status_code = status
    response.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    return response


@pytest.mark.parametrize(
    ("own", "content", "expected"),
    [
        ("bytes=5-9", "bytes 5-9/20", (5, 10, 20)),
        ("bytes=5-", "bytes 5-19/20", (5, 20, 20)),
        ("bytes=-5", "bytes 15-19/20", (15, 20, 20)),
        ("bytes=5-9", "bytes 5-9/*", (5, 10, None)),
        *(("bytes=5-9", content, None) for content in ("bytes 5-4/20", "bytes 5-20/20", "items 5-9/20", "")),
        *((own, "bytes 5-9/20", None) for own in ("bytes=5-9,12-", b"bytes=5-9")),
    ],
)
def test_a_callers_own_range_may_be_continued(own, content, expected):
    """A single range that the caller asked for, as the server gave it."""
    found = resumable(prepare(headers={"Range": own}), answer(206, etag='"v1"', content_range=content))
    assert expected == (None if isinstance(found, str) else (found.start, found.end, found.total))


WHOLE = Resumable("etag", '"v1"', "", 0, 20, 20)
UNKNOWN = Resumable("etag", '"v1"', "")
PART = Resumable("etag", '"v1"', "", 5, 15, 20)
OF_UNKNOWN = Resumable("etag", '"v1"', "", 5, 15, None)


REST = "bytes 7-19/20"


@pytest.mark.parametrize(
    ("plan", "content", "headers", "expected"),
    [
        *((WHOLE, REST, headers, Piece(20, 20)) for headers in ({}, {"content_length": "13"})),
        (WHOLE, "bytes 7-12/20", {}, Piece(13, 20)),
        (WHOLE, "bytes 7-19/*", {}, Piece(20, 20)),
        (UNKNOWN, REST, {}, Piece(20, 20)),
        *((plan, "bytes 12-14/20", {}, Piece(10, 10)) for plan in (PART, OF_UNKNOWN)),
        (UNKNOWN, "bytes 7-19/*", {}, "length of the whole"),
        (WHOLE, "bytes 7-19/21", {}, "length of the whole"),
        *((WHOLE, content, {}, "another range") for content in ("bytes 6-19/20", "bytes 8-19/20")),
        (PART, "bytes 12-19/20", {}, "another range"),
        (WHOLE, REST, {"content_length": "20"}, "contradict"),
        *((WHOLE, REST, {"etag": etag}, "etag has changed") for etag in ('"v2"', 'W/"v1"')),
        (WHOLE, REST, {"etag": ""}, "no etag"),
        (WHOLE, REST, {"content_encoding": "gzip"}, "coding has changed"),
        *((WHOLE, content, {}, "no usable Content-Range") for content in ("", f"{REST}, {REST}")),
    ],
)
def test_only_the_rest_of_the_same_version_fits(plan, content, headers, expected):
    """A part fits that begins where the body broke off, has its validator, coding and length, and ends within it."""
    found = plan.fit(answer(206, **{"etag": '"v1"', "content_range": content, **headers}), 7)
    assert found == expected or (isinstance(expected, str) and expected in str(found))


def test_the_whole_again_fits_only_with_a_length():
    """Without one nobody could tell where it ends."""
    plan = Resumable("etag", '"v1"', "", 0, None, None)
    assert "without a length" in str(plan.fit(answer(200, etag='"v1"'), 7))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30) | st.none(), st.integers(0, 19))
def test_whatever_fits_goes_on_exactly_where_the_body_broke_off(first, last, total: int | None, received):
    """The first byte of a piece that fits is the next one of the body, and its last one lies within it."""
    content = f"bytes {first}-{last}/{'*' if total is None else total}"
    for plan in (WHOLE, UNKNOWN, PART, OF_UNKNOWN):
        found = plan.fit(answer(206, etag='"v1"', content_range=content), received)
        if isinstance(found, Piece):
            assert found.until is not None
            assert found.total is not None
            assert (first, last + 1) == (plan.start + received, plan.start + found.until)
            assert received < found.until <= found.total


@pytest.mark.parametrize(
    ("error", "failure", "ending"),
    [
        (TimeoutError(), requests.ConnectionError, urllib3.exceptions.ReadTimeoutError),
        (ssl.SSLEOFError(8, "EOF"), requests.exceptions.SSLError, urllib3.exceptions.SSLError),
        (ConnectionResetError(), requests.exceptions.ChunkedEncodingError, urllib3.exceptions.ProtocolError),
    ],
)
def test_a_body_that_broke_off_has_the_usual_exception(error, failure: type, ending: type):
    """One of requests for the attempt, and one of urllib3 for who reads the body, with the position."""
    body: Any = SimpleNamespace(received=7, total=None, pool=None)
    told = broken_off(body, error, "so")
    assert (failure, ending) == (type(as_failure(body, error)), type(told))
    assert "at byte 7 of unknown; not continued: so" in str(told)
    assert told.__cause__ is error


def test_stand_ins_are_not_watched():
    """A raw response that is not urllib3's is read as ever."""
    response = requests.Response()
    response.raw = io.BytesIO(b"abc")
    assert watch(response.raw, Sent(1, 0.0, None, requests.PreparedRequest())) is None


def taken(*parts: bytes) -> tuple[Chunks, list[int]]:
    """A framing that has seen these bytes, and how many of each part were well-formed."""
    chunks = Chunks()
    return chunks, [chunks.take(memoryview(part), len(part)) for part in parts]


FRAMED = b"5\r\nhello\r\n5\r\nworld\r\n00a;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n"


@given(st.lists(st.integers(0, len(FRAMED)), max_size=6))
def test_chunks_are_counted_in_parts_of_any_size(cuts: list[int]):
    """The bytes that came, and the end, are known after each part."""
    places = sorted({0, *cuts, len(FRAMED)})
    chunks = Chunks()
    for start, end in itertools.pairwise(places):
        assert end - start == chunks.take(FRAMED[start:end], end - start)
        body = sum(max(0, min(size, end - at)) for at, size in ((3, 5), (13, 5), (29, 10)))
        assert (body, end >= 44) == (chunks.received, chunks.is_over and not chunks.is_bad)


@pytest.mark.parametrize(
    ("parts", "counts", "received"),
    [
        ([b"5\r\nhello\r\n-1\r\nmore"], [10], 5),
        ([b"5\r\nhello\r\nzz\r\nmore"], [10], 5),
        ([b"5\r\nhello\r\n\r\n"], [10], 5),
        ([b"5\r\nhello\r\nz", b"z\r\nmore"], [11, 0], 5),
        ([b"z" * 70_000], [70_000], 0),
    ],
)
def test_what_is_no_size_is_not_given_out(parts: list[bytes], counts: list[int], received: int):
    """Up to there all is well-formed, and nothing is known of what follows."""
    chunks, found = taken(*parts)
    assert (counts, received, True) == (found, chunks.received, chunks.is_bad)


@pytest.mark.parametrize(
    ("before", "rest", "framed"),
    [
        (b"", [b"abc"], b"3\r\nabc\r\n0\r\n\r\n"),
        (b"5\r\nhe", [b"l", b"lo wo", b"rld"], b"llo\r\n3\r\n wo\r\n3\r\nrld\r\n0\r\n\r\n"),
        (b"5\r\nhe", [b"llo"], b"llo\r\n0\r\n\r\n"),
        (b"5\r\nhello", [b"abc"], b"\r\n3\r\nabc\r\n0\r\n\r\n"),
        (b"5\r\nhello\r", [], b"\n0\r\n\r\n"),
        (b"5\r\nhello\r\n", [], b"0\r\n\r\n"),
        # The line of a size was cut.
        (b"5\r\nhello\r\n2", [b"abc"], b"\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
        (b"5\r\nhello\r\n2\r", [b"ab"], b"\nab\r\n0\r\n\r\n"),
        (b"5\r\nhello\r\n2;x", [b"ab"], b"\r\nab\r\n0\r\n\r\n"),
        (b"5\r\nhello\r\n00", [b"abc"], b"3\r\nabc\r\n0\r\n\r\n"),
        (b"5\r\nhello\r\n00", [], b"\r\n\r\n"),
        (b"5\r\nhello\r\n0\r", [], b"\n\r\n"),
        (b"5\r\nhello\r\n0;x", [], b"\r\n\r\n"),
    ],
)
def test_a_rest_goes_on_in_the_framing_that_broke_off(before: bytes, rest: list[bytes], framed: bytes):
    """What reads the chunks sees one body, wherever the first connection ended."""
    chunks, _ = taken(before) if before else (Chunks(), [])
    assert framed == b"".join([*map(chunks.made, rest), chunks.made(b"")])


@pytest.mark.parametrize(
    ("before", "data"), [(b"5\r\nhe", b""), (b"0;x", b"abc"), (b"zz", b"abc"), (b"9", b"")], ids=repr
)
def test_what_cannot_follow_is_not_made_up(before: bytes, data: bytes):
    """A chunk that announced more than there is, or a last chunk that is none, is an error."""
    chunks, _ = taken(before)
    with pytest.raises(urllib3.exceptions.ProtocolError):
        chunks.made(data)
