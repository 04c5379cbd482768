"""Replies with a compressed body: intact, cut, corrupted, or a bomb. Their framing is always correct."""

from __future__ import annotations

import functools
import gzip
import zlib

from .behaviour import DEFAULT_BODY, Framing, Reply


def coded_reply(
    coding: str = "gzip",
    body: bytes = DEFAULT_BODY,
    *,
    coded: bytes | None = None,
    cut_to: int | None = None,
    corrupt_at: int | None = None,
    status: int = 200,
    framing: Framing = "length",
) -> Reply:
    """Make a reply with a Content-Encoding.

    :param coding: ``"gzip"``, ``"deflate"`` (zlib, as RFC 9110 has it), or any other together with ``coded``.
    :param body: the body to compress.
    :param coded: the compressed bytes, in place of ``body``.
    :param cut_to: the number of compressed bytes to keep; negative counts from the end. The framing fits the cut body,
        so that only the coding shows that something is missing.
    :param corrupt_at: flip all bits of the compressed byte at this position.
    :raises ValueError: for a coding that cannot be made here.
    """
    data = bytearray(_encode(coding, body) if coded is None else coded)
    if corrupt_at is not None:
        data[corrupt_at] ^= 0xFF
    return Reply(status, {"Content-Encoding": coding}, bytes(data[:cut_to]), framing)


def gzip_bomb(size: int = 64 << 20, status: int = 200) -> Reply:
    """Make a reply that inflates to ``size`` zero bytes, from about a thousandth of that.

    :param size: bytes after decoding.
    """
    return Reply(status, {"Content-Encoding": "gzip"}, _compressed_zeros(size))


def _encode(coding: str, body: bytes) -> bytes:
    if coding == "gzip":
        return gzip.compress(body, mtime=0)
    if coding == "deflate":
        return zlib.compress(body)
    raise ValueError(f"coding={coding!r}: 'gzip' and 'deflate' are made here, any other needs coded=")


@functools.lru_cache(maxsize=4)
def _compressed_zeros(size: int) -> bytes:
    compressor = zlib.compressobj(wbits=31)
    whole, rest = divmod(size, 1 << 20)
    pieces = [compressor.compress(bytes(1 << 20)) for _ in range(whole)]
    return b"".join([*pieces, compressor.compress(bytes(rest)), compressor.flush()])
