"""Asserting on attempts and delays of code under test."""

from __future__ import annotations

import pytest
import requests

from requests_smithy_retry import RetryListener
from requests_smithy_retry.testing import AttemptLog, retries_disabled, scripted, watched_attempts
from tests.support import read_timeout, send


def test_every_operation_is_logged() -> None:
    """Attempts, endings and delays of all operations, in order."""
    with watched_attempts() as log:
        send(scripted(429, read_timeout(), 200))
        send(scripted(200))
        with pytest.raises(requests.exceptions.ReadTimeout):
            send(scripted(read_timeout(), max_attempts=1))
    log.assert_endings(429, "ReadTimeout", 200, 200, "ReadTimeout")
    log.assert_delays(1.0, 0.1)
    assert (5, 3) == (len(log), len(log.histories))


@pytest.mark.parametrize(
    ("method", "expected", "got"),
    [
        *(("assert_endings", wrong, r"\[503, 200\]") for wrong in ((), (503,), (200, 503), (503, 200, 200))),
        *(("assert_delays", wrong, r"\[0.05\]") for wrong in ((), (0.06,), (0.05, 0.05))),
    ],
)
def test_a_wrong_expectation_tells_the_story(method: str, expected: tuple[float, ...], got: str) -> None:
    """Too few, too many or wrong ones: the error names both lists and explains each operation."""
    with watched_attempts() as log:
        send(scripted(503, 200))
    with pytest.raises(AssertionError, match=rf"got {got}\nattempt 1: 503"):
        getattr(log, method)(*expected)


def test_switched_off_attempts_are_logged_too() -> None:
    """The one attempt of an adapter that is switched off is there; an empty log says that it is empty."""
    with watched_attempts() as log, retries_disabled():
        send(scripted(503))
        with pytest.raises(requests.exceptions.ReadTimeout):
            send(scripted(read_timeout()))
    log.assert_endings(503, "ReadTimeout")
    assert "retries are switched off" in log.explain()
    with pytest.raises(AssertionError, match="no operation was made"):
        AttemptLog().assert_endings(200)


def test_an_operation_that_the_programs_own_code_ended_is_logged() -> None:
    """A listener raised before the attempt: the log names the exception, and says whose it is."""

    class Raising(RetryListener):
        def before_attempt(self, event: object) -> None:
            raise ZeroDivisionError

    with watched_attempts() as log, pytest.raises(ZeroDivisionError):
        send(scripted(200, listeners=[Raising()]))
    log.assert_endings("ZeroDivisionError")
    assert "the program's own code raised it" in log.explain()
