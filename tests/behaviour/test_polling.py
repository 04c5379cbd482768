"""Polling spends no quota (contract 6.2): asking once more for what is not there yet answers no failure."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import (
    ErrorKind,
    Outcome,
    RetryAction,
    RetryReason,
    StopReason,
    TokenBucket,
    classifier,
    retry_history,
)
from requests_smithy_retry.testing import FaultServer
from requests_smithy_retry.testing import Reply as FaultReply
from tests.support import Reply, before_each_sleep, scripted, send

PENDING = Reply(202)


def pending(kind: ErrorKind = ErrorKind.TRANSIENT, seconds: float = 2.0) -> Any:
    """A classifier that polls while the answer is 202."""

    @classifier(sees_successes=True)
    def poll(outcome: Outcome) -> RetryAction | None:
        return RetryAction.retry_indicated(RetryReason(kind, seconds)) if outcome.status == 202 else None

    return poll


@classifier
def locked(outcome: Outcome) -> RetryAction | None:
    """A refusal of this one request, which may be sent again after a second."""
    kind = ErrorKind.CLIENT
    return RetryAction.retryable_error_with_explicit_delay(kind, 1.0) if outcome.status == 409 else None


def soon(response: requests.Response) -> bool | float:
    return response.status_code == 200 or 1.0


def done(response: requests.Response) -> bool:
    return response.status_code == 200


ACCEPTED = Reply(202, {"Retry-After": "1"})
WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "validate names seconds": (PENDING, {"validate": soon}),
    "a classifier names seconds": (PENDING, {"classifiers": [pending(seconds=1.0)]}),
    "a 202 names seconds, and validate says False": (ACCEPTED, {"validate": done}),
}
every_way = pytest.mark.parametrize(("reply", "options"), WAYS.values(), ids=WAYS)


@every_way
@pytest.mark.parametrize(
    ("more", "polls"),
    [({"operation_timeout": 300}, 100), ({"max_attempts": 200}, 150), ({}, 100), ({"patience": 2}, 9)],
)
def test_who_names_the_seconds_is_asked_so_many_seconds_later_however_often(
    reply: Any, options: dict[str, Any], more: dict[str, Any], polls: int
) -> None:
    """No backoff comes between, no attempt is counted, nothing is paid, nobody's patience ends it."""
    adapter = scripted(*[reply] * polls, 200, quota="payoff", **options, **more)
    history = retry_history(send(adapter))
    assert (StopReason.SUCCESS, polls + 1) == (history.stop_reason, len(adapter.sent))
    assert [1.0] * polls == adapter.clock.sleeps
    assert {None} == {attempt.quota_before for attempt in history.attempts}


@every_way
@pytest.mark.parametrize(
    ("more", "polls", "reason"),
    [
        ({"max_attempts": 4}, 4, StopReason.MAX_ATTEMPTS),
        ({"operation_timeout": 4.5}, 5, StopReason.DEADLINE),
        ({"max_retry_after": 0.5}, 1, StopReason.HINT_TOO_LONG),
        ({"max_retry_after": 9}, 10, StopReason.HINT_TOO_LONG),
        ({}, 121, StopReason.HINT_TOO_LONG),
    ],
)
def test_polls_are_bounded(
    reply: Any, options: dict[str, Any], more: dict[str, Any], polls: int, reason: StopReason
) -> None:
    """By a given number, by a deadline, or else by ``max_retry_after`` after the call began."""
    adapter = scripted(*[reply] * polls, quota="payoff", **options, **more)
    history = retry_history(send(adapter))
    assert (reason, polls, 1.0) == (history.stop_reason, len(adapter.sent), history.retry_after)


@pytest.mark.parametrize(("options", "sent"), [({}, 3), ({"max_attempts": 5}, 5), ({"operation_timeout": 300}, 3)])
@pytest.mark.parametrize("quota", ["payoff", 500, None])
def test_seconds_for_a_refusal_are_a_retry_that_counts(quota: Any, options: dict[str, Any], sent: int) -> None:
    """Only an answer polls; a request that is refused is not sent for as long as there is time. It is no outage."""
    adapter = scripted(*[409] * 9, classifiers=[locked], quota=quota, **options)
    history = retry_history(send(adapter))
    assert (StopReason.MAX_ATTEMPTS, sent) == (history.stop_reason, len(adapter.sent))
    assert [1.0] * (sent - 1) == adapter.clock.sleeps
    assert {None} == {bucket.down_for for bucket in adapter.strategy.snapshot().buckets.values()} or quota is None


def test_a_failure_between_polls_is_the_first() -> None:
    """It has its own attempts and the shortest backoff, however many polls came before."""
    adapter = scripted(*[PENDING] * 30, 503, 503, 200, quota="payoff", jitter="none", validate=soon)
    assert 200 == send(adapter).status_code
    assert [*[1.0] * 30, 0.05, 0.1] == pytest.approx(adapter.clock.sleeps)


@pytest.mark.parametrize("reply", [PENDING, Reply(202, {"Retry-After": "soon"}), Reply(201, {"Retry-After": "1"})])
def test_false_without_seconds_is_a_failure(reply: Any) -> None:
    """Only a 202 says with a hint that its work goes on."""
    adapter = scripted(*[reply] * 3, validate=done)
    history = retry_history(send(adapter))
    assert (StopReason.MAX_ATTEMPTS, 3) == (history.stop_reason, len(history.attempts))


