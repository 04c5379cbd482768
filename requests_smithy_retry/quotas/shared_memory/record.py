"""The layout of buckets in a shared file: a header, then one record of 64 bytes per bucket (no I/O here).

A record has a version byte and a checksum, so that a foreign or a half-written one is told from a good one. It is
written in one piece.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

VERSION = 1
MAGIC = b"SmithyQ"
SLOT_SIZE = 64
SLOTS = 1025
"""As many as a strategy keeps scopes (contract 11.3), and one that latecomers share."""
OVERFLOW = SLOTS - 1
HEADER = struct.Struct("<7sBII").pack(MAGIC, VERSION, SLOT_SIZE, SLOTS).ljust(SLOT_SIZE, b"\0")
FILE_SIZE = SLOT_SIZE * (1 + SLOTS)

_HEAD = struct.Struct("<B7x16s")
_BODY = struct.Struct("<dd")
_SUM = struct.Struct("<I")
HEAD_SIZE = _HEAD.size
RECORD_SIZE = _HEAD.size + _BODY.size + _SUM.size
_pack_body, _pack_sum = _BODY.pack, _SUM.pack
EMPTY = bytes(RECORD_SIZE)
read_body: Callable[[Any, int], tuple[Any, ...]] = struct.Struct("<ddI").unpack_from
"""A record's level, moment and checksum, from a given byte on."""


class Record(NamedTuple):
    """One bucket.

    :param key: which one.
    :param level: the tokens that it holds.
    :param at: when that was, on the machine's monotonic clock.
    """

    key: bytes
    level: float
    at: float


def key_of(scope: str) -> bytes:
    """A scope's key."""
    return hashlib.blake2b(scope.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def offset_of(slot: int) -> int:
    """Where a slot begins."""
    return SLOT_SIZE * (1 + slot)


def head_of(key: bytes) -> bytes:
    """Return the part with which a bucket's record begins, always."""
    return _HEAD.pack(VERSION, key)


def pack_body(level: float, at: float, seed: int) -> bytes:
    """Return the part that follows the head in a record.

    :param seed: the checksum of its head.
    """
    body = _pack_body(level, at)
    return body + _pack_sum(crc32(body, seed))


def unpack(data: bytes) -> Record | None:
    """The record in :data:`RECORD_SIZE` bytes; None if they are none."""
    version, key = _HEAD.unpack_from(data)
    level, at, checksum = read_body(data, HEAD_SIZE)
    if version != VERSION or checksum != crc32(data[: RECORD_SIZE - _SUM.size]):
        return None
    return Record(key, level, at)
