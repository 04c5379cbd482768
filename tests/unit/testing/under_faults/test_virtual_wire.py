"""The virtual wire: what a behaviour does is played to http.client, and silences pass on a virtual clock."""

from __future__ import annotations

import http.client
import threading
import time
from typing import Any

import pytest
import requests

from requests_smithy_retry.clock import SystemClock
from requests_smithy_retry.testing import CloseAfterRequest, CutBody, Drip, Reply, ResetAfterRequest, Stall
from requests_smithy_retry.testing.under_faults.runs import Run
from requests_smithy_retry.testing.under_faults.virtual_wire import (
    ENDLESS,
    NO_BOUND,
    RunEnded,
    VirtualSocket,
    VirtualTime,
    taped,
)

REPLY = Reply(body=b"one two three")


def answer(behaviour: Any, clock: VirtualTime | None = None, timeout: float | None = 5.0) -> bytes:
    sock = VirtualSocket(taped(behaviour, "GET"), clock or VirtualTime())
    sock.settimeout(timeout)
    response = http.client.HTTPResponse(sock)  # type: ignore[arg-type]
    response.begin()
    return response.read()


def test_a_reply_arrives_whole() -> None:
    """The bytes of a reply come as they were sent."""
    assert answer(REPLY) == b"one two three"


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (CutBody(REPLY), http.client.IncompleteRead),
        (ResetAfterRequest(), ConnectionResetError),
        (CloseAfterRequest(), http.client.RemoteDisconnected),
        (Stall("status", reply=REPLY), TimeoutError),
        (Stall("body", reply=REPLY), TimeoutError),
    ],
)
def test_a_fault_is_the_error_of_a_real_socket(behaviour: Any, error: type[Exception]) -> None:
    """http.client raises what it raises on a socket."""
    with pytest.raises(error):
        answer(behaviour)


def test_a_silence_takes_virtual_time() -> None:
    """A time-out passes on the clock, and so does a short silence, which is gone through."""
    clock = VirtualTime()
    with pytest.raises(TimeoutError):
        answer(Stall("status", reply=REPLY), clock)
    assert clock.passed == 5.0
    assert answer(Drip(interval=1.0, reply=REPLY), clock) == b"one two three"
    assert clock.passed == 5.0 + len(REPLY.body)
    assert answer(Drip(interval=1.0, reply=REPLY), clock, timeout=None) == b"one two three"


def test_a_silence_longer_than_the_time_out_goes_on() -> None:
    """After a time-out the rest of the silence is still to come."""
    clock = VirtualTime()
    sock = VirtualSocket(taped(Stall("status", 7.0, REPLY), "GET"), clock)
    sock.settimeout(5.0)
    assert sock.gettimeout() == 5.0
    with pytest.raises(TimeoutError):
        sock.recv(1)
    assert sock.recv(4) == b"HTTP"
    assert clock.passed == 7.0


def test_a_silence_without_a_time_out_ends_the_run() -> None:
    """Nobody would end that wait, and no client can catch the end."""
    clock = VirtualTime()
    with pytest.raises(RunEnded) as ended:
        answer(Stall("status", reply=REPLY), clock, timeout=None)
    assert (ended.value, ENDLESS) == (clock.ending, ended.value.what)


def test_time_goes_on_without_sleeping() -> None:
    """The module time and the clock of the library agree, and a sleep of the test's thread takes no time."""
    clock = VirtualTime(100.0)
    with clock.in_force():
        before = time.monotonic(), time.time(), time.perf_counter(), SystemClock.now()
        time.sleep(60)
        after = time.monotonic(), time.time(), time.perf_counter(), SystemClock.now()
        assert all(later - earlier >= 60 for earlier, later in zip(before, after, strict=True))
        with pytest.raises(RunEnded) as ended:
            time.sleep(60)
    assert (ended.value, NO_BOUND) == (clock.ending, ended.value.what)


def test_other_threads_sleep_for_real(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of the suite that sleeps between two looks would spin."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with VirtualTime().in_force():
        thread = threading.Thread(target=lambda: time.sleep(0.5))
        thread.start()
        thread.join()
    assert slept == [0.5]


def test_a_run_without_a_bound_is_ended() -> None:
    """The send beyond the most ends the run, and is counted."""
    run = Run(most=1)
    request = requests.Request("GET", "http://localhost/a?b").prepare()
    run.begin(request)
    with pytest.raises(RunEnded) as ended:
        run.begin(request)
    assert ended.value.what == NO_BOUND
    assert [(sent.url, sent.path) for sent in run.sends] == [("http://localhost/a?b", "http://localhost/a")] * 2
