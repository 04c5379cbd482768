"""A wait for a service that is down is told as a person would: in the history, the log and the events (contract 12)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from requests_smithy_retry import RetryListener, StopReason, retry_history
from requests_smithy_retry.testing import FakeClock, scripted
from tests.support import send

THINGS = "https://api.example.com:443/things"
WAITED = "waited 1.95 s: https://api.example.com was failing; asked again when nobody had asked for a while"


def down_for(seconds: float, **options: Any) -> Any:
    """An adapter whose service answers 503 for so long."""
    clock = FakeClock()
    return scripted(*[lambda _: 503 if clock.now() < seconds else 200] * 20, clock=clock, **options)


class Told(RetryListener):
    """Notes each event, and when it came."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.clock = FakeClock()

    def note(self, name: str, *values: Any) -> None:
        self.seen.append((round(self.clock.now(), 2), name, *values))

    def before_attempt(self, event: Any) -> None:
        self.clock = event.operation.adapter.clock

    def after_attempt(self, event: Any) -> None:
        self.note("ended", event.number, event.duration, [vote.classifier for vote in event.record.votes][:1])

    def throttled(self, event: Any) -> None:
        self.note("throttled", event.number)

    def retry_scheduled(self, event: Any) -> None:
        self.note("retry", event.number, round(event.line_wait, 2), event.line_why)

    def gave_up(self, event: Any) -> None:
        self.note("gave up", event.history.stop_reason, round(event.history.line_wait, 2))


VOTED = ["HttpStatusCodeClassifier"]


def test_an_attempt_has_ended_before_its_operation_waits() -> None:
    """Listeners hear of it at once, with its own duration; the retry's event has the wait and what ended it."""
    told = Told()
    assert 200 == send(down_for(3, listeners=[told])).status_code
    asked = "nobody had asked for a while"
    assert [
        (0.0, "ended", 1, 0.0, VOTED),
        (0.0, "retry", 1, 0.0, ""),
        (0.05, "ended", 2, 0.0, VOTED),
        (0.05, "retry", 2, 0.0, ""),
        (0.15, "ended", 3, 0.0, VOTED),
        (0.65, "retry", 3, 0.5, asked),
        (0.65, "ended", 4, 0.0, VOTED),
        (2.6, "retry", 4, 1.95, asked),
        (2.6, "ended", 5, 0.0, VOTED),
        (4.9, "retry", 5, 2.3, asked),
        (4.9, "ended", 6, 0.0, []),
    ] == told.seen


def test_giving_up_says_how_long_was_waited_in_vain() -> None:
    """The last stretch as a value, all of it in the sentence; both in the plain values."""
    told = Told()
    history = retry_history(send(down_for(60, listeners=[told])))
    assert (5.0, "gave up", StopReason.PATIENCE, 0.1) == told.seen[-1]
    assert (
        "gave up after attempt 6: waited 4.85 s: https://api.example.com has been failing for longer than "
        "patience allows (5 s); last answer: 503"
    ) == history.sentence
    plain = history.to_dict()
    assert [0.0, 0.0, 0.0, 0.5, 1.95, 2.3] == [round(row["line_wait"], 2) for row in plain["attempts"]]
    assert (0.1, "PATIENCE") == (round(plain["line_wait"], 6), plain["stop_reason"])
    assert "nobody had asked for a while" == plain["attempts"][3]["line_why"]


def test_the_history_tells_each_wait() -> None:
    """The history has one line for each wait, between the attempts."""
    lines = retry_history(send(down_for(3))).explain().splitlines()
    assert WAITED in lines
    assert "succeeded at attempt 6" == lines[-1]


def records(caplog: pytest.LogCaptureFixture, level: int, seconds: float) -> list[tuple[str, str]]:
    with caplog.at_level(level, "requests_smithy_retry"):
        send(down_for(seconds))
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_the_log_says_that_somebody_waits_and_for_how_long_it_was(caplog: pytest.LogCaptureFixture) -> None:
    """The INFO log names the service that is waited for, so that the last record of a hanging program tells it."""
    assert [
        f"retry 1 of GET {THINGS} in 0.050 s (backoff): attempt 1 ended with 503",
        f"retry 2 of GET {THINGS} in 0.100 s (backoff): attempt 2 ended with 503",
        f"GET {THINGS} waits: https://api.example.com is failing (attempt 3 ended with 503)",
        f"retry 3 of GET {THINGS}: {WAITED.replace('1.95 s', '0.5 s')}",
        f"GET {THINGS} waits: https://api.example.com is failing (attempt 4 ended with 503)",
        f"retry 4 of GET {THINGS}: {WAITED}",
        f"GET {THINGS} waits: https://api.example.com is failing (attempt 5 ended with 503)",
        f"retry 5 of GET {THINGS}: {WAITED.replace('1.95 s', '2.3 s')}",
    ] == [message for _, message in records(caplog, logging.INFO, 3)]
    told = vars(caplog.records[-1])
    assert (2.3, "nobody had asked for a while") == (round(told["retry_line_wait"], 6), told["retry_line_why"])


def test_a_listeners_bug_before_the_wait_reaches_the_caller_and_nobody_is_left_in_line() -> None:
    """An exception of a listener reaches the caller, and no waiter is left in line."""

    class Broken(RetryListener):
        def after_attempt(self, event: Any) -> None:
            if event.number == 3:
                raise ZeroDivisionError

    adapter = down_for(60, listeners=[Broken()])
    with pytest.raises(ZeroDivisionError):
        send(adapter)
    (bucket,) = adapter.strategy.snapshot().buckets.values()
    assert 0 == bucket.waiting
