"""Locks across fork (contract 11.1)."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from requests_smithy_retry import AdaptiveRetryStrategy, StandardRetryStrategy, TokenBucket
from requests_smithy_retry.core.quota import NO_QUOTA
from requests_smithy_retry.core.scope import Scopes
from requests_smithy_retry.features.everywhere import installation as install_module
from requests_smithy_retry.forksafe import renew_lock_after_fork
from requests_smithy_retry.quotas import PayoffTokenBucket
from requests_smithy_retry.smithy.rate_limiter import ClientRateLimiter

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


class Holder:
    """Counts how often its lock was renewed."""

    renewed = 0

    def renew_lock(self) -> None:
        self.renewed += 1


def in_child(check) -> int:
    """The exit status of a child that runs ``check``."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if check() else 1)
    return os.waitpid(pid, 0)[1]


def test_every_holder_renews_its_lock_in_the_child_alone():
    """Once per fork, in the child alone; registration holds no strong reference."""
    holder = Holder()
    renew_lock_after_fork(holder)
    assert in_child(lambda it=holder: it.renewed == 1) == 0
    assert holder.renewed == 0
    ref, holder = weakref.ref(holder), None
    gc.collect()
    assert ref() is None


def spent(bucket, amount):
    """A bucket of which something was taken."""
    assert bucket.acquire(amount)
    return bucket


WAITING = TokenBucket(10, refill_rate=1e-300, on_empty="wait")


@pytest.mark.parametrize(
    ("holder", "works", "stays"),
    [
        (spent(TokenBucket(10), 3), lambda it: it.acquire(7) and it.available == 0, lambda it: it.available == 7),
        (spent(WAITING, 3), lambda it: it.acquire(7), lambda it: it.available == 7),
        (spent(PayoffTokenBucket(), 1), lambda it: it.acquire(2), lambda it: it.available == 1),
        (ClientRateLimiter(), lambda it: it.try_acquire() is not it and it.snapshot(), bool),
        (Scopes(lambda name, now: NO_QUOTA), lambda it: it.get("a") is not None, lambda it: it.get("a")),
    ],
    ids=lambda it: type(it).__name__,
)
def test_what_was_held_works_in_the_child(holder, works, stays):
    """The threads that held its lock are not there; the parent keeps what it had."""
    with holder._lock:
        assert in_child(lambda: works(holder)) == 0
    assert stays(holder)


def test_what_was_being_installed_can_be_installed_in_the_child():
    """Another thread of the parent was at it."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(install_module._lock.acquire).result()
        try:
            assert in_child(lambda: install_module._lock.acquire(blocking=False)) == 0
        finally:
            pool.submit(install_module._lock.release).result()


@pytest.mark.parametrize(("quota", "left"), [(500, 500), ("payoff", 4)])
@pytest.mark.parametrize("kind", [StandardRetryStrategy, AdaptiveRetryStrategy])
def test_a_strategy_works_in_the_child_whatever_was_held(kind, quota, left):
    """All its locks at once; a bucket of numbers gets its tokens back, and what a payoff bucket spent stays spent."""
    strategy = kind(quota=quota)
    bucket = strategy.bucket("a")
    token = strategy.acquire_initial_retry_token(token_scope="a")
    line = getattr(strategy.scopes.get("a").quota, "lock", threading.Lock())

    def check() -> bool:
        again = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=ConnectionResetError())
        strategy.record_success(token=again)
        return bucket.available == left

    with strategy.scopes._lock, bucket._lock, line:
        assert in_child(check) == 0
