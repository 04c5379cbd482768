"""The rules about a retry that is indicated (contract 6.2): what polls, is free or is the last, and the refusals."""

from __future__ import annotations

from typing import Any

import pytest

from requests_smithy_retry import ErrorKind, Outcome, RetryReason, StopReason
from requests_smithy_retry.core.quota import Refused
from requests_smithy_retry.core.rules import RetryKind, asks_again, is_free, is_last, refusal, too_late, too_long
from requests_smithy_retry.core.server_hints import Hint
from requests_smithy_retry.core.wait_queue import UNLIMITED, Bounds

KINDS = {"T": ErrorKind.TRANSIENT, "H": ErrorKind.THROTTLING, "S": ErrorKind.SERVER, "C": ErrorKind.CLIENT}


class Answer:
    """Stands in for a response."""

    def __init__(self, status: int) -> None:
        self.status_code = status


def outcome(status: int | None) -> Outcome:
    """The outcome with a status; 0: with an error; None: without a response."""
    if status == 0:
        return Outcome(error=OSError())
    made: Any = None if status is None else Answer(status)
    return Outcome(response=made)


@pytest.mark.parametrize(
    ("status", "kind", "is_translated", "polls", "free", "free_where_all_count"),
    [
        (200, "T", False, True, True, True),
        (202, "C", False, True, True, True),
        (200, "S", False, False, False, False),
        (200, "H", False, False, False, False),
        (503, "T", False, False, False, False),
        (404, "T", False, False, False, False),
        (404, "T", True, True, True, True),
        (409, "C", False, False, True, False),
        (0, "T", False, False, False, False),
        (0, "C", True, False, False, False),
        (None, "T", False, True, True, False),
    ],
)
def test_what_polls_and_what_is_free(
    status: int | None, kind: str, is_translated: bool, polls: bool, free: bool, free_where_all_count: bool
) -> None:
    """A success that a classifier wants again, a 404 of a translated ``Retry``, a value that a policy judged."""
    seen, reason = outcome(status), RetryReason(KINDS[kind])
    assert polls == asks_again(seen, reason, is_translated=is_translated)
    assert free == is_free(seen, reason, polls=polls, counts_attempts=True)
    assert free_where_all_count == is_free(seen, reason, polls=polls, counts_attempts=False)


@pytest.mark.parametrize(
    ("bounds", "sent", "retry", "free", "counts", "expected"),
    [
        (Bounds(3), 2, 2, False, True, False),
        (Bounds(3), 3, 1, False, True, True),
        (Bounds(1), 1, 1, True, False, True),
        (Bounds(UNLIMITED), 10**6, 10**6, False, True, False),
        (Bounds(), 9, 9, False, True, False),
        (Bounds(), 3, 3, False, False, True),
        (Bounds(), 2, 2, False, False, False),
        (Bounds(), 3, 3, True, True, True),
        (Bounds(patience=0), 3, 3, False, True, True),
        (Bounds(patience=0), 2, 2, False, True, False),
    ],
)
def test_what_is_the_last_attempt(
    bounds: Bounds, sent: int, retry: int, free: bool, counts: bool, expected: bool
) -> None:
    """A given number caps what is sent; without one three count, unless a quota counts them by itself."""
    kind = RetryKind(is_free=free)
    assert expected == is_last(bounds, kind, sent=sent, retries=retry - 1, counts_attempts=counts)


SERVICE = "https://a.example:443"


@pytest.mark.parametrize(
    ("refused", "bounds", "waited", "scope", "reason", "words"),
    [
        (Refused(StopReason.MAX_ATTEMPTS), Bounds(), 0, SERVICE, None, "no attempts are left"),
        (
            Refused(StopReason.QUOTA_EXCEEDED, why="{service} is poor"),
            Bounds(),
            0,
            SERVICE,
            None,
            "https://a.example is poor",
        ),
        (Refused(StopReason.QUOTA_EXCEEDED, why="{service} is poor"), Bounds(), 0, None, None, "the service is poor"),
        (
            Refused(StopReason.PATIENCE),
            Bounds(patience=0),
            0,
            SERVICE,
            StopReason.QUOTA_EXCEEDED,
            "the retry budget of https://a.example is empty, and patience is 0",
        ),
        (
            Refused(StopReason.PATIENCE),
            Bounds(patience=5),
            2.5,
            SERVICE,
            None,
            "waited 2.5 s: https://a.example has been failing for longer than patience allows (5 s)",
        ),
        (Refused(StopReason.DEADLINE), Bounds(), 0, SERVICE, None, "https://a.example was failing until the deadline"),
        (
            Refused(StopReason.LINE_FULL),
            Bounds(),
            0,
            SERVICE,
            None,
            "too many operations are waiting for https://a.example already",
        ),
    ],
)
def test_a_refusal_says_why(
    refused: Refused, bounds: Bounds, waited: float, scope: str | None, reason: StopReason | None, words: str
) -> None:
    """In one plain sentence."""
    error = refusal(refused, bounds, scope, waited)
    assert (reason or refused.reason, words) == (error.stop_reason, str(error))


@pytest.mark.parametrize("reason", [StopReason.PATIENCE, StopReason.DEADLINE])
def test_a_service_that_throttles_is_not_said_to_fail(reason: StopReason) -> None:
    """It limits requests."""
    said = str(refusal(Refused(reason), Bounds(), SERVICE, 0, is_throttled=True))
    assert ("limiting requests" in said, "failing" in said) == (True, False)


def test_a_wait_that_is_not_made_is_told() -> None:
    """With its seconds and its source, so that a caller knows when to come again."""
    long, late = too_long(Hint(90.0, "retry-after"), "max_retry_after is 60 s", 0.0), too_late(2.0, "backoff")
    assert "retry-after asks for 90 s, max_retry_after is 60 s: allowed again at Thu, 01 Jan 1970 00:01:30 GMT" == str(
        long
    )
    assert (StopReason.HINT_TOO_LONG, Hint(90.0, "retry-after")) == (long.stop_reason, long.unmade)
    assert "the next wait of 2 s (backoff) would not end in time" == str(late)
    assert (StopReason.DEADLINE, Hint(2.0, "backoff")) == (late.stop_reason, late.unmade)
    over = too_late(2.0, "backoff", is_over=True)
    assert ("the deadline passed during the attempt", late.unmade) == (str(over), over.unmade)
