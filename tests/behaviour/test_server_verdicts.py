"""A server's own word on a retry (contract 3.4), on real sockets."""

from __future__ import annotations

from typing import Any

import pytest
from urllib3.util import Retry

from requests_smithy_retry import ErrorKind, RetryAdapter, StopReason, retry_history
from requests_smithy_retry.classifiers import RetryIndicated
from requests_smithy_retry.testing import FakeClock
from tests.faults import FaultServer, Reply
from tests.support import Reply as Scripted
from tests.support import scripted, send, session_with

YES, NO = {"x-should-retry": "true"}, {"x-should-retry": "false"}


@pytest.mark.parametrize(
    ("status", "said", "how", "expected"),
    [
        # No forbids.
        (503, NO, {}, [503]),
        (503, {"X-Should-Retry": " FALSE "}, {}, [503]),
        (503, {"Stripe-Should-Retry": "false"}, {}, [503]),
        (503, {"grpc-retry-pushback-ms": "-1"}, {}, [503]),
        (503, {"x-should-retry": "true", "stripe-should-retry": "false"}, {}, [503]),
        (503, {"x-envoy-overloaded": "true", "x-should-retry": "false"}, {}, [503]),
        # Yes indicates a retry of what is not retried by itself.
        *[(status, YES, {}, [status, 200]) for status in (400, 409, 501)],
        *[(status, {"stripe-should-retry": "true"}, {}, [status, 200]) for status in (400, 409, 501)],
        *[(status, {}, {}, [status]) for status in (400, 409, 501)],
        # Anything else says nothing.
        *[
            (status, {name: value}, {}, expected)
            for status, expected in ((503, [503, 200]), (400, [400]))
            for name, value in (
                ("x-should-retry", "1"),
                ("x-should-retry", ""),
                ("grpc-retry-pushback-ms", "0"),
                ("grpc-retry-pushback-ms", "250"),
                ("grpc-retry-pushback-ms", "soon"),
                ("x-envoy-overloaded", "true"),
            )
        ],
        # The resend rule stands: the server may have acted on a POST, unless it has a key.
        (503, YES, {"method": "POST"}, [503]),
        (503, YES, {"method": "POST", "idempotency_key": True}, [503, 200]),
        # Programs with a urllib3 Retry have what they had.
        (503, NO, {"max_retries": Retry(1, status_forcelist=[503], backoff_factor=0)}, [503, 200]),
    ],
    ids=str,
)
def test_the_servers_word_counts(status: int, said: dict[str, str], how: Any, expected: list[int]) -> None:
    """The statuses of a request's attempts, whose first answer has these headers, and the second is well."""
    options = dict(how)
    method, first = options.pop("method", "GET"), Reply(status, headers=tuple(said.items()))
    adapter = RetryAdapter(clock=FakeClock(), **options)
    with FaultServer([first, Reply(body=b"at last")]) as server, session_with(adapter) as client:
        history = retry_history(client.request(method, server.url, timeout=30))
    assert expected == [attempt.status for attempt in history.attempts]


def test_what_envoy_dropped_is_sent_again_like_a_throttled_request() -> None:
    """Envoy says that nobody acted on it: a POST is sent again, after the longer backoff."""
    for name in ("x-envoy-overloaded", "x-envoy-ratelimited"):
        history = retry_history(send(scripted(Scripted(503, {name: "true"}), 200), "POST"))
        kinds = [
            vote.action.reason.kind for vote in history.attempts[0].votes if isinstance(vote.action, RetryIndicated)
        ]
        assert [ErrorKind.TRANSIENT, ErrorKind.THROTTLING] == kinds


def test_the_history_names_the_header() -> None:
    """Who reads why there was no retry finds whose word it was."""
    history = retry_history(send(scripted(Scripted(503, {"x-should-retry": "false"}))))
    assert (StopReason.FORBIDDEN, "the server said so (x-should-retry)") == (history.stop_reason, history.why)


def test_a_429_keeps_its_hint() -> None:
    """Of Envoy's rate limit, the wait that the answer asks for holds."""
    clock = FakeClock()
    send(scripted(Scripted(429, {"x-envoy-ratelimited": "true", "Retry-After": "1"}), 200, clock=clock, max_attempts=2))
    assert 1.0 == clock.sleeps[0]
