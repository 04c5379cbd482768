"""Names are resolved by the deadline (contract 8.5), in a few threads that end by themselves."""

from __future__ import annotations

import contextvars
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest
import requests
import urllib3.exceptions as uex
from requests.exceptions import ConnectTimeout

from requests_smithy_retry import StopReason, retry_history
from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.features.addresses import resolving
from requests_smithy_retry.features.addresses.resolving import Late, Lookups, Question, Stuck, resolve
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.wire.state import this_thread
from tests.faults import DEFAULT_BODY, FaultServer
from tests.unit.wire.support import session


class Resolver:
    """Answers once it is let, and counts how often it is asked."""

    def __init__(self, answer: Any = "found", error: BaseException | None = None) -> None:
        self.may_answer = threading.Event()
        self.was_asked = threading.Semaphore(0)
        self.asked: list[str] = []
        self.answer, self.error = answer, error

    def __call__(self, host: str, *rest: Any) -> Any:
        self.asked.append(host)
        self.was_asked.release()
        self.may_answer.wait(60)
        if self.error is not None:
            raise self.error
        return self.answer

    def at_once(self) -> Resolver:
        self.may_answer.set()
        return self


def long_time() -> float:
    return 60.0


def no_time() -> float:
    return 0.0


def over() -> float:
    raise TimeoutError("the deadline has passed")


class Waiter(threading.Thread):
    """Asks in a thread of its own, and keeps what came of it."""

    def __init__(self, lookups: Lookups, question: Question, left: Any = long_time) -> None:
        super().__init__()
        self.result: Any = None
        self._how = lookups, question, left
        self.start()

    def run(self) -> None:
        lookups, question, left = self._how
        try:
            self.result = lookups.find(question, left)
        except Exception as error:
            self.result = error

    def ended(self) -> Any:
        self.join(60)
        return self.result


def wait_for_a_line(lookups: Lookups, count: int) -> None:
    until = time.monotonic() + 60
    while len(lookups._line) < count and time.monotonic() < until:
        threading.Event().wait(0.001)


def abandon(lookups: Lookups, resolver: Resolver, *hosts: str) -> None:
    """Occupy a thread by each host, for which nobody waits."""
    for host in hosts:
        with pytest.raises(Late):
            lookups.find(Question(resolver, host, ()), no_time)


def occupied(left: Any = long_time) -> tuple[Lookups, Resolver, Waiter]:
    """Look-ups whose only thread is occupied by a name that somebody waits for."""
    lookups, busy = Lookups(1), Resolver()
    first = Waiter(lookups, Question(busy, "a.test", ()), left)
    busy.was_asked.acquire(timeout=60)
    return lookups, busy, first


@pytest.mark.parametrize("resolver", [Resolver(["1"]).at_once(), Resolver(error=OSError("no")).at_once()])
def test_an_answer_comes_back(resolver: Resolver) -> None:
    """The resolver's answer comes back; so does its exception, without a traceback that would keep frames alive."""
    answer, error = Lookups().find(Question(resolver, "a.test", (80,)), long_time)
    assert (None, resolver.error) == (getattr(error, "__traceback__", None), error)
    assert ("found" if resolver.error else ["1"]) == (answer or "found")


@pytest.mark.parametrize("left", [no_time, over])
def test_the_caller_leaves_in_time(left: Any) -> None:
    """The thread stays until the resolver answers, and then ends."""
    lookups, resolver = Lookups(), Resolver()
    with pytest.raises(Late):
        lookups.find(Question(resolver, "late.test", ()), left)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "resolves late.test"]
    assert thread.daemon
    resolver.may_answer.set()
    thread.join(60)
    assert (False, {}) == (thread.is_alive(), lookups._running)


def test_the_same_question_is_asked_once_at_a_time() -> None:
    """All who ask get the one answer; who asks later asks anew."""
    lookups, resolver = Lookups(), Resolver()
    question = Question(resolver, "a.test", (80,))
    waiters = [Waiter(lookups, question) for _ in range(5)]
    resolver.was_asked.acquire(timeout=60)
    while sum(lookup.waiters for lookup in list(lookups._running.values())) < 5:
        threading.Event().wait(0.001)
    resolver.may_answer.set()
    assert [("found", None)] * 5 == [waiter.ended() for waiter in waiters]
    assert ["a.test"] == resolver.asked
    lookups.find(question, long_time)
    assert ["a.test"] * 2 == resolver.asked


def test_a_stuck_name_takes_one_thread_however_often_it_is_tried() -> None:
    """A stuck name takes one thread however often it is retried, which leaves the others to other names."""
    lookups, stuck = Lookups(2), Resolver()
    abandon(lookups, stuck, *["sick.test"] * 5)
    assert ("found", None) == lookups.find(Question(Resolver().at_once(), "well.test", ()), long_time)
    assert ["sick.test"] == stuck.asked
    stuck.may_answer.set()


