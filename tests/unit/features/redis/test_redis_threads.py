"""The quota on Redis without a server: who waits for how long, who asks when, and what a caller who leaves gets."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from requests_smithy_retry.features.redis import PAUSE, Ask, RedisQuota, RedisTokenBucket
from requests_smithy_retry.testing import FakeClock

from .servers import Dictionary, becomes

pytestmark = pytest.mark.real_time

LONG = 60.0
"""A time-out that no busy machine exceeds."""


@pytest.fixture
def client() -> Dictionary:
    return Dictionary()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def bucket(client: Dictionary, clock: FakeClock) -> RedisTokenBucket:
    return RedisQuota(client, capacity=100, timeout=LONG, clock=clock)("scope")


@pytest.fixture
def held(client: Dictionary) -> Iterator[threading.Event]:
    """Answers wait for this."""
    gate = threading.Event()
    client.gate = gate.wait
    yield gate
    gate.set()


def fail() -> None:
    raise ConnectionError("redis://:hunter2@host")


def test_what_many_threads_ask_goes_out_together(bucket, client, held):
    """While one question is on its way, the others gather, and go in one exchange."""
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(bucket.acquire, 14)
        assert becomes(lambda: client.runs)
        others = [pool.submit(bucket.acquire, 14) for _ in range(8)]
        assert becomes(lambda: len(bucket.quota._asks) == 8)
        held.set()
        assert 7 == sum(future.result() for future in (first, *others))
    assert [1, 8] == [len(run) for run in client.runs]


def test_a_caller_leaves_after_the_time_out_and_what_it_is_granted_late_goes_back(bucket, client, held, caplog):
    """A bucket of the process pays meanwhile; nobody else misses the tokens."""
    bucket.quota.timeout = 0.05
    assert (True, "redis, fallen open", 86) == (bucket.acquire(14), bucket.source, bucket.available)
    assert "does not answer (no answer in 0.05 s)" in caplog.text
    held.set()
    assert becomes(lambda: [(14.0, 0.0)] in client.runs)
    assert becomes(lambda: {"requests-smithy-retry:{scope}": 100.0} == client.levels)


def test_who_has_left_before_the_question_goes_out_takes_nothing(bucket, client, held):
    """What it gives back goes all the same."""
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(bucket.acquire, 50)
        assert becomes(lambda: client.runs)
        bucket.quota.timeout = 0.01
        assert None is bucket.quota.run("scope", 0.0, 14.0)
        bucket.quota.is_away = False
        assert None is bucket.quota.run("scope", 7.0, 0.0)
        held.set()
        first.result()
    assert becomes(lambda: [[(0.0, 50.0)], [(7.0, 0.0)]] == client.runs)


def test_nobody_waits_for_a_server_that_is_away(bucket, client, clock, caplog):
    """A second after a failure one question finds out, and one more a second later; a record tells of each change."""
    caplog.set_level(logging.INFO, "requests_smithy_retry")
    settled: list[str] = []
    settle = bucket.quota._settle
    bucket.quota._settle = lambda batch, answers, why: (settle(batch, answers, why), settled.append(why))[0]
    client.gate = fail
    bucket.acquire(14)
    for asked in (1, 2, 3):
        assert becomes(lambda asked=asked: ["ConnectionError"] * asked == settled)
        assert [True] * 2 == [bucket.acquire(1) for _ in range(2)]
        assert asked == len(client.runs)
        clock.advance(PAUSE)
        client.gate = fail if asked < 3 else lambda: None
        assert bucket.acquire(1)
    assert becomes(lambda: "redis" == bucket.source)
    assert [[(0.0, 14.0)], *[[(0.0, 0.0)]] * 3] == client.runs
    said = ["does not answer (ConnectionError): a bucket of this process stands in", "answers again"]
    place = "the shared retry quota at the program's Dictionary"
    assert [f"{place} {words}" for words in said] == [record.getMessage() for record in caplog.records]


def test_without_a_thread_the_call_goes_by_itself(bucket, client, clock, monkeypatch):
    """As when the interpreter ends; once there are threads again, the server is asked."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    bucket.quota.timeout = 0.01
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        assert (True, "redis, fallen open") == (bucket.acquire(14), bucket.source)
    clock.advance(PAUSE)
    bucket.acquire(1)
    assert becomes(lambda: "redis" == bucket.source)
    assert [[(0.0, 0.0)]] == client.runs


class Interrupted(BaseException):
    """As Ctrl-C, or a task's time limit."""


def test_an_interrupt_goes_through_and_what_was_granted_comes_back(bucket, client, monkeypatch):
    """Whether it comes before the answer or right after it."""

    class Interrupting(threading.Event):
        waits = True

        def wait(self, timeout: float | None = None) -> bool:
            if self.waits:
                super().wait(timeout)
            raise Interrupted

    monkeypatch.setattr("requests_smithy_retry.features.redis.Ask", lambda *words: Ask(*words, Interrupting()))
    for Interrupting.waits in (True, False):
        with pytest.raises(Interrupted):
            bucket.acquire(14)
        assert becomes(lambda: {"requests-smithy-retry:{scope}": 100.0} == client.levels and not bucket.quota._asks)
    assert [(0.0, 14.0), (14.0, 0.0)] == [step for run in client.runs[:2] for step in run]


def test_the_thread_ends_when_nobody_asks(bucket, client, monkeypatch):
    """The next question starts another one, so a quota that is dropped leaves no thread behind."""
    monkeypatch.setattr("requests_smithy_retry.features.redis.IDLE", 0.01)
    for _ in range(2):
        assert bucket.acquire(1)
        assert becomes(lambda: bucket.quota._thread is None)
    assert 2 == len(client.runs)


def test_a_full_bucket_asks_nobody(bucket, client):
    """While this process knows of no spent token, a success costs nothing."""
    bucket.release(1)
    bucket.acquire(14)
    assert bucket.available < bucket.capacity
    bucket.release(14)
    bucket.release(14)
    assert bucket.available == bucket.capacity
    assert [[(0.0, 14.0)], [(14.0, 0.0)]] == client.runs


def test_the_local_bucket_gets_its_own_back(bucket, client, clock):
    """What it paid comes back to it, and is nobody else's."""
    client.gate = fail
    bucket.acquire(50)
    assert 50 == bucket.available
    bucket.release(30)
    assert 80 == bucket.available
    client.gate = lambda: None
    clock.advance(PAUSE)
    bucket.acquire(0)
    assert becomes(lambda: "redis" == bucket.source)
    assert 100 == bucket.available


def test_a_forked_child_begins_anew(bucket, client, held):
    """It has a lock and a thread of its own, and open questions are its parent's."""
    quota = bucket.quota
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(bucket.acquire, 14)
        assert becomes(lambda: client.runs)
        thread, lock = quota._thread, quota._changed
        quota.renew_lock()
        assert (None, [], True) == (quota._thread, quota._asks, quota._changed is not lock)
        held.set()
        assert asking.result()
    assert thread is not None
    assert bucket.acquire(14)
    assert quota._thread is not thread
