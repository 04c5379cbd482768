"""The gate of a scope (contract 7.4): what passes, who waits and in which order; then adapters, then threads."""

from __future__ import annotations

import copy
import pickle
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import requests
from requests.structures import CaseInsensitiveDict
from urllib3.util import Retry

from requests_smithy_retry import (
    RateLimitDialect,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    retry_history,
    retry_options,
)
from requests_smithy_retry.pacing import gate as gate_module
from requests_smithy_retry.pacing.announced import DIALECTS
from requests_smithy_retry.pacing.gate import Gate, Gates
from requests_smithy_retry.pacing.pace import Pace
from requests_smithy_retry.pacing.server_hints import Hint
from requests_smithy_retry.testing import ScriptedReply
from requests_smithy_retry.testing import scripted as with_the_line
from requests_smithy_retry.testing.clock import FakeClock
from tests.support import URL, Reply, prepare, reset_error, scripted, send

WALL = 1_700_000_000.0


def gate_with(clock: FakeClock | None = None) -> Gate:
    """A gate that nobody has told anything."""
    return Gate(Gates(clock or FakeClock(), DIALECTS, set(), {}))


def headers(remaining: object, reset: object = 10.5, limit: object = 100, **more: str) -> Mapping[str, str]:
    """Return the headers of one announced limit."""
    named = {"X-RateLimit-Remaining": remaining, "X-RateLimit-Reset": reset, "X-RateLimit-Limit": limit, **more}
    return CaseInsensitiveDict({name: str(value) for name, value in named.items()})


def test_an_open_gate_is_asked_by_nobody() -> None:
    """An open gate is in neither set while plenty is left, and in both from then on."""
    gate = gate_with()
    gate.look(headers(99))
    assert not gate.is_limiting
    assert "open" in repr(gate)
    gate.hear(headers(0), WALL)
    assert gate.is_limiting
    assert gate._gates.shut == gate._gates.busy == {gate}
    assert "limiting" in repr(gate)


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Filled with one item for each closer look."""
    read: list[int] = []
    real = Pace.hear
    monkeypatch.setattr(Pace, "hear", lambda *args, **options: read.append(1) or real(*args, **options))
    return read


def test_plenty_is_seen_at_a_glance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The headers are read once per window, and again when half is used."""
    read = counted_reads(monkeypatch)
    clock = FakeClock()
    gate = gate_with(clock)
    for remaining in (99, 98, 90, 70, 51):
        gate.look(headers(remaining))
    assert len(read) == 1
    gate.look(headers(50))
    assert len(read) == 2
    gate.look(CaseInsensitiveDict())
    clock.advance(11)
    gate.look(headers(99))
    assert len(read) == 4


def test_of_several_headers_each_is_glanced_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests count above a half; tokens above nothing."""
    read = counted_reads(monkeypatch)
    gate = gate_with()

    def both(requests_left: int, tokens_left: int) -> Mapping[str, str]:
        return CaseInsensitiveDict(
            {
                **{f"x-ratelimit-{name}-requests": str(value) for name, value in LIMIT(requests_left)},
                **{f"x-ratelimit-{name}-tokens": str(value) for name, value in LIMIT(tokens_left)},
            }
        )

    for requests_left, tokens_left in ((99, 99), (90, 5), (51, 1), (51, 0), (50, 5)):
        gate.look(both(requests_left, tokens_left))
    assert len(read) == 3


def LIMIT(left: int) -> list[tuple[str, object]]:
    """The three headers of one limit."""
    return [("remaining", left), ("reset", "10.5s"), ("limit", 100)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"RateLimit": '"a";r=90;t=10'}, {"RateLimit": '"a";r=80;t=9'}),
        ({"RateLimit": "limit=100, remaining=90, reset=10"}, {"RateLimit": "limit=100, remaining=80, reset=9"}),
    ],
)
def test_so_it_is_in_structured_fields(
    first: dict[str, str], second: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is in the middle of those."""
    gate = gate_with()
    gate.look(CaseInsensitiveDict(first))
    read = counted_reads(monkeypatch)
    gate.look(CaseInsensitiveDict(second))
    assert [] == read


def test_who_comes_to_a_closed_gate_waits_until_it_opens() -> None:
    """A send waits until the gate opens, which it then is for all."""
    clock = FakeClock()
    gate = gate_with(clock)
    gate.hear(CaseInsensitiveDict(), WALL, hint=Hint(7.0, "retry-after"))
    assert (7.0, "retry-after") == gate.enter(None, 120.0)
    assert not gate.is_limiting
    assert [7.0] == clock.sleeps


