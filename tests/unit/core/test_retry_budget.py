"""The default bucket and the line before it: what a retry costs, who waits, on threads, forks and interrupts."""

from __future__ import annotations

import copy
import os
import pickle
import random
import threading
import time
from typing import Any

import pytest

from requests_smithy_retry import AttemptFailed, ErrorKind, Outcome, RetryReason, StopReason
from requests_smithy_retry.clock import Wait
from requests_smithy_retry.core.quota import Refused
from requests_smithy_retry.core.retry_budget import PayoffTokenBucket, PlaceInQueue, RetryBudget, capacity_of
from requests_smithy_retry.core.wait_queue import UNLIMITED, Bounds, Failure, Progress, Waiter
from requests_smithy_retry.quotas import RetryQuota, TokenBucketSnapshot
from requests_smithy_retry.testing import FakeClock
from tests.unit.core.director import Director

PLAIN = Bounds()
NEEDS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def fail(quota: RetryBudget, clock: Any, bounds: Bounds = PLAIN, progress: Progress | None = None, **how: Any) -> Any:
    """Fail one attempt, and wait as long as the quota says."""
    progress = Progress(clock.now()) if progress is None else progress
    return quota.acquire(progress, bounds, Failure(**how), AttemptFailed(Outcome(ended=clock.now()), clock=clock))


def emptied(clock: Any, **options: Any) -> tuple[RetryBudget, Progress]:
    """A quota whose tokens one operation has spent, and that operation's progress."""
    quota = RetryBudget(now=clock.now(), **options)
    progress = Progress(clock.now())
    for _ in range(2):
        progress = fail(quota, clock, progress=progress).progress
    return quota, progress


# The bucket


@pytest.mark.parametrize(
    ("spent", "first_tries", "held"),
    [(0, 0, 2.0), (1, 0, 1.0), (2, 0, 0.0), (2, 1, 2.0), (1, 1000, 2.0), (0, 1, 2.0)],
)
def test_one_first_try_success_fills_it_to_the_room_of_one_operation(spent, first_tries, held):
    """A first-try success fills the bucket up to two tokens, however few are left, and never beyond."""
    bucket = PayoffTokenBucket()
    assert [True] * spent == [bucket.acquire(1) for _ in range(spent)]
    bucket.first_tries(first_tries)
    assert held == bucket.available


def test_what_paid_fades_with_each_first_try_success():
    """Half of it after 14, nearly nothing after a hundred."""
    bucket = PayoffTokenBucket()
    bucket.release(10)
    bucket.first_tries(14)
    assert pytest.approx(2 + 10 * 0.95**14) == bucket.available
    bucket.first_tries(100_000)
    assert pytest.approx(2.0) == bucket.available


def test_it_is_a_retry_quota():
    """The bucket can be passed to strategies, which then share it."""
    bucket = PayoffTokenBucket()
    assert isinstance(bucket, RetryQuota)
    assert bucket.acquire(1.5)
    assert not bucket.acquire(1)
    bucket.release(100)
    assert TokenBucketSnapshot(2.0, 36.0, "memory") == bucket.snapshot()
    assert ["<PayoffTokenBucket 36 of 2>", "<PayoffTokenBucket 5 of 5>"] == [repr(bucket), repr(PayoffTokenBucket(5))]


@pytest.mark.parametrize("method", ["acquire", "release", "succeeded"])
@pytest.mark.parametrize("amount", [-3, float("nan")])
def test_no_amount_below_nothing_is_taken_or_given(method, amount):
    """A bucket holds from 0 to 36, whatever it is asked."""
    bucket = PayoffTokenBucket()
    with pytest.raises(ValueError, match="0 or more"):
        getattr(bucket, method)(amount)
    assert 2.0 == bucket.available
    with pytest.raises(ValueError, match="0 or more"):
        PayoffTokenBucket(amount)


def test_renewing_it_takes_nothing_away():
    """A renewed bucket holds what a new one holds, or more; one that forgets, exactly that."""
    bucket = PayoffTokenBucket()
    bucket.acquire(2)
    bucket.renew()
    assert 2.0 == bucket.available
    bucket.release(3)
    bucket.renew()
    assert 5.0 == bucket.available
    bucket.forget()
    assert 2.0 == bucket.available


