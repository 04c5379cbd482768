"""The end of a coded body, and its beginning: also of codings whose libraries are not here."""

from __future__ import annotations

import gzip
import zlib
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from requests_smithy_retry.wire import decoding
from requests_smithy_retry.wire.decoding import decoded, is_at_end


def inner(**shown: Any) -> Any:
    """A decoder of urllib3, and what that of its library shows: ``is_finished`` is brotli's, ``eof`` zstd's."""
    return SimpleNamespace(_obj=SimpleNamespace(**shown))


def chain(*decoders: Any) -> Any:
    return SimpleNamespace(_decoders=decoders)


@pytest.mark.parametrize(
    ("decoder", "expected"),
    [
        (inner(is_finished=lambda: True), True),
        (inner(is_finished=lambda: False), False),
        (inner(eof=True), True),
        (inner(eof=False), False),
        (inner(), True),
        (object(), True),
        (chain(inner(eof=True), inner(is_finished=lambda: True)), True),
        (chain(inner(eof=True), inner(is_finished=lambda: False)), False),
        (SimpleNamespace(_obj=SimpleNamespace(eof=False), _state=2), True),
    ],
)
def test_the_end_of_a_coding(decoder: Any, expected: bool) -> None:
    """A decoder that does not show its end is believed to have reached it."""
    assert is_at_end(decoder) is expected


def answered(coding: str) -> requests.Response:
    response = requests.Response()
    response.status_code = 400
    response.headers["Content-Encoding"] = coding
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
