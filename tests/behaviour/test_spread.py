"""Processes that were told the same do not come back at once (contract 7.4)."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pytest

from requests_smithy_retry import RetryAdapter, StopReason, retry_history, retry_options, testing
from requests_smithy_retry.testing import FakeClock, FaultServer
from requests_smithy_retry.testing import Reply as ServerReply
from tests.support import Reply, ScriptedAdapter, send, session_with

LATER = Reply(429, {"Retry-After": "60"})
USED_UP = Reply(200, {"RateLimit-Limit": "9", "RateLimit-Remaining": "0", "RateLimit-Reset": "60"})


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(34)


def process(*script: Any, **options: Any) -> ScriptedAdapter:
    """A process of its own, with jitter and a clock."""
    return testing.scripted(*script, 200, **{"jitter": "full", "clock": FakeClock(), **options})


def slept(adapter: ScriptedAdapter) -> float:
    return sum(adapter.clock.sleeps)  # type: ignore[attr-defined]


def come_back(number: int, *script: Any, calls: int = 1) -> list[float]:
    """Return when each of so many processes comes back."""
    moments = []
    for _ in range(number):
        adapter = process(*script)
        for _ in range(calls):
            assert send(adapter).ok
        moments.append(slept(adapter))
    return moments


@pytest.mark.parametrize(("script", "calls"), [([LATER], 1), ([USED_UP], 2)], ids=["hint", "reset"])
def test_no_second_gets_more_than_three_times_its_share(script: list[Any], calls: int) -> None:
    """Of 200 processes nobody is early, nobody later than 5 s, and they are spread over these seconds."""
    moments = come_back(200, *script, calls=calls)
    assert 60 <= min(moments) <= max(moments) < 65
    assert max(Counter(map(int, moments)).values()) <= 3 * 200 / 5


@pytest.mark.parametrize(
    ("header", "value", "least", "most"),
    [
        ("Retry-After", "2", 2, 2.2),
        ("Retry-After", "10", 10, 11),
        ("Retry-After", "49", 49, 53.9),
        # Not past max_retry_after, of 120 s.
        ("Retry-After", "119", 119, 120),
        ("Retry-After", "120", 120, 120),
        # Less than two seconds are waited as told where a thread waits alone.
        ("Retry-After", "1", 1, 1),
        # It has a jitter already.
        ("x-amz-retry-after", "1500", 1.5, 1.5),
    ],
)
def test_it_is_a_tenth_of_the_wait_at_most(header: str, value: str, least: float, most: float) -> None:
    """Nobody is early, and nobody later than by a tenth."""
    for moment in come_back(50, Reply(503, {header: value})):
        assert least <= moment <= most


@pytest.mark.parametrize("options", [{"jitter": "none"}, {"pacing": "off"}], ids=str)
def test_without_jitter_waits_are_as_told(options: dict[str, Any]) -> None:
    """Tests that want exact waits leave it out."""
    adapter = process(LATER, **options)
    send(adapter)
    assert 60 == slept(adapter)


@pytest.mark.parametrize(
    ("options", "block", "most"),
    [
        ({"patience": 60}, {}, 66),
        ({"operation_timeout": 62}, {}, 60.2),
        ({"max_retry_after": 61}, {}, 61),
        ({"max_wait": 60.5}, {}, 60.5),
        ({}, {"max_wait": 60.25}, 60.25),
    ],
    ids=str,
)
def test_no_bound_is_passed(options: dict[str, Any], block: dict[str, Any], most: float) -> None:
    """Neither that of the operation nor one of a wait; each of them still has its retry."""
    for _ in range(50):
        adapter = process(LATER, **options)
        with retry_options(**block):
            assert send(adapter).ok
        assert 60 <= slept(adapter) <= most


def test_a_wait_for_a_limit_is_no_longer_than_its_bound() -> None:
    """Where the limit begins anew just before ``max_retry_after`` is over, nobody is early."""
    for _ in range(30):
        adapter = process(USED_UP, max_retry_after=60.5)
        assert send(adapter).ok
        assert send(adapter).ok
        assert 60 <= slept(adapter) <= 60.5


def test_the_history_tells_of_it() -> None:
    """The delay before the attempt is the whole wait, and the header is still its reason."""
    adapter = process(LATER)
    history = retry_history(send(adapter))
    assert StopReason.SUCCESS is history.stop_reason
    last = history.attempts[-1]
    assert ("retry-after", pytest.approx(slept(adapter))) == (last.delay_source, last.delay)


def test_a_success_ends_the_wait_of_those_who_are_late() -> None:
    """Who answers well has room again: nobody goes on waiting for a moment of its own."""
    clock = FakeClock()
    refused = Reply(429, {"Retry-After": "60"})
    adapter = testing.scripted(refused, refused, *[200] * 9, jitter="full", clock=clock, max_attempts=1)
    for _ in range(2):
        send(adapter)
    assert send(adapter).ok
    first = sum(clock.sleeps)
    assert send(adapter).ok
    assert (True, 0) == (60 <= first <= 65, sum(clock.sleeps) - first)


@pytest.mark.real_time
def test_threads_that_wait_together_for_a_moment_are_spread() -> None:
    """Two threads that were told a second come back up to a tenth of it later, and never early."""
    replies = [ServerReply(503, headers={"Retry-After": "1"})] * 2
    with FaultServer([*replies, ServerReply(), ServerReply()]) as server, session_with(RetryAdapter()) as client:
        threads = [threading.Thread(target=client.get, args=(server.url,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        arrived = [request.arrived for request in server.requests]
    assert min(arrived[2:]) - max(arrived[:2]) >= 0.9
