"""The end of a coded body, and its beginning: also of codings whose libraries are not here."""

from __future__ import annotations

import gzip
import zlib
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from requests_smithy_retry.testing import FaultServer, Reply
from requests_smithy_retry.wire import decoding
from requests_smithy_retry.wire.decoding import decoded, is_at_end

from .support import session


def brotli(finished: bool) -> Any:
    """As brotli's decompressor says it."""
    return SimpleNamespace(_obj=SimpleNamespace(is_finished=lambda: finished))


def zstd(eof: bool) -> Any:
    """As zstd's decompressor says it."""
    return SimpleNamespace(_obj=SimpleNamespace(eof=eof))


@pytest.mark.parametrize(
    ("decoder", "expected"),
    [
        (brotli(True), True),
        (brotli(False), False),
        (zstd(True), True),
        (zstd(False), False),
        (SimpleNamespace(_obj=object()), True),
        (object(), True),
        (SimpleNamespace(_decoders=[zstd(True), brotli(True)]), True),
        (SimpleNamespace(_decoders=[zstd(True), brotli(False)]), False),
        (SimpleNamespace(_obj=SimpleNamespace(eof=False), _state=2), True),
    ],
)
def test_the_end_of_a_coding(decoder: Any, expected: bool) -> None:
    """A decoder that does not show its end is believed to have reached it."""
    assert is_at_end(decoder) is expected


def answered(coding: str, status: int = 400, **headers: str) -> requests.Response:
    response = requests.Response()
    response.status_code = status
    response.headers.update({"Content-Encoding": coding, **headers})
    return response


SHORT = b"a short body, over and over, " * 40
RAW = zlib.compressobj(wbits=-15)
RAW_DEFLATE = RAW.compress(SHORT) + RAW.flush()
SOUND = {
    "gzip": ("gzip", gzip.compress(SHORT)),
    "members": ("gzip", gzip.compress(SHORT[:100]) + gzip.compress(SHORT[100:]) + b"\0\0"),
    "deflate": ("deflate", zlib.compress(SHORT)),
    "stacked": ("gzip, gzip", gzip.compress(gzip.compress(SHORT))),
    "raw deflate": ("deflate", RAW_DEFLATE),
    "unknown": ("of-no-kind", SHORT),
}


@pytest.mark.parametrize(("coding", "body"), SOUND.values(), ids=SOUND)
def test_a_short_coded_body_is_decoded_whole_before_it_is_read(coding: str, body: bytes) -> None:
    """A short body is decoded whole if urllib3's decoder can be bounded, or the coding is a simple one."""
    sound = decoding.BOUNDED or body not in (SOUND["stacked"][1], SOUND["raw deflate"][1])
    assert decoded(answered(coding), body, 65_536) == ((SHORT, True) if sound else (b"", False))


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("size", [65_536, 65_537, 655_360])
def test_no_more_is_decoded_than_is_wanted(
    monkeypatch: pytest.MonkeyPatch, bounded: bool, coding: str, size: int
) -> None:
    """No more bytes are decoded than wanted, however much the body would grow to."""
    monkeypatch.setattr(decoding, "BOUNDED", bounded and decoding.BOUNDED)
    body = gzip.compress(bytes(size)) if coding == "gzip" else zlib.compress(bytes(size))
    assert decoded(answered(coding), body, 65_536) == (bytes(65_536), size == 65_536)


@pytest.mark.parametrize("bounded", [True, False])
def test_what_cannot_be_decoded_is_not_sound(monkeypatch: pytest.MonkeyPatch, bounded: bool) -> None:
    """A body that cannot be decoded shows the bytes before the damage, or nothing."""
    monkeypatch.setattr(decoding, "BOUNDED", bounded and decoding.BOUNDED)
    assert decoded(answered("gzip"), b"not compressed at all", 65_536) == (b"", False)
    assert decoded(answered("gzip"), gzip.compress(SHORT)[:-4], 65_536) == (SHORT, False)


@pytest.mark.parametrize(("name", "expected"), [("stacked", (b"", False)), ("unknown", (SHORT, True))])
def test_an_old_urllib3_is_not_shown_what_it_could_not_stop_in(
    monkeypatch: pytest.MonkeyPatch, name: str, expected: tuple[bytes, bool]
) -> None:
    """urllib3 before 2.6 decodes a whole buffer, so stacked codings, which could make a gigabyte, are not decoded."""
    monkeypatch.setattr(decoding, "BOUNDED", False)
    coding, body = SOUND[name]
    assert decoded(answered(coding), body, 65_536) == expected


@pytest.mark.parametrize(("content_range", "expected"), [("bytes 0-9/99", True), ("bytes 0-98/99", False)])
def test_a_range_of_a_coded_body_ends_where_it_was_asked_to_end(content_range: str, expected: bool) -> None:
    """A range may end within its coding, unless it is the whole body."""
    part = gzip.compress(SHORT)[:-10]
    headers = {"Content-Range": content_range}
    assert decoded(answered("gzip", 206, **headers), part, 65_536)[1] is expected


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("coding", ["br", "gzip"])
def test_a_coded_body_that_is_cut_before_it_gave_anything_out_is_no_empty_one(framing: str, coding: str) -> None:
    """The bytes on the wire tell, not what a decoder has made of them."""
    if coding == "br":
        pytest.importorskip("brotli")
    start = {"br": b"\x1b\x57\x00\x00", "gzip": gzip.compress(SHORT)[:10]}[coding]
    cut = Reply(200, {"Content-Encoding": coding}, start, framing=framing)
    broken = requests.exceptions.ContentDecodingError
    with FaultServer(cut) as server, session(max_attempts=1) as made, pytest.raises(broken):
        made.get(server.url)


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("coding", ["br", "gzip", "gzip, deflate"])
def test_an_empty_body_may_be_coded(framing: str, coding: str) -> None:
    """An empty body may have a coding, as with plain requests."""
    empty = Reply(200, {"Content-Encoding": coding}, b"", framing=framing)
    with FaultServer(empty) as server, session(max_attempts=1) as made:
        assert made.get(server.url).content == b""
