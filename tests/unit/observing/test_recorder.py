"""Keeping the record while the operation goes on (contract 11.2, 12)."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from requests_smithy_retry import Outcome, RetryAction, StopReason
from requests_smithy_retry.classifiers.fold import Classification, Vote
from requests_smithy_retry.core.line import Standing
from requests_smithy_retry.core.machine import Progress
from requests_smithy_retry.core.steps import Again, Before, Payment, Stop
from requests_smithy_retry.observing.history import AttemptRecord, RetryHistory
from requests_smithy_retry.observing.recorder import Recorder
from requests_smithy_retry.testing import FakeClock
from tests.support import prepare, reset_error, scripted, send

SCOPE = "https://api.example.com:443"
SHOWN = f"{SCOPE}/things"
VOTE = Vote("x", RetryAction.transient_error())
VERDICT = Classification(VOTE.action, (VOTE,))
PROGRESS = Progress(Standing(0.0))
END = Stop(StopReason.SUCCESS, "done")


def made(status: int, number: int = 1, **more: Any) -> Outcome:
    """An attempt of one second and a half that just ended."""
    response = requests.Response()
    response.status_code = status
    return Outcome(response=response, attempt=number, started=8.5, ended=10.0, wall=1000.0, **more)


def recorder(observed: Any = None) -> Recorder:
    return Recorder(prepare(), SCOPE, FakeClock(now=10.0, wall=1000.0), observed)


def over(record: Recorder, stop: Stop = END, most: int | None = None) -> RetryHistory:
    return record.history(stop, most, lambda **_: 0, None)


def test_an_attempt_is_written_down_with_all_that_is_known_of_it() -> None:
    """Its time on the wall clock, the waits before it, the votes on it, and what the retry that follows has paid."""
    record = recorder()
    record.note(
        made(503, sent=7), Before(0.25), Again(PROGRESS, 3.0, "retry-after", VERDICT, Payment(500, 486, "redis"))
    )
    record.note(made(200, 2, received=9), Before(3.0, "retry-after", 0.5, 0.75, "x-ratelimit-reset"), END)
    paid = {"quota_before": 500, "quota_after": 486, "quota_source": "redis"}
    first = AttemptRecord(1, 998.5, 1.5, 503, None, 0.25, "backoff", (VOTE,), sent=7, **paid)
    waits = {"permit_wait": 0.5, "gate_wait": 0.75, "gate_source": "x-ratelimit-reset"}
    second = AttemptRecord(2, 998.5, 1.5, 200, None, 3.0, "retry-after", received=9, **waits)
    assert over(record, most=3) == RetryHistory(SCOPE, (first, second), StopReason.SUCCESS, "done", 3)


def test_listeners_and_logs_are_told_everything(caplog: pytest.LogCaptureFixture) -> None:
    """Each attempt with its outcome, each retry with its delay and source, and the end."""
    told: list[tuple[Any, ...]] = []
    names = ("attempt_ended", "retry_follows", "ended")
    listening = {name: lambda *given, name=name: told.append((name, *given)) for name in names}
    record, cut = recorder(SimpleNamespace(**listening)), ValueError("cut")
    outcomes = [made(503), made(503, 2, error=cut), made(503, 3)]
    with caplog.at_level(logging.DEBUG):
        record.note(outcomes[0], Before(), Again(PROGRESS, 3.0, "retry-after", VERDICT))
        record.note(outcomes[1], Before(3.0, "retry-after"), Again(PROGRESS, 4.0, "strategy", VERDICT))
        record.note(outcomes[2], Before(4.0, "strategy"), Stop(StopReason.MAX_ATTEMPTS))
        history = over(record, Stop(StopReason.MAX_ATTEMPTS))
    first, second, third = history.attempts
    assert told == [
        ("attempt_ended", first, outcomes[0].response, None, VERDICT),
        ("retry_follows", first, 3.0, "retry-after", 0.0, ""),
        ("attempt_ended", second, outcomes[1].response, cut, VERDICT),
        ("retry_follows", second, 4.0, "strategy", 0.0, ""),
        ("attempt_ended", third, outcomes[2].response, None, None),
        ("ended", history),
    ]
    assert (None, "ValueError") == (second.status, second.error), "an error hides the response"
    assert [item.getMessage() for item in caplog.records] == [
        f"attempt 1 of GET {SHOWN} ended with 503 after 1.500 s",
        f"retry 1 of GET {SHOWN} in 3.000 s (retry-after): attempt 1 ended with 503",
        f"attempt 2 of GET {SHOWN} ended with ValueError after 1.500 s",
        f"retry 2 of GET {SHOWN} in 4.000 s (strategy): attempt 2 ended with ValueError",
        f"attempt 3 of GET {SHOWN} ended with 503 after 1.500 s",
        f"GET {SHOWN}: {history.sentence}",
    ]


def test_what_is_kept_while_it_goes_on_is_bounded() -> None:
    """An endless operation does not fill the memory: its first fifty attempts are kept, and its last fifty."""
    record = recorder()
    for number in range(1, 301):
        record.note(made(100 + number, number), Before(), END)
    kept = [*range(1, 51), *range(251, 301)]
    assert kept == [item.number for item in over(record).attempts]
    assert [100 + number for number in kept] == [row.status for row in record.rows]


@pytest.mark.parametrize(
    ("script", "expected"),
    [((200,), []), ((404,), []), ((503, 200), [503]), ((429, 500, 503), [429, 500])],
)
def test_old_tools_find_the_discarded_attempts(script: tuple[int, ...], expected: list[int]) -> None:
    """``response.raw.retries.history`` has a row for each attempt before the one that is returned."""
    answer: Any = send(scripted(*script))
    assert expected == [row.status for row in answer.raw.retries.history]


def test_rows_name_the_error_and_the_path() -> None:
    """A row is urllib3's own RequestHistory."""
    error = reset_error()
    answer: Any = send(scripted(error, 200))
    (row,) = answer.raw.retries.history
    assert ("GET", "/things", error, None, None) == tuple(row)
