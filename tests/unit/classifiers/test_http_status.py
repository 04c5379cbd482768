"""Statuses (contract 3.4)."""

from __future__ import annotations

import pytest
import requests

from requests_smithy_retry import HttpStatusCodeClassifier, Outcome, RetryAction, RetryConfigError, retry_history
from tests.support import scripted, send

NOTHING = RetryAction.no_action_indicated()
TRANSIENT = {500, 502, 503, 504, 408, 425}


def outcome_of(status: int) -> Outcome:
    """A response of this status."""
    response = requests.Response()
    response.status_code = status
    return Outcome(response=response)


@pytest.mark.parametrize("status", range(100, 600))
def test_every_status(status: int) -> None:
    """429 is throttling, six statuses are transient, and there is no opinion on any other."""
    expected = RetryAction.transient_error() if status in TRANSIENT else NOTHING
    expected = RetryAction.throttling_error() if status == 429 else expected
    assert HttpStatusCodeClassifier().classify_retry(outcome_of(status), NOTHING) == expected


def test_an_exception_has_no_status() -> None:
    """The classifier has no opinion on an exception."""
    assert HttpStatusCodeClassifier().classify_retry(Outcome(error=OSError()), NOTHING) == NOTHING


def test_the_codes_are_configurable() -> None:
    """The given codes replace the defaults, even if there are none; 429 stays throttling."""
    chosen = HttpStatusCodeClassifier.new_from_codes({418, 429})
    assert chosen.classify_retry(outcome_of(418), NOTHING) == RetryAction.transient_error()
    assert chosen.classify_retry(outcome_of(429), NOTHING) == RetryAction.throttling_error()
    assert chosen.classify_retry(outcome_of(503), NOTHING) == NOTHING
    assert HttpStatusCodeClassifier(()).classify_retry(outcome_of(503), NOTHING) == NOTHING
    with pytest.raises(RetryConfigError, match=r"99 .*HttpStatusCodeClassifier|HttpStatusCodeClassifier.*99"):
        HttpStatusCodeClassifier([99])


def test_a_status_below_400_can_be_among_them() -> None:
    """A listed 202 is polled; without such a status the classifier does not look at successes."""
    assert HttpStatusCodeClassifier().sees_successes is False
    adapter = scripted(202, 202, 200, retry_status_codes={202})
    response = send(adapter)
    assert response.status_code == 200
    assert len(retry_history(response).attempts) == 3


@pytest.mark.parametrize(("codes", "expected"), [({399}, True), ({400}, False), ({202, 503}, True), ((), False)])
def test_successes_are_looked_at_only_where_one_was_chosen(codes: object, expected: bool) -> None:
    """A success is a status below 400."""
    assert HttpStatusCodeClassifier(codes).sees_successes is expected


def test_codes_that_are_none_are_refused_by_the_name_of_the_class() -> None:
    """The error names the class as the source of the bad value."""
    with pytest.raises(RetryConfigError, match=r"\(from HttpStatusCodeClassifier\)"):
        HttpStatusCodeClassifier({9})
