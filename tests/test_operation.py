"""One operation, from its first attempt to its end: what goes wrong in between."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    Outcome,
    RetryAdapter,
    RetryError,
    RetryListener,
    StopReason,
    classifier,
    retry_history,
)
from requests_smithy_retry.testing import CutBody, FaultServer, Reply
from requests_smithy_retry.testing.clock import FakeClock

from .support import reset_error, scripted, send, session_with
from .wire.support import nothing_left

BOTH = pytest.mark.parametrize("step", [503, reset_error()], ids=["response", "exception"])


class Late:
    """A foreign strategy whose first attempt is to wait, and which retries nothing."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Any:
        return SimpleNamespace(retry_count=0, retry_delay=self.delay)

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any:
        raise RetryError("no", stop_reason=StopReason.NOT_RETRYABLE)

    def record_success(self, *, token: Any) -> None:
        """Nothing is kept."""


class Interrupted(FakeClock):
    """A clock whose sleep is interrupted."""

    def sleep(self, seconds: float) -> None:
        raise KeyboardInterrupt


def test_a_first_wait_past_the_deadline_is_not_made() -> None:
    """The attempt is made at once, and it is the only one."""
    clock = FakeClock()
    response = send(scripted(503, clock=clock, strategy=Late(10), operation_timeout=5))
    assert (response.status_code, clock.sleeps) == (503, [])
    assert retry_history(response).stop_reason is StopReason.DEADLINE


@BOTH
def test_an_interrupted_wait_leaves_nothing_open(step: Any) -> None:
    """Whether a response or an exception is to be followed by a retry."""
    adapter = scripted(step, clock=Interrupted(), jitter="none", initial_backoff=1)
    with pytest.raises(KeyboardInterrupt):
        send(adapter)
    assert all(response.raw.closed for response in adapter.responses)


@BOTH
def test_a_scope_functions_bug_comes_through(step: Any) -> None:
    """It is asked when the first attempt has failed, and what came is closed."""

    def broken(request: Any) -> str:
        raise ZeroDivisionError

    adapter = scripted(step, scope=broken)
    with pytest.raises(ZeroDivisionError):
        send(adapter)
    assert all(response.raw.closed for response in adapter.responses)


@pytest.mark.parametrize("step", [200, 503, reset_error()], ids=["success", "failure", "exception"])
def test_a_classifiers_bug_comes_through(step: Any) -> None:
    """With what came closed, where something came."""

    @classifier(sees_successes=True)
    def broken(outcome: Outcome) -> None:
        raise ZeroDivisionError

    adapter = scripted(step, classifiers=[broken])
    with pytest.raises(ZeroDivisionError):
        send(adapter)
    assert all(response.raw.closed for response in adapter.responses)


@pytest.mark.parametrize("step", [503, reset_error()], ids=["response", "exception"])
def test_a_listeners_bug_at_the_end_comes_through(step: Any) -> None:
    """An interrupt in the last event, say: nobody is left who could read the response."""

    class Broken(RetryListener):
        def gave_up(self, event: Any) -> None:
            raise KeyboardInterrupt

    adapter = scripted(step, listeners=[Broken()], max_attempts=1)
    with pytest.raises(KeyboardInterrupt):
        send(adapter)
    assert all(response.raw.closed for response in adapter.responses)


def test_a_late_cut_is_a_failure_for_a_foreign_strategy_too() -> None:
    """Its token has no way to be given again: it is asked about the exception with the one that it gave."""
    cut = CutBody(Reply(400, body=b"x" * 300_000), at=200_000)
    with nothing_left(), FaultServer([cut]) as server, session_with(RetryAdapter(strategy=Late())) as made:
        with pytest.raises(requests.RequestException) as caught:
            made.get(server.url, timeout=5)
        assert retry_history(caught.value).attempts[0].error is not None
