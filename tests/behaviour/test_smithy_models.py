"""Smithy models as classifiers: verdicts, what may be sent again, long polls, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryClassifierPriority, StopReason, retry_history
from requests_smithy_retry.classifiers import Vouched, classifier, with_priority
from requests_smithy_retry.smithy import SmithyModel, SmithyModelClassifier
from tests.support import Reply, prepare, reset_error, scripted, send
from tests.unit.smithy.asts import error, operation, service

URL = "https://api.example.com"
AST = service(
    operation("Search", http="POST /search", traits={"smithy.api#readonly": {}}),
    operation("Set", http="POST /set/{name}", traits={"smithy.api#idempotent": {}}),
    operation("Make", http="POST /make", members={"token": {"smithy.api#idempotencyToken": {}}}),
    operation("Wait", http="POST /wait", traits={"smithy.api#longPoll": {}, "smithy.api#idempotent": {}}),
    operation("Files", http="PATCH /files/{path+}", traits={"smithy.api#idempotent": {}}),
    error("Busy", retryable={}, httpError=400),
    error("Slow", retryable={"throttling": True}, httpError=400),
    error("Wrong", httpError=500, fault="server"),
)
MODEL = SmithyModel.from_dict(AST)
ENDPOINT = MODEL.for_endpoint(URL)


def coded(code: str, status: int = 400) -> Reply:
    """A failure with an error code."""
    return Reply(status, {"x-amzn-errortype": code})


def modelled(*script: Any, **options: Any) -> Any:
    """An adapter with the model."""
    return scripted(*script, classifiers=[SmithyModelClassifier([ENDPOINT])], **options)


@pytest.mark.parametrize(("code", "kind", "delay"), [("Busy", "transient", 0.05), ("Slow", "throttling", 1.0)])
def test_a_modelled_error_is_retried_even_for_a_post(code: str, kind: str, delay: float) -> None:
    """``@retryable`` means that the server did not act on the request (contract 4.2)."""
    adapter = modelled(coded(code), 200)
    history = retry_history(send(adapter, "POST", f"{URL}/nowhere"))
    votes = {vote.classifier: vote.action for vote in history.attempts[0].votes}
    assert votes["SmithyModelClassifier"].reason.kind.value == kind
    assert adapter.clock.sleeps == [delay]


@pytest.mark.parametrize(
    ("method", "path", "data", "resent"),
    [
        ("POST", "/search", "{}", True),
        ("POST", "/set/x", "{}", True),
        ("POST", "/make", '{"token": "t"}', True),
        ("POST", "/make", '{"token": ""}', False),
        ("POST", "/make", "{}", False),
        ("POST", "/other", "{}", False),
        ("PATCH", "/files/a/b/c", "{}", True),
        ("POST", "/search/../make", "{}", False),
    ],
)
def test_the_model_knows_what_may_be_sent_again(method: str, path: str, data: str, resent: bool) -> None:
    """A readonly or idempotent operation is sent again with any method, and so is one with its token in the request."""
    adapter = modelled(reset_error(), 200)
    if resent:
        assert send(adapter, method, URL + path, data=data).status_code == 200
    else:
        with pytest.raises(requests.ConnectionError):
            send(adapter, method, URL + path, data=data)


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/search",
        "https://api.example.com:8443/search",
        "https://other.example.com/search",
        "https://api.example.com.elsewhere.net/search",
        "https://elsewhere.net/search?https://api.example.com/search",
    ],
)
def test_a_model_speaks_for_its_endpoint_alone(url: str) -> None:
    """Neither the errors nor the operations of a model count at another endpoint."""
    history = retry_history(send(modelled(coded("Busy", 500)), "POST", url))
    assert history.stop_reason is StopReason.NOT_RESENDABLE
    assert send(modelled(coded("Busy", 400)), "GET", url).status_code == 400


@pytest.mark.parametrize("status", [200, 302, 399])
def test_a_model_says_nothing_of_a_response_below_400(status: int) -> None:
    """Its code does not count, though another classifier has it looked at."""
    looking = classifier(lambda outcome: None, sees_successes=True)
    adapter = scripted(coded("Busy", status), classifiers=[SmithyModelClassifier([ENDPOINT]), looking])
    assert status == send(adapter, "GET", URL).status_code


def test_a_body_that_is_a_file_or_a_generator_is_not_read_for_its_token() -> None:
    """A body that is a file or a generator is sent whole, and its token does not allow a retry."""
    adapter = modelled(500)
    send(adapter, "POST", f"{URL}/make", data=(part for part in [b'{"token": ', b'"t"}']))
    assert adapter.sent[0].body == b'{"token": "t"}'


def test_nothing_is_matched_before_a_failure() -> None:
    """A success costs nothing, and an operation that fails one match."""

    class Counting(SmithyModelClassifier):
        matched = 0

        def vouch(self, request: Any) -> Vouched | None:
            self.matched += 1
            return super().vouch(request)

    counting = Counting([ENDPOINT])
    adapter = scripted(200, 500, 500, 200, classifiers=[counting])
    send(adapter)
    assert counting.matched == 0
    send(adapter)
    assert counting.matched == 1


FORMS = service(
    operation("Read", traits={"smithy.api#readonly": {}}), operation("Make"), protocol="aws.protocols#awsQuery"
)
TOKEN = {"smithy.api#idempotencyToken": {}, "smithy.api#httpHeader": "X-Token"}
REST = service(operation("Make", http="POST /make", members={"token": TOKEN}))


@pytest.mark.parametrize(
    ("ast", "method", "path", "parts", "expected"),
    [
        (AST, "POST", "/wait", {}, Vouched(True, True)),
        (AST, "GET", "/wait", {}, None),
        (FORMS, "POST", "/", {"data": "Action=Read"}, Vouched(True)),
        (FORMS, "POST", "/", {"data": "Action=Make"}, Vouched(False)),
        (FORMS, "POST", "/", {}, None),
        (REST, "POST", "/make", {"headers": {"x-token": "t"}}, Vouched(True)),
        (REST, "post", "/make", {"headers": {"x-token": "t"}}, Vouched(True)),
        (REST, "POST", "/make", {"headers": {"x-token": ""}}, Vouched(False)),
        (REST, "POST", "/make", {}, Vouched(False)),
    ],
)
def test_a_model_vouches_for_what_it_knows(
    ast: dict[str, Any], method: str, path: str, parts: dict[str, Any], expected: Vouched | None
) -> None:
    """The operation is told by all parts of a request; None of a request that it does not know."""
    request = prepare("POST", URL + path, **parts)
    request.method = method
    assert expected == SmithyModelClassifier([SmithyModel.from_dict(ast).for_endpoint(URL)]).vouch(request)


@pytest.mark.parametrize("bad", [MODEL, object(), "model.json"])
def test_a_model_without_an_endpoint_is_refused_with_what_to_do(bad: Any) -> None:
    """A classifier cannot know where it is mounted."""
    with pytest.raises(TypeError, match=r"does not know its endpoint: give model\.for_endpoint\(url\)$"):
        SmithyModelClassifier([ENDPOINT, bad])


def test_a_model_at_another_priority_vouches_as_before() -> None:
    """Its verdicts alone have a place among others."""
    moved = with_priority(SmithyModelClassifier([ENDPOINT]), RetryClassifierPriority.default())
    assert send(scripted(500, 200, classifiers=[moved]), "POST", f"{URL}/search").status_code == 200


def test_an_error_without_the_trait_is_no_opinion() -> None:
    """The status decides: 500 is retried for a GET, 400 is not."""
    assert send(modelled(coded("Wrong", 500), 200)).status_code == 200
    assert send(modelled(coded("Wrong", 400))).status_code == 400
    assert send(modelled(400)).status_code == 400
