"""AWS error codes (contract 3.4): where they are, and what they mean."""

from __future__ import annotations

import json
import random

import pytest

from requests_smithy_retry import ErrorKind, Outcome, RetryAction, RetryReason, retry_history
from requests_smithy_retry.classifiers.outcome import BODY_PREFIX
from requests_smithy_retry.smithy import AwsErrorCodeClassifier, bare_error_code
from requests_smithy_retry.smithy.aws import THROTTLING_CODES, TRANSIENT_CODES
from requests_smithy_retry.smithy.error_code import code_in_body, error_code
from tests.support import Reply, scripted, send
from tests.unit.classifiers.test_http_status import outcome_of

BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "SlowDown"><!ENTITY b "&a;&a;&a;&a;">]>'
    b"<ErrorResponse><Error><Code>&b;</Code></Error></ErrorResponse>"
)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("ThrottlingException", "ThrottlingException"),
        ("com.example.v1#ThrottlingException", "ThrottlingException"),
        ("ThrottlingException:http://internal.example.com/coral/v1/", "ThrottlingException"),
        ("com.example#ThrottlingException:http://internal.example.com/#v1", "ThrottlingException"),
        (" SlowDown ", "SlowDown"),
        *((header, None) for header in ("", ":", ":x", "#")),
    ],
)
def test_the_header_of_rest_json(header: str, expected: str | None) -> None:
    """Namespace before ``#`` and URI after ``:`` are stripped; a header that is missing or no text has no code."""
    assert error_code({"x-amzn-errortype": header}, b"") == expected
    assert bare_error_code(header) == (expected or "")
    assert error_code({"x-amzn-errortype": header.encode()}, b"") is error_code({"x-amzn-errortype": None}, b"") is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"__type":"SlowDown"}', "SlowDown"),
        (b'{"__type":"com.example#SlowDown","message":"m"}', "SlowDown"),
        (b'{"code":"SlowDown"}', "SlowDown"),
        (b'{"Code":"SlowDown"}', "SlowDown"),
        (b'{"code":"Two","__type":"One"}', "One"),
        (b'{"__type":7,"code":"SlowDown"}', "SlowDown"),
        (b'{"__type":"","code":" ","Code":"SlowDown"}', "SlowDown"),
        (b"\xef\xbb\xbf \r\n\t" + b'{"code":"SlowDown"}', "SlowDown"),
        (b'{"code":"\\ud800"}', "\ud800"),
        (b'{"n":' + b"9" * 60_000 + b',"code":"SlowDown"}', "SlowDown"),
        *((body, None) for body in (b'{"code":429}', b'{"message":"SlowDown"}', b'{"error":{"code":"SlowDown"}}')),
        *((body, None) for body in (b'["SlowDown"]', b'"SlowDown"', b'{"code":"SlowDown"', b"{", b'{"code":"\xff"}')),
        (b'{"code":' + b"[" * 60_000, None),
        (b"<ErrorResponse><Error><Type>Sender</Type><Code>SlowDown</Code></Error></ErrorResponse>", "SlowDown"),
        (b"<Response><Errors><Error><Code>SlowDown</Code></Error></Errors></Response>", "SlowDown"),
        (b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>SlowDown</Code></Error>', "SlowDown"),
        (b'<ErrorResponse xmlns="urn:x"><Error><Code> SlowDown\n</Code></Error></ErrorResponse>', "SlowDown"),
        (b'<e:Error xmlns:e="urn:x"><e:Code>SlowDown</e:Code></e:Error>', "SlowDown"),
        (b"<Error><Code><![CDATA[SlowDown]]></Code></Error>", "SlowDown"),
        (b"<Error><Code>Slow<!-- -->Down</Code><Code>Other</Code></Error>", "SlowDown"),
        (b"<Error><Code>Slow<b>not this</b>Down</Code></Error>", "SlowDown"),
        (b"\xef\xbb\xbf<Error><Code>SlowDown</Code></Error>", "SlowDown"),
        (b'<?xml version="1.0" encoding="rot13"?><Error><Code>SlowDown</Code></Error>', "SlowDown"),
        (b"<Error><Code>SlowDown</Code>cut off here", "SlowDown"),
        *((body, None) for body in (b"<Error><Code>SlowDo", b"<Error><Code/></Error>", b"<a></b>", b"<")),
        *(
            (body, None)
            for body in (b"<Error><Message>SlowDown</Message></Error>", b"<html><body>SlowDown</body></html>")
        ),
        (b"<Error><Code>&undefined;SlowDown</Code></Error>", None),
        (b"<!DOCTYPE html><html><Code>SlowDown</Code></html>", None),
        (b'<!DOCTYPE Error SYSTEM "file:///etc/hostname"><Error><Code>SlowDown</Code></Error>', None),
        (BOMB, None),
        *((body, None) for body in (b"", b"SlowDown", b"Code=SlowDown", b"\x00", b"\xff\xfe<\x00")),
    ],
)
def test_the_code_in_a_body(body: bytes, expected: str | None) -> None:
    """``__type``, ``code`` or ``Code`` of a JSON object, or the first ``Code`` element; never behind a DOCTYPE."""
    assert code_in_body(body) == expected


