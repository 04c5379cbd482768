"""Waiting for retry tokens (contract 6.3): exact times on one fake clock, then real threads, then fork."""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from typing import Any

import pytest

from requests_smithy_retry import AttemptFailed, Outcome, RetryError, StandardRetryStrategy, StopReason, TokenBucket
from requests_smithy_retry.core.quota import Refused
from requests_smithy_retry.core.wait_queue import Bounds, Failure, Progress
from requests_smithy_retry.smithy.buckets import PlaceAtBucket, PricedQuota
from requests_smithy_retry.testing import FakeClock
from tests.unit.core.director import GIVE_UP, PAUSE, Director
from tests.unit.core.test_strategy import Safe, in_context, refresh


@pytest.fixture
def director():
    return Director()


def waiting(director, *wanted, rate=1):
    """A bucket of 10, and what threads get that want these amounts in order: (amount, granted, when)."""
    bucket = TokenBucket(10, initial=0, refill_rate=rate, on_empty="wait", clock=director)
    said: list[tuple[float, bool, float]] = []

    def want(amount: float, until: float | None) -> None:
        granted = bucket.acquire(amount, deadline=until)
        said.append((amount, granted, director.now()))

    for each in wanted:
        director.start(want, *(each if isinstance(each, tuple) else (each, None)))
    return bucket, said


def test_a_steady_refill_serves_the_line_at_exact_times(director):
    """At 2 tokens a second, wants of 4, 1 and 3 are served at 2, 2.5 and 4 s: in order, whatever they want."""
    bucket, said = waiting(director, 4, 1, 3, rate=2)
    director.run_until(10)
    assert said == [(4, True, 2.0), (1, True, 2.5), (3, True, 4.0)]
    assert bucket.available == 10


def test_returned_tokens_wake_the_first_in_line_at_once(director):
    """With next to no refill, waiters are served in turn at the moment of a return."""
    bucket, said = waiting(director, 4, 2, rate=1e-12)
    for until, returned, served in ((3.5, 4, []), (5.25, 3, [(4, True, 3.5)])):
        director.run_until(until)
        assert said == served
        bucket.release(returned)
    director.run_until(6)
    assert said == [(4, True, 3.5), (2, True, 5.25)]
    assert bucket.available == pytest.approx(1)


def test_a_wait_whose_known_end_lies_past_the_deadline_is_not_begun(director):
    """At 1 token a second, 5 tokens by 4.9 s cannot be had, nor 11 of 10 ever; 5 by 5 s can."""
    _, said = waiting(director, (5, 4.9), 11, (5, 5.0))
    assert said == [(5, False, 0.0), (11, False, 0.0)]
    director.run_until(5)
    assert said[2:] == [(5, True, 5.0)]
    assert not TokenBucket(0, refill_rate=1, on_empty="wait", clock=director).acquire(1)


def test_who_is_interrupted_lets_the_next_one_forward(director):
    """Interrupted at 1 s, the first leaves; the second, due at 8 s behind it, is served at 3 s."""
    bucket, said = waiting(director)
    out, usual = [], director.wait

    def interrupted() -> None:
        try:
            bucket.acquire(5)
        except KeyboardInterrupt:
            out.append(director.now())

    def wait(condition: threading.Condition, seconds: float) -> None:
        usual(condition, 1.0)
        raise KeyboardInterrupt

    director.wait = wait
    director.start(interrupted)
    director.wait = usual
    director.start(lambda: said.append((bucket.acquire(3), director.now())))
    assert not bucket.acquire(11)  # more than it can ever hold: refused, however long the line
    director.run_until(10)
    assert (out, said) == ([1.0], [(True, 3.0)])


@pytest.mark.parametrize(
    ("amount", "rate"), [(0.1, 1), (0.1, 1.2), (0.1, 1.5), (1, 0.7), (1, 1.1), (100, 70), (100, 300), (100, 1100)]
)
def test_what_is_missing_by_rounding_alone_is_not_waited_for(amount, rate):
    """A clock that has run for weeks is too coarse to refill the very last of it."""
    clock = FakeClock(now=2.0**22 + 0.1)
    bucket = TokenBucket(amount, initial=0, refill_rate=rate, on_empty="wait", clock=clock)
    assert bucket.acquire(amount)
    assert clock.sleeps == [pytest.approx(amount / rate)]
    assert bucket.available >= 0


