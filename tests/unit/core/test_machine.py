"""Why a quota refuses a retry, in words. What the machine decides is told by the adapter (tests/behaviour)."""

from __future__ import annotations

import pytest

from requests_smithy_retry import StopReason
from requests_smithy_retry.core.line import Bounds
from requests_smithy_retry.core.machine import refusal
from requests_smithy_retry.core.steps import Refused

EMPTY = "the retry budget of the shop is empty, and patience is 0"
FAILING = "waited 2 s: the shop has been failing for longer than patience allows (5 s)"


@pytest.mark.parametrize(
    ("refused", "bounds", "expected"),
    [
        (Refused(StopReason.PATIENCE), Bounds(patience=0), EMPTY),
        (Refused(StopReason.DEADLINE), Bounds(patience=0), EMPTY),
        (Refused(StopReason.PATIENCE), Bounds(), FAILING),
        (Refused(StopReason.DEADLINE), Bounds(), "waited 2 s: the shop was failing until the deadline"),
        (Refused(StopReason.LINE_FULL), Bounds(), "too many operations are waiting for the shop already"),
        (Refused(StopReason.MAX_ATTEMPTS), Bounds(), StopReason.MAX_ATTEMPTS.value),
        (Refused(StopReason.QUOTA_EXCEEDED, 0, "{service} is out of tokens"), Bounds(), "the shop is out of tokens"),
    ],
)
def test_a_refusal_says_why(refused: Refused, bounds: Bounds, expected: str) -> None:
    """In one plain sentence."""
    assert expected == refusal(refused, bounds, "the shop", 2.0)[1]
