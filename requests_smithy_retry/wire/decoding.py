"""Whether a body that was read came to the end of its content coding (contract 14.4).

urllib3 decodes what it gets and does not ask whether the coded stream came to its end. Its decoders are looked at by
attribute; one that shows nothing is believed.
"""

from __future__ import annotations

import re
import zlib
from typing import Any

import requests.exceptions
import urllib3.exceptions as uex
from requests import Response


def verify_whole(response: Response) -> None:
    """Check a body that was read to its end.

    :raises requests.exceptions.ContentDecodingError: if its coding did not end.
    """
    if response.status_code == PARTIAL and not _is_all(response.headers.get("content-range", "")):
        return  # a range of a coded representation ends where it was asked to end (RFC 9110 14.2)
    raw: Any = response.raw
    decoder = getattr(raw, "_decoder", None)
    if decoder is not None and not is_at_end(decoder) and not (response.content == b"" and _is_fresh(decoder)):
        coding = response.headers.get("content-encoding", "")[:40]
        error = uex.DecodeError(f"the body ended before its content coding did: {coding}")
        raise requests.exceptions.ContentDecodingError(error, request=response.request)


def _is_all(content_range: str) -> bool:
    """Whether a range is the whole representation."""
    found = _RANGE.fullmatch(content_range.strip())
    return found is not None and int(found[1]) == 0 and int(found[2]) + 1 == int(found[3])


def is_at_end(decoder: Any) -> bool:
    """Whether one of urllib3's decoders came to the end of its stream. True where that cannot be seen."""
    chain = getattr(decoder, "_decoders", None)
    if chain is not None:
        return all(is_at_end(part) for part in chain)
    if getattr(decoder, "_state", None) == _SWALLOW:
        return True  # members that ended, then bytes that belong to none; urllib3 lets them pass
    inner = getattr(decoder, "_obj", None)
    finished = getattr(inner, "is_finished", None)  # brotli
    if finished is not None:
        return bool(finished())
    return bool(getattr(inner, "eof", True))


def _is_fresh(decoder: Any) -> bool:
    """Whether a decoder was given nothing: a body that is empty, coded or not, is what plain requests takes."""
    chain = getattr(decoder, "_decoders", None)
    if chain is not None:
        return all(map(_is_fresh, chain))
    inner: Any = getattr(decoder, "_obj", None)
    if not hasattr(inner, "copy"):
        return True
    return any(_completes(inner.copy(), stream) for stream in _EMPTY_STREAMS)


def _completes(inner: Any, stream: bytes) -> bool:
    try:
        inner.decompress(stream)
    except zlib.error:
        return False
    return bool(inner.eof)


_EMPTY_STREAMS = (zlib.compressobj(wbits=31).flush(), zlib.compress(b""))
"""Only a decoder at its very beginning takes one of these for a whole stream."""

PARTIAL = 206

_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})")

_SWALLOW = 2
"""``GzipDecoderState.SWALLOW_DATA``"""
