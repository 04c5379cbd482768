from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.quotas.shared_memory import file as shared_file
from requests_smithy_retry.quotas.shared_memory.file import FILE_SIZE, HEADER, BusyError, SharedFile, own_directory
from requests_smithy_retry.testing.clock import FakeClock

pytestmark = pytest.mark.real_time


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def new_file(directory: Path) -> SharedFile:
    return SharedFile("test", SYSTEM_CLOCK, directory)


def descriptors_of(directory: Path) -> int:
    """Count the open files of this process that lie in a directory."""
    found = 0
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(directory))
    return found


def test_the_file_is_the_users_alone(directory: Path) -> None:
    """0600, with a header, in full size."""
    file = new_file(directory)
    found = file.path.stat()
    assert (found.st_mode & 0o777, found.st_size, file.path.read_bytes()[:64]) == (0o600, FILE_SIZE, HEADER)


def test_the_own_directory_is_the_users_alone() -> None:
    """0700, and the same at each call."""
    path = own_directory()
    assert (path.stat().st_mode & 0o777, path.stat().st_uid, own_directory()) == (0o700, os.getuid(), path)


def test_without_memory_the_directory_for_temporary_files_is_used(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Platforms without a file system in memory use TMPDIR."""
    monkeypatch.setattr(shared_file, "MEMORY", directory / "absent")
    monkeypatch.setattr(shared_file.tempfile, "tempdir", str(directory))
    assert own_directory().parent == directory


def test_what_others_can_use_is_refused(directory: Path) -> None:
    """A file that another user may write is no place for a quota."""
    new_file(directory).path.chmod(0o620)
    with pytest.raises(PermissionError, match="others than this user can use it"):
        new_file(directory)


def test_a_link_is_refused(directory: Path) -> None:
    """A symbolic link is refused, so that no process can be made to write elsewhere."""
    (directory / "test.quota").symlink_to(directory / "elsewhere")
    with pytest.raises(OSError, match=r"test\.quota"):
        new_file(directory)
    assert not (directory / "elsewhere").exists()


@pytest.mark.parametrize(
    ("content", "how"),
    [
        (b"\0" * FILE_SIZE, "damaged"),
        (b"x", "damaged"),
        (HEADER, "damaged"),
        (HEADER[:7] + b"\0" + HEADER[8:] + b"\0" * 500, "of version 0, not 2"),
        (HEADER[:7] + b"\x09" + HEADER[8:] + b"\0" * FILE_SIZE, "of version 9, not 2"),
    ],
)
def test_a_damaged_or_older_file_is_replaced_loudly(
    directory: Path, content: bytes, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log and a warning tell of it; processes that have the old file mapped keep it."""
    path = directory / "test.quota"
    path.write_bytes(content)
    path.chmod(0o600)
    with path.open("rb") as old:
        with pytest.warns(RuntimeWarning, match=f"is {how}: it is replaced"):
            file = new_file(directory)
        assert old.read() == content
    assert f"is {how}" in caplog.text
    assert file.path.read_bytes() == HEADER + b"\0" * (FILE_SIZE - len(HEADER))


def test_a_full_memory_is_refused_when_the_file_is_made(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every page is there before it is written to; what could not be finished is begun anew."""
    new_file(directory).path.unlink()
    real = os.posix_fallocate

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(OSError, match="No space left"):
            new_file(directory)
    assert ((directory / "test.quota").stat().st_size, os.posix_fallocate) == (0, real)
    assert new_file(directory).path.stat().st_blocks * 512 >= FILE_SIZE


def test_a_file_that_an_older_version_left_without_pages_gets_them(directory: Path) -> None:
    """Such a file has its size but no pages, and would end the process at a write while the memory is full."""
    path = directory / "test.quota"
    path.write_bytes(HEADER)
    path.chmod(0o600)
    os.truncate(path, FILE_SIZE)
    new_file(directory)
    assert path.stat().st_blocks * 512 >= FILE_SIZE


@pytest.mark.parametrize("has", [True, False])
def test_where_pages_cannot_be_reserved_the_file_has_its_size(
    directory: Path, monkeypatch: pytest.MonkeyPatch, has: bool
) -> None:
    """MacOS has no such call; some file systems refuse it."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    if has:
        monkeypatch.setattr(os, "posix_fallocate", refuse)
    else:
        monkeypatch.delattr(os, "posix_fallocate")
    assert new_file(directory).path.stat().st_size == FILE_SIZE


@pytest.mark.skipif(shutil.which("unshare") is None, reason="a small memory needs a mount namespace (unshare)")
def test_a_memory_that_fills_up_later_ends_no_process() -> None:
    """Retries for new services after /dev/shm is full: each is granted, and no signal comes."""
    code = """
from requests_smithy_retry.quotas.shared_memory import SharedMemoryTokenBucket
from requests_smithy_retry.quotas.shared_memory.records import SharedMemory
memory = SharedMemory("test")
try:
    with open("/dev/shm/filler", "wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
except OSError:
    pass
buckets = [SharedMemoryTokenBucket(memory, str(n), capacity=20, refill_rate=0) for n in range(1024)]
print(sum(bucket.acquire(14) for bucket in buckets), memory.outage.failures)
"""
    shell = 'mount -t tmpfs -o size=256k,mode=1777 tmpfs /dev/shm || exit 77; exec "$0" -c "$1"'
    as_root = [] if os.getuid() == 0 else ["-U", "-r"]
    command = ["unshare", *as_root, "-m", "sh", "-c", shell, sys.executable, code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode in (1, 77) and "python" not in done.stderr:
        pytest.skip("no mount namespace is allowed here")
    assert (done.returncode, done.stdout) == (0, "1024 0\n")


def test_two_open_files_exclude_each_other(directory: Path) -> None:
    """Two open files of one process exclude each other: the lock is the open file's, not the process's."""
    one, two = new_file(directory), new_file(directory)
    one.lock(0.02)
    with pytest.raises(BusyError, match="another process"):
        two.lock(0.02)
    one.unlock()
    two.lock(0.02)
    two.unlock()


def test_a_lock_is_had_as_soon_as_it_is_free(directory: Path) -> None:
    """A lock that becomes free within the budget is taken."""
    one, two = new_file(directory), new_file(directory)
    one.lock(0.02)
    threading.Timer(0.05, one.unlock).start()
    two.lock(5)
    two.unlock()


def test_closing_another_open_file_frees_nothing(directory: Path) -> None:
    """With fcntl's record locks, closing any descriptor of the file would drop the process's lock."""
    one, two, three = (new_file(directory) for _ in range(3))
    one.lock(0.02)
    two.close()
    with pytest.raises(BusyError):
        three.lock(0.01)
    one.unlock()


def test_threads_exclude_each_other(directory: Path) -> None:
    """Threads share the open file, so its lock does not keep them apart; the thread lock does, within the budget."""
    file = new_file(directory)
    file.lock(0.02)
    failures: list[Exception] = []

    def other() -> None:
        try:
            file.lock(0.02)
        except BusyError as error:
            failures.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    file.unlock()
    assert [str(error) for error in failures] == ["another thread holds the lock"]


def test_a_thread_that_runs_late_is_waited_for(directory: Path) -> None:
    """A late thread of this process is not the file's fault: it is waited for ten times as long as the budget."""
    file = new_file(directory)
    file.lock(0.02)
    threading.Timer(0.06, file.unlock).start()
    file.lock(0.02)
    file.unlock()


def test_a_lock_is_waited_for_in_parts_of_time_that_this_process_has(directory: Path) -> None:
    """If each pause takes three times as long, so does the wait, because the holder has no time to run either."""

    class Starved(FakeClock):
        pauses = 0.0

        def sleep(self, seconds: float) -> None:
            self.pauses += seconds
            super().sleep(3 * seconds)

    clock = Starved()
    file, holder = SharedFile("test", clock, directory), new_file(directory)
    holder.lock(0.02)
    with pytest.raises(BusyError):
        file.lock(0.02)
    holder.unlock()
    assert clock.pauses == pytest.approx(0.02, abs=0.002)


def test_after_a_failed_wait_the_thread_lock_is_free(directory: Path) -> None:
    """A busy file does not lock out this process's threads for good."""
    one, two = new_file(directory), new_file(directory)
    one.lock(0.02)
    for _ in range(2):
        with pytest.raises(BusyError, match="another process"):
            two.lock(0.01)
    one.unlock()


def test_an_interrupt_leaves_no_lock_behind(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while locking goes through, and both locks are free."""
    one, two = new_file(directory), new_file(directory)
    real = fcntl.flock

    def interrupted(fd: int, how: int) -> None:
        real(fd, how)
        if how != fcntl.LOCK_UN:
            raise KeyboardInterrupt

    monkeypatch.setattr(shared_file, "flock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.lock(0.02)
    monkeypatch.undo()
    two.lock(0.02)
    two.unlock()
    one.lock(0.02)
    one.unlock()


def test_a_forked_child_does_not_share_its_parents_lock(directory: Path) -> None:
    """The parent holds the lock while it forks: the child waits in vain until the parent lets go, and then gets it."""
    code = f"""
import os, sys
from pathlib import Path
from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.quotas.shared_memory.file import BusyError, SharedFile
file = SharedFile("test", SYSTEM_CLOCK, Path({str(directory)!r}))
file.lock(1)
tried, has_tried = os.pipe()
child = os.fork()
if child == 0:
    try:
        file.lock(0.05)
        print("shared", flush=True)
        os.write(has_tried, b"!")
        os._exit(0)
    except BusyError as error:
        print(error, flush=True)
    os.write(has_tried, b"!")
    file.lock(60)
    print("free", flush=True)
    os._exit(0)
os.read(tried, 1)
file.unlock()
os.waitpid(child, 0)
file.lock(60)
print("parent", flush=True)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["another process holds the lock", "free", "parent"]


def test_after_a_fork_the_file_is_opened_when_it_is_needed(directory: Path) -> None:
    """After a fork the child only closes its copies; its locks are new, and the file is opened when it is needed."""
    file = new_file(directory)
    file.lock(0.02)
    file.renew_lock()
    assert file.memory is None
    file.lock(0.02)
    file.unlock()
    assert file.memory is not None


def test_a_file_that_was_replaced_is_left(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A user who removes the file splits the quota for a second at most."""
    file = new_file(directory)
    file.path.unlink()
    other = new_file(directory)
    file.look_again(10)
    assert (file.memory, file.look_at) == (None, 11)
    assert "was replaced" in caplog.text
    file.lock(0.02)
    file.unlock()
    file.memory[64] = 7
    assert other.memory[64] == 7


@pytest.mark.parametrize("held", [True, False])
def test_a_file_that_is_in_place_is_kept(directory: Path, held: bool) -> None:
    """A file in place is kept, and so is one that another thread is using just now."""
    file = new_file(directory)
    memory = file.memory
    if held:
        file.lock(0.02)
    file.look_again(0)
    assert file.memory is memory


def test_a_file_that_is_locked_for_good_cannot_be_opened(directory: Path) -> None:
    """Opening does not hang either."""
    path = directory / "test.quota"
    path.write_bytes(b"damaged")
    path.chmod(0o600)
    with path.open("r+b") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        clock = FakeClock()
        with pytest.raises(BusyError, match="another process"):
            SharedFile("test", clock, directory)
    assert clock.now() == pytest.approx(1, abs=0.01)


def test_a_file_replaced_while_it_is_opened_is_opened_again(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may replace the file between opening and locking, so it is opened again."""
    real = shared_file.wait_for_lock
    replaced: list[bool] = []

    def replace(*arguments) -> None:
        real(*arguments)
        if not replaced:
            replaced.append(True)
            (directory / "test.quota").unlink()

    monkeypatch.setattr(shared_file, "wait_for_lock", replace)
    file = new_file(directory)
    assert os.path.samestat(os.fstat(file._fd), file.path.stat())


def test_what_cannot_be_mapped_is_closed(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No descriptor is left behind."""

    def refuse(*_: object) -> None:
        raise OSError("no memory")

    monkeypatch.setattr(shared_file.mmap, "mmap", refuse)
    with pytest.raises(OSError, match="no memory"):
        new_file(directory)
    assert descriptors_of(directory) == 0


def test_a_file_is_closed_with_its_last_user(directory: Path) -> None:
    """No descriptor is left behind."""
    file = new_file(directory)
    assert descriptors_of(directory) > 0
    file.close()
    file.close()
    assert descriptors_of(directory) == 0
    file = new_file(directory)
    del file
    assert descriptors_of(directory) == 0


def test_without_file_locks_the_error_says_so(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no flock; redis:// works there."""
    monkeypatch.setattr(shared_file, "fcntl", None)
    with pytest.raises(RuntimeError, match=r"needs file locks .* does not have: use redis://"):
        new_file(directory)


def test_nothing_is_logged_in_quiet_times(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Opening and locking say nothing."""
    with caplog.at_level(logging.DEBUG):
        file = new_file(directory)
        file.lock(1)
        file.unlock()
    assert caplog.records == []