def test_a_child_inherits_neither_the_lock_nor_the_line():
    """Forked while a thread waits, the child finds nobody in line, and takes what is there."""
    bucket = TokenBucket(10, refill_rate=1e-9, on_empty="wait")
    assert bucket.acquire(8)
    thread = threading.Thread(target=bucket.acquire, args=(10,))
    thread.start()
    while not bucket._places:
        PAUSE.wait(0.001)
    with bucket._lock:
        pid = os.fork()
        if pid == 0:
            os._exit(0 if bucket.acquire(2) and not bucket._places else 1)
    assert os.waitpid(pid, 0)[1] == 0
    bucket.release(8)
    thread.join(GIVE_UP)
    assert not thread.is_alive()


@pytest.mark.parametrize(("left", "sleeps"), [(3.5, []), (4.1, [2.0])])
def test_the_wait_for_tokens_leaves_time_for_the_backoff(left, sleeps):
    """2 s for tokens and 2 s of backoff do not fit into 3.5 s: refused at once; into 4 s they do."""
    clock = FakeClock()
    bucket = TokenBucket(20, refill_rate=4, on_empty="wait", clock=clock)
    strategy = StandardRetryStrategy(clock=clock, quota=bucket, backoff=2)
    token = refresh(strategy, strategy.acquire_initial_retry_token())
    with nullcontext() if sleeps else pytest.raises(RetryError):
        refresh(strategy, token, in_context(Safe(), deadline=clock.now() + left, clock=clock))
    assert clock.sleeps == sleeps


class Counted(AttemptFailed):
    """A failed attempt that counts for how often somebody waits with it, or refuses to."""

    waits, refuses = 0, False

    def wait_in(self, place: Any, what: str) -> Any:
        if self.refuses:
            raise RetryError("too long", stop_reason=StopReason.QUOTA_EXCEEDED)
        before = self.clock.now()
        answer = super().wait_in(place, what)
        self.waits += self.clock.now() > before
        return answer


def paid(quota: PricedQuota, clock: FakeClock, price: float, deadline: float | None) -> tuple[int, Any]:
    """Have a quota decide; the number of waits, and the answer."""
    failure: Any = Failure(reason=price)  # type: ignore[arg-type]
    failed = Counted(Outcome(), clock=clock)
    answer = quota.acquire(Progress(0.0), Bounds(deadline=deadline), failure, failed)
    return failed.waits, answer


@pytest.mark.parametrize(
    ("price", "initial", "deadline", "expected"),
    [
        (10, 10, None, (0, 0.0, True)),
        (10, 4, None, (1, 3.0, True)),
        (10, 4, 3, (1, 3.0, True)),
        (10, 4, 2.9, (0, 0.0, False)),
        (30, 20, None, (0, 0.0, False)),
        (10, 0, 0, (0, 0.0, False)),
    ],
    ids=["enough", "refill", "just in time", "too late", "too large", "no time"],
)
def test_what_an_operation_holds_is_let_go_only_where_it_waits(price, initial, deadline, expected):
    """It is let go before the wait, since who has the tokens may need it; a refusal at once leaves it."""
    clock = FakeClock()
    bucket = TokenBucket(20, initial=initial, refill_rate=2, on_empty="wait", clock=clock)
    quota = PricedQuota(bucket, lambda reason: reason)  # type: ignore[arg-type, return-value]
    number, seen = paid(quota, clock, price, deadline)
    assert expected == (number, pytest.approx(clock.now()), not isinstance(seen, Refused))


def test_who_cannot_wait_with_its_response_takes_nothing():
    """The refusal comes through."""
    clock = FakeClock()
    bucket = TokenBucket(20, initial=4, refill_rate=2, on_empty="wait", clock=clock)
    quota, failed = PricedQuota(bucket, lambda reason: 10), Counted(Outcome(), clock=clock)
    failed.refuses = True
    with pytest.raises(RetryError, match="too long"):
        quota.acquire(Progress(0.0), Bounds(), Failure(reason="why"), failed)  # type: ignore[arg-type]
    assert 4 == bucket.available


def test_who_never_joined_may_leave():
    """An interruption may come before the first look."""
    bucket = TokenBucket(10, refill_rate=1, on_empty="wait", clock=FakeClock())
    PlaceAtBucket(bucket, 1, None).leave(0.0)
    assert 10 == bucket.available
