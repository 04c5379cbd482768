"""A 401, once per operation (contract 2.10): what is sent again, and when the program is asked."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryConfigError, StopReason, retry_history, retry_options
from requests_smithy_retry.sending import credentials as module
from requests_smithy_retry.testing.clock import FakeClock
from tests import support
from tests.support import Reply, prepare, scripted

OLD, NEW = {"Authorization": "Bearer old"}, {"Authorization": "Bearer new"}


def send(adapter: Any, *args: Any, **options: Any) -> requests.Response:
    """Send a request with credentials."""
    return support.send(adapter, *args, headers=OLD, **options)


def renewing(calls: list[Any], headers: Any = NEW) -> Any:
    """A function that notes each response that it is called with."""

    def renew(response: requests.Response) -> Any:
        calls.append(response)
        return headers

    return renew


def seen(adapter: Any) -> list[str | None]:
    """The credentials of each request that was sent."""
    return [request.headers.get("Authorization") for request in adapter.sent]


def test_a_401_is_sent_again_with_the_new_headers() -> None:
    """The request goes again at once and at no price, and the caller's own request stays as it is."""
    calls: list[Any] = []
    clock = FakeClock()
    adapter = scripted(401, 200, on_unauthorized=renewing(calls), max_attempts=2, clock=clock)
    request = prepare(headers=OLD)
    response = adapter.send(request)
    assert [200, ["Bearer old", "Bearer new"], "Bearer old"] == [
        response.status_code,
        seen(adapter),
        request.headers["Authorization"],
    ]
    assert [401] == [call.status_code for call in calls]
    history = retry_history(response)
    assert [(None, "backoff"), (None, "on_unauthorized")] == [
        (attempt.quota_before, attempt.delay_source) for attempt in history.attempts
    ]
    assert "attempt 2: with new credentials 200" in history.explain()
    assert [] == clock.sleeps


def test_it_is_asked_once() -> None:
    """A second 401 is handed over."""
    calls: list[Any] = []
    response = send(scripted(401, 401, on_unauthorized=renewing(calls)))
    assert (401, 1) == (response.status_code, len(calls))
    assert StopReason.NOT_RETRYABLE is retry_history(response).stop_reason


def test_the_new_headers_stay_for_the_retries() -> None:
    """The first attempt with new credentials counts as the operation's first, and retries keep the new headers."""
    calls: list[Any] = []
    adapter = scripted(503, 401, 503, 200, on_unauthorized=renewing(calls))
    response = send(adapter)
    assert [200, ["Bearer old"] * 2 + ["Bearer new"] * 2] == [response.status_code, seen(adapter)]
    history = retry_history(response)
    assert [True, False, True, False] == [attempt.quota_before is not None for attempt in history.attempts]


def test_none_hands_the_401_over_with_its_body() -> None:
    """If the program returns None, the 401 is handed over with its body, though its connection was let go before."""
    response = send(scripted(Reply(401, body=b"go away"), on_unauthorized=renewing([], None)))
    assert (401, b"go away") == (response.status_code, response.content)


def test_a_body_that_cannot_be_replayed_is_not_sent_again() -> None:
    """The program is not asked either."""
    calls: list[Any] = []
    adapter = scripted(401, 200, on_unauthorized=renewing(calls))
    assert 401 == send(adapter, "POST", data=iter([b"a", b"b"])).status_code
    assert [] == calls


def test_a_post_is_sent_again() -> None:
    """The server did not act on it."""
    adapter = scripted(401, 200, on_unauthorized=renewing([]))
    assert 200 == send(adapter, "POST", data=b"a").status_code
    assert [b"a", b"a"] == [request.body for request in adapter.sent]


def test_a_minted_key_stays() -> None:
    """The server may have seen it."""
    adapter = scripted(401, 200, on_unauthorized=renewing([]), idempotency_key=True)
    send(adapter, "POST", data=b"a")
    first, second = (request.headers["Idempotency-Key"] for request in adapter.sent)
    assert first == second
    assert ["Bearer old", "Bearer new"] == seen(adapter)


def test_no_deadline_is_passed() -> None:
    """A renewal that took too long ends with the 401."""
    clock = FakeClock()

    def renew(response: requests.Response) -> dict[str, str]:
        clock.advance(10)
        return NEW

    adapter = scripted(401, 200, on_unauthorized=renew, operation_timeout=5, clock=clock)
    assert 401 == send(adapter).status_code


@pytest.mark.parametrize("answer", ["Bearer new", {"Authorization": 3}, {3: "x"}, 7])
def test_anything_but_headers_is_refused(answer: object) -> None:
    """Another value than headers is refused without being shown, because it may be a secret."""
    with pytest.raises(RetryConfigError, match=r"on_unauthorized=<class .*a mapping of headers") as caught:
        send(scripted(401, 200, on_unauthorized=renewing([], answer)))
    assert "Bearer" not in str(caught.value)


def test_the_functions_own_error_comes_through() -> None:
    """An exception of the function propagates."""

    def renew(response: requests.Response) -> None:
        raise requests.ConnectionError("no tokens today")

    with pytest.raises(requests.ConnectionError, match="no tokens today"):
        send(scripted(401, on_unauthorized=renew))


def test_the_function_may_send_by_the_same_adapter() -> None:
    """A 401 of its own is handed to it, without asking it about that; afterwards it is asked again."""
    adapter: Any = scripted(401, 401, 200, 401, 401, 200, on_unauthorized=lambda _: within.append(send(adapter)) or NEW)
    within: list[requests.Response] = []
    assert [200, 200] == [send(adapter).status_code for _ in range(2)]
    assert [401, 401] == [response.status_code for response in within]


def test_each_operation_is_asked_for() -> None:
    """What was renewed for one request is not taken for the next."""
    calls: list[Any] = []
    adapter = scripted(401, 200, 401, 200, on_unauthorized=renewing(calls))
    assert [200, 200] == [send(adapter).status_code for _ in range(2)]
    assert (2, ["Bearer old", "Bearer new"] * 2) == (len(calls), seen(adapter))


def test_a_redirect_that_cannot_be_followed_back_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it cannot be seen to whom the program sent its credentials, it is not asked."""
    monkeypatch.setattr(module, "_of_redirects", sys._getframe().f_code)  # has no list of the answers before
    calls: list[Any] = []
    assert 401 == send(scripted(401, 200, on_unauthorized=renewing(calls))).status_code
    assert [] == calls


def test_the_name_of_a_header_may_be_bytes() -> None:
    """Plain requests makes text of it; a program that makes the request by hand need not."""
    request = prepare()
    request.headers[b"X-Trace"] = "1"  # type: ignore[index]
    assert 401 == scripted(401, 200, on_unauthorized=renewing([])).send(request).status_code


@pytest.mark.parametrize("status", [403, 407, 200])
def test_another_status_is_none_of_its_business(status: int) -> None:
    """Another status than 401 does not lead to a call of the function."""
    calls: list[Any] = []
    assert status == send(scripted(status, on_unauthorized=renewing(calls))).status_code
    assert [] == calls


def test_a_plain_send_asks_nobody() -> None:
    """With retries switched off, the function is not called."""
    calls: list[Any] = []
    adapter = scripted(401, on_unauthorized=renewing(calls))
    with retry_options(enabled=False):
        assert 401 == send(adapter).status_code
    assert [] == calls
