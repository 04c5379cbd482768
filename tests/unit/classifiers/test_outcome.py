"""The outcome of an attempt, and the exception that carries it (contract 1, 3)."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from requests_smithy_retry import (
    ErrorKind,
    ErrorRetryInfo,
    HasFault,
    Outcome,
    ResponseError,
    RetryAction,
    RetryContext,
    RetryReason,
)
from requests_smithy_retry.core.foreign import carrier_of, describe
from requests_smithy_retry.core.strategy import context_of
from tests.support import prepare
from tests.unit.classifiers.test_http_status import outcome_of
from tests.unit.classifiers.test_modeled import Info


@pytest.mark.parametrize(("status", "fault"), [(399, None), (400, "client"), (499, "client"), (500, "server")])
def test_the_carrier_of_a_response_implements_both_protocols(status: int, fault: str | None) -> None:
    """The carrier tells a strategy that does not know HTTP who is at fault, and whether to retry."""
    outcome = outcome_of(status)
    assert outcome.response is not None
    outcome.response.request = request = prepare()
    error = ResponseError(outcome.response, RetryContext(outcome))
    assert isinstance(error, ErrorRetryInfo)
    assert isinstance(error, HasFault)
    assert (error.fault, str(error)) == (fault, f"the server answered {status}")
    assert context_of(error).outcome is outcome
    assert error.request is request


def test_an_exception_of_somebodys_code_is_its_own_outcome() -> None:
    """An exception is its own outcome, unless it carries a response; one that was not read stays unread."""
    plain, other = OSError(), RuntimeError()
    assert context_of(plain) == RetryContext(Outcome(error=plain), deadline=None, options=None)
    assert context_of(plain).outcome.attempt == 1
    other.response = {"Error": {"Code": "Throttling"}}  # type: ignore[attr-defined]
    assert context_of(other) == RetryContext(Outcome(error=other))
    unread: Any = requests.Response()
    unread.status_code = 503
    failed = requests.HTTPError(response=unread)
    assert context_of(failed).outcome == Outcome(error=failed, response=unread, stream=True)
    assert context_of(failed).outcome.body_prefix == b""
    unread._content = b"read"
    assert context_of(failed).outcome.stream is False


def test_a_body_is_not_shown_with_its_outcome() -> None:
    """No part of a body gets into a log through the repr of an outcome."""
    assert "secret" not in repr(Outcome(peeked=b"secret"))


def test_the_beginning_of_a_body() -> None:
    """The prefix is 64 KiB at most; it is empty with ``stream``, and where the body is missing or unreadable."""

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
    assert (
        prefix(None) == prefix(Refusing()) == prefix(SimpleNamespace()) == prefix(SimpleNamespace(content=None)) == b""
    )


def test_an_error_is_made_to_say_what_the_classifiers_said() -> None:
    """An exception gets the verdict as attributes, unless it has modelled facts of its own."""

    def told(action: RetryAction) -> tuple[Any, ...]:
        error: Any = OSError()
        describe(error, action)
        return error.is_retry_safe, error.retry_after, error.is_throttling_error, error.is_timeout_error

    assert told(RetryAction.throttling_error()) == (True, None, True, False)
    assert told(RetryAction.transient_error()) == (True, None, False, False)
    late = RetryReason(ErrorKind.TRANSIENT, retry_after=2.5, timeout=True)
    assert told(RetryAction.retry_indicated(late)) == (True, 2.5, False, True)
    assert told(RetryAction.retry_forbidden()) == (False, None, False, False)
    assert told(RetryAction.no_action_indicated()) == (None, None, False, False)
    describe(own := Info(None), RetryAction.throttling_error())
    assert own.is_retry_safe is None
    carrier = ResponseError(outcome_of(500).response, RetryContext(outcome_of(500)))
    describe(carrier, RetryAction.retry_forbidden())
    assert (carrier.is_retry_safe, carrier.retry_after) == (False, None)
    describe(carrier, RetryAction.no_action_indicated())
    assert carrier.is_retry_safe is None


@dataclass(frozen=True)
class Frozen(Exception):
    """An exception whose attributes cannot be set."""

    code: int = 1


class Computed(Exception):
    """An exception that computes its floor."""

    @property
    def retry_after(self) -> float:
        return 3.0


@pytest.mark.parametrize(("error", "after"), [(Frozen(), None), (Computed(), 3.0)])
def test_an_error_that_cannot_be_written_on_is_carried_and_described(error: Any, after: float | None) -> None:
    """A frozen one, or one with a read-only property, whose value stays; afterwards it carries nothing."""
    context = RetryContext(Outcome(error=error))
    assert carrier_of(context) is error
    assert context_of(error) is context
    describe(error, RetryAction.throttling_error())
    assert (error.is_retry_safe, error.retry_after, error.is_throttling_error) == (True, after, True)
    del vars(error)["retry_context"]
    assert context_of(error) == RetryContext(Outcome(error=error))


@pytest.mark.parametrize(("status", "safe"), [(400, False), (401, False), (404, False), (302, None), (500, None)])
def test_a_clients_fault_without_an_opinion_is_no_maybe(status: int, safe: bool | None) -> None:
    """The Smithy guide: NO for client errors that nothing marks as retryable, MAYBE for a server's."""
    carrier = ResponseError(outcome_of(status).response, RetryContext(outcome_of(status)))
    describe(carrier, RetryAction.no_action_indicated())
    assert carrier.is_retry_safe is safe
    describe(carrier, RetryAction.throttling_error())
    assert carrier.is_retry_safe is True
