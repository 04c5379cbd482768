"""operation_timeout, operation_attempt_timeout and retry_options(deadline=...) (contract 8.1, 8.2, 8.4)."""

from __future__ import annotations

import http.client
import zlib
from typing import Any

import pytest
import requests
from urllib3.exceptions import DecodeError, EmptyPoolError

from requests_smithy_retry import (
    RetryConfig,
    RetryConfigError,
    RetryConfigWarning,
    StopReason,
    retry_history,
    retry_options,
)
from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.config.retry_options import NOTHING
from requests_smithy_retry.core import time_limits
from requests_smithy_retry.core.time_limits import TimeLimits, as_body_failure
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.wire import private
from requests_smithy_retry.wire.state import this_thread
from tests.support import prepare, scripted, send


def taking(clock: FakeClock, seconds: float, step: Any) -> Any:
    """A step that takes a while."""

    def play(request: Any) -> Any:
        clock.sleep(seconds)
        return step

    return play


def test_each_attempt_gets_what_is_left() -> None:
    """The caller's timeout is shrunk, attempt by attempt."""
    clock = FakeClock()
    adapter = scripted(taking(clock, 2, 503), 200, clock=clock, operation_timeout=10, backoff=1)
    send(adapter, timeout=30)
    assert [sent.options["timeout"] for sent in adapter.sent] == [10, 7]


def test_a_wait_that_would_pass_the_deadline_is_not_begun() -> None:
    """The last outcome is handed over at once."""
    clock = FakeClock()
    adapter = scripted(503, clock=clock, operation_timeout=5, backoff=5)
    response = send(adapter)
    assert (response.status_code, clock.sleeps) == (503, [])
    assert retry_history(response).stop_reason is StopReason.DEADLINE


def test_an_attempt_has_its_own_bound() -> None:
    """Every attempt has the same bound, and never more than the operation has left."""
    adapter = scripted(503, 503, 200, operation_timeout=5, operation_attempt_timeout=3, backoff=lambda n, _: 1.5 * n)
    send(adapter)
    assert [3, 3, 0.5] == [sent.options["timeout"].read_timeout for sent in adapter.sent]


def test_no_bound_leaves_the_timeout_alone() -> None:
    """A timeout of None stays None."""
    adapter = scripted(200)
    send(adapter, timeout=None)
    assert adapter.sent[0].options["timeout"] is None


def test_a_deadline_binds_all_calls_of_a_block() -> None:
    """The deadline is one moment: a second request has the time that the first one left."""
    clock = FakeClock()
    adapter = scripted(taking(clock, 4, 200), 200, clock=clock)
    with retry_options(deadline=10, clock=clock):
        send(adapter)
        send(adapter)
    assert [10, 6] == [sent.options["timeout"].read_timeout for sent in adapter.sent]


def test_of_nested_deadlines_the_earlier_counts() -> None:
    """An inner block can shorten the time, and not lengthen it."""
    clock = FakeClock()
    adapter = scripted(200, 200, 200, clock=clock)
    with retry_options(deadline=10, clock=clock):
        with retry_options(deadline=60, clock=clock):
            send(adapter)
        with retry_options(deadline=3, clock=clock):
            send(adapter)
        with retry_options(max_attempts=1):
            send(adapter)
    assert [10, 3, 10] == [sent.options["timeout"].read_timeout for sent in adapter.sent]


def test_nothing_is_sent_after_the_deadline() -> None:
    """A request that begins too late fails with ConnectTimeout, and says why."""
    clock = FakeClock()
    adapter = scripted(clock=clock)
    with retry_options(deadline=10, clock=clock):
        clock.sleep(11)
        with pytest.raises(requests.exceptions.ConnectTimeout) as caught:
            send(adapter, "POST", data=b"x")
    assert adapter.sent == []
    assert retry_history(caught.value).stop_reason is StopReason.DEADLINE
    assert this_thread.deadline is None


def test_running_out_of_time_has_one_name() -> None:
    """A body that stalls until the deadline is a ReadTimeout, where requests would say ConnectionError."""
    clock = FakeClock()
    stalled = requests.ConnectionError(TimeoutError("read timed out"))
    adapter = scripted(taking(clock, 5, stalled), clock=clock, operation_timeout=5)
    with pytest.raises(requests.exceptions.ReadTimeout):
        send(adapter)


