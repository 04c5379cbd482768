"""A file that processes of one user map into their memory, and the locks around it.

``flock`` belongs to the open file: the kernel lets go of it when its holder dies, however that comes about. A forked
child shares its parent's open file, and so would not be kept out by its parent's lock: it opens the file anew. Threads
share the open file too, hence a thread lock besides.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
import stat
import struct
import tempfile
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...clock import Clock
from ...forksafe import renew_lock_after_fork
from ..shared import SLICES

fcntl: Any
try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None
else:
    flock = fcntl.flock
    LOCK_NOW = fcntl.LOCK_EX | fcntl.LOCK_NB
    LOCK_OFF = fcntl.LOCK_UN

VERSION = 2
MAGIC = b"SmithyQ"
SLOT_SIZE = 64
SLOTS = 1025
"""As many as a strategy keeps scopes (contract 11.3), and one that latecomers share."""
HEADER = struct.pack("<7sBII", MAGIC, VERSION, SLOT_SIZE, SLOTS).ljust(SLOT_SIZE, b"\0")
FILE_SIZE = SLOT_SIZE * (1 + SLOTS)

logger: logging.Logger = logging.getLogger("requests_smithy_retry")

NEEDS_FLOCK = "a quota in shared memory needs file locks (flock), which this platform does not have: use redis://"
MEMORY = Path("/dev/shm")
"""Linux keeps the files there in memory; other platforms have no such directory."""
PAUSE = 0.0001
"""Between the first two looks at a lock that another process holds, in seconds; each further one is twice as long."""
OWN_PATIENCE = 10
"""The number of budgets to wait for a lock that this process's own threads hold: they let go once they can run."""
OPEN_PATIENCE = 1.0
"""The most seconds that opening waits for the lock."""
LOOK_INTERVAL = 1.0
"""Seconds between two checks of whether the path still leads to the mapped file."""


class BusyError(Exception):
    """The lock was not free in time."""


class CrowdedError(Exception):
    """A thread that stood before this one in line waited in vain, so this one has waited long enough."""


