"""The end of a body in bytes that were fetched ahead: read as urllib3 would read it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from requests_smithy_retry.wire.response import MOST_LINE, Chunks, Sized, framing_of


@pytest.mark.parametrize(
    ("available", "body", "seen", "whole", "whole_at_the_end"),
    [
        (b"3\r\nabc\r\n0\r\n\r\n", b"abc", True, True, True),
        (b"3;ext=1\r\nabc\r\n0\r\nA: b\r\n\r\nnext", b"abc", True, True, True),
        (b"3\nabc\r\n0\n\r\n", b"abc", True, True, True),
        (b"3\r\nabc\r\n0\r\n", b"abc", False, False, True),
        (b"3\r\nabc\r\n0\r\nA: b\r\n", b"abc", False, False, True),
        (b"3\r\nabc\r\n0\r\n0", b"abc", False, False, False),
        (b"3\r\nabc\r\n0\n\n", b"abc", False, False, True),
        (b"3\r\nabc\r\n0", b"abc", False, False, False),
        (b"3\r\nabc\r\n4\r\nde", b"abcde", False, False, False),
        (b"3\r\nabc\r\n", b"abc", False, False, False),
        (b"3\r\nabc", b"abc", False, False, False),
        (b"zz\r\nabc", b"", True, False, False),
        (b"-1\r\nabc", b"", True, False, False),
        (b"\r\n", b"", True, False, False),
        (b"1;" + b"x" * MOST_LINE, b"", True, False, False),
        (b"1;" + b"x" * MOST_LINE + b"\r\na\r\n", b"", True, False, False),
        (b"", b"", False, False, False),
    ],
)
def test_the_contents_of_chunks(available: bytes, body: bytes, seen: bool, whole: bool, whole_at_the_end: bool) -> None:
    """Chunks are whole with the blank line after their trailers, or if the connection ends before it."""
    chunks = Chunks()
    assert chunks.take(available) is seen
    assert (chunks.body, chunks.is_whole(ended=False), chunks.is_whole(ended=True)) == (body, whole, whole_at_the_end)


def test_chunks_may_come_in_parts_of_any_size() -> None:
    """Bytes that were parsed once are not parsed again."""
    available, chunks = b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\nA: b\r\n\r\n", Chunks()
    seen = [chunks.take(available[:count]) for count in range(len(available) + 1)]
    assert seen == [False] * len(available) + [True]
    assert (chunks.body, chunks.is_whole(ended=False)) == (b"abc0123456789", True)


@pytest.mark.parametrize(
    ("length", "seen", "whole", "whole_at_the_end"),
    [(2, True, True, True), (3, True, True, True), (4, False, False, False), (None, False, False, True)],
)
def test_a_body_of_a_length_or_of_none(length: int | None, seen: bool, whole: bool, whole_at_the_end: bool) -> None:
    """A body without a length ends with its connection."""
    sized = Sized(length)
    assert sized.take(b"abc") is seen
    assert sized.body == b"abc"[:length]
    assert (sized.is_whole(ended=False), sized.is_whole(ended=True)) == (whole, whole_at_the_end)


@pytest.mark.parametrize(
    ("chunked", "length", "expected"), [(True, None, Chunks), (True, 0, Sized), (False, None, Sized), (False, 5, Sized)]
)
def test_head_has_no_chunks_whatever_it_says(chunked: bool, length: int | None, expected: Any) -> None:
    """``http.client`` gives what has no body a length of 0."""
    raw = SimpleNamespace(chunked=chunked, _original_response=SimpleNamespace(length=length))
    assert type(framing_of(raw)) is expected
