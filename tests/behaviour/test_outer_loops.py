"""A loop around a call that sends the same request again (contract 2.11)."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
import tenacity

from requests_smithy_retry.testing import FakeClock
from tests.support import URL, reset_error, scripted, send

SAID = "a loop around the call retries as well"


def adapter_of(*script: Any, **options: Any) -> Any:
    """An adapter that no quota bounds, at a service that is down after the script."""
    return scripted(*script, *[503] * 400, clock=FakeClock(), **{"quota": None, **options})


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings about loops."""
    return [record.getMessage() for record in caplog.records if SAID in record.getMessage()]


def test_a_loop_is_logged_once_with_its_numbers(caplog: pytest.LogCaptureFixture) -> None:
    """The third call in a row says so at WARNING; later calls and other loops of the process say nothing."""
    adapter = adapter_of()
    for _ in range(3):
        assert [] == warnings_of(caplog)
        send(adapter)
    for number in range(20):
        send(adapter, url=f"{URL}/{number // 5}")
    expected = (
        "GET https://api.example.com:443/things failed 3 times in a row in one thread, with 9 requests: a loop around "
        "the call retries as well. Give one of the two a single attempt, here with max_attempts=1"
    )
    assert [expected] == warnings_of(caplog)
    assert {logging.WARNING} == {record.levelno for record in caplog.records if SAID in record.getMessage()}


@pytest.mark.parametrize("failure", [503, 429, reset_error()], ids=str)
def test_a_decorator_of_another_library_is_a_loop(failure: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Tenacity's pauses double; statuses and exceptions count alike."""
    adapter = scripted(*[failure] * 40, quota=None, clock=FakeClock())
    stop, wait = tenacity.stop_after_attempt(6), tenacity.wait_exponential()
    failed = tenacity.retry_if_result(lambda answer: not answer.ok) | tenacity.retry_if_exception_type(OSError)
    with pytest.raises(tenacity.RetryError):
        tenacity.Retrying(stop=stop, wait=wait, retry=failed, sleep=adapter.clock.sleep)(lambda: send(adapter))
    assert 1 == len(warnings_of(caplog))


NO_LOOPS: dict[str, Callable[[Any, int], Any]] = {
    "a poll every five seconds": lambda adapter, _: adapter.clock.advance(5),
    "a poll every 2.1 seconds": lambda adapter, _: adapter.clock.advance(2.1),
    "a success after a retry": lambda adapter, _: adapter.script.insert(1, 200),
    "an answer after a retry": lambda adapter, _: adapter.script.insert(1, 404),
    "another method": lambda adapter, number: {"method": ("GET", "HEAD")[number % 2]},
    "another URL each time": lambda adapter, number: {"url": f"{URL}?page={number}"},
    "another body each time": lambda adapter, number: {"method": "PUT", "data": f"item {number}"},
    "a body that cannot be compared": lambda adapter, number: {"method": "PUT", "data": io.BytesIO(b"file")},
}


@pytest.mark.parametrize("kind", NO_LOOPS)
def test_what_is_no_loop_is_not_taken_for_one(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """Twelve calls in a row, and not a word."""
    adapter = adapter_of()
    for number in range(12):
        how = NO_LOOPS[kind](adapter, number)
        send(adapter, **(how if isinstance(how, dict) else {}))
    assert [] == warnings_of(caplog)


def test_a_single_attempt_multiplies_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Where each call is one request, nobody is warned."""
    adapter = adapter_of(max_attempts=1)
    for _ in range(6):
        send(adapter)
    assert [] == warnings_of(caplog)


def test_each_thread_and_each_strategy_has_a_streak_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """Eight threads with two failures each are no loop, and neither are two adapters with two."""
    adapter = adapter_of()
    threads = [threading.Thread(target=lambda: [send(adapter) for _ in range(2)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other = adapter_of()
    for each in (adapter, adapter, other, other):
        send(each)
    assert [] == warnings_of(caplog)


def test_a_loop_in_an_outage_is_bounded_by_the_default_quota() -> None:
    """Thirty calls of up to three attempts to a service that is down send a few requests more than thirty."""
    adapter = adapter_of(quota="payoff")
    for _ in range(30):
        send(adapter)
    assert 30 <= len(adapter.sent) <= 36
