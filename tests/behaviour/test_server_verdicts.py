"""A server's own word on a retry (contract 3.4), on real sockets."""

from __future__ import annotations

import pytest
from urllib3.util import Retry

from requests_smithy_retry import ErrorKind, RetryAdapter, RetryIndicated, StopReason, retry_history
from requests_smithy_retry.testing import FakeClock
from tests.faults import FaultServer, Reply
from tests.support import Reply as Scripted
from tests.support import scripted, send, session_with

OK = Reply(body=b"at last")
NO = [
    {"x-should-retry": "false"},
    {"X-Should-Retry": " FALSE "},
    {"Stripe-Should-Retry": "false"},
    {"grpc-retry-pushback-ms": "-1"},
    {"x-should-retry": "true", "stripe-should-retry": "false"},
    {"x-envoy-overloaded": "true", "x-should-retry": "false"},
]
NOTHING = [
    {"x-should-retry": "1"},
    {"x-should-retry": ""},
    {"grpc-retry-pushback-ms": "0"},
    {"grpc-retry-pushback-ms": "250"},
    {"grpc-retry-pushback-ms": "soon"},
    {"x-envoy-overloaded": "true"},
]


def statuses(status: int, said: dict[str, str], method: str = "GET", **options) -> list[int | None]:
    """The statuses of a request's attempts, whose first answer has these headers, and the second is well."""
    with (
        FaultServer([Reply(status, headers=tuple(said.items())), OK]) as server,
        session_with(RetryAdapter(clock=FakeClock(), **options)) as client,
    ):
        history = retry_history(client.request(method, server.url, timeout=30))
    assert history is not None
    return [attempt.status for attempt in history.attempts]


@pytest.mark.parametrize("said", NO, ids=str)
def test_no_forbids(said: dict[str, str]) -> None:
    """A 503 whose server says no is the answer."""
    assert [503] == statuses(503, said)


@pytest.mark.parametrize("name", ["x-should-retry", "stripe-should-retry"])
@pytest.mark.parametrize("status", [400, 409, 501])
def test_yes_indicates(name: str, status: int) -> None:
    """A status that is not retried by itself is retried where the server says yes."""
    assert [status, 200] == statuses(status, {name: "true"})
    assert [status] == statuses(status, {})


@pytest.mark.parametrize("said", NOTHING, ids=str)
def test_anything_else_says_nothing(said: dict[str, str]) -> None:
    """A 503 is retried and a 400 is not, as without the header."""
    assert ([503, 200], [400]) == (statuses(503, said), statuses(400, said))


def test_a_post_is_not_sent_again_because_its_server_says_yes() -> None:
    """The resend rule stands: the server may have acted on it, unless the request has a key."""
    said = {"x-should-retry": "true"}
    assert [503] == statuses(503, said, "POST")
    assert [503, 200] == statuses(503, said, "POST", idempotency_key=True)


def test_what_envoy_dropped_is_sent_again_like_a_throttled_request() -> None:
    """Envoy says that nobody acted on it: a POST is sent again, after the longer backoff."""
    for name in ("x-envoy-overloaded", "x-envoy-ratelimited"):
        history = retry_history(send(scripted(Scripted(503, {name: "true"}), 200), "POST"))
        assert history is not None
        kinds = [
            vote.action.reason.kind for vote in history.attempts[0].votes if isinstance(vote.action, RetryIndicated)
        ]
        assert [ErrorKind.TRANSIENT, ErrorKind.THROTTLING] == kinds


def test_the_history_names_the_header() -> None:
    """Who reads why there was no retry finds whose word it was."""
    history = retry_history(send(scripted(Scripted(503, {"x-should-retry": "false"}))))
    assert history is not None
    assert (StopReason.FORBIDDEN, "the server said so (x-should-retry)") == (history.stop_reason, history.why)


def test_a_429_keeps_its_hint() -> None:
    """Of Envoy's rate limit, the wait that the answer asks for holds."""
    clock = FakeClock()
    send(scripted(Scripted(429, {"x-envoy-ratelimited": "true", "Retry-After": "1"}), 200, clock=clock, max_attempts=2))
    assert 1.0 == clock.sleeps[0]


def test_a_translated_retry_says_itself_what_is_retried() -> None:
    """Programs with a urllib3 ``Retry`` have what they had."""
    retry = Retry(1, status_forcelist=[503], backoff_factor=0)
    assert [503, 200] == statuses(503, {"x-should-retry": "false"}, max_retries=retry)