def test_the_header_comes_before_the_body_of_which_64_kib_are_looked_at() -> None:
    """The code in the body counts without one in the header, and if it is not past them, whatever follows."""
    body = b'{"__type":"InBody"}'
    assert error_code({"x-amzn-errortype": "InHeader"}, body) == "InHeader"
    assert error_code({"x-amzn-errortype": ":"}, body) == error_code({}, body) == "InBody"
    filler = b"<!--" + b"x" * BODY_PREFIX + b"-->"
    assert error_code({}, b"<Error>" + filler + b"<Code>SlowDown</Code></Error>") is None
    assert error_code({}, b"<Error><Code>SlowDown</Code>" + filler + b"</Error>") == "SlowDown"
    assert error_code({}, b'{"code": "SlowDown", "stack": "' + filler + b'"}') is None


def test_no_bytes_raise() -> None:
    """Thousands of mutations of real bodies, each with a few bytes changed, cut or doubled."""
    draw = random.Random(7)
    seeds = [
        json.dumps({"__type": "com.example#SlowDown", "message": "x" * 20}).encode(),
        b'<?xml version="1.0"?><ErrorResponse xmlns="u"><Error><Code>SlowDown</Code></Error></ErrorResponse>',
        BOMB,
    ]
    for _ in range(5_000):
        body = bytearray(draw.choice(seeds))
        for _ in range(draw.randrange(1, 6)):
            place = draw.randrange(len(body) + 1)
            body[place : place + draw.randrange(4)] = draw.randbytes(draw.randrange(4))
        code = error_code({"x-amzn-errortype": bytes(body[:9]).decode("latin-1")}, bytes(body))
        assert code is None or isinstance(code, str)
        assert code_in_body(bytes(body)) is None or isinstance(code_in_body(bytes(body)), str)


NOTHING = RetryAction.no_action_indicated()
BODIES = {
    "awsJson": b'{"__type":"com.example#%s","message":"m"}',
    "restJson": b'{"code":"%s"}',
    "query": b"<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code></Error></ErrorResponse>",
    "restXml": b'<?xml version="1.0"?><Error><Code>%s</Code><RequestId>1</RequestId></Error>',
    "ec2": b"<Response><Errors><Error><Code>%s</Code></Error></Errors></Response>",
}


def failed(status: int = 400, body: bytes = b"", **headers: str) -> Outcome:
    """The outcome of a response that was read."""
    return outcome_of(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


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


def test_an_unknown_code_an_exception_and_nothing_at_all_are_no_opinion() -> None:
    """The verdict so far stands."""
    ask = AwsErrorCodeClassifier().classify_retry
    assert ask(failed(x_amzn_errortype="ValidationException"), NOTHING) == NOTHING
    assert ask(Outcome(error=OSError()), NOTHING) == NOTHING
    assert ask(Outcome(), NOTHING) == NOTHING


@pytest.mark.parametrize(("hint", "floor"), [("1500", 1.5), ("1500, 900", 1.5), ("soon", None), (None, None)])
def test_the_servers_wait_refines_a_verdict_and_makes_none(hint: str | None, floor: float | None) -> None:
    """Contract 3.6: ``x-amz-retry-after`` is a floor for a transient code or an earlier verdict, no verdict itself."""
    headers = {} if hint is None else {"x_amz_retry_after": hint}
    source = None if floor is None else "x-amz-retry-after"
    floored = RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, floor, source))
    ask = AwsErrorCodeClassifier().classify_retry
    assert ask(failed(400, x_amzn_errortype="RequestTimeout", **headers), NOTHING) == floored
    assert ask(failed(503, **headers), RetryAction.transient_error()) == (NOTHING if floor is None else floored)
    assert ask(failed(503, **headers), NOTHING) == NOTHING


def test_a_429_with_a_transient_code_is_throttling() -> None:
    """The status says so, as in botocore; the server's wait counts."""
    busy = Reply(429, {"x-amzn-errortype": "RequestTimeout", "x-amz-retry-after": "1500"})
    adapter = scripted(busy, 200)
    first = retry_history(send(adapter)).attempts[0]
    assert (first.quota_before, first.quota_after) == (500, 495)
    assert adapter.clock.sleeps == [1.5]


def test_an_unread_body_is_left_unread() -> None:
    """With ``stream=True`` only the header counts, and the caller reads the whole body."""
    body = b'{"__type":"SlowDown"}'
    adapter = scripted(Reply(400, body=body))
    response = send(adapter, stream=True)
    assert retry_history(response).attempts[0].votes[2].action == NOTHING
    assert response.raw.read() == body
    adapter.script = [Reply(400, {"x-amzn-errortype": "SlowDown"}), 200]
    assert send(adapter, stream=True).status_code == 200