@pytest.mark.parametrize(
    ("most", "tokens"), [(None, 2.0), (1, 0.0), (2, 1.0), (6, 5.0), (100, 99.0), (UNLIMITED, 36.0)]
)
def test_a_bucket_begins_with_the_retries_of_one_operation(most, tokens):
    """That many retries can be paid for; where their number has no bound, as many as with the AWS SDKs."""
    bucket = PayoffTokenBucket(capacity_of(Bounds(most)))
    assert (tokens, tokens) == (bucket.available, bucket.capacity)
    bucket.acquire(tokens)
    bucket.first_tries(1)
    assert tokens == bucket.available
    bucket.succeeded(1)
    assert min(2 * tokens + 1, max(36.0, tokens)) == bucket.available


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda bucket: pickle.loads(pickle.dumps(bucket))])
def test_a_copy_begins_anew(twin):
    """A copy is full, whatever was spent of the original."""
    bucket = PayoffTokenBucket(5)
    bucket.acquire(1)
    assert (4.0, 5.0) == (bucket.available, twin(bucket).available)


# What a retry costs


def test_the_bucket_pays_while_nobody_waits_and_gets_it_back():
    """Two retries for who can wait for a proof only once; a success gives all back, and room for one more."""
    clock = FakeClock()
    quota = RetryBudget()
    first = fail(quota, clock, delay=0.05)
    second = fail(quota, clock, progress=first.progress, delay=0.1)
    assert (0.05, 0.1, 2.0, 1.0) == (first.delay, second.delay, second.progress.spent, second.progress.acquired)
    assert (2.0, 1.0, "memory") == first.payment
    assert 0.0 == quota.snapshot(0.0).available
    quota.succeeded(second.progress, 0.0, 0.1, 1.0)
    assert 4.0 == quota.snapshot(0.0).available


def test_a_success_gives_back_the_retries_of_one_operation_and_no_more():
    """Nine retries in a row are paid from a full bucket; the success gives back two of them, and makes room for two."""
    bucket, clock, progress = PayoffTokenBucket(), FakeClock(), Progress(0.0)
    bucket.release(8)
    quota = RetryBudget(bucket)
    for _ in range(9):
        progress = fail(quota, clock, progress=progress).progress
    assert (1, 2) == (bucket.available, progress.spent)
    quota.succeeded(progress, 0.0)
    assert 1 + 2 + 2 == bucket.available


def test_a_success_that_lets_somebody_go_makes_no_room():
    """A success that lets a waiter go adds nothing to the bucket."""
    director = Director()
    quota, progress = emptied(director)
    thread = director.start(fail, quota, director)
    quota.succeeded(progress, 0.0, 1.0, 1.0)
    assert TokenBucketSnapshot(2.0, 0.0, "memory", 1, None) == quota.snapshot(0.0)
    director.run_until(20)
    thread.join(60)


def test_first_tries_are_told_to_the_bucket_when_something_is_taken():
    """A bucket that processes share is asked no oftener."""
    told: list[int] = []

    class Shared(PayoffTokenBucket):
        def first_tries(self, number: int) -> None:
            told.append(number)

    quota = RetryBudget(Shared())
    for _ in range(5):
        quota.first_try(0.0, 0.0, None)
    quota.snapshot(0.0)
    assert [] == told
    fail(quota, FakeClock())
    assert [5] == told


@pytest.mark.parametrize(("spent", "first_tries"), [(0, 0), (2, 0), (2, 1), (0, 5)])
def test_a_snapshot_counts_first_tries_that_the_bucket_was_not_told_of(spent, first_tries):
    """It shows what the next failure finds: after an outage, the bucket is full with the first success."""
    bucket = PayoffTokenBucket()
    quota = RetryBudget(bucket)
    bucket.release(10)
    assert bucket.acquire(10 + spent)
    for _ in range(first_tries):
        quota.first_try(0.0, 0.0, None)
    seen = quota.snapshot(0.0).available
    fail(quota, FakeClock())
    assert (seen - 1 if seen else 0) == bucket.available