def test_if_all_are_stuck_the_caller_hears_it_at_once() -> None:
    """If all threads are stuck, the caller is told at once for which names, before its deadline."""
    lookups, stuck = Lookups(2), Resolver()
    abandon(lookups, stuck, "b.test", "a.test")
    with pytest.raises(Stuck, match=r"^a\.test, b\.test$"):
        lookups.find(Question(stuck, "c.test", ()), long_time)
    stuck.may_answer.set()


def test_if_all_are_busy_the_caller_waits_for_its_turn() -> None:
    """Every busy thread has a waiting caller, so the next caller waits for one to be free."""
    lookups, busy, first = occupied()
    second = Waiter(lookups, Question(Resolver("second").at_once(), "b.test", ()))
    wait_for_a_line(lookups, 1)
    busy.may_answer.set()
    assert [("found", None), ("second", None)] == [first.ended(), second.ended()]


def test_a_turn_that_does_not_come_in_time() -> None:
    """The deadline bounds this wait, too."""
    lookups, busy, first = occupied()
    left = iter([0.001])
    with pytest.raises(Late):
        lookups.find(Question(busy, "b.test", ()), lambda: next(left, None) or over())
    busy.may_answer.set()
    first.ended()


def test_who_waits_for_a_turn_hears_that_all_are_stuck() -> None:
    """The last one that waited for an answer has left."""
    leaves = threading.Event()
    lookups, busy, first = occupied(lambda: float(not leaves.wait(60)))
    second = Waiter(lookups, Question(busy, "b.test", ()))
    wait_for_a_line(lookups, 1)
    leaves.set()
    assert [Late, Stuck] == [type(first.ended()), type(second.ended())]
    busy.may_answer.set()


