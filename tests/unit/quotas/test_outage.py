from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from requests_smithy_retry.quotas.line import Failure, Terms
from requests_smithy_retry.quotas.payoff import PatientQuota, log_back
from requests_smithy_retry.quotas.settings import SharedQuotaSettings
from requests_smithy_retry.quotas.shared import FAILURES_IN_A_ROW, Outage
from requests_smithy_retry.testing import FakeClock


def new_outage() -> Outage:
    return Outage("redis://host:6379/0", SharedQuotaSettings(retry_interval=2, log_interval=10))


def test_a_place_that_answers_is_always_asked() -> None:
    """A place that has not failed is always asked."""
    outage = new_outage()
    assert [outage.may_ask(0), outage.may_ask(0), outage.fallen_open, outage.failures] == [True, True, False, 0]


def test_a_place_that_is_out_is_asked_once_per_interval() -> None:
    """During an outage, one caller per retry_interval asks."""
    outage = new_outage()
    for _ in range(FAILURES_IN_A_ROW):
        outage.note_failure(100, "TimeoutError")
    assert outage.fallen_open
    assert [outage.may_ask(now) for now in (100, 101.9, 102, 102, 103.9, 104)] == [
        False,
        False,
        True,
        False,
        False,
        True,
    ]


def test_a_few_failures_are_no_outage() -> None:
    """Only several failures in a row are an outage; an answer begins the count anew."""
    outage = new_outage()
    for _ in range(5):
        for _ in range(FAILURES_IN_A_ROW - 1):
            outage.note_failure(100, "TimeoutError")
        outage.note_answer()
    assert (outage.fallen_open, outage.may_ask(100), outage.failures) == (False, True, 10)


def test_an_answer_ends_the_outage(caplog: pytest.LogCaptureFixture) -> None:
    """After an answer every caller asks again, which is logged once."""
    outage = new_outage()
    for _ in range(FAILURES_IN_A_ROW):
        outage.note_failure(100, "TimeoutError")
    caplog.clear()
    with caplog.at_level(logging.INFO, "requests_smithy_retry"):
        outage.note_answer()
        outage.note_answer()
    assert (outage.fallen_open, outage.may_ask(100)) == (False, True)
    assert [record.getMessage() for record in caplog.records] == [
        "the shared retry quota at redis://host:6379/0 answers again"
    ]


def test_failures_are_counted_each_and_logged_once_per_interval(caplog: pytest.LogCaptureFixture) -> None:
    """Of several failures within log_interval the first is logged; the next record tells the count."""
    outage = new_outage()
    for now in (0, 1, 9.9, 10):
        outage.note_failure(now, "TimeoutError")
    assert outage.failures == 4
    assert [record.getMessage() for record in caplog.records] == [
        f"the shared retry quota at redis://host:6379/0 does not answer (TimeoutError, failure {count}): "
        "a bucket of this process stands in"
        for count in (1, 4)
    ]


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
