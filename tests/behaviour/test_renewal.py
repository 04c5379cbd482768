"""A 401, once per operation (contract 2.10): what is sent again, and when the program is asked."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    RetryAdapter,
    RetryCancelled,
    RetryConfigError,
    RetryError,
    RetryLater,
    StopReason,
    retry_history,
    retry_options,
)
from requests_smithy_retry.testing import FakeClock
from tests import faults
from tests.support import URL, Reply, prepare, scripted, session_with
from tests.support import send as send_any

OLD, NEW = {"Authorization": "Bearer old"}, {"Authorization": "Bearer new"}


def renewing(calls: list[Any], headers: Any = NEW) -> Any:
    """A function that notes each response that it is called with."""

    def renew(response: requests.Response) -> Any:
        calls.append(response)
        return headers

    return renew


def send(adapter: Any, method: str = "GET", **arguments: Any) -> Any:
    """Send a request that has credentials."""
    return send_any(adapter, method, headers=OLD, **arguments)


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


@pytest.mark.parametrize("kind", [RetryError, RetryLater])
def test_what_the_function_raises_does_not_decide_about_the_call(kind: type[Exception]) -> None:
    """A RetryError of the request for a token is no refusal of the strategy, and its RetryLater ends no wait here."""

    def renew(response: requests.Response) -> Any:
        raise error

    error = kind("no token")
    with pytest.raises(kind) as caught:
        send(scripted(401, 200, on_unauthorized=renew))
    assert (error, None) == (caught.value, retry_history(error))


def test_a_call_that_is_cancelled_meanwhile_sends_nothing_again() -> None:
    """As before any retry; the exception has the 401 and the history."""

    def renew(response: requests.Response) -> Any:
        stop.set()
        return NEW

    stop, adapter = threading.Event(), scripted(401, 200, on_unauthorized=renew)
    with retry_options(cancel=stop), pytest.raises(RetryCancelled) as caught:
        send(adapter)
    history = retry_history(caught.value)
    assert (StopReason.CANCELLED, [401]) == (history.stop_reason, [each.status for each in history.attempts])
    assert (401, 1) == (caught.value.response.status_code, len(adapter.sent))


@pytest.mark.parametrize("method", ["after_attempt", "retry_scheduled"])
def test_what_a_listener_raises_before_the_repetition_is_not_sent_again(method: str) -> None:
    """Not even what the network raises: it is the listener's, and reaches the caller."""

    def fail(event: Any) -> None:
        raise error

    error = requests.ConnectionError("of another service")
    adapter = scripted(401, 200, on_unauthorized=renewing([]), listeners=[SimpleNamespace(**{method: fail})])
    with pytest.raises(requests.ConnectionError) as caught:
        send(adapter)
    assert (error, 1) == (caught.value, len(adapter.sent))


def test_what_judges_the_answer_does_not_judge_the_request_for_a_token() -> None:
    """A poll whose token expires gets a new one by one request; the block's deadline holds for that, too."""
    tokens = scripted(503, 200)

    def renew(response: requests.Response) -> Any:
        send_any(tokens)
        return NEW

    adapter = scripted(401, Reply(200, body=b"done"), on_unauthorized=renew)
    with retry_options(validate=lambda response: response.text == "done" or 2.0, deadline=60, idempotent=False):
        assert "done" == send(adapter).text
    assert (2, 2) == (len(adapter.sent), len(tokens.sent))


def test_the_new_headers_stay_for_the_retries() -> None:
    """The first attempt with new credentials counts as the operation's first, and retries keep the new headers."""
    calls: list[Any] = []
    adapter = scripted(503, 401, 503, 200, on_unauthorized=renewing(calls))
    response = send(adapter)
    assert [200, ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]] == [response.status_code, seen(adapter)]
    history = retry_history(response)
    assert [True, False, True, False] == [attempt.quota_before is not None for attempt in history.attempts]


def test_none_hands_the_401_over_with_its_body() -> None:
    """If the program returns None, the 401 is handed over with its body, though its connection was let go before."""
    response = send(scripted(Reply(401, body=b"go away"), on_unauthorized=renewing([], None)))
    assert (401, b"go away") == (response.status_code, response.content)


@pytest.mark.parametrize("mints", [False, True])
def test_a_post_is_sent_again_with_the_key_that_was_minted(mints: bool) -> None:
    """The server did not act on it, but it may have seen the key, if there is one."""
    adapter = scripted(401, 200, on_unauthorized=renewing([]), idempotency_key=mints)
    assert 200 == send(adapter, "POST", data=b"a").status_code
    first, second = adapter.sent
    assert b"a" == first.body == second.body
    assert first.headers.get("Idempotency-Key") == second.headers.get("Idempotency-Key")
    assert (mints, ["Bearer old", "Bearer new"]) == ("Idempotency-Key" in first.headers, seen(adapter))