def test_a_hint_that_is_not_heeded_names_no_seconds() -> None:
    """A translated ``Retry`` may say so."""
    retry = Retry(2, backoff_factor=0, respect_retry_after_header=False, raise_on_status=False)
    adapter = scripted(*[ACCEPTED] * 3, max_retries=retry, validate=done)
    assert (202, True) == (send(adapter).status_code, adapter.clock.now() < 1.0)


def left(adapter: Any) -> list[float]:
    return [bucket.available for bucket in adapter.strategy.snapshot().buckets.values()]


def test_polling_by_a_classifier_costs_nothing() -> None:
    """Fifty jobs of nine polls each; the history says that no quota was asked."""
    adapter = scripted(*[*[PENDING] * 9, 200] * 50, max_attempts=10, classifiers=[pending()])
    answers = [send(adapter) for _ in range(50)]
    assert {200} == {answer.status_code for answer in answers}
    assert [500] == left(adapter)
    assert {None} == {attempt.quota_before for attempt in retry_history(answers[0]).attempts}


def test_what_a_retry_took_comes_back_at_the_first_poll_after_it() -> None:
    """The retry's tokens come back at the next poll; an operation of polls alone gives the reward of a success."""
    bucket = TokenBucket(100, initial=50)
    adapter = scripted(
        503, PENDING, PENDING, 503, 200, PENDING, 200, quota=bucket, max_attempts=9, classifiers=[pending()]
    )
    seen: list[float] = []
    before_each_sleep(adapter.clock, lambda _: seen.append(bucket.available))
    send(adapter)
    assert [36, 50, 50, 36] == seen
    assert 50 == bucket.available
    send(adapter)
    assert 51 == bucket.available


@pytest.mark.parametrize(("kind", "price"), [(ErrorKind.SERVER, 14), (ErrorKind.THROTTLING, 5), (ErrorKind.CLIENT, 0)])
def test_an_error_inside_a_success_has_its_price(kind: ErrorKind, price: int) -> None:
    """The price of a retry that a classifier wants after a 200 is that of the error's kind."""
    bucket = TokenBucket(100)
    adapter = scripted(PENDING, 500, quota=bucket, max_attempts=2, classifiers=[pending(kind)])
    send(adapter)
    assert 100 - price == bucket.available


@pytest.mark.parametrize(("status", "free"), [(202, True), (404, True), (409, False), (503, False)])
def test_a_listed_status_of_a_translated_retry_is_waited_out_for_nothing(status: int, free: bool) -> None:
    """A listed status below 400, or 404, is polled for free; any other listed status is a failure."""
    adapter = scripted(
        *[status] * 3, 200, max_retries=Retry(5, status_forcelist=[status], backoff_factor=0.1), quota=42
    )
    seen: list[float] = []
    adapter.clock.sleep = lambda seconds: seen.extend(left(adapter))
    assert 200 == send(adapter).status_code
    assert ([42] * 3 if free else [28, 14, 0]) == seen


@pytest.mark.parametrize(
    ("status", "options"),
    [
        (202, {"retry_status_codes": {202}}),
        (202, {"max_retries": Retry(5, status_forcelist=[202])}),
        (304, {"max_retries": Retry(5, status_forcelist=[304])}),
        (404, {"max_retries": Retry(5, status_forcelist=[404])}),
    ],
)
def test_polling_is_no_outage_to_the_line(status: int, options: dict[str, Any]) -> None:
    """Nobody waits in it, nothing is down, and the retries of a failure are still there."""
    if "max_retries" not in options:
        options = {**options, "max_attempts": 6}
    adapter = scripted(*[status] * 5, 200, 503, 503, 200, **options, quota="payoff")
    response = send(adapter)
    assert (200, 6) == (response.status_code, len(retry_history(response).attempts))
    assert {None} == {attempt.quota_before for attempt in retry_history(response).attempts}
    (line,) = adapter.strategy.snapshot().buckets.values()
    assert (5, 0, None) == (line.available, line.waiting, line.down_for)


@pytest.mark.parametrize("status", [202, 301, 404, 503])
@pytest.mark.parametrize("raises", [True, False])
def test_polling_in_vain_ends_as_urllib3_ends_it(status: int, raises: bool) -> None:
    """``raise_on_status`` raises for any status that is listed; without it, the last response is handed over."""
    retry = Retry(2, status_forcelist=[status], backoff_factor=0, raise_on_status=raises, redirect=False)
    ends = []
    for adapter in (
        scripted(*[status] * 3, max_retries=retry),
        scripted(*[status] * 3, max_retries=retry, quota="payoff", patience=0),
    ):
        try:
            ends.append(send(adapter).status_code)
        except requests.exceptions.RetryError as error:
            ends.append(("RetryError", error.response.status_code))
        assert 3 == len(adapter.sent)
    assert [("RetryError", status) if raises else status] * 2 == ends
    with FaultServer(FaultReply(status)) as server:
        plain = requests.Session()
        plain.mount("http://", HTTPAdapter(max_retries=retry))
        try:
            assert (status, False) == (plain.get(server.url, allow_redirects=False).status_code, raises)
        except requests.exceptions.RetryError:
            assert raises
