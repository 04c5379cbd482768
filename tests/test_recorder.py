"""Keeping the record while the operation goes on (contract 11.2, 12)."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from requests_smithy_retry import StopReason
from requests_smithy_retry.recorder import Recorder
from requests_smithy_retry.testing.clock import FakeClock

from .support import prepare, reset_error, scripted, send


def response(status: int) -> requests.Response:
    made = requests.Response()
    made.status_code = status
    return made


def recorder() -> Recorder:
    return Recorder(prepare(), "https://api.example.com:443", FakeClock(now=10.0, wall=1000.0))


def test_an_attempt_is_timed_by_the_clock() -> None:
    """Start on the wall clock, duration on the one that never goes back."""
    record = recorder()
    record.note(response(503), None, 8.5, (0.0, "backoff"), None, None)
    assert [(998.5, 1.5)] == [(item.started, item.duration) for item in record.attempts]


def test_an_error_hides_the_response() -> None:
    """Where the body broke off, the status says nothing."""
    record = recorder()
    record.note(response(200), ValueError("cut"), 10.0, (0.0, "backoff"), None, None)
    assert [(None, "ValueError")] == [(item.status, item.error) for item in record.attempts]


def test_a_wait_for_a_permit_belongs_to_one_attempt() -> None:
    """It is written down with the attempt that waited, and not with the next one."""
    record = recorder()
    record.permit_wait = 0.5
    record.note(response(503), None, 10.0, (1.0, "backoff"), None, None)
    record.note(response(503), None, 10.0, (1.0, "backoff"), None, None)
    assert [0.5, 0.0] == [item.permit_wait for item in record.attempts]


def test_what_is_kept_while_it_goes_on_is_bounded() -> None:
    """An endless operation does not fill the memory: its first fifty attempts are kept, and its last fifty."""
    record = recorder()
    for _ in range(300):
        record.note(response(503), None, 10.0, (0.0, "backoff"), None, None)
    history = record.history(StopReason.SUCCESS, "", None)
    assert [*range(1, 51), *range(251, 301)] == [item.number for item in history.attempts]
    assert len(record.rows) == 100


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


def test_a_raw_without_retries_is_left_alone() -> None:
    """A mocked response need not have any."""
    record = recorder()
    record.fill_urllib3_history(response(200))
