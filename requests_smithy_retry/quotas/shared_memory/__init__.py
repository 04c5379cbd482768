"""A retry quota in memory that the processes of one user on one machine share, without a server.

A take and a give-back each lock, change one record and unlock: no call waits longer than ``budget``, and who dies
meanwhile leaves no lock behind. Where the lock cannot be had, a bucket of this process alone stands in.
"""

from __future__ import annotations

import functools
import mmap
from pathlib import Path
from typing import Any

from ...clock import SYSTEM_CLOCK, Clock
from ..settings import SharedQuotaSettings
from ..shared import SharedTokenBucket
from .records import RECORD_SIZE, Record, SharedMemory, key_of, level_of, unpack


class SharedMemoryTokenBucket(SharedTokenBucket):
    """A bucket in shared memory.

    :param name: of the memory: letters, digits, ``.``, ``_`` and ``-``, at most 64. Processes of the same user that
        use the same name share it.
    :param scope: of the bucket; a memory has room for 1,024.
    :param capacity: the most it holds; the same in every process.
    :param refill_rate: tokens per second that come back whatever happens, by the machine's monotonic clock.
    :param settings: bounds and intervals.
    :param clock: tells the time.
    :param directory: where the file lies, in place of the user's own directory in memory.
    :raises ValueError: for a bad name or number.
    :raises OSError: if the memory cannot be opened, or if other users can use it.
    :raises RuntimeError: where the platform has no file locks.
    """

    kind = "shared memory"

    def __init__(
        self,
        name: str | SharedMemory,
        scope: str = "default",
        *,
        capacity: float = 500,
        refill_rate: float = 0.0,
        settings: SharedQuotaSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
        directory: Path | None = None,
    ) -> None:
        made_from = None
        if isinstance(name, SharedMemory):
            memory = name
        else:
            memory = SharedMemory(name, settings, clock, directory)
            options: dict[str, Any] = {"capacity": capacity, "refill_rate": refill_rate, "settings": settings}
            made_from = functools.partial(type(self), name, scope, clock=clock, directory=directory, **options)
        super().__init__(capacity, refill_rate, memory.outage, memory.file.clock, made_from)
        self.scope = scope
        self.refill_rate = refill_rate
        self._memory = memory
        self._file = memory.file
        self._key = self._kept_as = key_of(scope)
        self._offset = 0
        self._mapped: mmap.mmap | None = None
        """The mapping in which the record was found; if it is not the file's, look for the record again."""

    def _level(self) -> float:
        # Without the lock: the next change looks again anyway.
        mapped = self._mapped
        return self.capacity if mapped is None or mapped is not self._file.memory else level_of(mapped, self._offset)

    def _take(self, amount: float, deadline: float | None) -> bool | None:  # noqa: ARG002 - the budget is shorter
        return self._change(-amount)

    def _give(self, amount: float) -> None:
        self._change(amount)

    def _change(self, amount: float) -> bool | None:
        """Add an amount, or take a negative one. False: there is too little; None: the memory is not available."""
        if not self._memory.lock(self._file.clock.now()):
            return None
        try:
            return self._change_locked(amount, self._file.clock.now())  # others may have had the lock meanwhile
        finally:
            self._memory.unlock()

    def _change_locked(self, amount: float, now: float) -> bool:
        mapped: Any = self._file.memory
        is_known = mapped is self._mapped
        record = unpack(mapped[self._offset : self._offset + RECORD_SIZE]) if is_known else None
        if record is None or record.key != self._kept_as:
            self._offset, record = self._memory.find(mapped, self._key, self.capacity)
            self._mapped, self._kept_as = mapped, record.key
        level = min(self.capacity, record.level + max(0.0, now - record.at) * self.refill_rate)
        is_enough = level + amount >= 0
        level = min(self.capacity, level + amount) if is_enough else level
        mapped[self._offset : self._offset + RECORD_SIZE] = Record(record.key, level, now).pack()
        return is_enough

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.scope!r} in {self._memory.name!r} ({self.source})>"
