"""The headers of the SDKs; the rows are ``header_vectors`` of the published standard vectors."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from requests_smithy_retry import RetryListener, SdkHeaders, retry_options, testing
from tests.support import prepare, scripted, send

ID, REQUEST = "amz-sdk-invocation-id", "amz-sdk-request"


@pytest.mark.parametrize(
    ("attempts", "statuses", "expected"),
    [
        (3, (200,), ["attempt=1; max=3"]),
        (3, (500, 500, 200), ["attempt=1; max=3", "attempt=2; max=3", "attempt=3; max=3"]),
        (4, (200,), ["attempt=1; max=4"]),
    ],
)
def test_each_attempt_says_its_number(attempts: int, statuses: tuple[int, ...], expected: list[str]) -> None:
    """``amz-sdk-request`` counts the attempts, and names the most there may be."""
    adapter = scripted(*statuses, listeners=[SdkHeaders()], max_attempts=attempts)
    send(adapter)
    assert expected == [sent.headers[REQUEST] for sent in adapter.sent]


def test_without_a_cap_no_maximum_is_named() -> None:
    """An operation that waits for its service may make any number of attempts."""
    adapter = testing.scripted(500, 500, 500, 200, listeners=[SdkHeaders()])
    send(adapter)
    assert [f"attempt={number}" for number in (1, 2, 3, 4)] == [sent.headers[REQUEST] for sent in adapter.sent]


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


def test_the_options_of_the_operation_count() -> None:
    """Within retry_options the most attempts are those."""
    adapter = scripted(200, listeners=[SdkHeaders()])
    with retry_options(max_attempts=9):
        send(adapter)
    assert adapter.sent[0].headers[REQUEST] == "attempt=1; max=9"


def test_a_strategy_that_does_not_say_has_no_max() -> None:
    """A foreign strategy need not know how many attempts there may be."""

    class Foreign:
        def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
            class Token:
                retry_count, retry_delay = 0, 0.0

            return Token()

        def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any:
            raise NotImplementedError

        def record_success(self, *, token: Any) -> None: ...

    adapter = scripted(200, strategy=Foreign(), listeners=[SdkHeaders()])
    send(adapter)
    assert adapter.sent[0].headers[REQUEST] == "attempt=1"


def test_a_signing_listener_sees_the_headers() -> None:
    """A listener after it finds the headers set, so that a signature can cover them."""
    seen: list[str] = []

    class Signer(RetryListener):
        def before_attempt(self, event: Any) -> None:
            seen.append(event.request.headers[REQUEST])

    send(scripted(200, listeners=[SdkHeaders(), Signer()]))
    assert ["attempt=1"] == seen
