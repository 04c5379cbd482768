"""The default rides out an outage, and waiting costs the service nothing (contract 6.2)."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
import urllib3.exceptions

from requests_smithy_retry import (
    ErrorKind,
    RetryAction,
    RetryAdapter,
    StopReason,
    classifier,
    retry_history,
    retry_options,
)
from requests_smithy_retry.quotas import PayoffTokenBucket
from requests_smithy_retry.testing import FakeClock, FaultServer, Reply, ScriptedReply, scripted
from tests.faults import CutBody, coded_reply
from tests.support import URL, before_each_sleep, send, session_with
from tests.turns import TurnClock

HOUR = 3600.0
SCOPE = "https://api.example.com:443"


class Service:
    """Steps for a script: the service is down between some moments of a clock."""

    def __init__(self, clock: FakeClock, *down: tuple[float, float], status: int = 503) -> None:
        self.clock = clock
        self.down = down
        self.status = status
        self.asked = 0

    def __call__(self, _: Any) -> int:
        self.asked += 1
        now = self.clock.now()
        return self.status if any(begin <= now < end for begin, end in self.down) else 200


def service(*down: tuple[float, float], status: int = 503, **options: Any) -> tuple[Any, Service]:
    """An adapter with the default, and the service that it asks."""
    clock = FakeClock()
    of = Service(clock, *down, status=status)
    return scripted(*[of] * 1000, clock=clock, **options), of


BROKEN = {"cut": CutBody(Reply(body=b"x" * 1000), at=500), "no gzip": coded_reply(coded=b"no gzip")}


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize(("options", "sent"), [({}, 3), ({"max_attempts": 2}, 2), ({"max_attempts": 5}, 5)])
def test_a_body_that_is_broken_for_good_ends_after_three_attempts(
    fault: str, options: dict[str, Any], sent: int
) -> None:
    """It cannot be an outage: each head has proved that the service is up."""
    with FaultServer(lambda _: BROKEN[fault]) as server, requests.Session() as made:
        made.mount("http://", RetryAdapter(backoff=0, **options))
        with pytest.raises(requests.exceptions.RequestException) as caught:
            made.get(server.url, timeout=60)
    history = retry_history(caught.value)
    assert (StopReason.MAX_ATTEMPTS, sent, sent) == (history.stop_reason, len(history.attempts), len(server.requests))


@pytest.mark.parametrize(
    ("options", "reason", "over"),
    [
        ({"patience": 30}, StopReason.PATIENCE, 30.0),
        ({"patience": 30, "operation_timeout": 600}, StopReason.PATIENCE, 30.0),
        ({"operation_timeout": 30}, StopReason.PATIENCE, 5.0),
        ({"patience": 1, "operation_timeout": 30}, StopReason.PATIENCE, 1.0),
        ({"patience": 30, "operation_timeout": 2}, StopReason.DEADLINE, 2.0),
        ({"operation_attempt_timeout": 30}, StopReason.PATIENCE, 5.0),
    ],
)
def test_patience_always_holds_and_a_deadline_only_bounds(
    options: dict[str, Any], reason: StopReason, over: float
) -> None:
    """How old an outage may become is said by ``patience`` alone; a deadline makes no call wait longer."""
    adapter, of = service((0.0, 60.0), **options)
    history = retry_history(send(adapter))
    assert (reason, pytest.approx(over)) == (history.stop_reason, of.clock.now())
    assert (reason is StopReason.DEADLINE) == ("was failing until the deadline" in history.explain())


def test_questions_do_not_grow_the_backoff() -> None:
    """Else a call whose session asked often would have no time for its next wait, long before its deadline."""
    adapter, of = service((1.0, 25.0), patience=60, operation_timeout=30)
    for _ in range(100):
        send(adapter)
        of.clock.advance(0.01)
    assert (200, True) == (send(adapter).status_code, of.clock.now() > 25.0)


@pytest.mark.parametrize("kind", ["option", "block"])
@pytest.mark.parametrize(
    ("seconds", "asked"),
    [
        (2, [0, 0.65, 1.96]),
        (4.5, [0, 0.65, 2.6, 4.41]),
        (5, [0, 0.65, 2.6, 4.9]),
        (8, [0, 0.65, 2.6, 7.84]),
        (11, [0, 0.65, 2.6, 10.4, 10.78]),
        (30, [0, 0.65, 2.6, 10.4, 29.4]),
    ],
)
def test_a_lone_caller_asks_once_more_before_its_patience_is_over(
    kind: str, seconds: float, asked: list[float]
) -> None:
    """The gap between its questions grows, so the next one may come too late: then one comes shortly before the end."""
    adapter, of = service((0.0, 600.0), **({"patience": seconds} if kind == "option" else {}))
    with retry_options(**({"patience": seconds} if kind == "block" else {})):
        history = retry_history(send(adapter))
    moments = sorted({round(attempt.started - history.attempts[0].started, 2) for attempt in history.attempts})
    assert asked == [moment for moment in moments if moment == 0 or moment > 0.5]
    assert seconds == pytest.approx(of.clock.now())


@pytest.mark.once
@pytest.mark.parametrize("period", [0.1, 0.25, 0.5, 0.8, 1.2, 2.0, 2.8, 4.0])
def test_a_lone_program_of_any_period_rides_out_a_restart(period: float) -> None:
    """Three seconds, wherever in its period they begin, and however long it ran before."""
    failed = []
    for before in (1, 3, 20):
        for phase in range(4):
            start = (before - 1 + phase / 4) * period
            adapter, of = service((start, start + 3.0), jitter="full")
            while of.clock.now() < start + 10.0:
                if send(adapter).status_code != 200:
                    failed.append((before, phase))
                of.clock.advance(period)
    assert [] == failed


@pytest.mark.parametrize("by_option", [True, False])
def test_without_patience_an_empty_quota_refuses_at_once(by_option: bool) -> None:
    """Three attempts, and no waiting; an operation may say so for itself. The next one has no retry."""
    adapter, of = service((0.0, 60.0), **({"patience": 0} if by_option else {}))
    with retry_options(**({} if by_option else {"patience": 0})):
        first, second = (retry_history(send(adapter)) for _ in range(2))
    assert (StopReason.MAX_ATTEMPTS, StopReason.QUOTA_EXCEEDED, 4) == (first.stop_reason, second.stop_reason, of.asked)
    assert "the retry budget of https://api.example.com is empty, and patience is 0" == second.why
    assert of.clock.now() < 1.0


def unconnected(cause: OSError) -> Any:
    """No connection was made, for this reason: nothing was sent."""
    raised = urllib3.exceptions.NewConnectionError(None, str(cause))  # type: ignore[arg-type]
    raised.__cause__ = cause
    return requests.exceptions.ConnectionError(urllib3.exceptions.MaxRetryError(None, "/", raised))  # type: ignore[arg-type]


def refused(_: Any = None) -> Any:
    """The connection was refused."""
    return unconnected(ConnectionRefusedError(111, "refused"))


def test_a_post_waits_while_connections_are_refused() -> None:
    """A POST that met a refused connection was never sent, so it waits."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        adapter = RetryAdapter(clock=FakeClock(), jitter="none")
        with pytest.raises(requests.ConnectionError) as caught:
            send(adapter, "POST", f"http://127.0.0.1:{taken.getsockname()[1]}/", data=b"once")
    history = retry_history(caught.value)
    assert (StopReason.PATIENCE, 6) == (history.stop_reason, len(history.attempts))