@pytest.mark.parametrize(("deadline", "longest"), [(6.0, 120.0), (7.0, 120.0), (None, 6.0), (None, 0.0)])
def test_a_wait_that_would_be_in_vain_is_not_begun(deadline: float | None, longest: float) -> None:
    """The gate opens later than the bounds allow: it is sent at once, for the server's own answer."""
    clock = FakeClock()
    gate = gate_with(clock)
    gate.hear(CaseInsensitiveDict(), WALL, hint=Hint(7.0, "retry-after"))
    assert (0.0, "") == gate.enter(deadline, longest)
    assert [] == clock.sleeps


@pytest.mark.parametrize(("deadline", "longest"), [(20.0, 120.0), (None, 20.0)])
def test_a_gate_that_is_closed_again_beyond_the_bounds_holds_nobody(deadline: float | None, longest: float) -> None:
    """The wait was begun in good faith; it ends at once with a send, not at the deadline without one."""
    clock = ClockThatTells()
    gate = gate_with(clock)
    gate.hear(CaseInsensitiveDict(), WALL, hint=Hint(7.0, "retry-after"))
    clock.told = lambda: gate.hear(CaseInsensitiveDict(), WALL, hint=Hint(60.0, "x"))
    assert 7.0 == gate.enter(deadline, longest)[0]


def test_who_stands_behind_another_waits_no_longer_than_the_bounds() -> None:
    """The one in front does not go on, as in a thread that gets no processor."""
    clock = FakeClock()
    gate = gate_with(clock)
    gate.hear(CaseInsensitiveDict(), WALL, hint=Hint(7.0, "retry-after"))
    gate._waiters.append((120.0, threading.Condition(gate._lock)))
    assert 20.0 == gate.enter(None, 20.0)[0]


@pytest.mark.parametrize(("deadline", "longest"), [(20.0, 120.0), (None, 20.0)])
def test_so_it_is_for_who_stands_behind_another(deadline: float | None, longest: float) -> None:
    """Closed again beyond its bounds, the gate wakes it, though it is not the first in line."""
    clock = ClockThatWakes()
    gate = gate_with(clock)
    gate.hear(CaseInsensitiveDict(), WALL, hint=Hint(7.0, "retry-after"))
    gate._waiters.append((120.0, threading.Condition(gate._lock)))
    clock.told = lambda: gate.hear(CaseInsensitiveDict(), WALL, hint=Hint(60.0, "x"))
    assert 0.0 == gate.enter(deadline, longest)[0]


@pytest.mark.parametrize(("bound", "expected"), [(11.4, 0.0), (11.6, 11.6)])
def test_a_place_in_line_that_comes_too_late_is_left_at_once(bound: float, expected: float) -> None:
    """The gate opens in time, but the fourth in line has its turn one and a half seconds later."""
    gate = gate_with()
    gate.hear(CaseInsensitiveDict(), WALL, hint=Hint(10.0, "retry-after"))
    gate._waiters.extend((120.0, threading.Condition(gate._lock)) for _ in range(3))
    assert expected == gate.enter(bound, 120.0)[0]


class ClockThatTells(FakeClock):
    """Does something before its first wait ends."""

    told: Callable[[], object] | None = None

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Let others have the lock meanwhile."""
        condition.release()
        told, self.told = self.told, None
        self.sleep(seconds)
        if told is not None:
            told()
        condition.acquire()


class ClockThatWakes(ClockThatTells):
    """Does something before its first wait begins, and ends a wait as soon as its condition is notified."""

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Let others have the lock meanwhile."""
        bell = threading.Lock()
        bell.acquire()
        condition._waiters.append(bell)  # type: ignore[attr-defined]
        super().wait(condition, 0.0)
        if not bell.acquire(blocking=False):
            self.sleep(seconds)


def test_a_reset_says_more_exactly_what_a_retry_after_rounds_up() -> None:
    """A reset is more exact than a ``Retry-After`` for the same moment, which is rounded up."""
    gate = gate_with()
    gate.hear(headers(0, 6.3), WALL, hint=Hint(7.0, "retry-after"))
    assert (6.3, "x-ratelimit-reset") == gate.enter(None, 120.0)
    gate.hear(headers(0, 3.3), WALL, hint=Hint(7.0, "retry-after"))
    waited, source = gate.enter(None, 120.0)
    assert (pytest.approx(7.0), "retry-after") == (waited, source)


