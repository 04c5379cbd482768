"""The headers of the SDKs; the rows are ``header_vectors`` of the published standard vectors."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from requests_smithy_retry import RetryListener
from requests_smithy_retry.smithy import SdkHeaders
from tests.support import prepare, scripted, send

ID, REQUEST = "amz-sdk-invocation-id", "amz-sdk-request"


@pytest.mark.parametrize(
    ("options", "statuses", "expected"),
    [
        ({"max_attempts": 3}, (200,), ["attempt=1; max=3"]),
        ({"max_attempts": 3}, (500, 500, 200), ["attempt=1; max=3", "attempt=2; max=3", "attempt=3; max=3"]),
        ({"max_attempts": 4}, (200,), ["attempt=1; max=4"]),
        # An operation that waits for its service may make any number of attempts.
        ({"quota": "payoff"}, (500, 500, 500, 200), [f"attempt={number}" for number in (1, 2, 3, 4)]),
    ],
)
def test_each_attempt_says_its_number(options: Any, statuses: tuple[int, ...], expected: list[str]) -> None:
    """``amz-sdk-request`` counts the attempts, and names the most there may be, if there is a cap."""
    adapter = scripted(*statuses, listeners=[SdkHeaders()], **options)
    send(adapter)
    assert expected == [sent.headers[REQUEST] for sent in adapter.sent]


def test_an_operation_has_one_invocation_id() -> None:
    """All attempts of an operation share a UUID, and another operation has another."""
    adapter = scripted(500, 200, 200, listeners=[SdkHeaders()])
    send(adapter)
    send(adapter)
    first, again, other = (sent.headers[ID] for sent in adapter.sent)
    assert first == again != other
    assert str(uuid.UUID(first)) == first


def test_the_callers_id_is_kept_and_the_callers_request_is_not_changed() -> None:
    """An invocation id that the caller set is sent, and no header is added to the caller's request."""
    adapter = scripted(200, listeners=[SdkHeaders()])
    request = prepare(headers={"Amz-Sdk-Invocation-Id": "mine"})
    adapter.send(request)
    assert adapter.sent[0].headers["Amz-Sdk-Invocation-Id"] == "mine"
    assert {"Amz-Sdk-Invocation-Id": "mine"} == dict(request.headers)


def test_a_signing_listener_sees_the_headers() -> None:
    """A listener after it finds the headers set, so that a signature can cover them."""
    seen: list[str] = []

    class Signer(RetryListener):
        def before_attempt(self, event: Any) -> None:
            seen.append(event.request.headers[REQUEST])

    send(scripted(200, listeners=[SdkHeaders(), Signer()]))
    assert ["attempt=1"] == seen
