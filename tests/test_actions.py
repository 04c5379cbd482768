"""Verdicts (contract 3.1)."""

from __future__ import annotations

import pickle

import pytest

from requests_smithy_retry import ErrorKind, NoActionIndicated, RetryAction, RetryForbidden, RetryIndicated, RetryReason

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


def test_verdicts_differ():
    """No two kinds of verdict are equal."""
    verdicts = {RetryAction.no_action_indicated(), RetryAction.retry_forbidden(), RetryAction.transient_error()}
    assert 3 == len(verdicts)
    assert RetryAction.no_action_indicated() != "no action"


@pytest.mark.parametrize("after", [-1, -0.001, float("inf"), float("nan")])
def test_a_delay_is_a_finite_duration(after):
    """An explicit delay that is no duration is refused."""
    with pytest.raises(ValueError, match=f"^retry_after={after!r}: a finite number of seconds from 0 on is allowed$"):
        RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, after)


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


def test_a_delay_of_nothing_is_a_delay() -> None:
    """From 0 on; below 1 s as well."""
    for seconds in (0, 0.5):
        action = RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, seconds)
        assert action.reason.retry_after == seconds


def test_a_retry_may_be_forbidden_without_a_word() -> None:
    """Then there is none, not an empty one."""
    assert RetryForbidden().why is None
    assert RetryForbidden() == RetryAction.retry_forbidden()


@pytest.mark.parametrize("base", [RetryAction, RetryIndicated, RetryForbidden])
def test_the_union_is_closed(base: type) -> None:
    """There is no fourth verdict, and no special kind of one of the three."""
    with pytest.raises(TypeError, match="closed union"):
        type("Maybe", (base,), {"__slots__": (), "__module__": "elsewhere"})
