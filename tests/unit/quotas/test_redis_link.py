from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.quotas.redis import link_to
from requests_smithy_retry.quotas.redis.link import (
    COLD,
    EXIT_PATIENCE,
    LATE,
    MOST_AT_ONCE,
    STARVED,
    Account,
    LinkHandle,
    RedisLink,
    reason_of,
)
from requests_smithy_retry.quotas.redis.server import NonsenseError, check, is_late, is_moved, redis_error
from requests_smithy_retry.quotas.settings import RedisSettings
from requests_smithy_retry.quotas.shared import FAILURES_IN_A_ROW
from requests_smithy_retry.testing.clock import FakeClock

from .servers import RedisServer

pytestmark = pytest.mark.real_time

PATIENT = {"budget": 60, "connect_timeout": 600, "flush_interval": 600}
"""For links that are answered: more seconds than the busiest machine needs."""


def account(number: int = 0) -> Account:
    return Account(f"key:{{{number}}}", 500, 0.0)


class Server:
    """A client of redis-py whose server is a dictionary, and whose answers wait for ``gate``."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.asked = threading.Event()
        self.levels: dict[str, float] = {}
        self.runs: list[tuple[str, ...]] = []
        self.error: Exception | None = None
        self.connects = self.closes = 0

    def connect(self, url: str, settings: RedisSettings) -> Server:
        self.connects += 1
        return self

    def link(self, **settings: float) -> RedisLink:
        return RedisLink("", "model", RedisSettings(**{**PATIENT, **settings}), SYSTEM_CLOCK, self.connect)

    def pipeline(self, transaction: bool) -> Server:
        self.queue: list[tuple[str, ...]] = []
        return self

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute_command(self, how: str, script: str, number: int, *values: str) -> None:
        self.queue.append(values)

    def execute(self, raise_on_error: bool = True) -> list:
        queue = self.queue
        self.asked.set()
        self.gate.wait(60)
        if self.error is not None:
            raise self.error
        return [self.run(*values) for values in queue]

    def run(self, key: str, capacity: str, _: str, give: str, ttl: str, *takes: str) -> list:
        self.runs.append((key, give, *takes))
        level = min(float(capacity), self.levels.get(key, float(capacity)) + float(give))
        granted = []
        for take in map(float, takes):
            granted.append(int(level >= take))
            level -= take * granted[-1]
        self.levels[key] = level
        return [repr(level), *granted]

    def close(self) -> None:
        self.closes += 1


def until(condition: Callable[[], object]) -> None:
    """Wait for another thread."""
    end = SYSTEM_CLOCK.now() + 60
    while not condition():
        assert SYSTEM_CLOCK.now() < end, "it did not happen"
        SYSTEM_CLOCK.sleep(0.001)


def be_patient(link: RedisLink) -> None:
    """Have a link that waited in vain wait for its answers from now on."""
    link.settings = RedisSettings(**PATIENT)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (NonsenseError("not the script's answer"), "not the script's answer"),
        (ValueError("SECRET"), "ValueError"),
        (type("ResponseError", (Exception,), {})("NOPERM secret"), "ResponseError NOPERM"),
        (type("ResponseError", (Exception,), {})("secret"), "ResponseError"),
        (type("AuthenticationError", (Exception,), {})("WRONGPASS"), "AuthenticationError"),
    ],
)
def test_a_reason_holds_no_words_of_others(error: Exception, reason: str) -> None:
    """Our own words, an exception's name, or the code a server's error begins with."""
    assert reason_of(error) == reason


def test_what_comes_late_is_told_from_what_does_not_come() -> None:
    """A timeout leaves the command with the server; any other failure does not."""
    errors = (TimeoutError(), redis_error("TimeoutError")(), OSError(), ValueError())
    assert [is_late(error) for error in errors] == [True, True, False, False]


def test_a_key_that_moved_is_told_from_other_errors() -> None:
    """A moved key is recognized by the error's class or, with redis-py 5, by the server's first word."""
    response_error = redis_error("ResponseError")
    moved = [redis_error("MovedError")("7 host:1"), redis_error("AskError")("7 host:1")]
    moved += [response_error("MOVED 7 host:1"), response_error("ASK 7 host:1")]
    others = [response_error("WRONGTYPE MOVED "), OSError("MOVED 7 host:1"), [b"1", 1], None]
    assert [is_moved(answer) for answer in (*moved, *others)] == [True] * 4 + [False] * 4


def test_a_url_is_checked_without_connecting() -> None:
    """Port 1 has no server; only the words of the URL are looked at."""
    check("redis://127.0.0.1:1?socket_keepalive=1&client_name=fleet", RedisSettings())
    check("unix:///nowhere?db=1", RedisSettings())
    check("rediss://127.0.0.1:1?ssl_cert_reqs=required", RedisSettings())


class TestWhoWaits:
    @pytest.fixture
    def never_late(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A busy machine makes this process late; here it counts as on time all the same."""
        for name in ("ON_TIME", "STARVED"):
            monkeypatch.setattr(f"requests_smithy_retry.quotas.redis.link.{name}", 1e6)

    def test_what_many_threads_ask_goes_out_together(self) -> None:
        """While one question is on its way the others gather; the next run takes for all of them, in turn."""
        server, one = Server(), account()
        link = server.link()
        server.gate.clear()
        with ThreadPoolExecutor(9) as pool:
            first = pool.submit(link.take, one, 100)
            server.asked.wait(60)
            others = [pool.submit(link.take, one, 100) for _ in range(8)]
            until(lambda: len(one.asks) == 8)
            server.gate.set()
            granted = sorted(each.result() for each in others)
        assert (first.result(), granted, len(server.runs)) == (True, [False] * 4 + [True] * 4, 2)
        assert (one.level, server.connects, link.outage.failures) == (0, 1, 0)

    def test_one_late_call_costs_one_call(self) -> None:
        """A call that waited for the budget leaves; tokens taken for it come back, and the next call is answered."""
        server, one = Server(), account()
        link = server.link(budget=0.01)
        server.gate.clear()
        assert link.take(one, 100) is None
        be_patient(link)
        server.gate.set()
        until(lambda: one.pending == 100)
        assert link.take(one, 14) is True
        assert (one.level, one.pending, link.outage.fallen_open) == (486, 0, False)

    def test_one_that_was_answered_in_time_speaks_for_the_server(self) -> None:
        """A caller that left early does not count as a failure, if others were answered in time."""
        server, one = Server(), account()
        link = server.link()
        server.gate.clear()
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(link.take, one, 1)
            server.asked.wait(60)
            impatient = pool.submit(link.take, one, 1, SYSTEM_CLOCK.now() + 0.05)
            second = pool.submit(link.take, one, 1)
            assert impatient.result() is None
            server.gate.set()
        assert (first.result(), second.result(), link.outage.failures) == (True, True, 0)

    def test_the_first_question_has_time_to_connect(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A connection takes more round trips than a question: they are no lateness, up to ten budgets."""
        assert COLD == STARVED == 10
        for name in ("COLD", "STARVED"):  # so that a busy machine is no lateness either
            monkeypatch.setattr(f"requests_smithy_retry.quotas.redis.link.{name}", 1200)
        server, one = Server(), account()
        link = server.link(budget=0.05)
        server.gate.clear()
        with ThreadPoolExecutor(6) as pool:
            first = [pool.submit(link.take, one, 100) for _ in range(6)]
            SYSTEM_CLOCK.sleep(0.1)
            server.gate.set()
        assert sorted(each.result() for each in first) == [False] + [True] * 5
        assert (link.outage.failures, one.level) == (0, 0)

    def test_a_server_that_never_answers_is_waited_for_longer_but_once(self, never_late: None) -> None:
        """The first question gets ten budgets, each later one a single one; the server is blamed from the second on."""
        server, one = Server(), account()
        link = server.link(budget=0.02)
        server.gate.clear()
        began = SYSTEM_CLOCK.now()
        assert link.take(one, 1) is None
        first = SYSTEM_CLOCK.now() - began
        server.gate.set()
        until(lambda: link._busy_since is None)
        failures = [link.outage.failures]
        server.gate.clear()
        assert link.take(one, 1) is None
        server.gate.set()
        until(lambda: link._busy_since is None)
        failures.append(link.outage.failures)
        assert (first >= 0.2, failures) == (True, [0, 1])

    def test_an_operations_own_deadline_is_no_failure_of_the_server(self) -> None:
        """An operation's deadline, in the past or during the wait, is not counted as a failure."""
        server, one = Server(), account()
        link = server.link()
        server.gate.clear()
        began = SYSTEM_CLOCK.now()
        assert link.take(one, 10, deadline=began - 1) is None
        assert link.take(one, 10, deadline=began + 0.05) is None
        assert SYSTEM_CLOCK.now() - began < 30
        server.gate.set()
        assert link.take(one, 0) is True
        assert link.outage.failures == 0

    def test_a_process_that_is_late_itself_waits_longer(self) -> None:
        """Parts of the budget that take too long by the clock do not count, up to a second; nobody is blamed."""

        class Starved(FakeClock):
            def now(self) -> float:
                self.advance(0.005)
                return super().now()

        server, one = Server(), account()
        link = RedisLink("", "model", RedisSettings(budget=0.02), Starved(), server.connect)
        server.gate.clear()
        waited = link.clock.now()
        assert link.take(one, 1) is None
        waited = link.clock.now() - waited
        server.gate.set()
        until(lambda: one.pending == 1)
        assert (1 <= waited < 1.1, link.outage.failures) == (True, 0)

    def test_a_question_that_was_not_sent_yet_is_withdrawn(self) -> None:
        """A question whose caller left before it was sent is not sent."""
        server, one, two = Server(), account(1), account(2)
        link = server.link(budget=0.01)
        server.gate.clear()
        assert (link.take(one, 1), link.take(two, 2)) == (None, None)
        be_patient(link)
        server.gate.set()
        assert link.take(one, 3) is True
        assert "2.0" not in [take for run in server.runs for take in run[2:]]

    def test_what_was_refused_to_one_who_left_does_not_come_back(self) -> None:
        """No tokens come back for a question that the server refused after its caller had left."""
        server, one = Server(), account()
        link = server.link(budget=0.01)
        server.gate.clear()
        assert link.take(one, 501) is None
        be_patient(link)
        server.gate.set()
        until(lambda: link._busy_since is None)
        assert (one.pending, link.take(one, 0), one.level) == (0, True, 500)

    def test_a_thread_that_finds_nothing_to_do_waits_again(self) -> None:
        """All who asked may have left before it ran."""
        server, one = Server(), account()
        link = server.link()
        link.take(one, 1)
        with link._changed:
            link._wake()
        until(lambda: not link._hurry)
        assert (link.take(one, 1), len(server.runs)) == (True, 2)

    def test_a_server_that_is_always_late_is_an_outage(
        self, never_late: None, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It answers, but later than the budget each time: after some of those nobody asks, and the log says why."""
        server, one = Server(), account()
        link = server.link(budget=0.005)
        asked = 0
        while not link.outage.fallen_open:
            asked += 1
            server.gate.clear()
            assert link.take(one, 1) is None
            server.gate.set()
            until(lambda: link._busy_since is None)
        assert asked == 1 + FAILURES_IN_A_ROW  # the first one has time to connect
        assert f"does not answer ({LATE}, failure 1)" in caplog.text

    def test_an_answer_that_takes_for_ever_is_waited_for_by_nobody(self) -> None:
        """After connect_timeout every call is answered at once, though the thread still waits."""
        server, one = Server(), account()
        link = server.link(budget=0.02, connect_timeout=0.05)
        server.gate.clear()
        assert link.take(one, 1) is None
        until(lambda: link.take(one, 1) is None and link._is_overdue(SYSTEM_CLOCK.now()))
        began = SYSTEM_CLOCK.now()
        assert [link.take(one, 1) for _ in range(3000)] == [None] * 3000
        assert SYSTEM_CLOCK.now() - began < 3000 * 0.02 / 2
        server.gate.set()

    def test_without_a_thread_the_call_goes_by_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A process that is out of threads is not told so by a send."""
        server, one = Server(), account()
        link = server.link()

        def refuse(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            assert (link.take(one, 1), link.outage.failures, one.asks) == (None, 1, [])
        assert link.take(one, 1) is True

    def test_an_interrupt_goes_through_and_what_was_granted_comes_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Ctrl-C or a task's time limit while a caller waits."""
        server, one = Server(), account()
        link = server.link()

        def interrupted(ask: object, deadline: object) -> None:
            server.asked.wait(60)
            raise KeyboardInterrupt

        server.gate.clear()
        with monkeypatch.context() as patch:
            patch.setattr(link, "_wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                link.take(one, 100)
        server.gate.set()
        until(lambda: one.pending == 100)
        assert (link.take(one, 0), one.level, link.outage.failures) == (True, 500, 0)


class TestFailures:
    def test_a_failure_costs_the_calls_that_met_it(self) -> None:
        """The next question begins with a new connection; what was to be given back stays noted."""
        server, one = Server(), account()
        link = server.link()
        link.take(one, 100)
        link.give_back(one, 10)
        server.error = redis_error("ConnectionError")("cut")
        assert (link.take(one, 1), one.pending, server.closes) == (None, 10, 1)
        server.error = None
        assert (link.take(one, 0), one.level, server.connects) == (True, 410, 2)
        assert (link.outage.failures, link.outage.fallen_open) == (1, False)

    def test_what_a_server_may_have_booked_late_comes_back(self) -> None:
        """After a time-out the server has booked the return and, it may be, the take, so the take is given back."""
        server, one = Server(), account()
        link = server.link()
        link.take(one, 100)
        link.give_back(one, 10)
        server.error = redis_error("TimeoutError")("late")
        assert (link.take(one, 14), one.pending) == (None, 14)

    def test_one_bad_bucket_is_no_failure_of_the_server(self) -> None:
        """If other buckets in the same run were answered, an error of one does not count against the server."""
        server, good, bad = Server(), account(1), account(2)
        link = server.link()
        run = server.run
        server.run = lambda key, *values: ["nonsense"] if key == bad.key else run(key, *values)  # type: ignore[method-assign]
        server.gate.clear()
        with ThreadPoolExecutor(3) as pool:
            pool.submit(link.take, good, 1)
            server.asked.wait(60)
            found = [pool.submit(link.take, each, 1) for each in (good, bad)]
            until(lambda: good.asks and bad.asks)
            server.gate.set()
        assert ([each.result() for each in found], link.outage.failures) == ([True, None], 0)
        assert (link.take(bad, 1), link.outage.failures) == (None, 1)


class Shifted:
    """The machine's clock, ``ahead`` seconds ahead."""

    ahead = 0.0

    def now(self) -> float:
        return SYSTEM_CLOCK.now() + self.ahead

    def wall(self) -> float:
        return SYSTEM_CLOCK.wall() + self.ahead

    def sleep(self, seconds: float) -> None:
        SYSTEM_CLOCK.sleep(seconds)


class TestGivingBack:
    def test_it_goes_out_after_an_interval_by_itself(self) -> None:
        """The return goes out by itself, without another question or success."""
        server, one = Server(), account()
        link = server.link(flush_interval=0.02)
        link.take(one, 100)
        began = SYSTEM_CLOCK.now()
        link.give_back(one, 10)
        until(lambda: server.levels[one.key] == 410)
        assert SYSTEM_CLOCK.now() - began >= 0.02
        until(lambda: one.level == 410)

    def test_in_an_outage_it_waits_for_the_next_answer(self) -> None:
        """During an outage only a take connects to the server; tokens to give back wait for the next answer."""
        server, one = Server(), account()
        link = server.link(flush_interval=0.001, retry_interval=600)
        link.clock = clock = Shifted()
        link.take(one, 100)
        server.error = ValueError("out")
        for _ in range(FAILURES_IN_A_ROW):
            link.take(one, 0)
        connects = server.connects
        link.give_back(one, 10)
        SYSTEM_CLOCK.sleep(0.01)
        link.flush()
        assert (server.connects, one.pending) == (connects, 10)
        server.error = None
        clock.ahead = 600
        assert (link.take(one, 0), one.level) == (True, 410)

    def test_a_success_starts_no_thread(self) -> None:
        """Tokens that are given back before the first take wait for that take."""
        server, one = Server(), account()
        link = server.link(flush_interval=0)
        link.give_back(one, 10)
        link.give_back(one, 0)
        assert (one.pending, link._thread, server.connects) == (10, None, 0)

    def test_two_accounts_with_one_bucket_both_give_back(self) -> None:
        """The account of a scope that was given up may still owe something when its successor does."""
        server = Server()
        link, old, new = server.link(flush_interval=600), account(), account()
        assert link.take(old, 100)
        link.give_back(old, 10)
        link.give_back(new, 20)
        link.flush()
        assert {old.key: 430} == server.levels

    def test_many_buckets_give_back_in_turns(self, redis_server: RedisServer) -> None:
        """One run sends ``MOST_AT_ONCE`` returns; the others follow in further runs."""
        handle = link_to(redis_server.url("?budget=60&connect_timeout=60&flush_interval=600"))
        link = handle.link
        accounts = [account(number) for number in range(MOST_AT_ONCE + 10)]
        for each in accounts:
            link.take(each, 100)
            link.give_back(each, 10)
        link.flush()
        assert {redis_server.command("HGET", each.key, "level") for each in accounts} == {"410"}

    def test_at_exit_without_threads_it_is_sent_by_the_one_who_ends(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """If no thread can be started, as at exit, the calling thread sends the returns itself."""
        server, one = Server(), account()
        link = server.link()
        link.give_back(one, 10)
        one.level = server.levels[one.key] = 400.0

        def refuse(_: threading.Thread) -> None:
            raise RuntimeError("can't create new thread at interpreter shutdown")

        monkeypatch.setattr(threading.Thread, "start", refuse)
        link.flush()
        link.flush()
        assert (server.levels, link._is_idle()) == ({one.key: 410}, True)

    def test_a_flush_without_a_server_is_a_failure_like_any_other(self) -> None:
        """The failed flush counts one failure, raises nothing, and keeps the tokens to give back."""
        server, one = Server(), account()
        link = server.link()
        link.take(one, 100)
        link.give_back(one, 10)
        server.error = OSError("gone")
        link.flush()
        assert (link.outage.failures, one.pending) == (1, 10)

    def test_a_child_owes_nothing_of_its_parents(self) -> None:
        """Returns that the parent gathered are dropped in the child, and those of the child arrive."""
        server, one = Server(), account()
        link = server.link()
        server.levels[one.key] = 400.0
        link.give_back(one, 10)
        link.renew_lock()
        assert one.pending == 0
        link.give_back(one, 20)
        link.flush()
        assert server.levels[one.key] == 420


class TestTheEnd:
    def test_what_is_owed_is_given_back_when_nobody_holds_the_link(self, redis_server: RedisServer) -> None:
        """The returns are sent even if the last holder is part of a cycle of garbage; then the thread ends."""

        class Holder:
            def __init__(self) -> None:
                self.myself = self
                self.handle = link_to(redis_server.url("?budget=60&connect_timeout=60&flush_interval=600"))

        holder, one = Holder(), account()
        link = holder.handle.link
        link.take(one, 100)
        link.give_back(one, 10)
        del holder
        gc.collect()
        until(lambda: link._thread is None)
        assert (redis_server.command("HGET", one.key, "level"), link._client) == ("410", None)

    def test_a_link_that_was_never_asked_ends_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It has no thread to wait for."""
        monkeypatch.setattr("requests_smithy_retry.quotas.redis.link.EXIT_PATIENCE", 600)
        server = Server()
        handle = LinkHandle(server.link())
        began = SYSTEM_CLOCK.now()
        del handle
        assert SYSTEM_CLOCK.now() - began < 30

    def test_the_collector_may_end_it_within_its_own_thread(self) -> None:
        """The last handle dies while the thread talks to the server: it gives back what is owed, and ends."""
        server, one = Server(), account()
        handles = [LinkHandle(server.link())]
        link = handles[0].link
        link.take(one, 100)
        run, ended = server.run, []

        def collect(*values: str) -> list:
            ended.extend(handles)
            handles.clear()
            ended.clear()
            return run(*values)

        server.run = collect  # type: ignore[method-assign]
        link.give_back(one, 10)
        assert link.take(one, 0) is True
        until(lambda: link._thread is None)
        assert (server.levels[one.key], server.closes) == (410, 1)

    def test_a_server_that_hangs_delays_nobody_but_an_exit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The thread sees to it where the program goes on; an exit waits half a second, and what is owed is lost."""
        assert EXIT_PATIENCE == 0.5
        monkeypatch.setattr("requests_smithy_retry.quotas.redis.link.EXIT_PATIENCE", 600)
        server, one = Server(), account()
        link = server.link()
        link.take(one, 100)
        server.gate.clear()
        link.give_back(one, 10)
        began = SYSTEM_CLOCK.now()
        link.close()
        assert SYSTEM_CLOCK.now() - began < 30
        monkeypatch.setattr("requests_smithy_retry.quotas.redis.link.EXIT_PATIENCE", 0.05)
        link.flush()
        assert 0.05 <= SYSTEM_CLOCK.now() - began < 30
        server.gate.set()
        until(lambda: link._thread is None)
        assert server.levels[one.key] == 410
