"""What a classifier can say (contract 3.1)."""

from __future__ import annotations

import pytest

from requests_smithy_retry import ErrorKind, RetryAction, RetryForbidden, RetryIndicated, RetryReason, StopReason


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (RetryAction.transient_error(), ErrorKind.TRANSIENT),
        (RetryAction.throttling_error(), ErrorKind.THROTTLING),
        (RetryAction.server_error(), ErrorKind.SERVER),
        (RetryAction.client_error(), ErrorKind.CLIENT),
        *((RetryAction.retryable_error(kind), kind) for kind in ErrorKind),
    ],
)
def test_the_constructors_of_the_rfc(made: RetryIndicated, kind: ErrorKind) -> None:
    """Each gives a retry of its kind, without a delay, and not known to be unapplied."""
    assert made == RetryAction.retry_indicated(RetryReason(kind)) == RetryIndicated(RetryReason(kind))
    assert repr(made) == f"RetryIndicated(kind={kind.value})"
    assert hash(made) == hash(RetryIndicated(RetryReason(kind)))


def test_an_explicit_delay_is_a_floor_that_knows_its_source() -> None:
    """In seconds, from 0 on."""
    made = RetryAction.retryable_error_with_explicit_delay(ErrorKind.SERVER, 0)
    assert made.reason == RetryReason(ErrorKind.SERVER, 0.0, "classifier")


@pytest.mark.parametrize("bad", [-1, float("inf"), float("nan")])
def test_a_senseless_delay_is_refused(bad: float) -> None:
    """With the value and what is allowed."""
    with pytest.raises(ValueError, match="a finite number of seconds from 0 on is allowed"):
        RetryAction.retryable_error_with_explicit_delay(ErrorKind.SERVER, bad)


def test_no_action_is_one_value() -> None:
    """Equal to any other of its kind, and to nothing else."""
    nothing = RetryAction.no_action_indicated()
    assert nothing == type(nothing)()
    assert nothing != RetryAction.transient_error()
    assert hash(nothing) == hash(type(nothing)())
    assert repr(nothing) == "NoActionIndicated()"


def test_forbidden_says_why_and_by_which_rule() -> None:
    """A classifier's is the rule "forbidden"."""
    assert RetryAction.retry_forbidden("because") == RetryForbidden("because", StopReason.FORBIDDEN)
    assert RetryAction.retry_forbidden().why is None
