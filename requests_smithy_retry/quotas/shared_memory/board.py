"""The board in shared memory: the number of the newest notice, and a ring of the last ones.

A look compares one number. A notice is written under the lock, and counts once its number is the newest: who dies
meanwhile has posted nothing. Readers take no lock: a checksum tells them of a notice that is not written in full.
"""

from __future__ import annotations

import struct
from typing import Any
from zlib import crc32

from ...forksafe import renew_lock_after_fork
from ...pacing.gate import Notice, Notices
from .file import NOTICE_SIZE, NOTICES, NOTICES_AT
from .records import SharedMemory, key_of

_NUMBER = struct.Struct("<Q")
_newest = _NUMBER.unpack_from
_BODY = struct.Struct("<Q16sd88s")
_SUM = struct.Struct("<I")
_LONGEST_SOURCE = 88
_NOT_READ = object()


class MemoryBoard:
    """The board of the processes that map one memory. Moments are those of the machine's monotonic clock."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._file = memory.file
        self._now = memory.file.clock.now
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Begin anew after a fork."""
        self._seen = 0
        self._mapped: Any = _NOT_READ
        """The mapping in which the number was seen."""
        self._notices = Notices()

    def has_news(self) -> bool:
        now, file = self._now(), self._file
        is_ours = self._mapped is file.memory
        if now >= file.look_at or not is_ours or _newest(self._mapped, NOTICES_AT)[0] != self._seen:
            self._read(now)
        return len(self._notices) > 0 and self._notices.are_current(now)

    def closed(self, scope: str) -> Notice | None:
        return self._notices.get(key_of(scope))

    def post(self, scope: str, seconds: float, source: str) -> None:
        """Write a notice over the oldest one."""
        now = self._now()
        if not self._memory.lock(now):
            return
        try:
            mapped: Any = self._file.memory
            number = _newest(mapped, NOTICES_AT)[0] + 1
            body = _BODY.pack(number, key_of(scope), now + seconds, source.encode()[:_LONGEST_SOURCE])
            at = _offset_of(number)
            mapped[at : at + _BODY.size + _SUM.size] = body + _SUM.pack(crc32(body))
            _NUMBER.pack_into(mapped, NOTICES_AT, number)
        finally:
            self._memory.unlock()

    def _read(self, now: float) -> None:
        """Take in what was posted since the last look."""
        file = self._file
        if now >= file.look_at:
            file.look_again(now)
        mapped: Any = file.memory
        if mapped is None:
            if not self._memory.lock(now):
                return
            mapped = file.memory
            self._memory.unlock()
        newest = _newest(mapped, NOTICES_AT)[0]
        first = self._seen if mapped is self._mapped else 0
        for number in range(max(first, newest - NOTICES) + 1, newest + 1):
            found = _notice(mapped, number)
            if found is not None:
                self._notices.note(*found)
            elif newest - number < NOTICES // 2:
                # It is not there yet, so the next look begins with it. One that is older was overwritten.
                newest = number - 1
                break
        self._mapped, self._seen = mapped, newest


def _notice(mapped: Any, number: int) -> tuple[bytes, Notice] | None:
    """Return the notice of a number with the key of its scope; None if something else is in its place."""
    at = _offset_of(number)
    data = mapped[at : at + _BODY.size + _SUM.size]
    body = data[: _BODY.size]
    told, key, until, source = _BODY.unpack(body)
    if told != number or data[_BODY.size :] != _SUM.pack(crc32(body)):
        return None
    return key, Notice(until, source.rstrip(b"\0").decode(errors="replace"))


def _offset_of(number: int) -> int:
    return NOTICES_AT + NOTICE_SIZE * (1 + number % NOTICES)