def test_a_client_with_hardly_any_calls_makes_its_last_retry_late() -> None:
    """Few others would find the service back for it; the history says that patience made the wait so long."""
    adapter = scripted(*[200] * 5, *[503] * 9, jitter="none")
    for _ in range(5):
        adapter.clock.advance(60)
        send(adapter)
    delays = [(each.delay, each.delay_source) for each in retry_history(send(adapter)).attempts]
    assert [(0.0, "backoff"), (0.05, "backoff"), (3.0, "patience")] == delays


def test_a_client_whose_every_call_needs_two_retries_is_no_client_with_hardly_any_calls() -> None:
    """Its calls count although none succeeds at the first try, so no retry is late, however long it has run."""
    adapter = scripted(*[503, 503, 200] * 40, jitter="none")
    for _ in range(40):
        assert 200 == send(adapter).status_code
        adapter.clock.advance(1)
    assert {0.05, 0.1} == set(adapter.clock.sleeps)


@pytest.mark.parametrize(("status", "asked"), [(503, [0, 3, 6, 9, 12, 15, 18.75]), (429, [0, 3, 6, 10, 14, 18])])
def test_nobody_asks_a_service_before_it_said(status: int, asked: list[float]) -> None:
    """Its hint holds for who waits for it as well, who would ask much sooner by itself."""
    adapter = scripted(*[200] * 100, *[ScriptedReply(status, {"Retry-After": "3"})] * 9, jitter="none", patience=20)
    for _ in range(100):
        send(adapter)
        adapter.clock.advance(0.1)
    attempts = retry_history(send(adapter)).attempts
    assert asked == pytest.approx([attempt.started - attempts[0].started for attempt in attempts], abs=0.01)


