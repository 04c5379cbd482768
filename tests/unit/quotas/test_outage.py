from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from requests_smithy_retry.quotas.line import Failure, Terms
from requests_smithy_retry.quotas.payoff import PatientQuota, log_back
from requests_smithy_retry.testing import FakeClock


def test_operations_that_give_up_at_once_have_different_numbers() -> None:
    """Of eight threads whose operations give up in one outage, one tells of it."""
    quota = PatientQuota(clock=FakeClock())
    quota.judge(quota.begin(), Terms(), Failure(), wake=lambda: None)
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: quota.gave_up(is_outage=True), range(200)))
    assert list(range(1, 201)) == sorted(numbers)


def test_without_a_failure_no_outage_is_known() -> None:
    """A quota that was never asked, one whose operation only ran out of attempts, and one that is well again."""
    quota = PatientQuota(clock=FakeClock())
    assert 0 == quota.gave_up(is_outage=True)
    standing = quota.begin()
    quota.judge(standing, Terms(), Failure(), wake=lambda: None)
    assert 0 == quota.gave_up(is_outage=False)
    assert 1 == quota.gave_up(is_outage=True)
    assert 2 == quota.gave_up(is_outage=False)
    quota.succeeded(standing, Terms())
    assert 0 == quota.gave_up(is_outage=True)


def test_a_service_without_a_name_is_told_of_too(caplog: pytest.LogCaptureFixture) -> None:
    """A bucket that was passed in belongs to no scope."""
    with caplog.at_level(logging.INFO, "requests_smithy_retry"):
        log_back(None, 3.04, 1)
        log_back("https://user:hunter2@api.example.com:443", 60.0, 2)
    assert [
        ("INFO", "the service is back after 3.0 s, in which 1 operation gave up"),
        ("WARNING", "https://api.example.com is back after 60.0 s, in which 2 operations gave up"),
    ] == [(record.levelname, record.getMessage()) for record in caplog.records]
