"""``retry_options(cancel=event)``: a set event ends any wait with ``RetryCancelled`` (contract 8.9)."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import pytest
import requests

from requests_smithy_retry import RetryCancelled, StopReason, mount, retry_history, retry_options
from requests_smithy_retry.testing import FakeClock, FaultServer
from requests_smithy_retry.testing import Reply as ServerReply
from tests.behaviour.test_max_wait import HINTED, every_kind
from tests.support import ScriptedAdapter, scripted, send


class Stopping(FakeClock):
    """A clock on which somebody sets an event after so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.event, self.seconds = threading.Event(), seconds

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.now() >= self.seconds:
            self.event.set()


@every_kind
def test_a_set_event_ends_a_wait_of_any_kind(
    make: Callable[..., ScriptedAdapter], seconds: float, attempts: int
) -> None:
    """Within a twentieth of a second, with the history."""
    clock = Stopping(0.4)
    adapter = make(clock=clock)
    with retry_options(cancel=clock.event, long_poll=True), pytest.raises(RetryCancelled) as caught:
        send(adapter)
    history = retry_history(caught.value)
    assert history is not None
    assert (StopReason.CANCELLED, attempts) == (history.stop_reason, len(history.attempts))
    assert 0.4 <= clock.now() <= 0.46 < seconds


def test_an_event_that_is_set_before_ends_every_retry() -> None:
    """Also one that needs no wait; the first attempt is made."""
    event = threading.Event()
    event.set()
    adapter = scripted(503, 200, backoff=0)
    with retry_options(cancel=event), pytest.raises(RetryCancelled) as caught:
        send(adapter)
    assert ([503], 503) == (
        [row.status for row in retry_history(caught.value).attempts],  # type: ignore[union-attr]
        caught.value.response.status_code,  # type: ignore[union-attr]
    )
    assert 200 == send(scripted(200)).status_code


def test_an_event_that_is_not_set_changes_nothing() -> None:
    """The wait is as long as ever."""
    adapter = HINTED()
    with retry_options(cancel=threading.Event()):
        assert 200 == send(adapter).status_code
    assert pytest.approx(30) == sum(adapter.clock.sleeps)


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
