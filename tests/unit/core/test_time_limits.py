"""operation_timeout, operation_attempt_timeout and retry_options(deadline=...) (contract 8.1, 8.4)."""

from __future__ import annotations

import http.client
import zlib
from typing import Any

import pytest
import requests
from urllib3.exceptions import DecodeError, EmptyPoolError

from requests_smithy_retry import (
    RetryConfig,
    RetryConfigWarning,
    retry_options,
)
from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.config.retry_options import NOTHING
from requests_smithy_retry.core import time_limits
from requests_smithy_retry.core.time_limits import TimeLimits, as_body_failure
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.wire import private
from requests_smithy_retry.wire.state import this_thread
from tests.support import Reply, prepare, scripted, send


def taking(clock: FakeClock, seconds: float, step: Any) -> Any:
    """A step that takes a while."""

    def play(request: Any) -> Any:
        clock.sleep(seconds)
        return step

    return play


def test_each_attempt_gets_what_is_left() -> None:
    """The caller's timeout is capped, attempt by attempt."""
    clock = FakeClock()
    adapter = scripted(taking(clock, 2, 503), 200, clock=clock, operation_timeout=10, backoff=1)
    send(adapter, timeout=30)
    assert [sent.options["timeout"] for sent in adapter.sent] == [10, 7]


def test_an_attempt_has_its_own_bound() -> None:
    """Every attempt has the same bound, and never more than the operation has left."""
    adapter = scripted(503, 503, 200, operation_timeout=5, operation_attempt_timeout=3, backoff=lambda n, _: 1.5 * n)
    send(adapter)
    assert [3, 3, 0.5] == [sent.options["timeout"] for sent in adapter.sent]


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
    assert [10, 6] == [sent.options["timeout"] for sent in adapter.sent]


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
    assert [10, 3, 10] == [sent.options["timeout"] for sent in adapter.sent]


def test_running_out_of_time_has_one_name() -> None:
    """A body that stalls until the deadline is a ReadTimeout, where requests would say ConnectionError."""
    clock = FakeClock()
    stalled = requests.ConnectionError(TimeoutError("read timed out"))
    adapter = scripted(taking(clock, 5, stalled), clock=clock, operation_timeout=5)
    with pytest.raises(requests.exceptions.ReadTimeout):
        send(adapter)


class SoftTimeLimitExceeded(Exception):
    """As Celery's: a signal's handler raises it."""


@pytest.mark.parametrize(
    "error", [ValueError("bad"), http.client.IncompleteRead(b""), zlib.error("bad"), DecodeError("bad")]
)
def test_what_reading_ends_with_is_named_by_requests(error: Exception) -> None:
    """What Python, urllib3, a decoder or a foreign raw body raises is a body that broke off, with cause and request."""
    named: Any = as_body_failure(error, REQUEST)
    assert (requests.exceptions.ChunkedEncodingError, (error,), REQUEST) == (type(named), named.args, named.request)


@pytest.mark.parametrize("error", [requests.exceptions.ContentDecodingError("bad"), SoftTimeLimitExceeded()])
def test_what_has_a_name_and_what_is_the_callers_own_stays(error: Exception) -> None:
    """An exception of a signal's handler is no fault of the body."""
    assert as_body_failure(error, REQUEST) is error


BUGS = [AttributeError("_fp"), TypeError("read"), NameError("x"), KeyError("x"), IndexError(), AssertionError()]


@pytest.mark.parametrize("bug", BUGS, ids=repr)
@pytest.mark.parametrize("stream", [False, True])
def test_a_bug_is_no_body_that_broke_off(bug: Exception, stream: bool) -> None:
    """A good body is not asked for again because of one, and the caller gets it as it was raised."""

    def broken(*_: Any, **__: Any) -> Any:
        raise bug

    def answer(request: Any) -> Reply:
        return Reply(200, body=b"good")

    adapter = scripted(answer, max_attempts=3)
    usual = adapter.build_response

    def build(request: Any, raw: Any) -> Any:
        raw.stream = raw.read = broken
        return usual(request, raw)

    adapter.build_response = build  # type: ignore[method-assign]
    with pytest.raises(type(bug)) as caught:
        send(adapter, stream=stream).content  # noqa: B018
    assert (bug, 1) == (caught.value, len(adapter.sent))


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


REQUEST = prepare()
READ, CONNECT = requests.exceptions.ReadTimeout, requests.exceptions.ConnectTimeout
LATE = TimeoutError("timed out")


@pytest.mark.parametrize(
    ("error", "left", "connecting", "expected"),
    [
        (LATE, 0, False, READ),
        (LATE, 0, True, CONNECT),
        (EmptyPoolError(None, "full"), 0, False, CONNECT),  # type: ignore[arg-type]
        (EmptyPoolError(None, "full"), 0, True, CONNECT),  # type: ignore[arg-type]
        (CONNECT(LATE), 0, False, None),  # it has the right name already
        (READ(LATE), 0, False, None),
        (requests.ConnectionError(ConnectionRefusedError()), 0, False, None),  # another fault at the last moment
        (LATE, 0.5, False, None),
        (LATE, 0.006, False, None),
        (LATE, 0.005, False, READ),  # a socket may wake so early, and no earlier
    ],
)
def test_what_time_ran_out_for(error: Any, left: float, connecting: bool, expected: type[Exception] | None) -> None:
    """A wait for a connection, or its making, is a ConnectTimeout, because nothing was written; None: it stays."""
    clock = FakeClock()
    limits = limits_of(clock, operation_timeout=left or 5)
    limits.begin(None)
    this_thread.connecting = connecting
    clock.sleep(0 if left else 5)
    named: Any = limits.translated(error, REQUEST)
    this_thread.deadline = limits.outer
    this_thread.connecting = False
    if expected is None:
        assert named is error
    else:
        assert (expected, (error,), REQUEST) == (type(named), named.args, named.request)


def test_before_an_attempt_has_begun_nothing_is_renamed() -> None:
    """There is no bound that could have passed."""
    assert limits_of(FakeClock(), operation_timeout=5).translated(LATE, REQUEST) is LATE


@pytest.mark.parametrize("options", [{"operation_timeout": 5}, {"operation_attempt_timeout": 5}])
def test_deadlines_that_do_not_hold_are_refused_aloud(monkeypatch: pytest.MonkeyPatch, options: Any) -> None:
    """Where urllib3-future has replaced urllib3: once, and only where somebody sets a deadline."""
    monkeypatch.setattr(private, "IS_FUTURE", True)
    monkeypatch.setattr(time_limits, "_warned", {})
    limits_of(FakeClock())
    with pytest.warns(RetryConfigWarning, match="urllib3-future has replaced urllib3"):
        limits_of(FakeClock(), **options)
    limits_of(FakeClock(), **options)
