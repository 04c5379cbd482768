"""Idempotency keys (contract 4.2, and the IETF draft on the Idempotency-Key header)."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from requests_smithy_retry import RetryConfigError, StopReason, retry_history, retry_options, testing
from tests.support import Reply, prepare, read_timeout, reset_error, scripted, send, session_with

HEADER = "Idempotency-Key"
SF_STRING = re.compile(r'"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"')


def keys_of(adapter: Any) -> list[str | None]:
    """The key of each attempt."""
    return [sent.headers.get(HEADER) for sent in adapter.sent]


@pytest.mark.parametrize(("value", "attempts"), [("a", 2), ('"abc"', 2), (b"abc", 2), ("", 1), ('""', 1)])
def test_a_key_is_there_if_it_is_not_blank(value: Any, attempts: int) -> None:
    """The draft's quotes around nothing are nothing."""
    assert attempts == len(retry_history(send(scripted(503, 200), "POST", headers={HEADER: value})).attempts)


def test_a_request_with_a_key_is_sent_again() -> None:
    """After any failure a request with a key is sent again, with the same key, as often as the strategy allows."""
    adapter = scripted(reset_error(), 500, 200)
    assert send(adapter, "POST", headers={"idempotency-key": "mine"}).status_code == 200
    assert [sent.headers.get("idempotency-key") for sent in adapter.sent] == ["mine"] * 3


def test_a_minted_key_is_the_same_on_every_attempt_and_another_one_for_each_operation() -> None:
    """A minted key has the draft's syntax, a UUID as a quoted string of RFC 8941; the caller's request gets none."""
    adapter = scripted(reset_error(), read_timeout(), 200, 500, 200, idempotency_key=True)
    request = prepare("POST", data=b"x")
    for _ in range(2):
        response = adapter.send(request)
        assert (200, request) == (response.status_code, response.request)
    keys = keys_of(adapter)
    assert keys[0] == keys[1] == keys[2] != keys[3] == keys[4]
    assert all(SF_STRING.fullmatch(str(key)) for key in keys)
    assert HEADER not in request.headers


@pytest.mark.parametrize(
    ("method", "headers", "expected"),
    [
        *((method, {}, None) for method in ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")),
        ("POST", {HEADER: "mine"}, "mine"),
    ],
)
def test_no_key_is_minted_where_none_is_needed(method: str, headers: dict[str, str], expected: str | None) -> None:
    """Idempotent methods need no key (RFC 9110 9.2.2), and the caller's own is used."""
    adapter = scripted(200, idempotency_key=True)
    send(adapter, method, headers=headers)
    assert keys_of(adapter) == [expected]


class Unsigned:
    """A callable whose signature cannot be had."""

    @property
    def __signature__(self) -> None:
        raise ValueError("none")

    def __call__(self, request: Any) -> str:
        return f"{request.method}-1"


@pytest.mark.parametrize("option", [lambda request: request.method + "-1", lambda: "POST-1", Unsigned()])
def test_a_function_makes_the_key(option: Any) -> None:
    """It is given the request if it takes one, or nobody knows, and is asked once; its text is sent as it is."""
    adapter = scripted(500, 200, idempotency_key=option)
    send(adapter, "POST")
    assert keys_of(adapter) == ["POST-1", "POST-1"]


@pytest.mark.parametrize("bad", ["", "  ", '""', "a\r\nb", "é", None, 7, uuid.UUID(int=1)])
def test_a_function_that_gives_no_key_is_refused_before_anything_is_sent(bad: Any) -> None:
    """The error names the option, the type that came, where from, and what is allowed; it shows no value."""
    adapter = scripted(200, idempotency_key=lambda: bad)
    with pytest.raises(RetryConfigError) as caught:
        send(adapter, "POST")
    assert str(caught.value) == (
        f"idempotency_key={type(bad)!r} (from the function's result): a text of printable ASCII, not blank, is allowed"
    )
    assert adapter.sent == []


def test_it_can_be_said_for_one_operation() -> None:
    """A block switches minted keys on or off; each operation in it has a key of its own."""
    adapter = scripted(200, 200, 200)
    with retry_options(idempotency_key=True):
        send(adapter, "POST")
        send(adapter, "POST")
        with retry_options(idempotency_key=False):
            send(adapter, "POST")
    first, second, third = keys_of(adapter)
    assert None not in (first, second)
    assert first != second
    assert third is None


def test_a_hop_that_becomes_a_get_has_none() -> None:
    """The GET that follows a 303 has no key."""
    adapter = scripted(Reply(303, {"Location": "/elsewhere"}), 200, idempotency_key=True)
    session_with(adapter).post("https://api.example.com/things", data=b"x")
    assert [key is None for key in keys_of(adapter)] == [False, True]


def test_with_a_key_409_is_retried_and_422_forbidden() -> None:
    """The first request is still running; the key was used for something else."""
    adapter = scripted(409, 200, idempotency_key=True)
    assert send(adapter, "POST").status_code == 200
    adapter.script = [422]
    history = retry_history(send(adapter, "POST"))
    assert (history.stop_reason, history.why) == (
        StopReason.FORBIDDEN,
        "the idempotency key was used with another payload",
    )


def test_with_a_key_an_ordinary_conflict_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    """A 409 may be the answer itself: three requests in a second, and nothing of the retry budget."""
    adapter = testing.scripted(*[409] * 9, idempotency_key=True)
    history = retry_history(send(adapter, "POST"))
    assert [0.0, 0.5, 0.5] == [attempt.delay for attempt in history.attempts]
    (bucket,) = adapter.strategy.snapshot().buckets.values()
    assert (2.0, None) == (bucket.available, bucket.down_for)
    assert "is down" not in caplog.text
