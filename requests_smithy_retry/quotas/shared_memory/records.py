"""The buckets in a shared file: a header, then one record of 64 bytes per bucket, at a place of its own.

A record has a version byte and a checksum, so that a foreign or a half-written one is told from a good one. It is
written in one piece. Only a bucket that is full gives up its place.
"""

from __future__ import annotations

import hashlib
import mmap
import re
import struct
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from ...clock import SYSTEM_CLOCK, Clock
from ..places import NAME
from ..settings import SharedQuotaSettings
from ..shared import Outage, logger
from .file import SLOT_SIZE, SLOTS, VERSION, BusyError, CrowdedError, SharedFile

OVERFLOW = SLOTS - 1
_BODY = struct.Struct("<B7x16sdd")
_SUM = struct.Struct("<I")
_LEVEL = struct.Struct("<d")
_LEVEL_AT = 24
RECORD_SIZE = _BODY.size + _SUM.size
EMPTY = bytes(RECORD_SIZE)


class Record(NamedTuple):
    """One bucket."""

    key: bytes
    level: float
    at: float

    def pack(self) -> bytes:
        body = _BODY.pack(VERSION, *self)
        return body + _SUM.pack(crc32(body))


def unpack(data: bytes) -> Record | None:
    """Return the record in :data:`RECORD_SIZE` bytes; None if they are not a record."""
    version, *values = _BODY.unpack_from(data)
    if version != VERSION or data[_BODY.size :] != _SUM.pack(crc32(data[: _BODY.size])):
        return None
    return Record(*values)


def level_of(mapped: mmap.mmap, offset: int) -> float:
    """Return the level in the record at an offset: eight aligned bytes, which are read in one piece."""
    level: float = _LEVEL.unpack_from(mapped, offset + _LEVEL_AT)[0]
    return level


def key_of(scope: str) -> bytes:
    return hashlib.blake2b(scope.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def offset_of(slot: int) -> int:
    return SLOT_SIZE * (1 + slot)


OVERFLOW_KEY = key_of("overflow")
"""The key of the bucket that latecomers share."""


class SharedMemory:
    """The memory in which buckets lie."""

    def __init__(
        self,
        name: str,
        settings: SharedQuotaSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
        directory: Path | None = None,
    ) -> None:
        if re.fullmatch(NAME, name) is None:
            raise ValueError(f"name={name!r}: 1 to 64 letters, digits, '.', '_' and '-' are allowed")
        self.name = name
        self.settings: SharedQuotaSettings = SharedQuotaSettings() if settings is None else settings
        self.file: SharedFile = SharedFile(name, clock, directory)
        self.outage: Outage = Outage(f"shm://{name}", self.settings)

    def lock(self, now: float) -> bool:
        """Take the lock, unless that takes longer than the budget; return False if it cannot be had."""
        file = self.file
        if not self.outage.may_ask(now):
            return False
        try:
            if now >= file.look_at:
                file.look_again(now)
            file.lock(self.settings.budget)
        except CrowdedError:
            return False
        except (BusyError, OSError) as error:
            why = str(error) if isinstance(error, BusyError) else type(error).__name__
            self.outage.note_failure(file.clock.now(), why)
            return False
        return True

    def unlock(self) -> None:
        """Let go of the lock: the memory could be used."""
        self.file.unlock()
        if self.outage.fallen_open:
            self.outage.note_answer()

    def find(self, mapped: mmap.mmap, key: bytes, capacity: float) -> tuple[int, Record]:
        """Return the offset of a bucket, and its record; called with the lock held.

        A bucket without a place gets a free one, or that of one that is full, which is as good as a new one. Where
        there is neither, the latecomers share the last place.
        """
        first = int.from_bytes(key[:4], "little") % OVERFLOW
        spare = -1
        for step in range(OVERFLOW):
            offset = offset_of((first + step) % OVERFLOW)
            record = self._record(mapped, offset)
            if record is not None and record.key == key:
                return offset, record
            if spare < 0 and (record is None or record.level >= capacity):
                spare = offset
            if record is None:
                break
        if spare >= 0:
            return spare, Record(key, capacity, 0.0)
        offset = offset_of(OVERFLOW)
        return offset, self._record(mapped, offset) or Record(OVERFLOW_KEY, capacity, 0.0)

    def _record(self, mapped: mmap.mmap, offset: int) -> Record | None:
        """Return the record at an offset. A damaged one counts as missing, with a warning."""
        data = mapped[offset : offset + RECORD_SIZE]
        record = unpack(data)
        if record is None and data != EMPTY:
            logger.warning("%s: a record is damaged; the shared retry quota in it begins anew", self.file.path)
        return record
