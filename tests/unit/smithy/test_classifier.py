from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry.classifiers.actions import ErrorKind, RetryAction, RetryReason
from requests_smithy_retry.smithy import SmithyModel, bare_error_code

from .asts import error

NO = RetryAction.no_action_indicated()
TRANSIENT = RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, not_applied=True))
THROTTLING = RetryAction.retry_indicated(RetryReason(ErrorKind.THROTTLING, not_applied=True))

MODEL = SmithyModel.from_dict(
    {
        "smithy": "2.0",
        "shapes": {
            **error("Busy", "server", retryable={}, httpError=500),
            **error("Slow", retryable={"throttling": True}, httpError=429),
            **error("Missing", httpError=404),
            **error("a#Twice", retryable={}, httpError=500),
            **error("b#Twice", httpError=400),
            **error("a#Alike", retryable={}, httpError=500),
            **error("b#Alike", retryable={}, httpError=503),
        },
    }
)


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("Busy", 500, TRANSIENT),
        ("Busy", None, TRANSIENT),
        ("Busy", 200, TRANSIENT),
        ("Slow", 429, THROTTLING),
        ("com.example#Slow:http://x.example/#y", 400, THROTTLING),
        ("Missing", 404, NO),
        ("busy", 500, NO),
        ("Unknown", 500, NO),
        ("", 500, NO),
        (None, 500, NO),
        (None, 429, NO),
        ("Twice", 500, TRANSIENT),
        ("Twice", 400, NO),
        ("Twice", 418, NO),
        ("Twice", None, NO),
        ("Alike", 418, TRANSIENT),
    ],
)
def test_the_verdict_of_a_model(code, status, expected):
    """A retryable error is retried, any other is no opinion; a status decides between namesakes only."""
    assert MODEL.verdict_for(code, status) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Name", "Name"),
        ("com.x#Name", "Name"),
        ("Name:http://internal.example/coral/com.x/", "Name"),
        ("com.x#Name:http://internal.example/#top", "Name"),
        (" Name ", "Name"),
        ("", ""),
        ("#", ""),
        (":x", ""),
    ],
)
def test_a_bare_error_code(text, expected):
    """The namespace before a code and the URI after it are taken off."""
    assert bare_error_code(text) == expected


@pytest.mark.once
@given(st.text(), st.none() | st.integers())
def test_any_code_has_a_verdict(code, status):
    """No code and no status from the network raises anything."""
    assert MODEL.verdict_for(code, status) in (NO, TRANSIENT, THROTTLING)
