"""Errors by their AWS error code (contract 3.5, 3.6); for the parsing see test_aws_error_codes.py."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import (
    AwsErrorCodeClassifier,
    ErrorKind,
    Outcome,
    RetryAction,
    RetryReason,
    retry_history,
)
from requests_smithy_retry.smithy.aws import THROTTLING_CODES, TRANSIENT_CODES
from requests_smithy_retry.smithy.error_code import code_of
from tests.support import Reply, scripted, send
from tests.unit.classifiers.test_http_status import outcome_of

NOTHING = RetryAction.no_action_indicated()
BODIES = {
    "awsJson": b'{"__type":"com.example#%s","message":"m"}',
    "restJson": b'{"code":"%s"}',
    "query": b"<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code></Error></ErrorResponse>",
    "restXml": b'<?xml version="1.0"?><Error><Code>%s</Code><RequestId>1</RequestId></Error>',
    "ec2": b"<Response><Errors><Error><Code>%s</Code></Error></Errors></Response>",
}


def failed(status: int = 400, body: bytes = b"", **headers: str) -> Any:
    """The outcome of a response that was read."""
    outcome = outcome_of(status)
    outcome.response._content = body
    outcome.response.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    return outcome


@pytest.mark.parametrize("protocol", BODIES)
@pytest.mark.parametrize("code", sorted(THROTTLING_CODES | TRANSIENT_CODES))
def test_every_code_in_every_protocol(protocol: str, code: str) -> None:
    """Throttling codes are throttling and not applied; transient ones are transient and no more."""
    outcome = failed(body=BODIES[protocol] % code.encode())
    throttling = code in THROTTLING_CODES
    kind = ErrorKind.THROTTLING if throttling else ErrorKind.TRANSIENT
    expected = RetryAction.retry_indicated(RetryReason(kind, not_applied=throttling))
    assert AwsErrorCodeClassifier().classify_retry(outcome, NOTHING) == expected


@pytest.mark.parametrize("status", [200, 204, 302, 399])
def test_nothing_below_400_is_looked_at(status: int) -> None:
    """A response below 400 is not searched for a code, neither in its headers nor in its body."""
    outcome = failed(status, b'{"code":"SlowDown"}', x_amzn_errortype="SlowDown", x_amz_retry_after="1500")
    assert AwsErrorCodeClassifier().classify_retry(outcome, NOTHING) == NOTHING
    assert AwsErrorCodeClassifier().classify_retry(outcome, RetryAction.transient_error()) == NOTHING
    assert code_of(outcome) is None


def test_an_unknown_code_an_exception_and_nothing_at_all_are_no_opinion() -> None:
    """The verdict so far stands."""
    ask = AwsErrorCodeClassifier().classify_retry
    assert ask(failed(x_amzn_errortype="ValidationException"), NOTHING) == NOTHING
    assert ask(Outcome(error=OSError()), NOTHING) == NOTHING
    assert ask(Outcome(), NOTHING) == NOTHING
    assert code_of(Outcome()) is None


def test_the_servers_wait_refines_an_earlier_verdict_and_makes_none() -> None:
    """Contract 3.6: a hint never makes an outcome retryable."""
    ask = AwsErrorCodeClassifier().classify_retry
    outcome = failed(503, x_amz_retry_after="1500")
    assert ask(outcome, RetryAction.transient_error()) == RetryAction.retry_indicated(
        RetryReason(ErrorKind.TRANSIENT, 1.5, "x-amz-retry-after")
    )
    assert ask(outcome, NOTHING) == NOTHING
    assert ask(failed(503, x_amz_retry_after="soon"), RetryAction.transient_error()) == NOTHING


def test_the_wait_is_clamped_to_five_seconds_above_the_backoff() -> None:
    """Contract 7.2: never subject to ``max_retry_after``, by whatever way it comes in."""
    adapter = scripted(Reply(400, {"x-amzn-errortype": "SlowDown", "x-amz-retry-after": "999999999"}), 200)
    history = retry_history(send(adapter))
    assert adapter.clock.sleeps == [6.0]
    assert history.attempts[1].delay_source == "x-amz-retry-after"


def test_an_unread_body_is_left_unread() -> None:
    """With ``stream=True`` only the header counts, and the caller reads the whole body."""
    body = b'{"__type":"SlowDown"}'
    adapter = scripted(Reply(400, body=body))
    response = send(adapter, stream=True)
    assert retry_history(response).attempts[0].votes[2].action == NOTHING
    assert response.raw.read() == body
    adapter.script = [Reply(400, {"x-amzn-errortype": "SlowDown"}), 200]
    assert send(adapter, stream=True).status_code == 200


@pytest.mark.parametrize(
    ("hint", "floor", "source"), [("1500", 1.5, "x-amz-retry-after"), ("soon", None, None), (None, None, None)]
)
def test_a_transient_code_takes_the_hint_along(hint: Any, floor: Any, source: Any) -> None:
    """A well-formed ``x-amz-retry-after`` becomes the verdict's floor."""
    headers = {} if hint is None else {"x_amz_retry_after": hint}
    outcome = failed(400, x_amzn_errortype="RequestTimeout", **headers)
    expected = RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, floor, source))
    assert AwsErrorCodeClassifier().classify_retry(outcome, NOTHING) == expected
