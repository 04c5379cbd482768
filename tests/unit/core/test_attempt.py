"""An attempt that failed, as a strategy is shown it, driven by hand."""

from __future__ import annotations

import requests

from requests_smithy_retry import ErrorKind, Outcome
from requests_smithy_retry.core.attempt import AttemptFailed, outcome_of
from tests.unit.core.test_strategy import Safe, response


def test_it_has_the_response_and_the_request() -> None:
    """Both are those of the outcome, and None where there is none."""
    answer, request = response(503), requests.Request("GET", "https://api.example.com/").prepare()
    failed = AttemptFailed(Outcome(response=answer, request=request))
    assert (answer, request) == (failed.response, failed.request)
    assert (None, None) == (AttemptFailed(Outcome()).response, AttemptFailed(Outcome()).request)


def test_without_a_call_the_default_classifiers_are_asked() -> None:
    """A 503 is worth a retry by them, and a 404 is not."""
    found = [AttemptFailed(Outcome(response=response(status))).verdict.action for status in (503, 404)]
    assert [ErrorKind.TRANSIENT, None] == [getattr(getattr(each, "reason", None), "kind", None) for each in found]


def test_an_error_that_says_of_itself_what_it_is_counts() -> None:
    """Its own word, also about a time-out."""
    failed = AttemptFailed(Outcome(error=Safe(throttling=True)))
    assert (True, True, False) == (failed.is_retry_safe, failed.is_throttling_error, failed.is_timeout_error)


def test_its_outcome_is_that_of_the_attempt() -> None:
    """A function that takes any exception finds it there."""
    outcome = Outcome(response=response(503))
    assert outcome_of(AttemptFailed(outcome)) is outcome