def test_who_fails_while_all_is_forgotten_waits_with_the_others():
    """Another one's success lets it go, also if everything was forgotten between its failure and its first look."""
    clock = FakeClock()
    quota, progress = emptied(clock)
    place = PlaceInQueue(quota, Waiter(progress, PLAIN, 0.0, 0.0))
    quota.forget(0.0)
    with place.changed:
        assert isinstance(place.look(0.0), Wait)
    assert 1 == quota.snapshot(0.0).waiting
    quota.first_try(0.0, 0.0, None)
    with place.changed:
        assert "another request succeeded" == place.look(0.0).why


def test_prices_may_differ():
    """By the reason for the retry; what the bucket cannot pay is waited for."""
    quota = RetryBudget(
        PayoffTokenBucket(28), price_of=lambda reason: 5.0 if reason.kind is ErrorKind.THROTTLING else 14.0
    )
    clock, progress = FakeClock(), Progress(0.0)
    seen = []
    for kind in (ErrorKind.SERVER, ErrorKind.THROTTLING, ErrorKind.SERVER):
        go = fail(quota, clock, progress=progress, reason=RetryReason(kind))
        progress = go.progress
        seen.append((progress.acquired, go.why))
    assert [(14.0, ""), (5.0, ""), (0.0, "nobody had asked for a while")] == seen


def test_the_price_of_a_retry_that_was_not_made_comes_back():
    """A limiter gave no permit; who was let go from the line had paid nothing."""
    quota = RetryBudget()
    quota.unsent(fail(quota, FakeClock()).progress)
    quota.unsent(Progress(0.0))
    assert Progress(0.0) == quota.polled(Progress(0.0))
    assert 2.0 == quota.snapshot(0.0).available


@pytest.mark.parametrize(
    ("bounds", "took", "delay"),
    [
        (Bounds(), 0.0, 3.0),
        (Bounds(), 2.0, 2.9),  # the outage is two seconds old: a tenth of a second is left after it
        (Bounds(), 4.85, 0.1),
        (Bounds(patience=20.0), 0.0, 12.0),
        (Bounds(deadline=302.0), 0.0, 1.9),
        (Bounds(max_attempts=3), 0.0, 3.0),
        (Bounds(max_attempts=4), 0.0, 0.1),  # this retry is not the last one
        (Bounds(patience=0.0), 0.0, 0.1),
    ],
)
def test_a_client_with_hardly_any_operations_makes_its_last_retry_late(bounds, took, delay):
    """A client that few others would help waits three fifths of its patience before its last retry, and not past it."""
    clock = FakeClock()
    quota = RetryBudget()
    for _ in range(5):
        clock.advance(60)
        quota.first_try(clock.now(), 0.0, None)
    first = fail(quota, clock, bounds, delay=0.05)
    clock.advance(took)
    second = fail(quota, clock, bounds, first.progress, delay=0.1)
    assert (0.05, pytest.approx(delay)) == (first.delay, second.delay)


def test_nobody_makes_more_retries_past_its_patience_however_much_was_earned():
    """An operation makes its own two retries, whatever their delay; further ones end with its patience."""
    clock, bucket, progress = FakeClock(), PayoffTokenBucket(), Progress(0.0)
    bucket.release(30)
    quota = RetryBudget(bucket)
    for delay in (8.0, 16.0):
        go = fail(quota, clock, progress=progress, delay=delay)
        assert delay == go.delay
        clock.advance(delay)
        progress = go.progress
    assert Refused(StopReason.PATIENCE) == fail(quota, clock, progress=progress, delay=20.0)


# Waiting


def test_a_success_wakes_the_first_in_line_at_that_moment():
    """A success wakes the first in line at once, before it would have looked by itself."""
    director, said = Director(), []
    quota, _ = emptied(director)
    quota.first_try(0.0, 0.0, None)
    fail(quota, director)
    fail(quota, director)
    director.start(lambda: said.append((fail(quota, director).why, director.now())))
    director.run_until(0.25)
    quota.first_try(0.25, 0.0, None)
    director.settle()
    assert [("another request succeeded", 0.25)] == said


