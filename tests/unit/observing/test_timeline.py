"""An operation on a time axis."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import StopReason
from requests_smithy_retry.observing.history import AttemptRecord, RetryHistory


def history(*attempts: AttemptRecord, **fields: Any) -> RetryHistory:
    reason = fields.pop("stop_reason", StopReason.SUCCESS)
    return RetryHistory("https://api.example.com:443", attempts, reason, reason.value, **fields)


def attempt(number: int, started: float, duration: float | None, **fields: Any) -> AttemptRecord:
    return AttemptRecord(number, 1_700_000_000.0 + started, duration, **fields)


def test_waits_and_attempts_are_drawn_to_scale() -> None:
    """Of three seconds, one is the failed attempt, one the wait, and one the success."""
    told = history(attempt(1, 0, 1, status=503), attempt(2, 2, 1, status=200, delay=1.0))
    assert [
        "  1 |##########                    | 503",
        "  2 |          ..........==========| after 1 s (backoff) 200",
        "     0 s                        3 s",
        "succeeded at attempt 2",
    ] == told.plot().splitlines()


def test_what_was_waited_for_the_service_is_said() -> None:
    """The wait before an attempt has its seconds; one in vain after the last attempt has a row of its own."""
    told = history(
        attempt(1, 0, 1, error="ConnectionError"),
        attempt(2, 4, 1, status=503, line_wait=3.0, line_why="it was time"),
        stop_reason=StopReason.PATIENCE,
        line_wait=5.0,
    )
    assert [
        "  1 |###                           | ConnectionError",
        "  2 |   .........###               | after 3 s for the service 503",
        "    |               ...............| waited in vain for the service",
        "     0 s                       10 s",
    ] == told.plot().splitlines()[:-1]


@pytest.mark.parametrize("duration", [0.0, None])
def test_an_attempt_of_no_length_is_seen(duration: float | None) -> None:
    """It has one character, also where the whole operation took no time, and at the very end."""
    told = history(attempt(1, 0, duration, status=503), attempt(2, 0, duration, status=200))
    assert ["  1 |#", "  2 |="] == [row[:6] for row in told.plot().splitlines()[:2]]
    told = history(attempt(1, 0, 3, status=503), attempt(2, 5, duration, status=200))
    assert ".=|" in told.plot()


def test_a_first_wait_for_a_rate_limit_is_drawn() -> None:
    """The axis begins where the operation began to wait."""
    told = history(attempt(1, 2, 1, status=200, gate_wait=2.0, gate_source="retry-after"))
    assert "  1 |....................==========| after 2 s for a rate limit (retry-after) 200" in told.plot()


def test_a_long_operation_is_drawn_in_part() -> None:
    """Twenty rows and the number of those left out."""
    told = history(*(attempt(number, number, 1, status=503) for number in range(1, 31)))
    rows = told.plot().splitlines()
    assert "    (10 more)" == rows[10]
    assert [" 10 |", " 21 |"] == [rows[9][:5], rows[11][:5]]


def test_without_an_attempt_there_is_the_sentence() -> None:
    """Nothing is drawn where nothing was sent."""
    told = history(stop_reason=StopReason.DEADLINE)
    assert told.sentence == told.plot()


def test_a_notebook_shows_it_in_colour() -> None:
    """Attempts are coloured; words from outside are escaped."""
    told = history(attempt(1, 0, 1, error="<b>"), attempt(2, 1, 1, status=200))
    shown = told._repr_html_()
    assert shown.startswith('<pre>  1 |<span style="color:#c0504d;background:#c0504d">###############</span> ')
    assert 'background:#2a8a4a">===============</span>| 200' in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