def test_a_name_that_never_resolved_is_given_up_after_two_seconds() -> None:
    """A name that never resolved is misspelt; one that did resolve may be away for a moment."""
    adapter = scripted(*[unconnected(socket.gaierror(-2, "Name or service not known"))] * 50)
    with pytest.raises(requests.ConnectionError) as caught:
        send(adapter)
    assert 2.0 == pytest.approx(adapter.clock.now(), abs=0.01)
    assert StopReason.PATIENCE is retry_history(caught.value).stop_reason


@pytest.mark.once
@pytest.mark.parametrize("options", [{}, {"operation_timeout": 30}, {"patience": 20}])
@pytest.mark.parametrize("period", [60, 600])
def test_a_client_whose_first_attempt_always_fails_succeeds_every_time(period: float, options: dict[str, Any]) -> None:
    """Scale to zero, an operation now and then: before and after an outage of an hour."""
    clock = FakeClock()
    state = {"down": False, "asked": 0}

    def answer(_: Any) -> int:
        state["asked"] += 1
        return 503 if state["down"] or state["asked"] % 2 else 200

    adapter = scripted(*[answer] * 5000, clock=clock, **options)

    def statuses(count: int) -> list[int]:
        seen = []
        for _ in range(count):
            state["asked"] = 0
            seen.append(send(adapter).status_code)
            clock.advance(period)
        return seen

    assert [200] * 20 == statuses(20)
    state["down"] = True
    down = round(HOUR / period)
    assert [503] * down == statuses(down)
    state["down"] = False
    assert [200] * 20 == statuses(20)


@pytest.mark.once
@pytest.mark.parametrize(
    ("options", "dead", "pause"),
    [
        pytest.param({"max_attempts": 3, "patience": 0}, [refused()] * 3, 601, id="without patience, minutes later"),
        pytest.param({}, [503] * 6, 0, id="by default, at once"),
    ],
)
def test_a_crawler_that_met_dead_hosts_still_retries_on_healthy_ones(
    options: dict[str, Any], dead: list[Any], pause: float
) -> None:
    """A scope untouched for ten minutes is as good as new, and so is one that each call waited for."""
    adapter = scripted(**options)
    for number in range(1024):
        adapter.script[:] = dead
        with contextlib.suppress(requests.ConnectionError):
            assert 503 == send(adapter, url=f"http://dead-{number}/").status_code
    adapter.clock.advance(pause)
    adapter.script[:] = [503, 503, 200] * 3
    assert [200] * 3 == [send(adapter, url=f"http://well-{number}/").status_code for number in range(3)]
    assert len(adapter.strategy.snapshot().buckets) <= 1025


@pytest.mark.once
def test_a_service_that_is_dead_for_ten_minutes_holds_a_thread_a_tenth_of_a_second() -> None:
    """On average, of a plain session with an operation a second; and it sends hardly more than those."""
    adapter, of = service((0.0, 600.0))
    held, operations = 0.0, 0
    while of.clock.now() < 600:
        began = of.clock.now()
        send(adapter)
        held, operations = held + of.clock.now() - began, operations + 1
        of.clock.advance(1.0)
    assert held / operations < 0.1
    assert of.asked / operations < 1.02


@pytest.mark.parametrize(("options", "reason"), [({}, "PATIENCE"), ({"operation_timeout": 4}, "DEADLINE")])
def test_a_clock_that_jumps_while_somebody_waits_ends_the_wait_and_nothing_else(
    options: dict[str, Any], reason: str
) -> None:
    """A laptop that slept: the operation ends, and the next outage is ridden out as ever."""
    adapter, of = service((0.0, 3.0), (7600.0, 7603.0), **options)
    jumps = [7200.0]
    before_each_sleep(of.clock, lambda seconds: jumps and seconds > 0.5 and of.clock.advance(jumps.pop()))
    assert reason == retry_history(send(adapter)).stop_reason.name
    assert ([], True) == (jumps, of.clock.now() >= 7200)
    assert 200 == send(adapter).status_code
    of.clock.advance(7600 - of.clock.now())
    assert 200 == send(adapter).status_code


