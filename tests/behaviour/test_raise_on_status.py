"""``raise_on_status`` (contract 2.8): when the error of a bad status is raised, and what it says."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import urllib3
from requests.exceptions import RetryError as StatusError

from requests_smithy_retry import RetryError, StopReason, retry_history
from tests.behaviour.test_foreign import TRANSIENT, saying
from tests.support import URL, Guide, ended, scripted

WANTED = (
    *("MAX_ATTEMPTS", "QUOTA_EXCEEDED", "DEADLINE", "HINT_TOO_LONG", "RATE_LIMITED", "PATIENCE", "LINE_FULL"),
    "BODY_NOT_REPLAYABLE",
)
"""A retry was wanted and could not be had."""


def end(status: int, reason: StopReason = StopReason.QUOTA_EXCEEDED, url: str = URL, **options: Any) -> Any:
    """The response or the exception of an operation that ended with this answer, and for this reason."""
    strategy = Guide(RetryError("so be it", stop_reason=reason))
    adapter = scripted(status, strategy=strategy, classifiers=saying(TRANSIENT), raise_on_status=True, **options)
    return ended(adapter, url=url)


@pytest.mark.parametrize("reason", [reason for reason in StopReason if reason is not StopReason.SUCCESS])
@pytest.mark.parametrize("status", [200, 304, 399, 400, 429, 503, 599])
def test_an_answer_is_raised_only_where_a_retry_was_wanted(status: int, reason: StopReason) -> None:
    """Also a success of which a classifier wanted a better one; any other answer is what the caller asked for."""
    assert isinstance(end(status, reason), StatusError) == (reason.name in WANTED)


def test_an_answer_that_validate_rejects_to_the_end_is_raised() -> None:
    """It is no success to the program, whatever its status."""
    adapter = scripted(*[200] * 9, validate=lambda _: False, raise_on_status=True, max_attempts=2)
    assert isinstance(ended(adapter), StatusError)


def test_the_error_of_a_bad_status_tells_its_story() -> None:
    """The error says why there is no retry, and has the response, the request and the history."""
    error = end(503)
    assert str(error) == (
        "https://api.example.com: Max retries exceeded with url: /things (Caused by "
        "ResponseError('too many 503 error responses')); gave up after attempt 1: so be it; last answer: 503"
    )
    assert (503, error.response.request) == (error.response.status_code, error.request)
    assert retry_history(error).stop_reason is StopReason.QUOTA_EXCEEDED


def test_the_error_of_a_bad_status_says_what_urllib3_says() -> None:
    """The reason, the host and the path, also after pickling; neither userinfo nor query."""
    error = end(503, url="https://user:secret@api.example.com?key=secret")
    cause = error.args[0]
    assert ("/", "too many 503 error responses") == (cause.url, str(cause.reason))
    assert "secret" not in str(error) + repr(error)
    again = pickle.loads(pickle.dumps(cause))
    assert (type(again), str(again), str(again.reason)) == (type(cause), str(cause), str(cause.reason))
    assert isinstance(again, urllib3.exceptions.MaxRetryError)
