"""A retry quota in memory that the processes of one user on one machine share, without a server.

A take and a give-back each lock, change one record and unlock: no call waits longer than ``budget``, and who dies
meanwhile leaves no lock behind. Where the lock cannot be had, a bucket of this process alone stands in.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any
from zlib import crc32

from ...clock import SYSTEM_CLOCK, Clock
from ..bucket import TokenBucket, TokenBucketSnapshot, check_amount
from ..outage import LastTake
from ..settings import SharedQuotaSettings
from .file import BusyError, CrowdedError
from .record import HEAD_SIZE, RECORD_SIZE, head_of, key_of, offset_of, pack_body, read_body
from .slots import SharedMemory


class SharedMemoryTokenBucket:
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
    :raises OSError: if the memory cannot be had, or if somebody else has a hand in it.
    :raises RuntimeError: where the platform has no file locks.
    """

    def __init__(
        self,
        name: str,
        scope: str = "default",
        *,
        capacity: float = 500,
        refill_rate: float = 0.0,
        settings: SharedQuotaSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
        directory: Path | None = None,
    ) -> None:
        memory = SharedMemory(name, settings, clock, directory)
        self._settle(memory, scope, capacity, refill_rate)
        self._made_from: tuple[Any, ...] = (name, scope, capacity, refill_rate, settings, clock, directory)

    @classmethod
    def on(cls, memory: SharedMemory, scope: str, *, capacity: float, refill_rate: float) -> SharedMemoryTokenBucket:
        """A bucket in a memory that is open already."""
        bucket = cls.__new__(cls)
        bucket._settle(memory, scope, capacity, refill_rate)
        bucket._made_from = ()
        return bucket

    def _settle(self, memory: SharedMemory, scope: str, capacity: float, refill_rate: float) -> None:
        size = memory.settings.local_bucket_size(capacity)
        TokenBucket(capacity, refill_rate=refill_rate)  # refuses numbers out of range
        self.scope = scope
        self.capacity = capacity
        self.refill_rate = refill_rate
        self._memory = memory
        self._file = memory.file
        self._outage = memory.outage
        self._budget = memory.settings.budget
        self._now = memory.file.clock.now
        self._key = key_of(scope)
        self._local_was_used = False
        self._last_take = LastTake()
        self._mapped: mmap.mmap | None = None
        """Where the record was found; another mapping than the file's: look for it again."""
        self._local = TokenBucket(size, refill_rate=min(refill_rate, size), clock=memory.file.clock)

    @property
    def available(self) -> float:
        """The tokens that the answering bucket holds now."""
        return self._local.available if self._is_local else self._level()

    def _level(self) -> float:
        mapped = self._mapped
        if mapped is None or mapped is not self._file.memory:
            return self.capacity  # not looked at yet
        # Without the lock: eight aligned bytes are read in one piece, and the next change looks again anyway.
        level: float = read_body(mapped, self._body)[0]
        return level if level < self.capacity else self.capacity

    @property
    def source(self) -> str:
        """Which bucket answered this thread's last take: ``"shared memory"``, or ``"shared memory, fallen open"``."""
        return "shared memory, fallen open" if self._is_local else "shared memory"

    @property
    def _is_local(self) -> bool:
        return self._last_take.was_local or self._outage.fallen_open

    @property
    def failures(self) -> int:
        """The number of times that the memory could not be had in time, since the start."""
        return self._outage.failures

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:  # noqa: ARG002 - the budget is shorter
        """Take ``amount`` tokens, or none and return False. Never takes longer than the budget.

        :param amount: from 0 on.
        :param deadline: as of every bucket; this one takes no time worth mentioning.
        :raises ValueError: for a negative amount, or none at all.
        """
        check_amount(amount)
        granted = None
        if not self._outage.fallen_open or self._outage.may_ask(self._now()):
            granted = self._change(-amount)
        if granted is None:
            self._local_was_used = self._last_take.was_local = True
            return self._local.acquire(amount)
        self._last_take.was_local = False
        return granted

    def release(self, amount: float) -> None:
        """Give ``amount`` tokens back; what exceeds the capacity is dropped.

        :raises ValueError: for a negative amount, or none at all.
        """
        check_amount(amount)
        if self._local_was_used:
            amount = self._release_locally(amount)
            if amount <= 0:
                return
        mapped = self._mapped
        # Without the lock, see _level: a full bucket has room for nothing.
        if mapped is not self._file.memory or mapped is None or read_body(mapped, self._body)[0] < self.capacity:
            self._change(amount)

    def _release_locally(self, amount: float) -> float:
        """Give back to the local bucket; return the tokens left for the shared one."""
        room = self._local.capacity - self._local.available
        self._local.release(amount)
        if not self._is_local:
            return amount
        return amount - room if not self._outage.fallen_open or self._outage.may_ask(self._now()) else 0.0

    def snapshot(self) -> TokenBucketSnapshot:
        """An immutable view."""
        return TokenBucketSnapshot(self.capacity, self.available, source=self.source)

    def _change(self, amount: float) -> bool | None:
        """Add an amount, or take a negative one. False: there is too little; None: the memory is not to be had.

        Written for speed: this is all that a take or a give-back does.
        """
        file = self._file
        now = self._now()
        try:
            if now >= file.look_at:
                file.look_again(now)
            file.lock(self._budget)
        except CrowdedError:
            return None
        except (BusyError, OSError) as error:
            self._outage.note_failure(self._now(), str(error) if isinstance(error, BusyError) else type(error).__name__)
            return None
        try:
            mapped: Any = file.memory
            if mapped is not self._mapped:
                self._find(mapped)
            data = mapped[self._offset : self._end]
            level, at, checksum = read_body(data, HEAD_SIZE)
            # The checksum begins with that of our own head, so another bucket's record has a wrong one too.
            if checksum != crc32(data[HEAD_SIZE:-4], self._seed):
                level, at = self._find(mapped)
            if self.refill_rate and now > at:
                level += (now - at) * self.refill_rate
            level = (level if level < self.capacity else self.capacity) + amount
            if level < 0:
                return False
            mapped[self._body : self._end] = pack_body(
                level if level < self.capacity else self.capacity, now, self._seed
            )
        finally:
            file.unlock()
        if self._outage.fallen_open:
            self._outage.note_answer()
        return True

    def _find(self, mapped: mmap.mmap) -> tuple[float, float]:
        """Look for the record, or make one: called with the lock held."""
        slot, key, record = self._memory.slot_of(mapped, self._key, self.capacity)
        head = head_of(key)
        self._seed = crc32(head)
        self._offset = offset_of(slot)
        self._body = self._offset + HEAD_SIZE
        self._end = self._offset + RECORD_SIZE
        self._mapped = mapped
        level, at = (self.capacity, 0.0) if record is None else (record.level, record.at)
        mapped[self._offset : self._end] = head + pack_body(level, at, self._seed)
        return level, at

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy is another handle of the same bucket.
        if not self._made_from:
            raise TypeError("this bucket belongs to a strategy: copy the strategy instead")
        return _bucket, self._made_from

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.scope!r} in {self._memory.name!r} ({self.source})>"


def _bucket(name: str, scope: str, capacity: float, refill_rate: float, *others: Any) -> SharedMemoryTokenBucket:
    settings, clock, directory = others
    return SharedMemoryTokenBucket(
        name,
        scope,
        capacity=capacity,
        refill_rate=refill_rate,
        settings=settings,
        clock=clock,
        directory=directory,
    )