def test_a_waiter_holds_no_connection() -> None:
    """The failed response lets go of it before its operation waits, and can still be read afterwards."""
    adapter = RetryAdapter(clock=FakeClock(), pool_block=True, pool_maxsize=1, jitter="none")
    with FaultServer(default=Reply(503, body=b"down for a moment")) as server:
        response = session_with(adapter).get(server.url, stream=True)
        assert StopReason.PATIENCE is retry_history(response).stop_reason
        assert b"down for a moment" == response.content
        assert 1 == adapter.poolmanager.connection_from_url(server.url).pool.qsize()


def test_a_response_that_is_too_long_to_let_go_does_not_wait() -> None:
    """A response that is still to be read is handed over without waiting for the service."""
    body = b"x" * 200_000
    with FaultServer(default=Reply(503, body=body)) as server:
        response = session_with(RetryAdapter(clock=FakeClock(), jitter="none")).get(server.url)
        history = retry_history(response)
        assert (StopReason.QUOTA_EXCEEDED, 3) == (history.stop_reason, len(history.attempts))
        assert body == response.content


def test_the_snapshot_shows_who_waits_and_since_when() -> None:
    """The snapshot shows the waiter and the outage while the line exists, and neither afterwards."""
    adapter, of = service((0.0, 2.0))
    seen: list[tuple[int, Any]] = []

    def look(_: float = 0.0) -> None:
        (bucket,) = adapter.strategy.snapshot().buckets.values()
        seen.append((bucket.waiting, bucket.down_for))

    before_each_sleep(of.clock, look)
    send(adapter)
    assert {(0, True), (1, True)} == {(waiting, down_for is not None) for waiting, down_for in seen}
    look()
    assert (0, None) == seen[-1]


def test_who_waits_at_one_adapter_is_let_go_by_a_success_at_another() -> None:
    """Two adapters with one bucket have one line, so a success at one lets a waiter at the other go."""
    bucket, clock = PayoffTokenBucket(), FakeClock()
    one = scripted(*[503] * 3, 200, quota=bucket, clock=clock)
    other = scripted(200, quota=bucket, clock=clock)

    def succeed(_: float) -> None:
        if one.strategy.snapshot().buckets[SCOPE].waiting and other.script:
            send(other)

    before_each_sleep(clock, succeed)
    history = retry_history(send(one))
    assert (4, "another request succeeded") == (len(history.attempts), history.attempts[-1].line_why)


@pytest.mark.real_time
def test_ten_clients_ride_out_a_restart() -> None:
    """On real sockets and threads, every operation succeeds; for a busy machine, with more patience than by default."""
    is_over = threading.Event()

    def client(url: str) -> set[int]:
        session, done = session_with(RetryAdapter(patience=120)), set()
        while not is_over.is_set():
            done.add(session.get(url, timeout=60).status_code)
            time.sleep(0.02)
        return done

    with ThreadPoolExecutor(10) as pool:
        with FaultServer() as server:
            clients = pool.map(client, [server.url] * 10)
            time.sleep(0.2)
        time.sleep(1)  # connections are refused
        with FaultServer(port=server.port) as again:
            time.sleep(0.5)
            is_over.set()
            assert [{200}] * 10 == list(clients)
    assert min(len(server.requests), len(again.requests)) >= 10


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 30])
@pytest.mark.parametrize("pause", [0.1, 5.0, 60.0, None])
@pytest.mark.parametrize("status", [503, 500])
def test_threads_that_each_send_one_request_ride_out_a_restart(threads: int, pause: Any, status: int) -> None:
    """Whether their session has just sent many, one a minute, or none: who asks lets two go, and each of them two."""
    start = 5.0 if pause is None else 20 * pause + 5.0
    clock = TurnClock()
    of = Service(clock, (start, start + 3.0), status=status)  # type: ignore[arg-type]
    adapter, statuses = scripted(*[of] * 1000, clock=clock), []
    for _ in range(0 if pause is None else 20):
        send(adapter)
        clock.advance(pause)
    clock.advance(5.0)
    clock.run([lambda: statuses.append(send(adapter).status_code)] * threads)
    assert [200] * threads == statuses
    assert clock.now() < start + 5.0


