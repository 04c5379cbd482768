"""The facts that Smithy models give about a request: the operation is told by all parts of it."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import SmithyModel
from requests_smithy_retry.smithy.model_classifier import ModelFacts, facts_of
from tests.support import prepare
from tests.unit.smithy.asts import operation, service

URL = "https://api.example.com"
READONLY = {"smithy.api#readonly": {}}
TOKEN = {"smithy.api#idempotencyToken": {}, "smithy.api#httpHeader": "X-Token"}
FORMS = service(operation("Read", traits=READONLY), operation("Make"), protocol="aws.protocols#awsQuery")
REST = service(operation("Make", http="POST /make", members={"token": TOKEN}))


def facts(ast: dict[str, Any], method: str = "POST", path: str = "/", **parts: Any) -> ModelFacts:
    """Return the facts that one model, at its endpoint, gives about a request."""
    return facts_of([SmithyModel.from_dict(ast).for_endpoint(URL)], prepare(method, URL + path, **parts))


def test_without_a_model_nothing_is_known() -> None:
    """The request may not be sent again because of a model, and is no long poll."""
    assert facts_of([], prepare()) == (False, False)


@pytest.mark.parametrize(("data", "resendable"), [("Action=Read", True), ("Action=Make", False), (None, False)])
def test_the_body_may_name_the_operation(data: str | None, resendable: bool) -> None:
    """In the protocols that send forms, the operation is the form's ``Action``."""
    assert facts(FORMS, data=data) == (resendable, False)


@pytest.mark.parametrize(("headers", "resendable"), [({"x-token": "t"}, True), ({"x-token": ""}, False), ({}, False)])
def test_an_idempotency_token_may_be_a_header(headers: dict[str, str], resendable: bool) -> None:
    """An operation may be sent again if its token's header is in the request and not empty."""
    assert facts(REST, path="/make", headers=headers) == (resendable, False)


def test_a_method_in_lower_case_is_that_method() -> None:
    """A request that was prepared by hand may have its method in lower case."""
    request = prepare("POST", f"{URL}/make", headers={"X-Token": "t"})
    request.method = "post"
    assert facts_of([SmithyModel.from_dict(REST).for_endpoint(URL)], request).resendable
