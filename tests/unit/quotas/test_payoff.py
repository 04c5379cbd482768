"""The default bucket: eight lines beside it as a model, then threads, forks and copies."""

from __future__ import annotations

import copy
import os
import pickle
import random
import threading

import pytest

from requests_smithy_retry import RetryQuota
from requests_smithy_retry.quotas.payoff import MEMORY, MOST, ROOM, PayoffTokenBucket


class Model:
    """The rule as it is written down, with whole numbers in place of a counter that is read by moving it on."""

    def __init__(self) -> None:
        self.tokens, self.new = ROOM, 0

    def settle(self) -> None:
        if self.new:
            self.tokens = ROOM + max(0.0, self.tokens - ROOM) * MEMORY**self.new
        self.new = 0

    def take(self) -> bool:
        self.settle()
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def succeeded(self, retries: int) -> None:
        self.settle()
        self.tokens = min(MOST, self.tokens + retries + ROOM)


@pytest.mark.once
def test_a_million_random_steps_agree_with_the_rule():
    """First-try successes, retries wanted and retries that paid, in runs of every length."""
    bucket, model, choose = PayoffTokenBucket(), Model(), random.Random(17)
    step, first_try = 0, bucket.first_tries.__next__
    while step < 1_000_000:
        kind, run = choose.random(), choose.choice((1, 1, 1, 2, 5, 30, 400))
        run = min(run, 400 if kind < 0.4 else 50 if kind < 0.8 else 20)
        step += run
        if kind < 0.4:
            for _ in range(run):
                first_try()
            model.new += run
        elif kind < 0.8:
            for _ in range(run):
                assert model.take() is bucket.take()
        else:
            for _ in range(run):
                retries = choose.randrange(1, 4)
                model.succeeded(retries)
                bucket.succeeded(retries)
        model.settle()
        assert model.tokens == bucket.available
        assert 0 <= model.tokens <= MOST


@pytest.mark.parametrize(
    ("spent", "first_tries", "held"),
    [(0, 0, 2.0), (1, 0, 1.0), (2, 0, 0.0), (2, 1, 2.0), (1, 1000, 2.0), (0, 1, 2.0)],
)
def test_one_first_try_success_fills_it_to_the_room_of_one_operation(spent, first_tries, held):
    """A first-try success fills the bucket up to two tokens, however few are left, and never beyond."""
    bucket = PayoffTokenBucket()
    assert [True] * spent == [bucket.take() for _ in range(spent)]
    for _ in range(first_tries):
        next(bucket.first_tries)
    assert held == bucket.available


def test_what_paid_fades_with_each_first_try_success():
    """Half of it after 14, nearly nothing after a hundred."""
    bucket = PayoffTokenBucket()
    bucket.release(10)
    for _ in range(14):
        next(bucket.first_tries)
    assert 2 + 10 * 0.95**14 == bucket.available
    for _ in range(100_000):
        next(bucket.first_tries)
    assert pytest.approx(2.0) == bucket.available


def test_the_last_token_goes_to_one_only():
    """Of many threads that want the last token at once, one gets it."""
    bucket, got = PayoffTokenBucket(), []
    start = threading.Barrier(8)

    def want() -> None:
        start.wait(60)
        got.append(bucket.take())

    assert bucket.take()
    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [False] * 7 + [True] == sorted(got)


def test_no_first_try_success_is_lost_between_threads():
    """A counter and a lock: the number is exact once everybody is done."""
    bucket = PayoffTokenBucket()

    def work() -> None:
        for number in range(2000):
            next(bucket.first_tries)
            if number % 50 == 0:
                bucket.take()
                bucket.succeeded(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert 8000 == bucket.settle()


def test_it_is_a_retry_quota():
    """The bucket can be passed to strategies, which then share it."""
    bucket = PayoffTokenBucket()
    assert isinstance(bucket, RetryQuota)
    assert bucket.acquire(1.5)
    assert not bucket.acquire(1)
    bucket.release(100)
    assert (2.0, 36.0, "memory") == (bucket.snapshot().capacity, bucket.snapshot().available, bucket.snapshot().source)
    assert "<PayoffTokenBucket 36 of 2>" == repr(bucket)


@pytest.mark.parametrize("method", ["acquire", "release", "succeeded"])
@pytest.mark.parametrize("amount", [-1, float("nan")])
def test_no_amount_below_nothing_is_taken_or_given(method, amount):
    """A bucket holds from 0 to 36, whatever it is asked."""
    bucket = PayoffTokenBucket()
    with pytest.raises(ValueError, match="0 or more"):
        getattr(bucket, method)(amount)
    assert 2.0 == bucket.available


def test_renewing_it_takes_nothing_away():
    """A renewed bucket holds what a new one holds, or more."""
    bucket = PayoffTokenBucket()
    bucket.acquire(2)
    bucket.renew()
    assert 2.0 == bucket.available
    bucket.release(3)
    bucket.renew()
    assert 5.0 == bucket.available


def test_it_begins_with_as_many_tokens_as_it_is_told():
    """Below nothing, or no number, is refused."""
    assert ("<PayoffTokenBucket 5 of 5>", 5.0) == (repr(PayoffTokenBucket(5)), PayoffTokenBucket(5).snapshot().capacity)
    with pytest.raises(ValueError, match="0 or more"):
        PayoffTokenBucket(-1)


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda bucket: pickle.loads(pickle.dumps(bucket))])
def test_a_copy_begins_anew(twin):
    """A copy is full, whatever was spent of the original."""
    bucket = PayoffTokenBucket(5)
    bucket.take()
    other = twin(bucket)
    assert (4.0, 5.0) == (bucket.available, other.available)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_begins_anew_and_its_parent_keeps_what_it_had():
    """The child begins anew even if another thread held the lock, and a counter from before the fork still counts."""
    bucket = PayoffTokenBucket()
    first_try = bucket.first_tries.__next__
    bucket.take()
    with bucket._lock:
        pid = os.fork()
        if pid == 0:
            is_new = bucket.available == 2.0 and bucket.take()
            first_try()
            os._exit(0 if is_new and bucket.available == 2.0 else 1)
    assert 0 == os.waitpid(pid, 0)[1]
    assert 1.0 == bucket.available
