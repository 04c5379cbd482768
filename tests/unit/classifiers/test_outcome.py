"""The outcome of an attempt, as classifiers see it (contract 3)."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import requests

from requests_smithy_retry import Outcome, RetryError, StandardRetryStrategy, classifier


def test_an_exception_of_somebodys_code_is_its_own_outcome() -> None:
    """An exception is its own outcome, unless it carries a response; one that was not read stays unread."""
    seen: list[Outcome] = []
    strategy = StandardRetryStrategy(classifiers=[classifier(lambda outcome: seen.append(outcome))])

    def judged(error: Exception) -> tuple[Any, ...]:
        first = strategy.acquire_initial_retry_token()
        with contextlib.suppress(RetryError):
            strategy.refresh_retry_token_for_retry(token_to_renew=first, error=error)
        return seen[-1].error, seen[-1].response, seen[-1].attempt, seen[-1].stream

    plain, other = OSError(), RuntimeError()
    other.response = {"Error": {"Code": "Throttling"}}  # type: ignore[attr-defined]
    assert [(plain, None, 1, False), (other, None, 1, False)] == [judged(plain), judged(other)]
    unread: Any = requests.Response()
    unread.status_code = 503
    failed = requests.HTTPError(response=unread)
    assert (failed, unread, 1, True) == judged(failed)
    assert b"" == seen[-1].body_prefix
    unread._content = b"read"
    assert (failed, unread, 1, False) == judged(failed)


def test_the_beginning_of_a_body() -> None:
    """64 KiB at most, and none with ``stream`` or of a body that is missing or unreadable; no log shows it."""

    class Refusing:
        status_code = 500

        @property
        def content(self) -> bytes:
            raise RuntimeError("not read")

    def prefix(response: Any, **more: Any) -> bytes:
        return Outcome(response=response, **more).body_prefix

    long = SimpleNamespace(content=b"x" * 100_000)
    assert prefix(long) == b"x" * 65_536
    assert prefix(long, stream=True) == b""
    assert prefix(long, peeked=b"begin") == b"begin"
    assert {b""} == {prefix(each) for each in [None, Refusing(), SimpleNamespace(), SimpleNamespace(content=None)]}
    assert "secret" not in repr(Outcome(peeked=b"secret"))
