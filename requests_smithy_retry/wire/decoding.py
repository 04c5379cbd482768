"""Check that a body reached the end of its content coding (contract 14.4); decode the beginning of one (contract 13).

urllib3 decodes what it gets without checking that the coded stream is complete. The attributes of its decoders are
inspected; a decoder without them counts as complete.
"""

from __future__ import annotations

import io
import re
import zlib
from typing import Any, NamedTuple

import requests.exceptions
import urllib3
import urllib3.exceptions as uex
from requests import Response
from urllib3.response import GzipDecoder

PART = 16_384
PARTIAL = 206
_CONTENT_RANGE = r"(?i)bytes ([0-9]{1,18})-([0-9]{1,18})/(?:([0-9]{1,18})|\*)"
_SWALLOW = 2  # GzipDecoderState.SWALLOW_DATA
_EITHER_HEADER = 32 + zlib.MAX_WBITS  # of gzip or of zlib
BOUNDED = "max_length" in GzipDecoder.decompress.__code__.co_varnames
"""True if urllib3 decodes in parts (2.6 and later); before that, it decodes a buffer at once, to any size."""


class ContentRange(NamedTuple):
    """A parsed Content-Range: its first position, the one after its last byte, and the length of the whole, or None."""

    first: int
    end: int
    total: int | None


def content_range(response: Response) -> ContentRange | None:
    match = re.fullmatch(_CONTENT_RANGE, response.headers.get("content-range", "").strip())
    if match is None:
        return None
    first, end, total = int(match[1]), int(match[2]) + 1, None if match[3] is None else int(match[3])
    return ContentRange(first, end, total) if first < end and (total is None or end <= total) else None


def verify_whole(response: Response) -> None:
    """Check a body that was read to its end.

    :raises requests.exceptions.ContentDecodingError: if its content coding is incomplete.
    """
    if not _came_to_end(response, response.raw):
        coding = response.headers.get("content-encoding", "")[:40]
        error = uex.DecodeError(f"the body ended before its content coding did: {coding}")
        raise requests.exceptions.ContentDecodingError(error, request=response.request)


def decoded(response: Response, body: bytes, most: int) -> tuple[bytes, bool]:
    """Decode an unread body; return its beginning, and True if that is the whole body, and valid."""
    coding = response.headers["content-encoding"]
    if not BOUNDED:
        prefix, is_less = _inflated(body, coding, most)
        if not is_less:
            return prefix, False
    raw: Any = urllib3.HTTPResponse(io.BytesIO(body), headers={"content-encoding": coding}, preload_content=False)
    found = bytearray()
    try:
        for part in raw.stream(PART, decode_content=True):
            found += part
            if len(found) > most:
                return bytes(found[:most]), False
    except uex.HTTPError:
        return bytes(found), False
    return bytes(found), _came_to_end(response, raw)


def _inflated(body: bytes, coding: str, most: int) -> tuple[bytes, bool]:
    """Decode a single gzip or deflate coding in parts; return the result, and True if valid and within ``most``.

    Other codings that this urllib3 knows are not decoded, because that could not be bounded.
    """
    found, codings = b"", {part.strip() for part in coding.lower().split(",")}
    if codings.isdisjoint(urllib3.HTTPResponse.CONTENT_DECODERS):
        return body[:most], len(body) <= most
    if coding.lower() not in ("gzip", "x-gzip", "deflate"):
        return found, False
    try:
        while body and len(found) <= most:
            member = zlib.decompressobj(_EITHER_HEADER)
            found += member.decompress(body, most + 1 - len(found))
            body = member.unused_data.lstrip(b"\0")
    except zlib.error:
        return found[:most], False
    return found[:most], len(found) <= most


def _came_to_end(response: Response, raw: Any) -> bool:
    decoder = getattr(raw, "_decoder", None)
    if decoder is None or is_at_end(decoder):
        return True
    # A range of a coded representation ends where it was asked to end (RFC 9110 14.2). Plain requests accepts an empty
    # body.
    found = content_range(response)
    is_part = response.status_code == PARTIAL and (found is None or (found.first, found.end) != (0, found.total))
    # urllib3 does not count the bytes of chunks.
    had_chunk = getattr(getattr(raw, "_original_response", None), "had_chunk", False)
    return is_part or not (raw.tell() or had_chunk or getattr(raw, "_has_decoded_content", False))


def is_at_end(decoder: Any) -> bool:
    """Return True if one of urllib3's decoders reached the end of its stream, or does not show its end."""
    chain = getattr(decoder, "_decoders", None)
    if chain is not None:
        return all(is_at_end(part) for part in chain)
    if getattr(decoder, "_state", None) == _SWALLOW:
        return True  # complete members, then trailing bytes that urllib3 ignores
    inner = getattr(decoder, "_obj", None)
    finished = getattr(inner, "is_finished", None)  # brotli
    if finished is not None:
        return bool(finished())
    return bool(getattr(inner, "eof", True))
