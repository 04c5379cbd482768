from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from requests_smithy_retry import TokenBucket, TokenBucketSnapshot
from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.quotas import shared_memory
from requests_smithy_retry.quotas.settings import SharedQuotaSettings
from requests_smithy_retry.quotas.shared_memory import SharedMemoryTokenBucket, file
from requests_smithy_retry.quotas.shared_memory.records import OVERFLOW, RECORD_SIZE, SharedMemory, level_of, offset_of
from requests_smithy_retry.testing.clock import FakeClock

pytestmark = pytest.mark.real_time

TOLERANCE = 30.0
"""Seconds that a busy machine may add to a budget. Without one, a call would wait for as long as the test runs."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def new_bucket(directory: Path, scope: str = "a", **options) -> SharedMemoryTokenBucket:
    return SharedMemoryTokenBucket("test", scope, directory=directory, **options)


def test_two_handles_share_one_bucket(directory: Path) -> None:
    """Tokens that one handle takes are missing for the other."""
    one, two = (new_bucket(directory, capacity=28) for _ in range(2))
    assert [one.acquire(14), two.acquire(14), one.acquire(14), two.acquire(14)] == [True, True, False, False]
    one.release(5)
    assert (one.available, two.available) == (5, 5)
    assert two.snapshot() == TokenBucketSnapshot(28, 5, source="shared memory")


def test_scopes_and_names_keep_buckets_apart(directory: Path) -> None:
    """Another scope, or another memory, is another bucket."""
    for bucket in (
        new_bucket(directory, "a", capacity=14),
        new_bucket(directory, "b", capacity=14),
        SharedMemoryTokenBucket("other", "a", capacity=14, directory=directory),
    ):
        assert bucket.acquire(14)


def test_what_was_spent_stays_spent(directory: Path) -> None:
    """A new handle, or a new process, begins where the last one ended."""
    new_bucket(directory, capacity=20).acquire(15)
    bucket = new_bucket(directory, capacity=20)
    assert bucket.available == 20
    assert not bucket.acquire(6)
    assert bucket.available == 5


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=20))
def test_it_does_what_the_bucket_in_memory_does(directory: Path, steps: list[tuple[bool, int]]) -> None:
    """Takes and give-backs in any order: the same answers and levels as a TokenBucket."""
    shared = new_bucket(directory, capacity=100)
    shared.acquire(0)
    shared.release(100)
    model = TokenBucket(100)
    for takes, amount in steps:
        if takes:
            assert shared.acquire(amount) == model.acquire(amount)
        else:
            shared.release(amount)
            model.release(amount)
        assert shared.available == model.available


def test_it_refills_by_the_machines_clock(directory: Path) -> None:
    """Tokens that another process spent come back too; a clock that begins anew takes nothing away."""
    clock = FakeClock()
    one, two = (new_bucket(directory, capacity=100, refill_rate=10, clock=clock) for _ in range(2))
    one.acquire(100)
    clock.advance(3)
    assert (two.acquire(31), two.acquire(30), two.acquire(1)) == (False, True, False)
    clock.advance(60)
    two.acquire(0)
    assert two.available == 100
    reborn = new_bucket(directory, capacity=100, refill_rate=10, clock=FakeClock())
    reborn.acquire(50)
    assert reborn.available == 50


def test_a_full_bucket_takes_no_lock(directory: Path) -> None:
    """Giving back to a full bucket changes nothing, so it does not wait for the lock."""
    bucket, other = new_bucket(directory), new_bucket(directory)
    bucket.acquire(1)
    bucket.release(1)
    other._file.lock(1)
    bucket.release(1)
    assert bucket.failures == 0


def test_threads_never_overspend(directory: Path) -> None:
    """Eight threads with one handle are granted exactly what there is."""
    bucket = new_bucket(directory, capacity=70, settings=SharedQuotaSettings(budget=60))
    with ThreadPoolExecutor(8) as pool:
        granted = sum(pool.map(lambda _: bucket.acquire(1), range(800)))
    assert (granted, bucket.available, bucket.failures) == (70, 0, 0)


def test_copies_are_handles_of_the_same_bucket(directory: Path) -> None:
    """A copied or unpickled bucket shares with its original; one that belongs to a strategy is not copied alone."""
    bucket = new_bucket(directory, capacity=20)
    for other in (copy.copy(bucket), copy.deepcopy(bucket), pickle.loads(pickle.dumps(bucket))):
        assert (other.scope, other.capacity, other.acquire(5)) == ("a", 20, True)
    bucket.acquire(0)
    assert (bucket.available, repr(bucket)) == (5, "<SharedMemoryTokenBucket 'a' in 'test' (shared memory)>")
    part = SharedMemoryTokenBucket(SharedMemory("test", directory=directory), "a", capacity=5, refill_rate=0)
    with pytest.raises(TypeError, match="copy the strategy instead"):
        pickle.dumps(part)


@pytest.mark.parametrize("name", ["", "a/b", "../a", "a b", "x" * 65])
def test_a_bad_name_is_refused(name: str) -> None:
    """A name becomes a file's name, so other characters are refused."""
    with pytest.raises(ValueError, match=r"^name="):
        SharedMemoryTokenBucket(name)


