"""64 threads on one adapter, through an outage and a rate limit, on loopback (contract 11.1).

``python tests/project/pythons.py FOLDER --python python3.13t`` runs it without the GIL, too.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryAdapter, install, retry_history, retry_summary, uninstall
from requests_smithy_retry.testing import Behaviour, FaultServer, RecordedRequest, Reply, ResetAfterRequest
from tests.support import let_go, session_with

pytestmark = [pytest.mark.real_time, pytest.mark.untraced]

THREADS, CALLS = 64, 8
HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
PATIENCE = 60
"""Seconds that only a defect exceeds."""


class Service:
    """A script: it answers with the path, is down for 0.3 s in the middle, and then refuses with a limit for a second.

    :param down_at: the number of good answers after which it is down.
    :param limit_at: the number of those after which it refuses.
    """

    def __init__(self, down_at: int, limit_at: int) -> None:
        self.seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._good = 0
        self._periods = [(down_at, 0.3, self._down), (limit_at, 1.0, self._limited)]
        self._until = 0.0
        self._faults = itertools.cycle([Reply(503, body=b"down"), ResetAfterRequest()])

    def __call__(self, request: RecordedRequest) -> Behaviour:
        with self._lock:
            self.seen[request.path] += 1
            now = time.monotonic()
            if self._periods and self._good >= self._periods[0][0]:
                _, seconds, answer = self._periods[0]
                self._until = self._until or now + seconds
                if now < self._until:
                    return answer()
                self._until = 0.0
                del self._periods[0]
            self._good += 1
        return Reply(body=request.path.encode() + b" " + request.body)

    def _down(self) -> Behaviour:
        return next(self._faults)

    def _limited(self) -> Behaviour:
        return Reply(429, {"Retry-After": "1", "RateLimit-Remaining": "0", "RateLimit-Reset": "1"}, b"limited")


def answer_to(session: requests.Session, url: str, path: str, kind: int) -> requests.Response:
    """Send one of four kinds of requests, and return its response, whose body was read, or dropped unread."""
    if kind == 0:
        return session.get(url + path, timeout=PATIENCE)
    if kind == 1:
        return session.put(url + path, data=path.encode(), timeout=PATIENCE)
    response = session.get(url + path, stream=True, timeout=PATIENCE)
    if kind == 2:
        assert path == b"".join(response.iter_content(3)).decode().rstrip()
    response.close()
    return response


def is_own(response: requests.Response, path: str, kind: int) -> bool:
    """Return True if a good response is the one to this request."""
    bodies = {0: f"{path} ", 1: f"{path} {path}"}
    return response.url.endswith(path) and (kind not in bodies or bodies[kind] == response.text)


@contextlib.contextmanager
def meanwhile(*works: Callable[[], object]) -> Iterator[None]:
    """Repeat each work in a thread of its own, at least once; what one raises comes out of the block."""
    is_over = threading.Event()

    def repeat(work: Callable[[], object]) -> None:
        while True:
            work()
            if is_over.wait(0.002):
                return

    with ThreadPoolExecutor(len(works)) as pool:
        repeated = [pool.submit(repeat, work) for work in works]
        try:
            yield
        finally:
            is_over.set()
        for each in repeated:
            each.result(PATIENCE)


def in_threads(work: Callable[[int], list[Any]]) -> list[Any]:
    """Let all threads begin at the same moment, and return together what each returned for its number."""
    barrier = threading.Barrier(THREADS)

    def begin(number: int) -> list[Any]:
        barrier.wait(PATIENCE)
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        running = [pool.submit(begin, number) for number in range(THREADS)]
        return [found for each in running for found in each.result(PATIENCE)]


def are_open(server: FaultServer) -> int:
    """The number of connections that the server has open, once those that are closed are noticed."""
    let_go()
    gc.collect()
    return sum(thread.is_alive() for thread, _ in server._serving)


def settles(is_so: Callable[[], bool]) -> bool:
    """Return True as soon as something is so; False if it is not when the time is over."""
    until = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("blocks", [False, True], ids=["", "blocks"])
@pytest.mark.parametrize("forgets", [False, True], ids=["", "forgets"])
def test_each_call_gets_its_own_answer(blocks: bool, forgets: bool) -> None:
    """Nothing is mixed up, lost, sent without being in the history, or left behind, whoever looks meanwhile."""
    service, size = Service(THREADS * CALLS // 4, THREADS * CALLS // 2), 8
    adapter = RetryAdapter(pool_maxsize=size, pool_block=blocks, patience=PATIENCE, max_backoff=0.1)

    def calls(thread: int) -> list[tuple[str, bool, int]]:
        session, found = session_with(adapter), []
        for number in range(CALLS):
            path, kind = f"/{thread}-{number}", number % 4
            response = answer_to(session, server.url, path, kind)
            history = retry_history(response)
            assert history is not None
            found.append((path, response.ok and is_own(response, path, kind), history.attempts[-1].number))
        return found

    def look() -> None:
        assert "RetryAdapter" in repr(adapter)
        for bucket in adapter.snapshot().strategy.buckets.values():
            assert bucket.available >= 0
        assert retry_summary(session_with(adapter)).operations <= THREADS * CALLS
        retry_summary()

    def forget() -> None:
        if forgets:
            adapter.forget()

    with FaultServer(service) as server:
        with meanwhile(look, forget):
            found = in_threads(calls)
        pool = adapter.poolmanager.connection_from_url(server.url).pool
        assert [] == [path for path, is_right, _ in found if not is_right]
        assert service.seen == {path: attempts for path, _, attempts in found}
        assert THREADS * CALLS + 8 < service.seen.total()  # both periods were met
        assert pool is not None
        assert size == pool.qsize()
        assert settles(lambda: are_open(server) <= size)
        if not forgets:
            summary = retry_summary(session_with(adapter))
            expected = THREADS * CALLS, service.seen.total() - THREADS * CALLS, 0
            assert expected == (summary.operations, summary.retries, summary.lost)
        session_with(adapter).get(server.url)  # a success that lets others go gives nothing back
    (bucket,) = adapter.snapshot().strategy.buckets.values()
    assert (True, 0, None) == (bucket.available >= bucket.capacity, bucket.waiting, bucket.down_for)


def test_the_published_bucket_gets_back_what_it_gave() -> None:
    """Where a bucket refuses, a call gets the service's own answer or error; at the end the bucket is full."""
    service, capacity = Service(THREADS * CALLS // 4, THREADS * CALLS // 2), 100
    adapter = RetryAdapter(quota=capacity, max_attempts=3)

    def calls(thread: int) -> list[tuple[str, int]]:
        session, found = session_with(adapter), []
        for number in range(CALLS):
            path, kind = f"/{thread}-{number}", number % 2
            try:
                ended: Any = answer_to(session, server.url, path, kind)
            except requests.ConnectionError as error:
                ended = error
            else:
                assert ended.text in ("down", "limited") or is_own(ended, path, kind)
            history = retry_history(ended)
            assert history is not None
            found.append((path, history.attempts[-1].number))
        return found

    with FaultServer(service) as server:
        found = in_threads(calls)
        with session_with(adapter) as session:
            for number in range(capacity):
                session.get(f"{server.url}/{number}")
                found.append((f"/{number}", 1))
    assert service.seen == dict(found)
    (bucket,) = adapter.snapshot().strategy.buckets.values()
    assert (capacity, None) == (bucket.available, bucket.down_for)


def test_sessions_begin_while_retries_are_installed_and_uninstalled() -> None:
    """Each session is a plain one or has our adapter, and sends; at the end nothing is left of it all."""
    service, begins, mounts = Service(10**9, 10**9), requests.Session.__init__, requests.Session.mount

    def calls(thread: int) -> list[bool]:
        found = []
        for number in range(CALLS):
            path = f"/{thread}-{number}"
            with requests.Session() as session:
                session.trust_env = False
                if number % 2:
                    session.mount("http://127", requests.adapters.HTTPAdapter())
                found.append(is_own(answer_to(session, server.url, path, 0), path, 0))
        return found

    def switch() -> None:
        installation = install(mounted="plain", patience=PATIENCE)
        repr(installation)
        installation.report(each=True)
        uninstall()

    try:
        with FaultServer(service) as server, meanwhile(switch, switch, switch):
            assert [True] * THREADS * CALLS == in_threads(calls)
        assert THREADS * CALLS == service.seen.total()
    finally:
        uninstall()
    assert (begins, mounts) == (requests.Session.__init__, requests.Session.mount)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.skipif(not HAS_GIL, reason="without the GIL, CPython 3.13 forks with locks of its own held")
def test_children_are_forked_while_threads_send() -> None:
    """A child inherits no held lock, no waiter and no connection: its calls are answered, and its budget is full."""
    service = Service(THREADS * CALLS // 4, THREADS * CALLS // 2)
    adapter = RetryAdapter(pool_maxsize=8, patience=PATIENCE)

    def calls(thread: int) -> list[bool]:
        session = session_with(adapter)
        paths = [f"/{thread}-{number}" for number in range(CALLS)]
        return [is_own(answer_to(session, server.url, path, 0), path, 0) for path in paths]

    def is_well(child: int) -> bool:
        (bucket,) = adapter.snapshot().strategy.buckets.values()
        session = session_with(adapter)
        paths = [f"/child-{child}-{number}" for number in range(4)]
        right = [is_own(answer_to(session, server.url, path, 0), path, 0) for path in paths]
        return (bucket.capacity, 0) == (bucket.available, bucket.waiting) and all(right)

    with FaultServer(service) as server, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(in_threads, calls)
        children: list[int] = []
        assert settles(lambda: bool(service.seen))
        while len(children) < 10 and not sending.done():
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    status = int(not is_well(len(children)))
                finally:
                    os._exit(status)
            children.append(child)
            time.sleep(0.1)
        ended = [end_of(child) for child in children]
        assert all(sending.result(PATIENCE))
    assert [0] * len(children) == ended


def end_of(child: int) -> int | None:
    """Return the status of a child; None: it hung, and was killed."""
    ended = [(0, 0)]

    def is_over() -> bool:
        ended[0] = os.waitpid(child, os.WNOHANG)
        return ended[0][0] == child

    if settles(is_over):
        return ended[0][1]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