def test_another_fault_at_the_last_moment_keeps_its_name() -> None:
    """A refused connection at the deadline is not renamed to a time-out."""
    clock = FakeClock()
    refused = requests.ConnectionError(ConnectionRefusedError())
    adapter = scripted(taking(clock, 5, refused), clock=clock, operation_timeout=5)
    with pytest.raises(requests.ConnectionError) as caught:
        send(adapter)
    assert caught.value is refused


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), "10", True])
@pytest.mark.parametrize("option", ["operation_timeout", "operation_attempt_timeout", "deadline"])
def test_a_bound_is_a_number_above_0(option: str, seconds: Any) -> None:
    """Anything else is refused with its name."""
    make: Any = retry_options if option == "deadline" else scripted
    with pytest.raises(RetryConfigError, match=option):
        make(**{option: seconds})


@pytest.mark.parametrize("connecting", [False, True])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (EmptyPoolError(None, "full"), {requests.exceptions.ConnectTimeout}),  # type: ignore[arg-type]
        (TimeoutError("timed out"), {requests.exceptions.ReadTimeout, requests.exceptions.ConnectTimeout}),
    ],
)
def test_what_time_ran_out_for(connecting: bool, error: Exception, expected: set[type[Exception]]) -> None:
    """A wait for a connection, or its making, is a ConnectTimeout, because nothing was written."""
    clock = FakeClock()
    limits = TimeLimits(RetryConfig(operation_timeout=5), NOTHING, clock)
    limits.begin(None)
    this_thread.connecting = connecting
    clock.sleep(5)
    named = limits.translated(error, prepare())
    this_thread.deadline = limits.outer
    this_thread.connecting = False
    assert type(named) in expected
    assert isinstance(named, requests.exceptions.ConnectTimeout) is (connecting or isinstance(error, EmptyPoolError))


def test_what_a_body_fails_with_is_a_requests_exception() -> None:
    """A bug of a foreign raw body gets the name that requests has for a body that broke off; its own names stay."""
    assert isinstance(as_body_failure(ValueError("bad"), prepare()), requests.exceptions.ChunkedEncodingError)
    own = requests.exceptions.ContentDecodingError("bad")
    assert as_body_failure(own, prepare()) is own


@pytest.mark.parametrize(
    "error", [ValueError("bad"), http.client.IncompleteRead(b""), zlib.error("bad"), DecodeError("bad")]
)
def test_what_reading_ends_with_is_named_by_requests(error: Exception) -> None:
    """An exception of Python, urllib3 or a decoder on bad input is a body that broke off."""
    assert isinstance(as_body_failure(error, prepare()), requests.exceptions.ChunkedEncodingError)


def test_what_a_signal_raised_meanwhile_is_handed_on() -> None:
    """An exception of the caller's own is no fault of the body: it stays what it is."""

    class SoftTimeLimitExceeded(Exception):
        """As Celery's."""

    raised = SoftTimeLimitExceeded()
    assert as_body_failure(raised, prepare()) is raised


def limits_of(clock: FakeClock, **options: Any) -> TimeLimits:
    """Limits by themselves."""
    return TimeLimits(RetryConfig(**options), NOTHING, clock)


def test_an_attempt_at_the_very_deadline_is_not_made() -> None:
    """Such an attempt fails like one that could not connect in time, and the timeout is told as the caller gave it."""
    clock = FakeClock()
    limits = limits_of(clock, operation_timeout=5)
    clock.sleep(5)
    with pytest.raises(requests.exceptions.ConnectTimeout):
        limits.begin(7)
    assert (limits.allowed, this_thread.connecting) == (7, True)
    this_thread.deadline = limits.outer
    this_thread.connecting = False