def test_who_waits_for_the_lock_refills_no_span_twice(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process takes a token while one waits a second for the lock: of that second, one refill is left."""
    clock = FakeClock()
    one, two = (new_bucket(directory, capacity=100, refill_rate=10, clock=clock) for _ in range(2))
    assert one.acquire(100)
    clock.advance(1)
    lock = one._memory.lock

    def after_a_second(now: float) -> bool:
        monkeypatch.undo()
        clock.advance(1)
        assert two.acquire(1)
        return lock(now)

    monkeypatch.setattr(one._memory, "lock", after_a_second)
    assert one.acquire(1)
    clock.advance(1)
    assert two.acquire(1)
    assert 30 - 3 == two.available


@pytest.mark.parametrize(("option", "value"), [("capacity", -1), ("refill_rate", float("inf"))])
def test_numbers_out_of_range_are_refused(directory: Path, option: str, value: float) -> None:
    """Numbers out of range are refused, as by the bucket in memory."""
    with pytest.raises(ValueError, match=option):
        new_bucket(directory, **{option: value})


class TestWithoutTheLock:
    def test_a_lock_that_somebody_keeps(self, directory: Path, caplog: pytest.LogCaptureFixture) -> None:
        """Three calls in a row wait for the budget each; then the local bucket answers at once, for an interval."""
        clock = FakeClock()
        bucket = new_bucket(directory, clock=clock, settings=SharedQuotaSettings(local_capacity=28))
        holder = new_bucket(directory)
        bucket.acquire(100)
        holder._file.lock(1)
        took = []
        for _ in range(4):
            began = SYSTEM_CLOCK.now()
            bucket.acquire(7)
            took.append(SYSTEM_CLOCK.now() - began)
        assert max(took) < 0.02 + TOLERANCE
        assert (bucket.available, bucket.source, bucket.failures) == (0, "shared memory, fallen open", 3)
        assert not bucket.acquire(7)
        assert "shm://test does not answer (another process holds the lock, failure 1)" in caplog.text
        bucket.release(10)
        assert bucket.available == 10
        holder._file.unlock()
        clock.advance(60)
        assert bucket.acquire(0)
        assert (bucket.available, bucket.source) == (400, "shared memory")
        bucket.release(10)
        assert bucket.available == 410

    def test_one_late_call_costs_one_call(self, directory: Path) -> None:
        """Only the take that did not get the lock uses the local bucket, and its tokens go back there."""
        bucket, holder = new_bucket(directory, settings=SharedQuotaSettings(local_capacity=20)), new_bucket(directory)
        bucket.acquire(100)
        holder._file.lock(1)
        assert bucket.acquire(14)
        assert (bucket.available, bucket.source) == (6, "shared memory, fallen open")
        holder._file.unlock()
        bucket.release(14)
        assert (bucket.available, bucket._local.available) == (20, 20)
        assert bucket.acquire(14)
        assert (bucket.available, bucket.source, bucket.failures) == (386, "shared memory", 1)

    def test_a_lock_that_another_thread_of_this_process_keeps(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is waited for longer than the budget: that thread lets go as soon as it can run."""
        assert file.OWN_PATIENCE == 10
        monkeypatch.setattr(file, "OWN_PATIENCE", 1e5)  # so that no machine is too busy
        bucket = new_bucket(directory, settings=SharedQuotaSettings(budget=0.001))
        bucket.acquire(0)
        bucket._file._threads.acquire()
        threading.Timer(0.02, bucket._file._threads.release).start()
        assert (bucket.acquire(1), bucket.source, bucket.failures) == (True, "shared memory", 0)

    def test_threads_that_wait_in_line_are_late_together(self, directory: Path) -> None:
        """A thread behind one that waited in vain for another process does not wait again."""
        bucket, holder = new_bucket(directory, settings=SharedQuotaSettings(budget=0.2)), new_bucket(directory)
        bucket.acquire(0)
        holder._file.lock(1)
        began = SYSTEM_CLOCK.now()
        with ThreadPoolExecutor(8) as pool:
            granted = list(pool.map(lambda _: (bucket.acquire(1), bucket.source), range(8)))
        assert SYSTEM_CLOCK.now() - began < 0.2 + 2 * TOLERANCE
        assert granted == [(True, "shared memory, fallen open")] * 8
        assert bucket.failures == 1
        holder._file.unlock()

    def test_a_file_that_cannot_be_opened_again(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """If the file cannot be opened again, after a fork or when it was replaced, the bucket falls open."""
        bucket = new_bucket(directory)
        bucket.acquire(1)
        bucket._file.close()
        monkeypatch.setattr(bucket._file, "path", directory / "gone" / "test.quota")
        assert bucket.available == 500
        assert bucket.acquire(14)
        assert bucket.source == "shared memory, fallen open"

    @pytest.mark.once
    def test_a_holder_killed_two_hundred_times(self, directory: Path) -> None:
        """A process that dies with the lock held blocks no other process, and changes nothing."""
        code = f"""
import os, signal
from pathlib import Path
from requests_smithy_retry.quotas.shared_memory import SharedMemoryTokenBucket, file
from requests_smithy_retry.quotas.settings import SharedQuotaSettings
bucket = SharedMemoryTokenBucket("test", "a", capacity=2000, directory=Path({str(directory)!r}),
                                 settings=SharedQuotaSettings(budget=60))
worst = 0
for _ in range(200):
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        bucket._file.lock(5)
        os.write(writable, b"x")
        signal.pause()
    os.read(readable, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(readable)
    os.close(writable)
    assert bucket.acquire(1)
print(bucket.available, bucket.failures, bucket.source)
"""
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert said == "1800.0 0 shared memory\n"


@pytest.mark.parametrize("amount", [-1, float("nan"), float("-inf")])
def test_an_amount_that_is_none_is_refused(directory: Path, amount: float) -> None:
    """A negative amount would overfill the bucket, nan would spoil it."""
    bucket = new_bucket(directory)
    for method in (bucket.acquire, bucket.release):
        with pytest.raises(ValueError, match=rf"^amount={amount!r}: a finite number of tokens, 0 or more, is allowed$"):
            method(amount)
    assert bucket.available == 500


def test_a_removed_file_ends_no_call_of_another_thread(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The level is read without a lock, so the mapping stays as long as a thread reads it."""
    bucket = new_bucket(directory, capacity=1e9)
    bucket.acquire(1)

    def replaced_meanwhile(mapped, offset):
        if not bucket._file._threads.locked():
            bucket._file.close()
        return level_of(mapped, offset)

    monkeypatch.setattr(shared_memory, "level_of", replaced_meanwhile)
    assert bucket.available == 1e9 - 1
    bucket.acquire(1)
    bucket.release(1)
    assert bucket.failures == 0


class TestDamage:
    def test_a_damaged_record_begins_anew_loudly(self, directory: Path, caplog: pytest.LogCaptureFixture) -> None:
        """The others keep what they have."""
        bucket, other = new_bucket(directory, "a", capacity=50), new_bucket(directory, "b", capacity=50)
        bucket.acquire(20)
        other.acquire(20)
        bucket._file.memory[bucket._offset + 30] ^= 1
        assert bucket.acquire(14)
        other.acquire(0)
        assert (bucket.available, other.available) == (36, 30)
        assert "a record is damaged; the shared retry quota in it begins anew" in caplog.text

    def test_a_place_that_went_to_another_bucket_is_noticed(self, directory: Path) -> None:
        """A full bucket's place may be given away; its next user looks for another."""
        bucket = new_bucket(directory, "a", capacity=50)
        bucket.acquire(0)
        memory = bucket._file.memory
        theirs = new_bucket(directory, "b", capacity=50)
        theirs.acquire(20)
        end = bucket._offset + RECORD_SIZE
        memory[bucket._offset : end] = memory[theirs._offset : theirs._offset + RECORD_SIZE]
        assert bucket.acquire(14)
        assert (bucket.available, bucket._offset != end - RECORD_SIZE) == (36, True)

    def test_after_a_replacement_all_find_each_other(self, directory: Path) -> None:
        """The file was removed: within a second everybody is in the new one."""
        clock = FakeClock()
        one, two = (new_bucket(directory, capacity=50, clock=clock, refill_rate=0) for _ in range(2))
        one.acquire(10)
        two.acquire(10)
        one._file.path.unlink()
        clock.advance(1.05)
        assert [one.acquire(10), two.acquire(10)] == [True, True]
        assert (one.available, two.available) == (30, 30)


class TestRoom:
    def test_full_buckets_make_room_and_spent_ones_stay(self, directory: Path) -> None:
        """More scopes than places: only full buckets are given up."""
        memory = SharedMemory("test", directory=directory)

        def bucket(scope: int) -> SharedMemoryTokenBucket:
            return SharedMemoryTokenBucket(memory, str(scope), capacity=50, refill_rate=0)

        for scope in range(OVERFLOW):
            bucket(scope).acquire(1)
        for scope in range(0, OVERFLOW, 2):
            full = bucket(scope)
            full.acquire(0)
            full.release(1)
        newcomer = bucket(5000)
        newcomer.acquire(9)
        spent = bucket(1)
        spent.acquire(0)
        assert (newcomer.available, spent.available) == (41, 49)

    def test_latecomers_share_one_bucket(self, directory: Path) -> None:
        """If every place holds a spent bucket, newcomers spend from one together."""
        memory = SharedMemory("test", directory=directory)

        def bucket(scope: int) -> SharedMemoryTokenBucket:
            return SharedMemoryTokenBucket(memory, str(scope), capacity=50, refill_rate=0)

        for scope in range(OVERFLOW):
            bucket(scope).acquire(1)
        one, two = bucket(5000), bucket(5001)
        assert [one.acquire(30), two.acquire(30), two.acquire(20)] == [True, False, True]
        assert one._offset == two._offset == offset_of(OVERFLOW)


def test_forks_under_load_of_threads_do_not_hang(directory: Path) -> None:
    """A child forked while other threads hold the lock takes and gives as before."""
    code = f"""
import os, threading
from pathlib import Path
from requests_smithy_retry.quotas.shared_memory import SharedMemoryTokenBucket, file
from requests_smithy_retry.quotas.settings import SharedQuotaSettings
bucket = SharedMemoryTokenBucket("test", "a", directory=Path({str(directory)!r}), capacity=1e6,
                                 settings=SharedQuotaSettings(budget=60))
stop = False
def load():
    while not stop:
        bucket.acquire(1)
        bucket.release(1)
threads = [threading.Thread(target=load) for _ in range(2)]
for thread in threads: thread.start()
codes = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        ok = all(bucket.acquire(1) for _ in range(10))
        os._exit(0 if ok and bucket.failures == 0 else 1)
    codes.append(os.waitpid(child, 0)[1])
stop = True
for thread in threads: thread.join()
bucket.acquire(0)
print(sum(codes), bucket.available, bucket.failures)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 999920.0 0\n"


def test_the_default_directory_is_shared_by_a_users_processes() -> None:
    """Without a directory, a process of the same user finds the bucket by its name."""
    name = f"test-{os.getpid()}-{threading.get_ident()}"
    bucket = SharedMemoryTokenBucket(name, capacity=20)
    try:
        code = (
            "from requests_smithy_retry.quotas.shared_memory import SharedMemoryTokenBucket as B\n"
            f"B({name!r}, capacity=20).acquire(15)"
        )
        subprocess.run([sys.executable, "-c", code], check=True)
        bucket.acquire(0)
        assert bucket.available == 5
    finally:
        bucket._file.path.unlink()
