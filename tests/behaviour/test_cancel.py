"""``retry_options(cancel=event)``: a set event ends any wait with ``RetryCancelled`` (contract 8.9)."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import pytest
import requests

from requests_smithy_retry import (
    RetryCancelled,
    StopReason,
    TokenBucket,
    mount,
    retry_history,
    retry_options,
    testing,
)
from requests_smithy_retry.testing import FakeClock, FaultServer
from requests_smithy_retry.testing import Reply as ServerReply
from tests import support
from tests.support import Reply, ScriptedAdapter, reset_error, send

BUSY = Reply(429, {"Retry-After": "30"})


class Stopping(FakeClock):
    """A clock on which somebody sets an event after so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.event, self.seconds = threading.Event(), seconds

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.now() >= self.seconds:
            self.event.set()


def hinted(clock: FakeClock) -> ScriptedAdapter:
    return support.scripted(BUSY, 200, clock=clock)


def backed_off(clock: FakeClock) -> ScriptedAdapter:
    return support.scripted(*[reset_error()] * 9, 200, clock=clock, max_attempts=10)


def announced(clock: FakeClock) -> ScriptedAdapter:
    used_up = Reply(200, {"RateLimit-Limit": "60", "RateLimit-Remaining": "0", "RateLimit-Reset": "25"})
    adapter = support.scripted(used_up, 200, clock=clock)
    send(adapter)
    return adapter


def failing(clock: FakeClock) -> ScriptedAdapter:
    return testing.scripted(*[503] * 99, clock=clock, patience=60)


def without_tokens(clock: FakeClock) -> ScriptedAdapter:
    bucket = TokenBucket(20, refill_rate=0.1, on_empty="wait", clock=clock)
    return testing.scripted(503, 503, 200, clock=clock, quota=bucket)


@pytest.mark.parametrize("make", [hinted, backed_off, announced, failing, without_tokens])
def test_a_set_event_ends_a_wait_of_any_kind(make: Callable[[FakeClock], ScriptedAdapter]) -> None:
    """Within a twentieth of a second, with the history."""
    clock = Stopping(2.0)
    adapter = make(clock)
    with retry_options(cancel=clock.event), pytest.raises(RetryCancelled) as caught:
        send(adapter)
    history = retry_history(caught.value)
    assert history is not None
    assert (StopReason.CANCELLED, True) == (history.stop_reason, 2.0 <= clock.now() <= 2.06)


def test_an_event_that_is_set_before_ends_every_retry() -> None:
    """Also one that needs no wait; the first attempt is made."""
    event = threading.Event()
    event.set()
    adapter = support.scripted(503, 200, backoff=0)
    with retry_options(cancel=event), pytest.raises(RetryCancelled) as caught:
        send(adapter)
    assert ([503], 503) == (
        [row.status for row in retry_history(caught.value).attempts],  # type: ignore[union-attr]
        caught.value.response.status_code,  # type: ignore[union-attr]
    )
    assert 200 == send(support.scripted(200)).status_code


def test_an_event_that_is_not_set_changes_nothing() -> None:
    """The wait is as long as ever."""
    clock = FakeClock()
    with retry_options(cancel=threading.Event()):
        assert 200 == send(support.scripted(BUSY, 200, clock=clock)).status_code
    assert pytest.approx(30) == sum(clock.sleeps)


def test_it_is_an_exception_of_requests() -> None:
    """Programs that catch those catch it."""
    assert issubclass(RetryCancelled, requests.exceptions.RetryError)


@pytest.mark.real_time
def test_sigterm_ends_the_wait_of_a_worker() -> None:
    """On real sockets: a minute is asked for, and the call ends with the signal."""
    stop = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        with (
            FaultServer(default=ServerReply(503, {"Retry-After": "60"})) as server,
            mount(requests.Session()) as session,
        ):
            threading.Timer(0.2, signal.raise_signal, [signal.SIGTERM]).start()
            began = time.monotonic()
            with retry_options(cancel=stop), pytest.raises(RetryCancelled):
                session.get(server.url)
            assert time.monotonic() - began < 30
    finally:
        signal.signal(signal.SIGTERM, before)
