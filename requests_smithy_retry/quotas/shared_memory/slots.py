"""Which bucket lies where in a shared file: a place per scope, given up only by a bucket that is full."""

from __future__ import annotations

import mmap
from pathlib import Path

from ...clock import SYSTEM_CLOCK, Clock
from ..outage import Outage, logger
from ..settings import SharedQuotaSettings
from ..url import NAME
from .file import SharedFile
from .record import EMPTY, OVERFLOW, RECORD_SIZE, Record, key_of, offset_of, unpack

OVERFLOW_KEY = key_of("overflow")
"""Under which latecomers are kept."""


class SharedMemory:
    """The memory in which buckets lie.

    The parameters and the errors are those of :class:`SharedMemoryTokenBucket`.
    """

    def __init__(
        self,
        name: str,
        settings: SharedQuotaSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
        directory: Path | None = None,
    ) -> None:
        if NAME.fullmatch(name) is None:
            raise ValueError(f"name={name!r}: 1 to 64 letters, digits, '.', '_' and '-' are allowed")
        self.name = name
        self.settings: SharedQuotaSettings = SharedQuotaSettings() if settings is None else settings
        self.file: SharedFile = SharedFile(name, clock, directory)
        self.outage: Outage = Outage(f"shm://{name}", self.settings)

    def slot_of(self, mapped: mmap.mmap, key: bytes, capacity: float) -> tuple[int, bytes, Record | None]:
        """Where a bucket lies or shall lie, and what is there of it; called with the lock held.

        A bucket without a place gets a free one, or that of one that is full, which is as good as a new one. Where
        there is neither, the latecomers share the last place.

        :returns: the slot, the key under which to keep it there, and the record.
        """
        first = int.from_bytes(key[:4], "little") % OVERFLOW
        spare = -1
        for step in range(OVERFLOW):
            slot = (first + step) % OVERFLOW
            record = self._record(mapped, slot)
            if record is not None and record.key == key:
                return slot, key, record
            if record is None:
                return (slot if spare < 0 else spare), key, None
            if spare < 0 and record.level >= capacity:
                spare = slot
        if spare >= 0:
            return spare, key, None
        shared = self._record(mapped, OVERFLOW)
        return OVERFLOW, OVERFLOW_KEY, shared

    def _record(self, mapped: mmap.mmap, slot: int) -> Record | None:
        """Return the record in a slot. A damaged one counts as none, with a warning."""
        offset = offset_of(slot)
        data = mapped[offset : offset + RECORD_SIZE]
        record = unpack(data)
        if record is None and data != EMPTY:
            logger.warning("%s: a record is damaged; the shared retry quota in it begins anew", self.file.path)
        return record
