"""Threads that are switched as often as Python can: nothing is made twice or counted twice (contract 11.1).

That buckets lose and make no tokens is searched schedule by schedule (benchmarks/explore/programs.py).
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from requests_smithy_retry import RetryAdapter, StandardRetryStrategy, TokenError, uninstall
from requests_smithy_retry.checks import is_first
from requests_smithy_retry.core.quota import NO_QUOTA
from requests_smithy_retry.core.scope import Scopes, queue_before
from requests_smithy_retry.features.everywhere.installation import RunOptions, current, install_later
from requests_smithy_retry.features.rate_limits import Users
from requests_smithy_retry.features.rate_limits.announced import Announced
from requests_smithy_retry.features.rate_limits.limits import Limits
from requests_smithy_retry.quotas import PayoffTokenBucket
from requests_smithy_retry.testing import scripted
from tests.support import prepare

pytestmark = pytest.mark.untraced

THREADS = 6


@pytest.fixture(autouse=True)
def _switched_often() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def together(work: Callable[[], Any]) -> list[Any]:
    """What each thread returns of work that all begin at the same moment."""
    barrier = threading.Barrier(THREADS)

    def begin() -> Any:
        barrier.wait(60)
        return work()

    with ThreadPoolExecutor(THREADS) as pool:
        return [each.result(60) for each in [pool.submit(begin) for _ in range(THREADS)]]


def test_a_scope_is_made_once() -> None:
    """All threads get the same scope of a name, and the same part of it."""
    made: Counter[str | None] = Counter()
    table = Scopes(lambda name, now: made.update([name]) or NO_QUOTA)  # type: ignore[func-returns-value]
    names = [str(number) for number in range(100)]
    seen = together(lambda: [table.get(name).part("feature", Users) for name in names])
    assert dict.fromkeys(names, 1) == made
    assert [1] * 100 == [len(set(parts)) for parts in zip(*seen, strict=True)]


def test_a_shared_bucket_has_one_line() -> None:
    """Strategies that meet it at the same moment put the same line before it."""
    buckets = [PayoffTokenBucket() for _ in range(200)]
    seen = together(lambda: [queue_before(bucket, 0.0) for bucket in buckets])
    assert [1] * 200 == [len(set(lines)) for lines in zip(*seen, strict=True)]


def test_a_token_is_good_once() -> None:
    """Of the threads that use it, one gets through."""
    strategy = StandardRetryStrategy()

    def use(token: Any) -> bool:
        try:
            strategy.record_success(token=token)
        except TokenError:
            return False
        return True

    tokens = [strategy.acquire_initial_retry_token() for _ in range(100)]
    seen = together(lambda: [use(token) for token in tokens])
    assert [1] * 100 == [sum(each) for each in zip(*seen, strict=True)]


def test_a_limit_lets_in_what_is_left() -> None:
    """No thread more than the server said, however many ask."""
    limits = Limits()
    limits.answered(None, [Announced(40, 100.0, 1000)], 200, 0.0)
    assert 40 == sum(
        passed is not None for each in together(lambda: [limits.try_enter(0.0) for _ in range(20)]) for passed in each
    )


def test_an_assigned_strategy_is_that_of_the_next_send() -> None:
    """No send that was under way leaves a scope of the old one behind."""
    adapter = scripted(*[200] * 10_000)
    strategies = [StandardRetryStrategy(clock=adapter.clock) for _ in range(100)]
    seen, is_over = [], threading.Event()

    def send_on() -> None:
        while not is_over.is_set():
            adapter.send(prepare())

    with ThreadPoolExecutor(2) as pool:
        sending = [pool.submit(send_on) for _ in range(2)]
        try:
            for strategy in strategies:
                adapter.strategy = strategy
                adapter.send(prepare())
                seen.append(len(strategy.snapshot().buckets))
        finally:
            is_over.set()
        [each.result(60) for each in sending]
    assert [1] * 100 == seen


def test_of_many_threads_one_is_first() -> None:
    """A message that appears once in a process is that of one thread, for each key of a record."""
    said: dict[str, object] = {}
    seen = together(lambda: [is_first(said, str(key)) for key in range(100)])
    assert [1] * 100 == [sum(each) for each in zip(*seen, strict=True)]


def test_adapters_are_mounted_while_all_are_counted() -> None:
    """Threads of a program under ``run`` do both at any moment, with adapters that are left alone and others."""
    install_later(RunOptions(print, print))
    try:
        requests.Session()

        def mount() -> None:
            installation: Any = current()
            for number in range(20):
                name = f"Own{threading.get_ident()}x{number}"
                session = requests.Session()
                session.mount("https://own", type(name, (HTTPAdapter,), {"send": lambda *_: None})())
                session.mount("https://ours", RetryAdapter())
                assert name in str(installation.left_alone)
                assert "had retries" in installation.report()[0]

        together(mount)
        in_all: Any = current()
        assert in_all.report()[0].startswith(f"{1 + THREADS * 40} of {1 + THREADS * 60} adapters had retries")
    finally:
        uninstall()
