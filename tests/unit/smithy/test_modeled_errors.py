from __future__ import annotations

import pytest

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
        (error("E"), ModeledError("E", "t#E", "client", None, False, False)),
        (error("E", "server", httpError=503), ModeledError("E", "t#E", "server", 503, False, False)),
        (error("E", retryable={}), ModeledError("E", "t#E", "client", None, True, False)),
        (error("E", retryable=True), ModeledError("E", "t#E", "client", None, True, False)),
        (error("E", retryable={"throttling": False}), ModeledError("E", "t#E", "client", None, True, False)),
        (
            error("E", httpError=429, retryable={"throttling": True}),
            ModeledError("E", "t#E", "client", 429, True, True),
        ),
    ],
)
def test_the_traits_are_read(shape, expected):
    """An error's fault, status and retry traits are as the model has them."""
    assert dict(errors_of(shape)) == {"E": expected}


def test_a_query_error_has_two_names():
    """An error with @awsQueryError is found by its code and by its name."""
    query = {"code": "Sender.E", "httpResponseCode": 418}
    found = errors_of(error("E"), error("F", **{"aws.protocols__awsQueryError": query}))
    assert set(found) == {"E", "F", "Sender.E"}
    assert found["F"] is found["Sender.E"]
    assert found["F"].http_status == 418


@pytest.mark.parametrize(
    ("shape", "place"),
    [
        (error("E", "both"), "smithy.api#error"),
        (error("E", httpError="404"), "smithy.api#httpError"),
        (error("E", retryable=None), "smithy.api#retryable"),
        (error("E", retryable=False), "smithy.api#retryable"),
        (error("E", retryable=[]), "smithy.api#retryable"),
        (error("E", retryable={"throttling": 1}), "smithy.api#retryable/throttling"),
        (error("E", **{"aws.protocols__awsQueryError": {}}), "aws.protocols#awsQueryError"),
        (error("E", **{"aws.protocols__awsQueryError": {"code": "E"}}), "aws.protocols#awsQueryError"),
        (
            error("E", **{"aws.protocols__awsQueryError": {"httpResponseCode": 4, "code": 1}}),
            "aws.protocols#awsQueryError/code",
        ),
    ],
)
def test_a_broken_trait_is_named(shape, place):
    """A trait with a value that it cannot have is an error at the trait."""
    with pytest.raises(SmithyModelError) as caught:
        errors_of(shape)
    assert caught.value.place == f"/shapes/t#E/traits/{place}"
