"""Strategies and adapters that begin anew, as before each test of a suite."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest
import requests

from requests_smithy_retry import RetryAdapter, RetryError, StandardRetryStrategy, TokenBucket, mount, retry_history
from requests_smithy_retry.quotas import PayoffTokenBucket
from requests_smithy_retry.testing import FakeClock, FaultServer, Reply, ScriptedReply, forget_everything, scripted
from tests.support import Guide, ScriptedAdapter, send

USED_UP = ScriptedReply(200, {"RateLimit-Limit": "10", "RateLimit-Remaining": "0", "RateLimit-Reset": "30"})
WAYS: dict[str, Callable[[RetryAdapter], object]] = {
    "all": lambda _: forget_everything(),
    "one adapter": lambda adapter: adapter.forget(),
}


def operation(adapter: ScriptedAdapter) -> tuple[int, list[float]]:
    """Make one operation; return the number of its attempts, and its waits."""
    sent, slept = len(adapter.sent), len(adapter.clock.sleeps)
    send(adapter)
    return len(adapter.sent) - sent, [round(seconds, 3) for seconds in adapter.clock.sleeps[slept:]]


def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for what another thread does, which takes long only if there is a defect."""
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.001)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("answer", "options"),
    [
        (503, {}),
        (503, {"quota": 30}),
        (503, {"quota": TokenBucket(28)}),
        (503, {"quota": PayoffTokenBucket()}),
        (429, {"mode": "adaptive"}),
        (USED_UP, {}),
    ],
)
def test_an_operation_is_as_the_first_one_was(answer: Any, options: dict[str, Any], way: str) -> None:
    """What earlier operations taught, which changed the next one, has no effect any more."""
    options = copy.deepcopy(options)  # a bucket of its own
    adapter = scripted(*[answer] * 99, **options)
    first, second = operation(adapter), operation(adapter)
    WAYS[way](adapter)
    assert (first, True) == (operation(adapter), first != second)


def test_addresses_that_failed_are_forgotten() -> None:
    """No address is avoided any more."""
    adapter = RetryAdapter(clock=FakeClock())
    adapter.addresses.failed("example.com:80", "192.0.2.1", "ConnectTimeoutError")
    assert 1 == len(adapter.snapshot().addresses)
    forget_everything()
    assert () == adapter.snapshot().addresses


def fails(strategy: StandardRetryStrategy) -> int:
    """Count the retries that a strategy pays for until its quota is empty."""
    token = strategy.acquire_initial_retry_token(token_scope="https://example.com")
    error = requests.exceptions.ConnectionError()
    count = 0
    with contextlib.suppress(RetryError):
        while True:
            token = strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error)
            count += 1
    return count


@pytest.mark.parametrize(
    "made",
    [
        lambda one: one,
        copy.copy,
        lambda one: pickle.loads(pickle.dumps(one)),
        lambda one: one.under(one.config.replace(max_backoff=1)),
    ],
    ids=["made", "copied", "unpickled", "under another config"],
)
def test_a_strategy_without_an_adapter_is_reached(made: Callable[[Any], StandardRetryStrategy]) -> None:
    """Strategies begin anew by themselves, however they were made."""
    strategy = made(StandardRetryStrategy(quota=30, max_attempts=99))
    assert (2, 0) == (fails(strategy), fails(strategy))
    forget_everything()
    assert 2 == fails(strategy)


def test_a_strategy_of_ones_own_may_forget_as_well() -> None:
    """A strategy's own ``forget`` is called; one that has none is left alone."""
    forgetful: Any = Guide()
    forgetful.forget = Mock()
    adapters = [RetryAdapter(strategy=Guide()), RetryAdapter(strategy=forgetful)]
    forget_everything()
    assert (2, 1) == (len(adapters), forgetful.forget.call_count)


def test_what_is_gone_is_not_kept() -> None:
    """An adapter that nobody uses any more is not kept alive in order to forget."""
    gone = weakref.ref(RetryAdapter())
    gc.collect()
    assert gone() is None
    forget_everything()


def test_a_quota_of_ones_own_stays_as_it_is() -> None:
    """A quota that cannot forget, as one on Redis, is not touched."""

    class Tokens:
        """The least that a bucket of tokens is."""

        capacity = available = 100.0

        def acquire(self, amount: float, *, deadline: float | None = None) -> bool:
            self.available -= amount
            return True

        def release(self, amount: float) -> None:
            raise AssertionError

        def snapshot(self) -> Any:
            raise AssertionError

    quota = Tokens()
    send(scripted(503, 503, 503, quota=quota))
    left = quota.available
    forget_everything()
    assert 100.0 > left == quota.available


def test_a_bucket_holds_what_it_held_at_first() -> None:
    """A bucket that began with fewer tokens than it can hold has as many again."""
    bucket = TokenBucket(10, initial=4)
    bucket.release(3)
    bucket.forget()
    assert 4 == bucket.available


@pytest.mark.real_time
@pytest.mark.parametrize("options", [{}, {"quota": PayoffTokenBucket()}], ids=["default", "a bucket"])
def test_an_operation_that_waits_asks_again(options: dict[str, Any]) -> None:
    """A thread that waits for a service that is down is let go at once, and ends well."""
    is_up = threading.Event()
    session = mount(requests.Session(), patience=600, **options)
    adapter: Any = session.get_adapter("http://")

    def waiting() -> int:
        return sum(bucket.waiting for bucket in adapter.snapshot().strategy.buckets.values())

    with FaultServer(lambda _: Reply(200 if is_up.is_set() else 503)) as server, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(session.get, server.url, timeout=60)
        wait_until(waiting)
        is_up.set()
        forget_everything()
        response = answer.result(60)
    assert (200, 0) == (response.status_code, waiting())
    assert "what was known of the service was forgotten" in retry_history(response).explain()


@pytest.mark.real_time
def test_an_operation_that_waits_for_tokens_gets_them() -> None:
    """A thread that waits on a bucket is served from the tokens that it holds then."""
    bucket, got = TokenBucket(10, on_empty="wait", refill_rate=0.001), []
    bucket.acquire(10)
    thread = threading.Thread(target=lambda: got.append(bucket.acquire(5)), daemon=True)
    thread.start()
    wait_until(lambda: bucket._places)
    bucket.forget()
    thread.join(60)
    assert [True] == got


def test_what_goes_while_others_forget_is_passed_over() -> None:
    """An object that the forgetting of another one was the last to hold is not missed."""
    held: list[Any] = []

    class First(RetryAdapter):
        def forget(self) -> None:
            super().forget()
            held.clear()

    alive = [First()]
    held.append(RetryAdapter())
    forget_everything()
    assert (1, []) == (len(alive), held)


@pytest.mark.parametrize("end", ["given back", "succeeded"])
def test_what_was_paid_before_does_not_come_back_after_it(end: str) -> None:
    """The bucket holds what a new one holds, however much was paid from the one before."""
    clock = FakeClock()
    strategy, error = StandardRetryStrategy(clock=clock), TimeoutError()
    tokens = [strategy.acquire_initial_retry_token() for _ in range(2)]
    paid = [strategy.refresh_retry_token_for_retry(token_to_renew=token, error=error) for token in tokens]
    clock.advance(1)
    strategy.forget()
    for token in paid:
        if end == "given back":
            token.give_back()
        else:
            strategy.record_success(token=token)
    assert 2.0 == strategy.snapshot().buckets[None].available