@pytest.mark.parametrize("is_there", [True, False])
def test_one_who_is_interrupted_while_joining_the_line_is_not_left_in_it(is_there: bool) -> None:
    """An interrupt right after or before a waiter joins the line leaves nobody there, for whom others would wait."""

    class Interrupted(deque[threading.Condition]):
        def append(self, item: threading.Condition) -> None:
            if is_there:
                super().append(item)
            raise KeyboardInterrupt

    gate = gate_with()
    gate.hear(headers(0), WALL)
    gate._waiters = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        gate.enter(None, 60.0)
    assert deque() == gate._waiters


def test_one_who_is_interrupted_makes_room() -> None:
    """An interrupted waiter leaves the line, and the others do not wait for it."""
    gate = gate_with(InterruptedClock())
    gate.hear(CaseInsensitiveDict(), WALL, hint=Hint(7.0, "retry-after"))
    with pytest.raises(KeyboardInterrupt):
        gate.enter(None, 120.0)
    assert not gate._waiters


@pytest.mark.parametrize("has_joined", [True, False])
def test_one_who_is_interrupted_on_joining_the_line_leaves_it(has_joined: bool) -> None:
    """Ctrl-C comes between joining the line and the wait, or just before."""
    gate = gate_with()
    gate.hear(CaseInsensitiveDict(), WALL, hint=Hint(7.0, "retry-after"))
    gate._waiters = InterruptedLine(has_joined)
    with pytest.raises(KeyboardInterrupt):
        gate.enter(None, 120.0)
    assert not gate._waiters


class InterruptedLine(deque[Any]):
    """Ctrl-C comes when somebody joins it."""

    def __init__(self, has_joined: bool) -> None:
        super().__init__()
        self.has_joined = has_joined

    def append(self, item: Any) -> None:
        """Join, or not, and go no further."""
        if self.has_joined:
            super().append(item)
        raise KeyboardInterrupt


class InterruptedClock(FakeClock):
    """Ctrl-C comes during each sleep."""

    def sleep(self, seconds: float) -> None:
        """Never ends well."""
        raise KeyboardInterrupt


def test_a_child_of_a_fork_has_nobody_waiting() -> None:
    """The waiting threads are in the parent, so a forked child has no waiter."""
    gate = gate_with()
    gate._waiters.append((7.0, threading.Condition()))
    gate.renew_lock()
    assert not gate._waiters


class TestGates:
    def test_a_silent_scope_is_looked_at_once(self) -> None:
        """The first success of a scope tells that it announces nothing, and later ones are not looked at."""
        gates = Gates(FakeClock(), DIALECTS, set(), {})
        assert gates.first_look("a", CaseInsensitiveDict()) is None
        assert gates.first_look("a", headers(5)) is None
        assert gates.first_look("b", headers(99)) is gates.of("b")
        assert gates.first_look("b", headers(98)) is gates.of("b")
        assert gates.first_look("c", CaseInsensitiveDict({"Old-X-RateLimit-Remaining-Day": "5"})) is None

    def test_a_failure_is_looked_at_always(self) -> None:
        """A failure's hint makes a gate even in a scope that announced nothing so far."""
        gates = Gates(FakeClock(), DIALECTS, set(), {})
        gates.first_look("a", CaseInsensitiveDict())
        failed = {"throttled": True, "floor": None, "longest": 120.0}
        gates.failed("a", CaseInsensitiveDict(), **failed)
        assert gates.of("a") is None
        gates.failed("a", CaseInsensitiveDict({"Retry-After": "3"}), **failed)
        assert gates.of("a").is_limiting
        assert gates.first_look("a", CaseInsensitiveDict()) is gates.of("a")

    @pytest.mark.parametrize(
        ("told", "options", "expected"),
        [
            ({"Retry-After": "3"}, {}, 3.0),
            ({"Retry-After": "3"}, {"throttled": False}, None),
            ({"Retry-After": "300"}, {}, None),
            ({"Retry-After": "0"}, {}, None),
            ({"x-amz-retry-after": "3000"}, {}, None),
            ({"x-ratelimit-reset": "9.5"}, {}, 9.5),
            ({}, {"floor": 60.0}, 60.0),
            ({}, {}, None),
        ],
    )
    def test_what_closes_a_gate(self, told: dict[str, str], options: Any, expected: float | None) -> None:
        """A wait that a server asked of everybody, and that is short enough to be waited."""
        clock = FakeClock()
        gates = Gates(clock, DIALECTS, set(), {})
        gates.failed("a", CaseInsensitiveDict(told), **{"throttled": True, "floor": None, "longest": 120.0, **options})
        gate = gates.of("a")
        waited = None if gate is None or not gate.is_limiting else gate.enter(None, 120.0)[0]
        assert expected == waited

    def test_so_many_scopes_have_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The oldest open gate makes room for a new one; if all gates are closed, a new scope gets no gate."""
        monkeypatch.setattr(gate_module, "MOST_GATES", 2)
        gates = Gates(FakeClock(), DIALECTS, set(), {})
        for scope in "abc":
            gates.first_look(scope, headers(99))
        gates.remember("c", None, gates.of("c"))
        assert (None, True) == (gates.of("a"), gates.of("c") is not None)
        for scope in "bcd":
            gates.failed(scope, headers(0), throttled=True, floor=None, longest=120.0)
        assert gates.of("d") is None
        assert gates.first_look("d", headers(99)) is None
        for origin in "efg":
            gates.remember(origin, None, gates.of("c"))
        assert 2 >= len(gates.known)
        for scope in "xyz":
            gates.first_look(scope, CaseInsensitiveDict())


class PermitWaitOf:
    """A wait for a permit."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def rest(self, clock: FakeClock) -> None:
        """Wait."""
        clock.sleep(self.seconds)


