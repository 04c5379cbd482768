"""Keeping the record while the operation goes on (contract 11.2, 12)."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from urllib3.util.retry import RequestHistory, Retry

from requests_smithy_retry import RetryAction, StopReason
from requests_smithy_retry.classifiers.fold import Classification, Vote
from requests_smithy_retry.observing.history import AttemptRecord, RetryHistory
from requests_smithy_retry.observing.recorder import Recorder
from requests_smithy_retry.sending.attempt import Attempt
from requests_smithy_retry.strategies.foreign import ForeignToken
from requests_smithy_retry.strategies.protocol import StandardRetryToken
from requests_smithy_retry.testing.clock import FakeClock
from tests.support import prepare, reset_error, scripted, send


def response(status: int) -> requests.Response:
    made = requests.Response()
    made.status_code = status
    return made


def recorder(observed: Any = None) -> Recorder:
    return Recorder(prepare(), "https://api.example.com:443", FakeClock(now=10.0, wall=1000.0), observed)


def no_outage(token_scope: str | None, /, *, is_outage: bool) -> int:
    """No outage is known."""
    assert not is_outage
    return 0


class Told:
    """Stands in for who tells the listeners."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def attempt_ended(self, *given: Any) -> None:
        self.calls.append(("ended", *given))

    def retry_follows(self, *given: Any) -> None:
        self.calls.append(("follows", *given))

    def ended(self, *given: Any) -> None:
        self.calls.append(("over", *given))


SHOWN = "https://api.example.com:443/things"
VOTE = Vote("x", RetryAction.transient_error())
VERDICT = Classification(VOTE.action, (VOTE,))


def test_an_attempt_is_timed_by_the_clock() -> None:
    """Start on the wall clock, duration on the one that never goes back."""
    record = recorder()
    record.note(Attempt(8.5, response(503)), (0.0, "backoff"), None, None)
    assert [(998.5, 1.5)] == [(item.started, item.duration) for item in record.attempts]


def test_an_attempt_is_written_down_with_all_that_is_known_of_it() -> None:
    """The wait before it, the votes on it, and what the retry that follows has paid, to whom."""
    token = StandardRetryToken(
        issuer=None,
        retry_delay=3.0,
        delay_source="retry-after",
        quota_before=500,
        quota_after=486,
        quota_source="redis",
    )
    record = recorder()
    record.note(Attempt(8.5, response(503)), (0.25, "backoff"), VERDICT, token)
    record.note(Attempt(9.5, response(200)), (3.0, "retry-after"), None, None)
    history = record.history(StopReason.SUCCESS, "done", 3, no_outage)
    paid = {"quota_before": 500, "quota_after": 486, "quota_source": "redis"}
    first = AttemptRecord(1, 998.5, 1.5, 503, None, 0.25, "backoff", (VOTE,), **paid)
    second = AttemptRecord(2, 999.5, 0.5, 200, None, 3.0, "retry-after")
    assert history == RetryHistory("https://api.example.com:443", (first, second), StopReason.SUCCESS, "done", 3)


def test_listeners_and_logs_are_told_everything(caplog: pytest.LogCaptureFixture) -> None:
    """Listeners get each attempt with its outcome, each retry with its delay and source, and the end."""
    told = Told()
    record = recorder(told)
    answer, cut = response(503), ValueError("cut")
    ours = StandardRetryToken(issuer=None, retry_delay=3.0, delay_source="retry-after")
    theirs: Any = ForeignToken(issuer=None, token=SimpleNamespace(), retry_delay=4.0, delay_source="strategy")
    with caplog.at_level(logging.DEBUG):
        record.note(Attempt(10.0, answer), (0.0, "backoff"), VERDICT, ours, 3.0)
        record.note(Attempt(10.0, answer, cut), (3.0, "retry-after"), VERDICT, theirs, 4.0)
        record.note(Attempt(10.0, answer), (4.0, "strategy"), None, None)
        history = record.history(StopReason.MAX_ATTEMPTS, "", None, no_outage)
    first, second, third = history.attempts
    assert told.calls == [
        ("ended", first, answer, None, VERDICT),
        ("follows", first, 3.0, "retry-after", 0.0, ""),
        ("ended", second, answer, cut, VERDICT),
        ("follows", second, 4.0, "strategy", 0.0, ""),
        ("ended", third, answer, None, None),
        ("over", history),
    ]
    assert (second.quota_before, second.quota_after, second.quota_source) == (None, None, None)
    assert [item.getMessage() for item in caplog.records] == [
        f"attempt 1 of GET {SHOWN} ended with 503 after 0.000 s",
        f"retry 1 of GET {SHOWN} in 3.000 s (retry-after): attempt 1 ended with 503",
        f"attempt 2 of GET {SHOWN} ended with ValueError after 0.000 s",
        f"retry 2 of GET {SHOWN} in 4.000 s (strategy): attempt 2 ended with ValueError",
        f"attempt 3 of GET {SHOWN} ended with 503 after 0.000 s",
        f"GET {SHOWN}: {history.sentence}",
    ]


def test_an_error_hides_the_response() -> None:
    """The record of an attempt whose body broke off has the error, and no status."""
    record = recorder()
    record.note(Attempt(10.0, response(200), ValueError("cut")), (0.0, "backoff"), None, None)
    assert [(None, "ValueError")] == [(item.status, item.error) for item in record.attempts]


def test_a_wait_for_a_permit_belongs_to_one_attempt() -> None:
    """The wait for a permit is recorded with the attempt that waited, not with the next one."""
    record = recorder()
    record.note(Attempt(10.0, response(503)), (0.0, "backoff"), None, None)
    record.permit_wait = 0.5
    record.note(Attempt(10.0, response(503)), (1.0, "backoff"), None, None)
    record.note(Attempt(10.0, response(503)), (1.0, "backoff"), None, None)
    assert [0.0, 0.5, 0.0] == [item.permit_wait for item in record.attempts]


def test_what_is_kept_while_it_goes_on_is_bounded() -> None:
    """An endless operation does not fill the memory: its first fifty attempts are kept, and its last fifty."""
    record = recorder()
    for number in range(1, 301):
        record.note(Attempt(10.0, response(100 + number)), (0.0, "backoff"), None, None)
    kept = [*range(1, 51), *range(251, 301)]
    assert kept == [item.number for item in record.history(StopReason.SUCCESS, "", None, no_outage).attempts]
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


def test_after_one_attempt_there_is_nothing_to_find() -> None:
    """The response's own ``Retry`` stays the very object that it was; later attempts are added to what it has."""
    answer: Any = response(200)
    row = RequestHistory("GET", "/", None, 302, "/things")
    before = Retry(0, history=(row,))
    answer.raw = SimpleNamespace(retries=before)
    record = recorder()
    record.note(Attempt(10.0, answer), (0.0, "backoff"), None, None)
    record.fill_urllib3_history(answer)
    assert answer.raw.retries is before
    record.note(Attempt(10.0, answer), (0.0, "backoff"), None, None)
    record.fill_urllib3_history(answer)
    assert answer.raw.retries.history == (row, RequestHistory("GET", "/things", None, 200, None))


def test_a_raw_without_retries_is_left_alone() -> None:
    """A mocked response need not have any."""
    record = recorder()
    for _ in range(2):
        record.note(Attempt(10.0, response(200)), (0.0, "backoff"), None, None)
        record.fill_urllib3_history(response(200))
