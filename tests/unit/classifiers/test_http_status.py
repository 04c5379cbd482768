"""Statuses (contract 3.4)."""

from __future__ import annotations

import dataclasses

import pytest
import requests

from requests_smithy_retry import (
    ErrorKind,
    Outcome,
    RetryAction,
    RetryConfig,
    RetryConfigError,
    RetryReason,
    default_classifiers,
    retry_history,
)
from requests_smithy_retry.classifiers import HttpStatusCodeClassifier, classify
from requests_smithy_retry.testing import FakeClock
from tests.support import Reply, scripted, send

NOTHING = RetryAction.no_action_indicated()
TRANSIENT = {500, 502, 503, 504, 408, 425, 520, 521, 522, 523, 524}


def outcome_of(
    status: int, body: bytes = b"", headers: dict[str, str] | None = None, *, stream: bool = False
) -> Outcome:
    """A response of this status that was read."""
    response = requests.Response()
    response.status_code, response._content = status, body
    response.headers.update(headers or {})
    return Outcome(response=response, stream=stream)


def test_every_status():
    """Two are throttling, eleven are transient, one wants another connection; there is no opinion on any other."""
    expected: dict[int, RetryAction] = dict.fromkeys(range(100, 600), NOTHING)
    expected |= dict.fromkeys(TRANSIENT, RetryAction.transient_error())
    expected |= dict.fromkeys((429, 529), RetryAction.throttling_error()) | {421: RetryAction.client_error()}
    item = HttpStatusCodeClassifier()
    assert expected == {status: item.classify_retry(outcome_of(status), NOTHING) for status in range(100, 600)}


def test_the_codes_are_configurable() -> None:
    """The given codes replace the defaults, even if there are none; 429 stays throttling; no 2xx is looked at."""
    assert HttpStatusCodeClassifier().sees_successes is False
    chosen, none = HttpStatusCodeClassifier.new_from_codes({418, 429}), HttpStatusCodeClassifier(())
    verdicts = [chosen.classify_retry(outcome_of(status), NOTHING) for status in (418, 429, 503)]
    assert verdicts == [RetryAction.transient_error(), RetryAction.throttling_error(), NOTHING]
    assert none.classify_retry(outcome_of(503), NOTHING) == NOTHING
    with pytest.raises(RetryConfigError, match=r"99 .*HttpStatusCodeClassifier|HttpStatusCodeClassifier.*99"):
        HttpStatusCodeClassifier([99])


SECONDARY = b'{"message": "You have exceeded a secondary rate limit. Please wait a few minutes"}'
RATE_LIMITED = RetryReason(ErrorKind.THROTTLING, 60.0, "secondary rate limit")


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({}, b"", NOTHING),
        ({}, b'{"message": "Bad credentials"}', NOTHING),
        ({"Retry-After": "soon"}, b"", NOTHING),
        ({"x-amz-retry-after": "1500"}, b"", NOTHING),
        ({"retry-after": "0", "X-RateLimit-Remaining": "9"}, b'{"message": "You may not see this issue"}', NOTHING),
        ({"X-RateLimit-Remaining": "12", "X-RateLimit-Reset": "9"}, b"", NOTHING),
        ({"Retry-After": "60"}, b"", RetryAction.throttling_error()),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767225600"}, b"", RetryAction.throttling_error()),
        ({}, b'{"errors": [{"reason": "userRateLimitExceeded"}]}', RetryAction.throttling_error()),
        ({}, b"API rate limit exceeded for 192.0.2.1", RetryAction.throttling_error()),
        ({}, SECONDARY, RetryAction.retry_indicated(RATE_LIMITED)),
        ({"Retry-After": "5"}, SECONDARY, RetryAction.throttling_error()),
        ({"Retry-After": "0"}, SECONDARY, RetryAction.retry_indicated(RATE_LIMITED)),
    ],
)
def test_a_403_that_says_that_it_is_a_rate_limit_is_throttling(headers, body: bytes, expected):
    """A 403 is throttling with a hint, with a limit that is used up, or by its body's words; any other 403 is not.

    ``x-amz-retry-after`` says how long, not whether, as in botocore. Jira's Data Center, Confluence and Bitbucket send
    ``retry-after: 0`` with each answer that is within the limit.
    """
    outcome = outcome_of(403, body, headers)
    assert expected == classify(default_classifiers(), outcome).action
    assert NOTHING == classify([HttpStatusCodeClassifier({503})], outcome).action
    none = RetryConfig(retry_status_codes={503})
    assert NOTHING == classify(default_classifiers(none), outcome).action


@pytest.mark.parametrize(
    ("hint", "sent"),
    [
        ({}, 1),
        *(({"Retry-After": value}, sent) for value, sent in (("x", 1), ("0", 1), ("2", 2))),
        ({"x-amz-retry-after": "2"}, 1),
    ],
)
def test_a_413_is_retried_where_it_says_when(hint, sent):
    """A hint means that the condition is temporary (RFC 9110, 15.5.14); a POST stays guarded."""
    adapter = scripted(Reply(413, hint), 200)
    assert sent == len(retry_history(send(adapter)).attempts)
    assert 413 == send(scripted(Reply(413, hint), 200), "POST", data="a").status_code


@pytest.mark.parametrize(("headers", "waited"), [({}, 60.0), ({"Retry-After": "5"}, 5.0)])
@pytest.mark.parametrize("status", [403, 429])
def test_after_githubs_secondary_limit_the_wait_is_a_minute(status, headers, waited):
    """GitHub sends 403 or 429, and asks for at least a minute where it does not say how long."""
    adapter = scripted(Reply(status, headers, SECONDARY), 200, clock=FakeClock())
    assert (200, [waited]) == (send(adapter).status_code, adapter.clock.sleeps)


@pytest.mark.parametrize(
    ("attempt", "expected"), [(1, RetryAction.client_error()), (2, RetryAction.client_error()), (3, NOTHING)]
)
def test_a_421_is_sent_elsewhere_twice(attempt, expected):
    """The service is well; a server that always says so would say it for ever."""
    outcome = dataclasses.replace(outcome_of(421), attempt=attempt)
    for classifiers in (default_classifiers(), [HttpStatusCodeClassifier({503})]):
        assert expected == classify(classifiers, outcome).action
    assert NOTHING == classify([HttpStatusCodeClassifier({503}, by_status_alone=True)], outcome).action
