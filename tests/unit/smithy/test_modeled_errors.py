"""The errors of a model, and the verdicts on them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry import ErrorKind, RetryAction, RetryReason
from requests_smithy_retry.smithy import ModeledError, SmithyModel, SmithyModelError

from .asts import error


def errors_of(*shapes):
    model = {"smithy": "2.0", "shapes": {}}
    for each in shapes:
        model["shapes"].update(each)
    return SmithyModel.from_dict(model).errors


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (error("E"), ("client", None, False, False)),
        (error("E", "server", httpError=503), ("server", 503, False, False)),
        (error("E", retryable={}), ("client", None, True, False)),
        (error("E", retryable=True), ("client", None, True, False)),
        (error("E", retryable={"throttling": False}), ("client", None, True, False)),
        (error("E", httpError=429, retryable={"throttling": True}), ("client", 429, True, True)),
    ],
)
def test_the_traits_are_read(shape, expected):
    """An error's fault, status and retry traits are as the model has them."""
    assert dict(errors_of(shape)) == {"E": ModeledError("E", "t#E", *expected)}


def query_error(name="E", **trait):
    return error(name, **{"aws.protocols__awsQueryError": trait})


@pytest.mark.parametrize(
    ("shape", "place"),
    [
        (error("E", "both"), "smithy.api#error"),
        (error("E", httpError="404"), "smithy.api#httpError"),
        *((error("E", retryable=value), "smithy.api#retryable") for value in (None, False, [])),
        (error("E", retryable={"throttling": 1}), "smithy.api#retryable/throttling"),
        (query_error(), "aws.protocols#awsQueryError"),
        (query_error(code="E"), "aws.protocols#awsQueryError"),
        (query_error(httpResponseCode=4, code=1), "aws.protocols#awsQueryError/code"),
    ],
)
def test_a_broken_trait_is_named(shape, place):
    """A trait with a value that it cannot have is an error at the trait."""
    with pytest.raises(SmithyModelError) as caught:
        errors_of(shape)
    assert caught.value.place == f"/shapes/t#E/traits/{place}"


def test_a_query_error_has_two_names():
    """An error with @awsQueryError is found by its code and by its name."""
    found = errors_of(error("E"), query_error("F", code="Sender.E", httpResponseCode=418))
    assert set(found) == {"E", "F", "Sender.E"}
    assert found["F"] is found["Sender.E"]
    assert found["F"].http_status == 418


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
    ("code", "statuses", "expected"),
    [
        ("Busy", [500, None, 200], TRANSIENT),
        ("Slow", [429], THROTTLING),
        ("com.example#Slow:http://x.example/#y", [400], THROTTLING),
        ("Missing", [404], NO),
        *((code, [500, 429], NO) for code in ("busy", "Unknown", "", None)),
        ("Twice", [500], TRANSIENT),
        ("Twice", [400, 418, None], NO),
        ("Alike", [418], TRANSIENT),
    ],
)
def test_the_verdict_of_a_model(code, statuses, expected):
    """A retryable error is retried, any other is no opinion; a status decides between namesakes only."""
    assert [expected] * len(statuses) == [MODEL.verdict_for(code, status) for status in statuses]


@pytest.mark.once
@given(st.text(), st.none() | st.integers())
def test_any_code_has_a_verdict(code, status):
    """No code and no status from the network raises anything."""
    assert MODEL.verdict_for(code, status) in (NO, TRANSIENT, THROTTLING)
