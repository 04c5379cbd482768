"""The statuses that a retry may help, and the verdict on each (contract 3.4)."""

from __future__ import annotations

import pytest

from requests_smithy_retry import RetryAction
from requests_smithy_retry.classifiers.statuses import RETRY_STATUS_CODES, verdict_on_status

pytestmark = pytest.mark.once


def test_thirteen_statuses_are_retried() -> None:
    """Those of the contract's table, and no other: 525 to 527 are faults of TLS, which stay."""
    assert {408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529} == RETRY_STATUS_CODES


def test_two_statuses_are_throttling() -> None:
    """The verdict on any other status is a transient error."""
    expected = dict.fromkeys(range(100, 600), RetryAction.transient_error())
    expected |= dict.fromkeys((429, 529), RetryAction.throttling_error())
    assert expected == {status: verdict_on_status(status) for status in range(100, 600)}