class SharedFile:
    """One shared file, mapped."""

    def __init__(self, name: str, clock: Clock, directory: Path | None = None) -> None:
        self.memory: mmap.mmap | None = None
        """The mapping; None if the file is not open. In another mapping than before, records may lie elsewhere."""
        self._fd = -1
        if fcntl is None:
            raise RuntimeError(NEEDS_FLOCK)
        self.path: Path = (own_directory() if directory is None else directory) / f"{name}.quota"
        self.clock = clock
        self.look_at: float = 0.0
        """The moment of the next check of whether the path still leads to the mapped file."""
        self._threads = threading.Lock()
        self._in_vain = 0
        """The number of times that a thread waited in vain for another process."""
        self._map(OPEN_PATIENCE)
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Close the file in a forked child until it is needed. The parent's lock, if it is held, stays the parent's."""
        self._threads = threading.Lock()
        self.close()

    def lock(self, budget: float) -> None:
        """Take both locks.

        :param budget: wait no longer for another process, in seconds.
        :raises BusyError: if another process kept the lock too long.
        :raises CrowdedError: if another thread has just waited in vain.
        :raises OSError: if the file cannot be opened anew, after a fork or because it was replaced.
        """
        # First without waiting, which is twice as fast.
        if not self._threads.acquire(False):
            self._wait_in_line(budget)
        try:
            if self._fd < 0:
                self._map(budget)
            wait_for_lock(self._fd, self.clock, budget)
        except BaseException as error:
            self._in_vain += isinstance(error, BusyError)
            self._let_go()
            raise

    def unlock(self) -> None:
        try:
            flock(self._fd, LOCK_OFF)
        finally:
            self._threads.release()

    def _wait_in_line(self, budget: float) -> None:
        in_vain = self._in_vain
        part = budget * OWN_PATIENCE / SLICES
        if not any(self._threads.acquire(timeout=part) for _ in range(SLICES)):
            raise BusyError("another thread holds the lock")
        if self._in_vain != in_vain:
            self._threads.release()
            raise CrowdedError

    def _let_go(self) -> None:
        if self._fd >= 0:
            flock(self._fd, LOCK_OFF)  # an interrupt may come when the lock was just got
        self._threads.release()

    def look_again(self, now: float) -> None:
        """Map the file that the path leads to now, if ours was replaced or removed."""
        self.look_at = now + LOOK_INTERVAL
        if not self._threads.acquire(False):
            return
        try:
            if self._fd >= 0 and not _leads_to(self.path, self._fd):
                logger.warning("%s was replaced: the shared retry quota in it begins anew", self.path)
                self.close()
        finally:
            self._threads.release()

    def close(self) -> None:
        """Let go of it; the next use opens it again. It stays mapped for threads that are reading it now."""
        if self.memory is not None:
            self.memory = None
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()

    def _map(self, patience: float) -> None:
        fd = _open(self.path, self.clock, patience)
        try:
            _reserve(fd)  # once more: an older version left the file without pages
            self.memory = mmap.mmap(fd, FILE_SIZE)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd


def wait_for_lock(fd: int, clock: Clock, budget: float) -> None:
    """Take a lock, as soon as another process that holds it lets go of it."""
    # Counted in parts, and not on the clock: where this process gets no time to run, its holder may get none either.
    waited, pause = 0.0, PAUSE
    while True:
        try:
            flock(fd, LOCK_NOW)
        except BlockingIOError:
            pass
        else:
            return
        if waited >= budget:
            raise BusyError("another process holds the lock")
        clock.sleep(pause)
        waited += pause
        pause = min(pause * 2, budget / SLICES)


def own_directory() -> Path:
    """Return a directory that this user alone can use, in memory if the platform has one."""
    base = MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    # Versions that lay out the file otherwise keep out of each other's way, as during a rolling upgrade.
    path = base / f"requests-smithy-retry-{os.getuid()}-{VERSION}"
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    _refuse_foreign(os.lstat(path), path)
    return path


def _open(path: Path, clock: Clock, patience: float) -> int:
    """Return the file's descriptor, once the file is in order.

    :raises BusyError: if it is not, and another process keeps the lock longer than ``patience`` seconds.
    """
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _refuse_foreign(os.fstat(fd), path)
            if _is_ready(fd):
                return fd
            wait_for_lock(fd, clock, patience)
            if _leads_to(path, fd) and _prepare(fd, path):
                flock(fd, LOCK_OFF)
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _leads_to(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def _refuse_foreign(found: os.stat_result, path: Path) -> None:
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077 or stat.S_ISLNK(found.st_mode):
        raise OSError(errno.EPERM, "others than this user can use it, so no quota is kept there", str(path))


def _is_ready(fd: int) -> bool:
    # The size is set last.
    return os.fstat(fd).st_size == FILE_SIZE and os.pread(fd, len(HEADER), 0) == HEADER


def _reserve(fd: int) -> None:
    """Allocate all pages of the file now: a write to a page that cannot be allocated would end the process."""
    # A platform that cannot reserve the space allocates it when it is needed.
    if not hasattr(os, "posix_fallocate"):
        os.ftruncate(fd, FILE_SIZE)
        return
    try:
        os.posix_fallocate(fd, 0, FILE_SIZE)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        os.ftruncate(fd, FILE_SIZE)


def _prepare(fd: int, path: Path) -> bool:
    """Write the header of a new file. False: the file was not in our format and has been removed."""
    if os.fstat(fd).st_size == 0:
        try:
            os.pwrite(fd, HEADER, 0)
            _reserve(fd)
        except OSError:
            os.ftruncate(fd, 0)  # the next process that opens it begins anew
            raise
    if _is_ready(fd):
        return True
    header = os.pread(fd, len(HEADER), 0)
    version = header[len(MAGIC)] if len(header) == len(HEADER) and header.startswith(MAGIC) else VERSION
    how = "damaged" if version == VERSION else f"of version {version}, not {VERSION}"
    message = f"{path} is {how}: it is replaced, and the shared retry quota in it begins anew"
    logger.warning(message)
    warnings.warn(message, RuntimeWarning, stacklevel=2)
    # Removed, not overwritten: another process may still have it mapped.
    os.unlink(path)
    return False