@pytest.mark.real_time
@pytest.mark.parametrize("times", [1, 2])
def test_a_pool_rides_out_that_each_of_its_calls_is_throttled(times: int) -> None:
    """No call is lost, though the service says no time and refuses the first requests of each path."""
    asked: Counter[str] = Counter()

    def answer(request: Any) -> Reply:
        asked[request.target] += 1
        return Reply(429 if asked[request.target] <= times else 200)

    with FaultServer(answer) as server, requests.Session() as made, ThreadPoolExecutor(8) as pool:
        made.mount("http://", RetryAdapter(backoff=0.05, patience=60))
        found = list(pool.map(lambda number: made.get(f"{server.url}/{number}").status_code, range(16)))
    assert [200] * 16 == found
    assert (times + 1) * 16 == len(server.requests)


@pytest.mark.parametrize("every", [0.02, 0.1, 1.0])
def test_a_path_that_is_throttled_while_others_work_is_asked_with_backoff(every: float) -> None:
    """A limit of its own may hold for one path or customer: the successes of others do not end it."""
    adapter = scripted(*[lambda request: 429 if "bad" in request.url else 200] * 2000, clock=TurnClock())
    send(adapter)
    histories: list[Any] = []

    def others() -> None:
        while not histories:
            send(adapter)
            adapter.clock.sleep(every)

    adapter.clock.run([others, lambda: histories.append(retry_history(send(adapter, url=f"{URL}/bad")))])
    assert 4 <= len(histories[0].attempts) <= 9
    assert "failing" not in histories[0].explain()


@pytest.mark.parametrize("poisoned", [1, 2, 8])
@pytest.mark.parametrize("options", [{"patience": 120}, {}])
def test_a_request_that_always_gets_a_500_is_no_outage(
    poisoned: int, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """It makes its three attempts, also where it comes last, and nobody is told that the host is down."""
    adapter = scripted(*[lambda request: 500 if "bad" in request.url else 200] * 1000, clock=TurnClock(), **options)
    for _ in range(60):
        send(adapter)
    histories: list[Any] = []
    paths = [f"{URL}/bad/{number}" for number in range(poisoned)]
    adapter.clock.run([lambda path=path: histories.append(retry_history(send(adapter, url=path))) for path in paths])
    assert [(3, StopReason.MAX_ATTEMPTS)] * poisoned == [(len(each.attempts), each.stop_reason) for each in histories]
    assert adapter.clock.now() < 10.0
    assert [] == [record for record in caplog.records if "is down" in record.getMessage()]


def test_a_service_that_answers_nothing_but_500_for_three_seconds_is_down() -> None:
    """From then on calls wait for it, as for any outage; before, each makes three attempts."""
    adapter, of = service((1.0, 11.0), status=500, patience=30)
    send(adapter)
    of.clock.advance(1.0)
    seen = []
    while of.clock.now() < 12.0:
        history = retry_history(send(adapter))
        seen.append(history.stop_reason)
        of.clock.advance(0.5)
    assert StopReason.MAX_ATTEMPTS is seen[0]
    assert {StopReason.MAX_ATTEMPTS, StopReason.SUCCESS} == set(seen)
    assert 1 <= seen.index(StopReason.SUCCESS) <= 4


def test_a_200_that_is_always_found_wanting_is_no_outage() -> None:
    """A `validate` that says False is a failure like a 500."""
    wanted = lambda response: "bad" not in response.url  # noqa: E731
    adapter = scripted(*[200] * 9, patience=120, validate=wanted)
    send(adapter)
    history = retry_history(send(adapter, url=f"{URL}/bad"))
    assert (3, StopReason.MAX_ATTEMPTS) == (len(history.attempts), history.stop_reason)
    assert adapter.clock.now() < 1.0


LOCKED = classifier(
    lambda outcome: (
        RetryAction.retryable_error_with_explicit_delay(ErrorKind.CLIENT, 1.0) if outcome.status == 409 else None
    )
)


@pytest.mark.parametrize("locked", [1, 5, 9])
def test_a_lock_is_no_outage_of_the_service(locked: int) -> None:
    """A refusal of one request is asked about again as often as max_attempts says, by a client that is alone, too."""
    adapter = scripted(*[409] * locked, 200, max_attempts=10, classifiers=[LOCKED], operation_timeout=300)
    assert 200 == send(adapter).status_code
    (line,) = adapter.strategy.snapshot().buckets.values() or [None]
    assert line is None or (9, None) == (line.available, line.down_for)


def test_who_polls_a_locked_thing_keeps_no_other_path_from_its_retries() -> None:
    """While one operation asks about its lock again and again, another one of the same host has its retry."""
    adapter = scripted(*[409] * 6, 503, 200, max_attempts=6, classifiers=[LOCKED])
    assert [409, 200] == [send(adapter).status_code for _ in range(2)]
