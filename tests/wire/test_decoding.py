"""Whether a decoder came to its end: also those whose libraries are not here."""

from __future__ import annotations

import zlib
from types import SimpleNamespace
from typing import Any

import pytest

from requests_smithy_retry.wire.decoding import _is_fresh, is_at_end


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
    """What shows nothing is believed."""
    assert is_at_end(decoder) is expected


def test_a_decoder_that_was_given_nothing() -> None:
    """It would take an empty stream for a whole one; a decoder in the middle of one would not."""
    fresh, begun = zlib.decompressobj(31), zlib.decompressobj(31)
    begun.decompress(b"\x1f\x8b")
    assert _is_fresh(SimpleNamespace(_obj=fresh))
    assert not _is_fresh(SimpleNamespace(_obj=begun))
    assert not _is_fresh(SimpleNamespace(_decoders=[SimpleNamespace(_obj=fresh), SimpleNamespace(_obj=begun)]))
    assert _is_fresh(brotli(False))
