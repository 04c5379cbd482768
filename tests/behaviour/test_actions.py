"""Verdicts (contract 3.2)."""

from __future__ import annotations

import copy
import math
import pickle
import re
from functools import partial
from typing import Any

import pytest

from requests_smithy_retry import ErrorKind, RetryAction, RetryReason, StopReason
from requests_smithy_retry.classifiers import NoActionIndicated, RetryForbidden, RetryIndicated

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


@pytest.mark.parametrize("base", [RetryAction, RetryIndicated, RetryForbidden])
def test_the_union_is_closed(base: type) -> None:
    """A fourth verdict, or a subclass of one of the three, raises ``TypeError``."""
    with pytest.raises(TypeError, match="closed union"):
        type("Maybe", (base,), {"__slots__": (), "__module__": "elsewhere"})


def test_a_verdict_is_one_of_three() -> None:
    """``RetryAction()`` would be none of them; the error names the constructors."""
    with pytest.raises(TypeError, match=r"RetryAction\.no_action_indicated\(\)"):
        RetryAction()


def test_each_verdict_can_be_copied_and_pickled() -> None:
    """It comes back equal."""
    verdicts = RetryAction.no_action_indicated(), RetryAction.transient_error(), RetryAction.retry_forbidden("why")
    assert copy.deepcopy(verdicts) == pickle.loads(pickle.dumps(verdicts)) == verdicts


KINDS = "one of ErrorKind.TRANSIENT, ErrorKind.THROTTLING, ErrorKind.SERVER, ErrorKind.CLIENT"
SECONDS = "a finite number of seconds (0 or more)"
NO_SECONDS = (-1, math.nan, math.inf, "5", True, 10**400)
after = RetryAction.retryable_error_with_explicit_delay


@pytest.mark.parametrize(
    ("make", "name", "values", "allowed", "error"),
    [
        *(
            (make, "kind", ("throttling", None, 3, StopReason.FORBIDDEN), KINDS, TypeError)
            for make in (RetryReason, RetryAction.retryable_error, lambda kind: after(kind, 1))
        ),
        (partial(RetryReason, ErrorKind.TRANSIENT), "retry_after", NO_SECONDS, SECONDS, ValueError),
        (partial(after, ErrorKind.TRANSIENT), "retry_after", (None, -1), SECONDS, ValueError),
        (RetryAction.retry_indicated, "reason", (ErrorKind.TRANSIENT,), "a RetryReason", TypeError),
        (partial(RetryForbidden, "why"), "stop_reason", ("no",), "a StopReason", TypeError),
    ],
)
def test_a_verdict_is_made_of_its_own_parts(
    make: Any, name: str, values: tuple[Any, ...], allowed: str, error: type[Exception]
) -> None:
    """The error names the part, its value and what is allowed, wherever it is made."""
    for value in values:
        with pytest.raises(error, match=f"^{name}={re.escape(repr(value))}: {re.escape(allowed)} is allowed"):
            make(value)
