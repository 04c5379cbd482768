"""Waits that take no time, in code that knows nothing of it."""

from __future__ import annotations

import threading
from contextlib import suppress

import requests
import responses

from requests_smithy_retry import SystemClock, mount, retry_history
from requests_smithy_retry.testing import RetryClock, skipped_waits

URL = "https://api.example.com/things"


def get_through_an_hour(session: requests.Session) -> requests.Response:
    """A 503 that asks for a minute, and then a success."""
    with responses.RequestsMock() as mock:
        mock.add("GET", URL, status=503, headers={"Retry-After": "60"})
        mock.add("GET", URL, status=200)
        return session.get(URL)


def test_a_session_made_before_is_reached() -> None:
    """A session made at import time waits for nothing, too; the history shows the wait and the true durations."""
    session = mount(requests.Session(), jitter="none")
    with skipped_waits() as clock:
        response = get_through_an_hour(session)
    history = retry_history(response)
    assert history is not None
    assert [60.0] == clock.sleeps == [item.delay for item in history.attempts[1:]]
    assert all(item.duration is not None and 0 <= item.duration < 10 for item in history.attempts)


def test_afterwards_the_clock_of_before_tells_the_time_again() -> None:
    """The inner block's clock counts in it, the outer one's after it, the real one's in the end, whatever is raised."""
    before, began = dict(vars(SystemClock)), SystemClock().now()
    with suppress(ZeroDivisionError), skipped_waits() as outer:
        with skipped_waits() as inner:
            SystemClock().sleep(1)
        SystemClock().sleep(2)
        raise ZeroDivisionError
    assert ([2], [1]) == (outer.sleeps, inner.sleeps)
    assert before == dict(vars(SystemClock))
    assert SystemClock().now() - began < 60


def test_a_wait_on_a_condition_is_skipped_too() -> None:
    """A wait on a condition, as for a permit or a token, ends at once, with the time gone."""
    condition = threading.Condition()
    with skipped_waits() as clock, condition:
        began = SystemClock().now()
        SystemClock().wait(condition, 30)
        assert SystemClock().now() - began >= 30
    assert [30] == clock.sleeps


def test_time_goes_on_by_itself_and_when_told() -> None:
    """Real time passes; a sleep and advance add to it, on both of its faces."""
    clock = RetryClock()
    now, wall = clock.now(), clock.wall()
    clock.advance(100)
    clock.sleep(10)
    assert 110 <= clock.now() - now < 120
    assert 110 <= clock.wall() - wall < 120
    assert [10] == clock.sleeps
