"""Verdicts (contract 3.1)."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

from requests_smithy_retry import (
    ErrorKind,
    NoActionIndicated,
    RetryAction,
    RetryForbidden,
    RetryIndicated,
    RetryReason,
    StopReason,
)

ALL = [
    (RetryAction.no_action_indicated(), NoActionIndicated, "NoActionIndicated()"),
    (RetryAction.retry_forbidden(), RetryForbidden, None),
    (RetryAction.transient_error(), RetryIndicated, "RetryIndicated(kind=transient)"),
    (RetryAction.throttling_error(), RetryIndicated, "RetryIndicated(kind=throttling)"),
    (RetryAction.server_error(), RetryIndicated, "RetryIndicated(kind=server)"),
    (RetryAction.client_error(), RetryIndicated, "RetryIndicated(kind=client)"),
    (RetryAction.retryable_error(ErrorKind.CLIENT), RetryIndicated, "RetryIndicated(kind=client)"),
    (
        RetryAction.retryable_error_with_explicit_delay(ErrorKind.SERVER, 1.5),
        RetryIndicated,
        "RetryIndicated(kind=server, retry_after=1.5)",
    ),
    (RetryAction.retry_indicated(RetryReason(ErrorKind.SERVER)), RetryIndicated, "RetryIndicated(kind=server)"),
]


@pytest.mark.parametrize(("action", "kind", "text"), ALL)
def test_constructors(action, kind, text):
    """Each constructor gives its verdict; verdicts are equal by value, hashable and picklable, and short in print."""
    assert kind is type(action)
    assert isinstance(action, RetryAction)
    copy = pickle.loads(pickle.dumps(action))
    assert (action, hash(action)) == (copy, hash(copy))
    assert text in (None, repr(action))


def test_a_reason_is_frozen_and_remembers_its_source():
    """A reason's floor comes with where it came from."""
    reason = RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, 2).reason
    assert (2.0, "classifier", False, False) == (
        reason.retry_after,
        reason.retry_after_source,
        reason.not_applied,
        reason.timeout,
    )
    with pytest.raises(AttributeError):
        reason.retry_after = 1


def test_a_retry_may_be_forbidden_without_a_word() -> None:
    """Without a reason, ``why`` is None, not an empty text."""
    assert RetryForbidden().why is None
    assert RetryForbidden() == RetryAction.retry_forbidden()


@pytest.mark.parametrize("base", [RetryAction, RetryIndicated, RetryForbidden])
def test_the_union_is_closed(base: type) -> None:
    """A fourth verdict, or a subclass of one of the three, raises ``TypeError``."""
    with pytest.raises(TypeError, match="closed union"):
        type("Maybe", (base,), {"__slots__": (), "__module__": "elsewhere"})


@pytest.mark.parametrize(
    "make",
    [RetryReason, RetryAction.retryable_error, lambda kind: RetryAction.retryable_error_with_explicit_delay(kind, 1)],
)
@pytest.mark.parametrize("kind", ["throttling", None, 3, StopReason.FORBIDDEN])
def test_a_kind_that_is_none_is_refused(make: Any, kind: object) -> None:
    """The error names what is allowed."""
    allowed = "one of ErrorKind.TRANSIENT, ErrorKind.THROTTLING, ErrorKind.SERVER, ErrorKind.CLIENT is allowed"
    with pytest.raises(TypeError, match=f"^kind={re.escape(repr(kind))}: {re.escape(allowed)}$"):
        make(kind)


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), "5", True, 10**400])
def test_a_floor_that_is_no_number_of_seconds_is_refused(after: Any) -> None:
    """Wherever a reason is made."""
    with pytest.raises(ValueError, match=r"^retry_after=.*: a finite number of seconds \(0 or more\) is allowed$"):
        RetryReason(ErrorKind.TRANSIENT, after)


def test_verdicts_are_made_of_their_own_parts() -> None:
    """A reason is a RetryReason, a stop reason a StopReason."""
    with pytest.raises(TypeError, match=r"^reason=<ErrorKind.TRANSIENT: 'transient'>: a RetryReason is allowed"):
        RetryAction.retry_indicated(ErrorKind.TRANSIENT)
    with pytest.raises(TypeError, match=r"^stop_reason='no': a StopReason is allowed$"):
        RetryForbidden("why", "no")


def test_an_explicit_delay_must_be_given() -> None:
    """An explicit delay of None is refused."""
    with pytest.raises(ValueError, match=r"^retry_after=None: "):
        RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, None)
