"""The exceptions of this library's own that a caller gets at the end of an operation (contract 2, 9)."""

from __future__ import annotations

import pickle

import pytest
import requests
import urllib3

from requests_smithy_retry import StopReason, retry_history
from requests_smithy_retry.core.endings import not_sent_error, status_error
from requests_smithy_retry.observing.history import AttemptRecord, RetryHistory
from tests.support import prepare

WANTED = ("MAX_ATTEMPTS", "QUOTA_EXCEEDED", "DEADLINE", "HINT_TOO_LONG", "RATE_LIMITED", "PATIENCE", "LINE_FULL")
"""A retry was wanted and could not be had."""


def answer(status: int) -> requests.Response:
    """A response with its request."""
    response = requests.Response()
    response.status_code, response.request = status, prepare()
    return response


def ended(status: int, reason: StopReason) -> RetryHistory:
    """The history of one attempt."""
    return RetryHistory("x", (AttemptRecord(1, 0.0, 0.1, status),), reason, "so be it")


@pytest.mark.parametrize("reason", StopReason, ids=lambda reason: reason.name)
@pytest.mark.parametrize("status", [200, 304, 399, 400, 429, 503, 599])
def test_a_bad_status_is_raised_only_where_a_retry_was_wanted(status: int, reason: StopReason) -> None:
    """Any other answer is what the caller asked for; a success too, of which a classifier wanted a better one."""
    error = status_error(answer(status), ended(status, reason))
    assert (error is not None) == (status >= 400 and reason.name in WANTED)


def test_the_error_of_a_bad_status_tells_its_story() -> None:
    """The error says why there is no retry, and has the response, the request and the history."""
    response, history = answer(503), ended(503, StopReason.QUOTA_EXCEEDED)
    error = status_error(response, history)
    assert isinstance(error, requests.exceptions.RetryError)
    assert str(error) == (
        "https://api.example.com: Max retries exceeded with url: /things (Caused by "
        "ResponseError('too many 503 error responses')); gave up after attempt 1: so be it; last answer: 503"
    )
    assert (error.response, error.request) == (response, response.request)
    assert retry_history(error) is history


@pytest.mark.parametrize("status", [202, 404])
@pytest.mark.parametrize("reason", StopReason, ids=lambda reason: reason.name)
def test_a_listed_status_is_raised_below_400_too(status: int, reason: StopReason) -> None:
    """A status below 400 that is listed is raised for the same reasons as one above."""
    error = status_error(answer(status), ended(status, reason), frozenset({202}))
    assert (error is not None) == (reason.name in WANTED)


def test_the_error_of_a_bad_status_says_what_urllib3_says() -> None:
    """The reason, the host and the path, also after pickling; neither userinfo nor query."""
    response = answer(503)
    response.request = prepare(url="https://user:secret@api.example.com?key=secret")
    pool = urllib3.HTTPSConnectionPool("api.example.com", 443)
    response.raw = urllib3.HTTPResponse(pool=pool)
    error = status_error(response, ended(503, StopReason.DEADLINE))
    assert isinstance(error, requests.exceptions.RetryError)
    cause = error.args[0]
    assert (cause.pool, cause.url, str(cause.reason)) == (pool, "/", "too many 503 error responses")
    assert str(error).startswith("HTTPSConnectionPool(host='api.example.com', port=443): Max retries exceeded with ")
    assert "secret" not in str(error) + repr(error)
    again = pickle.loads(pickle.dumps(cause))
    assert (type(again), str(again), str(again.reason)) == (type(cause), str(cause), str(cause.reason))
    assert isinstance(again, urllib3.exceptions.MaxRetryError)


def test_the_error_of_what_was_not_sent_tells_its_story() -> None:
    """The error is safe to retry, and has the request and the history."""
    request, history = prepare(), RetryHistory("x", (), StopReason.RATE_LIMITED, "no permit in time")
    error = not_sent_error(request, history)
    assert isinstance(error, requests.exceptions.ConnectTimeout)
    assert (str(error), error.request) == ("not sent: no permit in time", request)
    assert retry_history(error) is history
