"""A wait for a service that is down is told as a person would: in the history, the log and the events (contract 12)."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from requests_smithy_retry import RetryLater, RetryListener, StopReason, TokenBucket, retry_history
from requests_smithy_retry.testing import FakeClock, scripted
from tests.support import Reply, before_each_sleep, send

THINGS = "https://api.example.com:443/things"
WAITED = "waited 1.95 s for https://api.example.com: asked again when nobody had asked for a while"


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
        f"GET {THINGS} waits for https://api.example.com: attempt 3 ended with 503",
        f"retry 3 of GET {THINGS}: {WAITED.replace('1.95 s', '0.5 s')}",
        f"GET {THINGS} waits for https://api.example.com: attempt 4 ended with 503",
        f"retry 4 of GET {THINGS}: {WAITED}",
        f"GET {THINGS} waits for https://api.example.com: attempt 5 ended with 503",
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


class Waits(RetryListener):
    """Notes each wait that begins, and when."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, int, str, float | None]] = []

    def wait_began(self, event: Any) -> None:
        now = event.operation.adapter.clock.now()
        self.seen.append((round(now, 2), event.number, event.what, event.seconds))


USED_UP = Reply(200, {"X-RateLimit-Limit": "1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4"})


def test_the_wait_for_an_announced_limit_is_told_when_it_begins(caplog: pytest.LogCaptureFixture) -> None:
    """The INFO log says what is waited for and for how long, and listeners hear of it, before time passes."""
    waits, told = Waits(), []
    adapter = scripted(USED_UP, 200, listeners=[waits])
    before_each_sleep(adapter.clock, lambda _: told.extend(record.getMessage() for record in caplog.records))
    with caplog.at_level(logging.INFO, "requests_smithy_retry"):
        send(adapter)
        assert [] == waits.seen
        send(adapter)
    assert [(0.0, 0, "a rate limit", 4.0)] == waits.seen
    assert [f"GET {THINGS} waits 4.0 s for a rate limit"] == told
    assert (4.0, "a rate limit") == (vars(caplog.records[0])["retry_wait"], vars(caplog.records[0])["retry_waits_for"])


def test_going_later_than_the_server_asked_is_told_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seconds by which a process spreads its return come after the delay of the retry."""
    monkeypatch.setattr("requests_smithy_retry.core.backoff._random.random", lambda: 1.0)
    waits = Waits()
    send(scripted(Reply(429, {"Retry-After": "10"}), 200, listeners=[waits], jitter="full"))
    assert [(10.0, 1, "a rate limit", 1.0)] == waits.seen


def test_a_wait_of_nothing_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A limit that opens within a tenth of a second is worth no record at INFO; listeners hear of it."""
    waits = Waits()
    used_up = Reply(200, {"X-RateLimit-Limit": "1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "0.04"})
    adapter = scripted(used_up, 200, listeners=[waits], jitter="none")
    send(adapter)
    with caplog.at_level(logging.INFO, "requests_smithy_retry"):
        send(adapter)
    assert [(0.0, 0, "a rate limit", 0.04)] == waits.seen
    assert [] == caplog.records


def test_each_thread_that_waits_tells_of_it_once(caplog: pytest.LogCaptureFixture) -> None:
    """However often its thread looks again meanwhile, and whether it is the first in line or not."""
    adapter = scripted(USED_UP, *[200] * 3)
    send(adapter)
    with caplog.at_level(logging.INFO, "requests_smithy_retry"), ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda number: send(adapter), range(3)))
    waits = [record.getMessage() for record in caplog.records if "rate limit" in record.getMessage()]
    assert 1 <= len(waits) <= 3


def test_the_wait_for_a_send_permit_is_told_as_well() -> None:
    """In adaptive mode, a client that was throttled waits for its permits."""
    waits = Waits()
    adapter = scripted(*[Reply(429)] * 2, *[200] * 20, mode="adaptive", listeners=[waits], backoff=0)
    for _ in range(10):
        send(adapter)
    assert waits.seen
    assert {"a rate limit"} == {what for _, _, what, _ in waits.seen}


def test_the_wait_for_a_failing_service_is_told_as_well() -> None:
    """Nobody knows how long it takes."""
    waits = Waits()
    send(down_for(3, listeners=[waits]))
    assert (3, "the failing service", None) == waits.seen[0][1:]
    assert {("the failing service", None)} == {(what, seconds) for _, _, what, seconds in waits.seen}


def test_a_wait_that_is_not_made_is_not_told() -> None:
    """One that is too long for ``max_wait`` never begins."""
    waits = Waits()
    adapter = scripted(USED_UP, 200, listeners=[waits], max_wait=1)
    send(adapter)
    with pytest.raises(RetryLater):
        send(adapter)
    assert [] == waits.seen


def test_a_listeners_bug_at_the_beginning_of_a_wait_leaves_nobody_in_line() -> None:
    """It reaches the caller, and the next call is the first in line."""

    class Broken(RetryListener):
        def wait_began(self, event: Any) -> None:
            raise ZeroDivisionError

    adapter = scripted(USED_UP, 200, listeners=[Broken()])
    send(adapter)
    with pytest.raises(ZeroDivisionError):
        send(adapter)
    assert 1 == len(adapter.sent)
    adapter.clock.advance(5)
    assert 200 == send(adapter).status_code


class Ticking(FakeClock):
    """Time passes while others compute, as it does."""

    def now(self) -> float:
        self.advance(1e-6)
        return super().now()


@pytest.mark.parametrize(
    "bucket",
    [
        lambda clock: None,
        lambda clock: 100,
        lambda clock: TokenBucket(100, clock=clock),
        lambda clock: TokenBucket(100, refill_rate=1, on_empty="wait", clock=clock),
    ],
    ids=["none", "a number", "one that refuses", "one that waits"],
)
def test_a_retry_whose_tokens_were_there_waited_for_nothing(bucket: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The log tells of its backoff, and not of a wait of no seconds for the retry budget."""
    clock = Ticking()
    with caplog.at_level(logging.INFO, "requests_smithy_retry"):
        response = send(scripted(503, 200, quota=bucket(clock), clock=clock, backoff=0.25))
    assert [f"retry 1 of GET {THINGS} in 0.250 s (backoff): attempt 1 ended with 503"] == caplog.messages
    (retry,) = retry_history(response).attempts[1:]
    assert ("", 0.0) == (retry.line_why, retry.line_wait)