def test_where_no_thread_can_be_had_the_name_is_resolved_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no thread can be started, as at the interpreter's end, the name is resolved in place."""

    def refuse(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    asked_in: list[Any] = []
    question = Question(lambda host: asked_in.append(threading.current_thread()), "a.test", ())
    assert (None, None) == Lookups().find(question, long_time)
    assert [threading.current_thread()] == asked_in


def test_a_forked_child_begins_without_threads() -> None:
    """A forked child does not count its parent's threads as its own."""
    lookups, stuck, before = Lookups(1), Resolver(), set(threading.enumerate())
    abandon(lookups, stuck, "a.test")
    (thread,) = [thread for thread in set(threading.enumerate()) - before if thread.name == "resolves a.test"]
    lookups.renew_lock()
    again = Resolver()
    waiter = Waiter(lookups, Question(again, "a.test", ()))
    again.was_asked.acquire(timeout=60)
    stuck.may_answer.set()
    thread.join(60)
    assert 1 == len(lookups._running)
    again.may_answer.set()
    assert ("found", None) == waiter.ended()


VARIABLE = contextvars.ContextVar("VARIABLE", default="outside")


def test_the_resolver_sees_the_callers_context() -> None:
    """A replaced one may go by a context variable."""
    token = VARIABLE.set("inside")
    try:
        assert ("inside", None) == Lookups().find(Question(lambda host: VARIABLE.get(), "a.test", ()), long_time)
    finally:
        VARIABLE.reset(token)


@pytest.mark.parametrize("deadline", [Deadline(60, FakeClock()), None], ids=["deadline", "no deadline"])
@pytest.mark.parametrize(
    ("host", "is_name"),
    [
        *[(host, True) for host in ("a.test", "localhost", "1.2.3.4.test", "", "a\0b")],
        *[(host, False) for host in ("127.0.0.1", "::1", "fe80::1%eth0")],
    ],
)
def test_only_a_name_under_a_deadline_gets_a_thread(
    monkeypatch: pytest.MonkeyPatch, host: str, is_name: bool, deadline: Deadline | None
) -> None:
    """A replaced ``getaddrinfo`` is called either way; an address, with or without a zone, is told from a name."""
    threads: list[Any] = []

    def getaddrinfo(*question: Any) -> Any:
        threads.append(threading.current_thread())
        return [question]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with this_thread.under(deadline):
        assert [(host, 80, 0, socket.SOCK_STREAM)] == resolve(None, host, 80)
    assert (is_name and deadline is not None) == (threads != [threading.current_thread()])


NAMES_UNRESOLVED = getattr(uex, "NameResolutionError", uex.NewConnectionError)


@pytest.mark.parametrize(
    ("answer", "error", "expected"),
    [
        (None, socket.gaierror(-2, "unknown"), NAMES_UNRESOLVED),
        (None, OSError("no route"), uex.NewConnectionError),
        (None, TimeoutError("slow"), uex.ConnectTimeoutError),
        (None, LookupError("a bug"), LookupError),
        ([], None, uex.NewConnectionError),
    ],
)
def test_failures_are_urllib3s(monkeypatch: pytest.MonkeyPatch, answer: Any, error: Any, expected: Any) -> None:
    """Failures are named as without a deadline; an exception that is not the network's stays as it is."""
    monkeypatch.setattr(socket, "getaddrinfo", Resolver(answer, error).at_once())
    with this_thread.under(Deadline(60, FakeClock())), pytest.raises(Exception) as caught:  # noqa: PT011
        resolve(urllib3_connection(), "a.test", 80)
    assert expected is type(caught.value)
    assert error is None or error in (caught.value, caught.value.__cause__)


def urllib3_connection() -> Any:
    return uex and requests.adapters.PoolManager().connection_from_host("a.test", 80)._new_conn()


def test_too_many_stuck_names_are_a_connect_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message of the time-out says that too many names are stuck."""
    stuck = Resolver()
    monkeypatch.setattr(resolving, "_lookups", Lookups(1))
    monkeypatch.setattr(socket, "getaddrinfo", stuck)
    abandon(resolving._lookups, stuck, "sick.test")
    with this_thread.under(Deadline(60, FakeClock())), pytest.raises(uex.ConnectTimeoutError) as caught:
        resolve(urllib3_connection(), "a.test", 80)
    assert "does not answer (sick.test)" in str(caught.value)
    stuck.may_answer.set()


@pytest.mark.real_time
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_resolver_that_does_not_answer_is_left_in_time(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """By an attempt's deadline, so that there is a retry, and by the operation's, so that there is an end."""
    stuck, real = Resolver(), socket.getaddrinfo
    began = time.monotonic()
    with FaultServer() as server, session(operation_attempt_timeout=0.1, max_attempts=2) as made:
        monkeypatch.setattr(socket, "getaddrinfo", stuck)
        with pytest.raises(ConnectTimeout, match="not resolved before the deadline") as caught:
            made.request(method, "http://stuck.test/")
        history: Any = retry_history(caught.value)
        assert (2, StopReason.MAX_ATTEMPTS) == (len(history.attempts), history.stop_reason)
        assert time.monotonic() - began < 50  # the resolver would take a minute
        monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest: real("127.0.0.1", *rest))
        with session(operation_attempt_timeout=60) as patient:  # a stall of the machine may take longer than 0.1 s
            assert DEFAULT_BODY == patient.request(method, f"http://well.test:{server.port}/").content
    stuck.may_answer.set()
    assert ["stuck.test"] == stuck.asked


@pytest.mark.real_time
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")
def test_a_signal_interrupts_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler's exception propagates during the wait, which a resolver without a thread would prevent."""
    stuck = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", stuck)

    class Alarm(Exception):
        """An exception of the program's own."""

    def interrupt(number: int, frame: Any) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with session(operation_timeout=60) as made:

            def interrupted() -> None:
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                made.get("http://stuck.test/")

            with pytest.raises(Alarm):
                interrupted()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        stuck.may_answer.set()


def run(program: str, **environment: str) -> str:
    """Return the output of a program; it has ample time, which only a defect uses up."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout.strip()


STUCK = """
import socket, threading, requests
from requests_smithy_retry import mount

def getaddrinfo(*question):
    threading.Event().wait(600)

socket.getaddrinfo = getaddrinfo
session = mount(requests.Session(), operation_timeout=0.1)
session.trust_env = False

def ask():
    try:
        session.get("http://stuck.test/")
    except requests.exceptions.ConnectTimeout:
        return "late"

first = ask()
"""


@pytest.mark.once
@pytest.mark.real_time
def test_a_stuck_thread_does_not_hold_up_the_end_of_the_program() -> None:
    """The thread is a daemon, so the program's end does not wait for it."""
    assert "late" == run(STUCK + "print(first)")


@pytest.mark.real_time
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_resolves_with_threads_of_its_own() -> None:
    """The parent's thread does not exist in it."""
    program = """
    import os, warnings
    from requests_smithy_retry.features.addresses.resolving import _lookups
    warnings.simplefilter("ignore")
    child = os.fork()
    if not child:
        print(len(_lookups._running), ask(), len(_lookups._running), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(len(_lookups._running))
    """
    assert ["0 late 1", "1"] == run(STUCK + textwrap.dedent(program)).splitlines()


@pytest.mark.once
@pytest.mark.real_time
def test_gevents_resolver_is_used_where_it_has_patched() -> None:
    """Greenlets resolve side by side in one thread; the deadline holds."""
    pytest.importorskip("gevent")
    program = """
    from gevent import monkey
    monkey.patch_all()
    import socket, gevent, requests, threading
    from requests_smithy_retry import mount

    native = gevent.monkey.get_original("threading", "get_ident")
    seen, theirs = set(), socket.getaddrinfo

    def getaddrinfo(host, *rest):
        seen.add(native())
        if host.startswith("stuck"):
            gevent.sleep(600)
        return theirs("127.0.0.1", *rest)

    socket.getaddrinfo = getaddrinfo
    session = mount(requests.Session(), operation_timeout=5, max_attempts=1)
    session.trust_env = False

    def ask(number):
        try:
            session.get(f"http://{'stuck' if number % 2 else 'well'}{number}.test:9/")
        except requests.exceptions.RequestException as error:
            return type(error).__name__

    jobs = [gevent.spawn(ask, number) for number in range(4)]
    gevent.joinall(jobs)
    print(theirs.__module__.split(".")[0], *(job.value for job in jobs), len(seen))
    """
    assert "gevent ConnectionError ConnectTimeout ConnectionError ConnectTimeout 1" == run(program)
