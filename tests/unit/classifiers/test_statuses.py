"""The statuses that a retry may help, and the verdict on each (contract 3.4)."""

from __future__ import annotations

import pytest

from requests_smithy_retry import RetryAction
from requests_smithy_retry.classifiers.statuses import RETRY_STATUS_CODES, verdict_on_status


def test_seven_statuses_are_retried() -> None:
    """The statuses of the contract's table are retried, and no other."""
    assert {408, 425, 429, 500, 502, 503, 504} == RETRY_STATUS_CODES


@pytest.mark.parametrize("status", range(100, 600))
def test_429_alone_is_throttling(status: int) -> None:
    """The verdict on any other status is a transient error."""
    expected = RetryAction.throttling_error() if status == 429 else RetryAction.transient_error()
    assert expected == verdict_on_status(status)