@pytest.mark.parametrize(
    ("script", "request_of", "status", "asked"),
    [
        pytest.param([401, 401], {}, 401, 1, id="a second 401 is handed over"),
        pytest.param([401], {"method": "POST", "data": iter([b"a"])}, 401, 0, id="a body that cannot be replayed"),
        *[pytest.param([status], {}, status, 0, id=f"{status} is not its business") for status in (403, 407, 200)],
    ],
)
def test_it_is_asked_once_where_it_helps(script: Any, request_of: Any, status: int, asked: int) -> None:
    """The function is not called where the request would not be sent again for its sake."""
    calls: list[Any] = []
    response = send(scripted(*script, on_unauthorized=renewing(calls)), **request_of)
    assert (status, asked) == (response.status_code, len(calls))
    assert (StopReason.SUCCESS if status == 200 else StopReason.NOT_RETRYABLE) is retry_history(response).stop_reason


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
    """A 401 of its own is handed to it."""
    adapter: Any = scripted(401, 401, 200, on_unauthorized=lambda _: seen_within.append(send(adapter)) or NEW)
    seen_within: list[requests.Response] = []
    assert 200 == send(adapter).status_code
    assert [401] == [response.status_code for response in seen_within]


TAG = {"ETag": '"1"'}


LONG = b"0123456789" * 20_000


def piece(first: int, cut: int | None) -> Any:
    """The rest of the long body from a byte on, which breaks off after so many bytes."""
    headers = {**TAG, "Content-Range": f"bytes {first}-{len(LONG) - 1}/{len(LONG)}"}
    whole = faults.Reply(206, headers, LONG[first:])
    return whole if cut is None else faults.CutBody(whole, at=cut)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("expires", [1, 2, 3])
def test_a_body_that_goes_on_has_the_newest_credentials(expires: int, stream: bool) -> None:
    """Each time that they expire between two pieces, the function is asked, and what it returns is kept."""
    asked: list[str] = []

    def renew(response: requests.Response) -> dict[str, str]:
        asked.append(response.request.headers["Authorization"])
        return {"Authorization": f"Bearer {len(asked)}"}

    pieces = [piece(3, 2), piece(5, 2), piece(7, None)]
    script: list[Any] = [faults.CutBody(faults.Reply(200, TAG, LONG), at=3)]
    for number, each in enumerate(pieces):
        script += [faults.Reply(401), each] if number < expires else [each]
    with faults.FaultServer(script) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(on_unauthorized=renew, backoff=0))
        got = session.get(server.url, headers={"Authorization": "Bearer 0"}, stream=stream, timeout=10)
        assert LONG == got.content
        sent = [request.header("Authorization") for request in server.requests]
    wanted = ["Bearer 0"]
    for number in range(3):
        wanted += [f"Bearer {number}", f"Bearer {number + 1}"] if number < expires else [f"Bearer {expires}"]
    assert (wanted, [f"Bearer {number}" for number in range(expires)]) == (sent, asked)


def test_redirects_that_nobody_follows_are_forgotten() -> None:
    """Of more chains than are remembered, the last one is."""
    moved = Reply(302, {"Location": "/there"})
    adapter: Any = scripted(*[moved] * 1025, moved, 401, 200, on_unauthorized=renewing([]))
    kept = [send(adapter) for _ in range(1025)]
    assert (1025, 200) == (len(kept), session_with(adapter).get(URL, headers={"Authorization": "old"}).status_code)


USED_UP = {"RateLimit-Limit": "10", "RateLimit-Remaining": "0", "RateLimit-Reset": "30"}


def test_a_wait_before_the_new_credentials_are_sent_ends_the_call() -> None:
    """With a limit that is used up and a short ``max_wait``, the call ends in place of the wait."""
    adapter = scripted(Reply(401, USED_UP, b"who?"), 200, on_unauthorized=lambda _: NEW, max_wait=1)
    with pytest.raises(RetryLater, match="a rate limit takes 30 s more") as caught:
        send(adapter)
    assert (401, b"who?", 1) == (caught.value.response.status_code, caught.value.response.content, len(adapter.sent))
    assert [401] == [attempt.status for attempt in retry_history(caught.value).attempts]


def test_without_a_permit_for_the_new_credentials_the_401_is_the_answer() -> None:
    """In adaptive mode, each of the two requests needs a permit; the second one comes past the deadline."""
    clock = FakeClock()
    adapter = scripted(429, Reply(401, body=b"who?"), 200, on_unauthorized=lambda _: NEW, mode="adaptive", clock=clock)
    with retry_options(max_attempts=1):
        send(adapter)
    clock.advance(60)
    with retry_options(deadline=0.5, max_attempts=3):
        response = send(adapter)
    assert (401, b"who?", StopReason.RATE_LIMITED) == (
        response.status_code,
        response.content,
        retry_history(response).stop_reason,
    )


@pytest.mark.real_time
def test_a_401_too_long_to_be_let_go_is_the_answer() -> None:
    """Its connection is not held while the program fetches new credentials, so it is not asked for any."""
    calls: list[Any] = []
    adapter = RetryAdapter(on_unauthorized=renewing(calls))
    with faults.FaultServer(default=faults.Reply(401, body=b"x" * 300_000)) as server, requests.Session() as session:
        session.trust_env = False
        session.mount("http://", adapter)
        assert 401 == session.get(server.url, headers=OLD, stream=True).status_code
    assert [] == calls