def test_a_first_attempt_puts_off_the_question():
    """The next in line asks so long after the last attempt of anybody, whoever sent it."""
    director, said = Director(), []
    quota, progress = emptied(director)
    quota.began(0.0)
    director.start(lambda: said.append((fail(quota, director, progress=progress), director.now())))
    director.run_until(0.4)
    quota.began(0.4)
    director.run_until(1.59)
    assert [] == said
    director.run_until(1.6)
    assert [1.6] == [when for _, when in said]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_waiter_leaves_the_line(kind):
    """Ctrl-C reaches the waiting thread, which leaves the line."""

    class Interrupting(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(0.01)
            raise kind

    clock = Interrupting()
    quota, progress = emptied(clock)
    with pytest.raises(kind):
        fail(quota, clock, progress=progress)
    assert TokenBucketSnapshot(2.0, 0.0, "memory", 0) == quota.snapshot(clock.now())


def test_a_line_that_fills_up_meanwhile_refuses():
    """The place is taken only when the operation waits."""
    director = Director()
    quota, progress = emptied(director, max_waiters=1)
    failed = AttemptFailed(Outcome(), clock=director)

    def wait_in(place: Any, what: str) -> Any:
        director.start(fail, quota, director)
        return place.look(0.0)

    failed.wait_in = wait_in  # type: ignore[method-assign]
    assert Refused(StopReason.LINE_FULL) == quota.acquire(progress, PLAIN, Failure(), failed)
    assert Refused(StopReason.LINE_FULL) == fail(quota, director)


# What is known of the service


@pytest.mark.parametrize(("later", "left"), [(0, 0.0), (299, 0.0), (301, 1.0)])
def test_a_scope_untouched_for_minutes_is_as_good_as_new(later, left):
    """The next failure finds a full bucket."""
    clock = FakeClock()
    quota = RetryBudget()
    fail(quota, clock)
    clock.advance(later)
    fail(quota, clock)
    assert left == quota.snapshot(clock.now()).available


# Many at once


@NEEDS_FORK
def test_a_child_begins_without_waiters_and_its_parent_keeps_its_own():
    """The child's line is empty and the parent's is not, even if another thread held the lock."""
    director = Director()
    quota, progress = emptied(director)
    director.start(fail, quota, director, PLAIN, progress)
    with quota.lock:
        pid = os.fork()
        if pid == 0:
            fresh = quota.snapshot(0.0)
            os._exit(0 if fresh == TokenBucketSnapshot(2.0, 2.0) and fail(quota, director).why == "" else 1)
    assert 0 == os.waitpid(pid, 0)[1]
    assert 1 == quota.snapshot(0.0).waiting


class Hurried:
    """The machine's clock, a hundred times as fast; a wait is interrupted now and then."""

    SPEED = 100

    def now(self) -> float:
        return time.monotonic() * self.SPEED

    wall = now

    def sleep(self, seconds: float) -> None:
        raise AssertionError("the lock is held")

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        condition.wait(seconds / self.SPEED)
        if random.random() < 0.02:
            raise KeyboardInterrupt


@pytest.mark.real_time
def test_ten_thousand_operations_on_threads_strand_nobody():
    """Real conditions and real wake-ups: every operation ends, and nobody is left in line.

    The first outage lasts until each kind of end was seen, however fast or busy the machine is.
    """
    clock, ended = Hurried(), []
    quota = RetryBudget(now=clock.now(), max_waiters=20)
    per_thread, kinds, wanted = 400, set(), {"ok", "interrupted", StopReason.PATIENCE, StopReason.DEADLINE}

    def operate(choose: random.Random) -> object:
        span = choose.choice([None, 1.0, 20.0])
        bounds = Bounds(deadline=None if span is None else clock.now() + span)
        progress = Progress(clock.now())
        quota.began(clock.now())
        while choose.random() < (0.95 if not wanted <= kinds or clock.now() % 30 < 10 else 0.1):
            seen = fail(quota, clock, bounds, progress, hint=choose.choice([0.0, 0.0, 2.0]))
            if isinstance(seen, Refused):
                return seen.reason
            progress = seen.progress
        if progress.failed_at is None:
            quota.first_try(clock.now(), 0.0, None)
        else:
            quota.succeeded(progress, clock.now())
        return "ok"

    def work(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(per_thread):
            try:
                end = operate(choose)
            except KeyboardInterrupt:
                end = "interrupted"
            ended.append(end)
            kinds.add(end)

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            before = len(ended)
            thread.join(60)
            assert not thread.is_alive() or before < len(ended), "no operation ended for a minute"
    assert 25 * per_thread == len(ended)
    assert 0 == quota.snapshot(clock.now()).waiting
    assert wanted <= kinds