LIMITED = Reply(429, {"Retry-After": "7"})


class TestAdapters:
    def test_one_operations_hint_holds_the_next_one_back(self) -> None:
        """An operation's first attempt waits for an earlier operation's hint, and its history says so."""
        clock = FakeClock()
        adapter = scripted(LIMITED, 200, 200, 200, clock=clock, max_attempts=1)
        assert 429 == send(adapter).status_code
        history = retry_history(send(adapter))
        assert [7.0] == clock.sleeps
        assert (7.0, "retry-after") == (history.attempts[0].gate_wait, history.attempts[0].gate_source)
        assert "after 7 s for a rate limit (retry-after) 200" in history.explain()
        assert 0.0 == retry_history(send(adapter)).attempts[0].gate_wait

    def test_the_wait_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        """At DEBUG, without the query; and nothing where nobody waited."""
        caplog.set_level("DEBUG", "requests_smithy_retry")
        adapter = scripted(LIMITED, 200, 200, clock=FakeClock(), max_attempts=1)
        for _ in range(3):
            send(adapter, url=f"{URL}?key=secret")
        (record,) = [record for record in caplog.records if hasattr(record, "retry_gate_wait")]
        shown = "https://api.example.com:443/things"
        assert f"GET {shown} waited 7.000 s for a rate limit (retry-after)" == record.getMessage()
        assert ("GET", shown, 7.0) == (record.retry_method, record.retry_url, record.retry_gate_wait)

    def test_another_scope_is_not_held_back(self) -> None:
        """A scope whose server announced nothing is not held back by another's."""
        clock = FakeClock()
        adapter = scripted(LIMITED, 200, clock=clock, max_attempts=1)
        send(adapter)
        send(adapter, url="https://other.example.com/")
        assert [] == clock.sleeps

    @pytest.mark.parametrize(
        "options",
        [
            {"pacing": "off", "max_attempts": 1},
            {"max_retries": Retry(1, respect_retry_after_header=False)},
            {"enabled": False},
        ],
    )
    def test_where_pacing_is_off_nobody_waits(self, options: dict[str, Any]) -> None:
        """The adapter's option, a translated ``Retry`` that heeds no hint, or no retries at all."""
        clock = FakeClock()
        adapter = scripted(LIMITED, 200, clock=clock, **options)
        send(adapter)
        assert 200 == send(adapter).status_code
        assert [] == clock.sleeps

    def test_a_retry_that_is_assigned_later_can_switch_it_off(self) -> None:
        """As it does when it is given at once."""
        clock = FakeClock()
        adapter = scripted(LIMITED, 200, clock=clock, max_attempts=1)
        send(adapter)
        adapter.max_retries = Retry(1, respect_retry_after_header=False)
        assert 200 == send(adapter).status_code
        assert [] == clock.sleeps

    def test_a_block_can_switch_it_off(self) -> None:
        """A block switches pacing off, and an inner block switches it on again."""
        clock = FakeClock()
        adapter = scripted(LIMITED, 200, 200, clock=clock, max_attempts=1)
        send(adapter)
        with retry_options(pacing="off"):
            send(adapter)
            assert [] == clock.sleeps
            with retry_options(pacing="announced"):
                send(adapter)
        assert [7.0] == clock.sleeps

    def test_a_deadline_bounds_it(self) -> None:
        """A send that would wait past its deadline goes at once, and gets the server's own answer."""
        clock = FakeClock()
        adapter = scripted(LIMITED, LIMITED, clock=clock, max_attempts=1, operation_timeout=5)
        send(adapter)
        assert 429 == send(adapter).status_code
        assert [] == clock.sleeps

    def test_so_does_the_longest_hint(self) -> None:
        """A retry counts the seconds that it has waited already."""
        clock = FakeClock()
        adapter = scripted(LIMITED, LIMITED, 200, clock=clock, max_retry_after=7)
        adapter.strategy.gates.failed(
            "https://api.example.com:443", headers(0, 60), throttled=True, floor=None, longest=99
        )
        response = send(adapter)
        assert 200 == response.status_code
        assert [7.0, 7.0] == clock.sleeps

    def test_sends_are_spaced_where_the_rest_would_not_last(self) -> None:
        """The first half goes at once; the other half arrives within the window."""
        clock = FakeClock()
        left = iter(range(99, -1, -1))
        reset = lambda: 10.5 - clock.now()  # noqa: E731 - a line of the script

        def answer(_: Any) -> Reply:
            return Reply(200, dict(headers(next(left), reset())))

        adapter = scripted(*[answer] * 100, clock=clock)
        for _ in range(100):
            clock.advance(0.001)
            history = retry_history(send(adapter))
        assert "for a rate limit (x-ratelimit-reset)" in history.explain()
        assert 49 <= len(clock.sleeps) <= 52
        assert 9.5 < clock.now() < 10.5

    @pytest.mark.parametrize(("permits", "expected"), [(2.0, 7.0), (9.0, 9.0)])
    def test_in_adaptive_mode_the_smaller_rate_counts(self, permits: float, expected: float) -> None:
        """A send waits for its permit and for the gate, and both go on at the same time."""
        clock = FakeClock()
        adapter = scripted(LIMITED, 200, clock=clock, mode="adaptive", max_attempts=1)
        send(adapter)
        waits = [PermitWaitOf(permits)]
        adapter.strategy.limiter("https://api.example.com:443").try_acquire = lambda: waits.pop() if waits else None
        send(adapter)
        assert expected == sum(clock.sleeps)

    def test_who_waits_for_the_service_tells_the_gate_before(self) -> None:
        """A refusal closes the gate when it comes, once, and not again with a stale hint when its operation goes on."""
        clock, told = FakeClock(), []
        limited = ScriptedReply(429, dict(headers(0, 0.5), **{"Retry-After": "1"}))
        adapter = with_the_line(503, 503, limited, 200, clock=clock)
        failed = adapter.strategy.gates.failed
        adapter.strategy.gates.failed = lambda *args, **facts: told.append(clock.wall()) or failed(*args, **facts)
        attempts = retry_history(send(adapter)).attempts
        assert 4.0 == pytest.approx(attempts[3].line_wait)
        assert [attempt.started for attempt in attempts[:3]] == told

    def test_a_user_adds_a_dialect_in_one_line(self) -> None:
        """A dialect that a user adds counts for the gate and for the delay."""
        clock = FakeClock()
        acme = RateLimitDialect("acme-left", reset="acme-next")
        limited = Reply(429, {"acme-left": "0", "acme-next": "3s"})
        adapter = scripted(limited, 200, 200, clock=clock, pacing=acme)
        assert [0.0, 3.0] == [attempt.delay for attempt in retry_history(send(adapter)).attempts]
        assert (acme,) == adapter.retry_config.pacing

    def test_a_failure_without_a_response_is_no_send_on_its_way(self) -> None:
        """A send that got no response does not count as one on its way."""
        clock = FakeClock()
        adapter = scripted(
            Reply(200, dict(headers(99))),
            Reply(200, dict(headers(3, 10.4))),
            reset_error(),
            Reply(200, dict(headers(2, 8))),
            clock=clock,
        )
        for _ in range(3):
            clock.advance(0.05)
            response = send(adapter)
        assert 2 == len(retry_history(response).attempts)

    def test_a_retry_tells_what_it_waited(self) -> None:
        """With an operation, as in adaptive mode, the record has the wait at the gate."""
        clock = FakeClock()
        adapter = scripted(LIMITED, 503, 200, clock=clock, mode="adaptive", max_attempts=1)
        send(adapter)
        history = retry_history(send(adapter))
        assert history.attempts[0].gate_wait > 0
        assert history.attempts[0].status == 503

    @pytest.mark.parametrize("strategy", [SimpleRetryStrategy, StandardRetryStrategy])
    def test_a_copy_begins_with_open_gates(self, strategy: Any) -> None:
        """A copy begins with open gates, as with a full quota."""
        adapter = scripted(LIMITED, strategy=strategy(max_attempts=1, clock=FakeClock()))
        send(adapter)
        for made in (copy.copy(adapter.strategy), pickle.loads(pickle.dumps(adapter.strategy))):
            assert not made.gates.shut
            assert made.gates.busy is made.busy
        assert adapter.strategy.gates.shut

    def test_a_server_that_begins_to_announce_is_heard(self) -> None:
        """The first success was silent; after a refusal that announces a limit, each success is looked at."""
        clock = FakeClock()
        plenty, used_up = dict(headers(99, 9.5)), dict(headers(0, 9.5))
        adapter = scripted(200, Reply(429, used_up), Reply(200, plenty), Reply(200, used_up), 200, clock=clock)
        for _ in range(4):
            send(adapter)
        assert [9.5, 9.5] == clock.sleeps

    @pytest.mark.parametrize("scope", [None, lambda _: "mine"])
    def test_the_first_response_of_each_connection_is_looked_at(self, scope: Any) -> None:
        """A silent scope is looked at again when a connection was made: it may lead to a server that announces."""
        clock = FakeClock()
        adapter = scripted(200, *[Reply(200, dict(headers(0, 9.5)))] * 3, clock=clock, scope=scope)
        for _ in range(2):
            send(adapter)
        adapter.addresses.on_connect()
        for _ in range(2):
            assert [] == clock.sleeps
            send(adapter)
        assert [9.5] == clock.sleeps

    def test_a_scope_of_the_programs_own(self) -> None:
        """Each success in an announcing scope is looked at, and no success in a silent one."""
        clock = FakeClock()
        script = [Reply(200, dict(headers(99))), 200, Reply(200, dict(headers(0, 9.5))), 200]
        adapter = scripted(*script, clock=clock, scope=lambda request: request.headers.get("Key", ""))
        for key in ("a", "b", "a", "a"):
            adapter.send(prepare(headers={"Key": key}))
        assert [9.5] == clock.sleeps

    def test_an_announcing_origin_keeps_its_quota(self) -> None:
        """The first-try successes of an announcing origin are told to the quota like those of any other."""
        adapter = scripted(*[Reply(200, dict(headers(99)))] * 3, clock=FakeClock(), quota="payoff")
        bucket = adapter.strategy.bucket("https://api.example.com:443")
        bucket.settle()
        for _ in range(3):
            send(adapter)
        assert 3 == bucket.settle()
        assert {"https://api.example.com"} == set(adapter.strategy.gates.known)


@pytest.mark.real_time
def test_fifty_threads_wait_for_one_hint_in_the_order_in_which_they_came() -> None:
    """All fifty threads get through, and the gate is open afterwards."""
    gate = Gates(SystemClockOf(), DIALECTS, set(), {})._made("a")
    gate.hear(CaseInsensitiveDict(), WALL, hint=Hint(0.5, "retry-after"))
    order: list[int] = []

    def enter(at: int) -> None:
        gate.enter(None, 120.0)
        order.append(at)

    threads = []
    for at in range(50):
        thread = threading.Thread(target=enter, args=(at,))
        thread.start()
        threads.append(thread)
        while len(gate._waiters) <= at and thread.is_alive():
            pass
    for thread in threads:
        thread.join(30)
    assert sorted(order) == list(range(50))
    assert not gate.is_limiting


def SystemClockOf() -> Any:
    """The machine's clock."""
    from requests_smithy_retry import SystemClock

    return SystemClock()


def test_the_url_of_the_tests_is_that_scope() -> None:
    """``URL`` is in the scope that the tests above name."""
    assert URL.startswith("https://api.example.com")
    assert requests.Request("GET", URL).prepare().url == URL