@pytest.mark.parametrize(("outer", "expected"), [(3, 3), (30, 5)])
def test_within_another_operation_the_earlier_deadline_holds(outer: float, expected: float) -> None:
    """The earlier deadline holds in each attempt inside; the outer one is known, to be in force again afterwards."""
    clock = FakeClock()
    outside = Deadline(clock.now() + outer, clock)
    with this_thread.under(outside):
        limits = limits_of(clock, operation_timeout=5)
        for _ in range(2):
            limits.begin(None)
            assert this_thread.deadline is not None
            assert this_thread.deadline.left() == expected
        assert limits.outer is outside


def translated(error: Exception, *, passed: float, connecting: bool = False, **options: Any) -> Exception:
    """Return the translation of an attempt's failure, some seconds after the attempt began."""
    clock = FakeClock()
    limits = limits_of(clock, **options)
    limits.begin(None)
    this_thread.connecting = connecting
    clock.sleep(passed)
    try:
        return limits.translated(error, REQUEST)
    finally:
        this_thread.deadline = limits.outer
        this_thread.connecting = False


REQUEST = prepare()


def test_before_the_deadline_a_timeout_keeps_its_name() -> None:
    """A socket may wake 5 ms early, and no more; before an attempt has begun, nothing is renamed."""
    error = TimeoutError("timed out")
    assert limits_of(FakeClock(), operation_timeout=5).translated(error, REQUEST) is error
    assert translated(error, passed=4.5, operation_timeout=5) is error
    assert translated(error, passed=4.994, operation_timeout=5) is error
    assert translated(error, passed=4.9951, operation_timeout=5) is not error
    assert translated(error, passed=0, operation_timeout=0.005) is not error


@pytest.mark.parametrize("own", [requests.exceptions.ConnectTimeout, requests.exceptions.ReadTimeout])
def test_a_timeout_of_requests_at_the_deadline_is_the_same_object(own: type[Exception]) -> None:
    """A timeout of requests has the right name already."""
    error = own(TimeoutError())
    assert translated(error, passed=5, operation_timeout=5) is error


@pytest.mark.parametrize(
    ("error", "connecting"),
    [(EmptyPoolError(None, "full"), False), (TimeoutError("out"), True), (TimeoutError("out"), False)],  # type: ignore[arg-type]
)
def test_a_renamed_failure_has_its_cause_and_its_request(error: Exception, connecting: bool) -> None:
    """A renamed failure has its cause and request, as exceptions of requests have."""
    named: Any = translated(error, passed=5, connecting=connecting, operation_timeout=5)
    assert (named.args, named.request) == ((error,), REQUEST)


def test_a_failed_body_has_its_cause_and_its_request() -> None:
    """A failed body has its cause and request, as exceptions of requests have."""
    error = ValueError("bad")
    named: Any = as_body_failure(error, REQUEST)
    assert (named.args, named.request) == ((error,), REQUEST)


@pytest.mark.parametrize("options", [{"operation_timeout": 5}, {"operation_attempt_timeout": 5}])
def test_deadlines_that_do_not_hold_are_refused_aloud(monkeypatch: pytest.MonkeyPatch, options: Any) -> None:
    """Where urllib3-future has replaced urllib3: once, and only where somebody sets a deadline."""
    monkeypatch.setattr(private, "IS_FUTURE", True)
    monkeypatch.setattr(time_limits, "_warned", {})
    clock = FakeClock()
    TimeLimits(RetryConfig(), NOTHING, clock)
    with pytest.warns(RetryConfigWarning, match="urllib3-future has replaced urllib3"):
        TimeLimits(RetryConfig(**options), NOTHING, clock)
    TimeLimits(RetryConfig(**options), NOTHING, clock)


@pytest.mark.parametrize(
    ("timeout", "late", "expected"), [(None, 9.0, 2.0), (5.0, 1.0, 2.0), (5.0, 4.5, 0.5), (5.0, 9.0, 0.0)]
)
def test_a_wait_ends_by_the_deadline_whatever_came_after_its_decision(
    timeout: float | None, late: float, expected: float
) -> None:
    """To read up a discarded body may take a second, in which the deadline comes nearer."""
    clock = FakeClock()
    limits = TimeLimits(RetryConfig(operation_timeout=timeout), NOTHING, clock)
    clock.advance(late)
    assert expected == limits.at_most(2.0)
