"""A subclass of urllib3's ``Retry`` with its own ``increment``: it is translated, called, and counts (contract 1)."""

from __future__ import annotations

import contextlib
import functools
import logging
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import MaxRetryError
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter, RetryConfigError, retry_options
from requests_smithy_retry.testing import FaultServer, Reply, scripted
from tests.support import URL, session_with

CALLS: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    CALLS.clear()


class Logging(Retry):
    """Tells of each failure, as most subclasses do."""

    def increment(self, method=None, url=None, response=None, error=None, _pool=None, _stacktrace=None):
        CALLS.append((method, url, response and response.status, type(error).__name__, _pool.host, self.total))
        return super().increment(method, url, response, error, _pool, _stacktrace)


class Finally(Logging):
    """Tells of the end, too, and lets it be."""

    def increment(self, *args, **kwargs):
        try:
            return super().increment(*args, **kwargs)
        except MaxRetryError:
            CALLS.append(("the end",))
            raise


class NoMore(Logging):
    """Sets the count that is left."""

    def increment(self, *args, **kwargs):
        new = super().increment(*args, **kwargs)
        new.total = 0
        return new


class Another(Logging):
    """Goes on with another one."""

    def increment(self, *args, **kwargs):
        return super(Another, self.new(total=0)).increment(*args, **kwargs)


def sent_by(adapter: HTTPAdapter, script: list[Reply], path: str = "/a?b=1", method: str = "GET") -> int:
    """The number of requests; the adapter's answer to the last one is not looked at."""
    with FaultServer(script, default=Reply()) as server, session_with(adapter) as session:
        try:
            session.request(method, server.url + path, timeout=60)
        except requests.RequestException:
            pass
        return len(server.requests)


def quick(retry: Retry) -> RetryAdapter:
    return RetryAdapter(max_retries=retry, backoff=0)


@pytest.mark.real_time
@pytest.mark.parametrize("failures", [0, 1, 2, 3])
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("kind", [Logging, Finally, NoMore, Another])
def test_it_is_called_as_urllib3_calls_it(failures, kind, method) -> None:
    """With the same arguments, as often, with the counts that it returned, and the same requests are sent."""
    found = []
    for make in (lambda retry: HTTPAdapter(max_retries=retry), quick):
        CALLS.clear()
        adapter = make(kind(2, status_forcelist=[503], raise_on_status=False))
        found.append((sent_by(adapter, [Reply(503)] * failures, method=method), list(CALLS)))
    assert found[0] == found[1]


def test_a_connection_that_fails_is_told_in_urllib3s_words() -> None:
    """Its ``error`` is the one of urllib3, beneath that of requests; a failed body has one, too."""
    nobody = "http://127.0.0.1:1/"
    adapter = RetryAdapter(max_retries=Logging(1), backoff=0, clock=scripted().clock)
    with session_with(adapter) as session, pytest.raises(requests.ConnectionError):
        session.get(nobody)
    assert [("GET", "/", None, "NewConnectionError", "127.0.0.1", total) for total in (1, 0)] == CALLS


def test_its_own_exceptions_reach_the_caller() -> None:
    """A bug in it is not hidden, as beneath urllib3."""

    class Bug(Retry):
        def increment(self, *args, **kwargs):
            super().increment(*args, **kwargs)
            return {}["a bug"]

    adapter = scripted(503, 200, max_retries=Bug(2, status_forcelist=[503]))
    with pytest.raises(KeyError, match="a bug"):
        adapter.send(requests.Request("GET", URL).prepare())


def test_before_any_attempt_there_is_nothing_to_tell() -> None:
    """An operation that ends before its first attempt, because it gets no permit, does not call it."""
    adapter = scripted(
        429, mode="adaptive", max_retries=Logging(0, status_forcelist=[429], raise_on_status=False), pacing="off"
    )
    with retry_options(deadline=0.001, clock=adapter.clock):
        for _ in range(2):
            with contextlib.suppress(requests.ConnectTimeout):
                adapter.send(requests.Request("GET", URL).prepare())
    assert ([429], 1) == ([call[2] for call in CALLS], len(adapter.sent))


def test_another_retry_takes_its_place() -> None:
    """After an assignment the new one's is called, or nobody's."""
    adapter = scripted(503, 200, 503, 200, max_retries=Logging(1, status_forcelist=[503]))
    adapter.max_retries = Retry(1, status_forcelist=[503])
    adapter.send(requests.Request("GET", URL).prepare())
    assert [] == CALLS
    adapter.max_retries = Logging(1, status_forcelist=[503])
    adapter.send(requests.Request("GET", URL).prepare())
    assert 1 == len(CALLS)


class Raises(Retry):
    def increment(self, *args, **kwargs):
        if kwargs:
            raise ValueError("no more")
        return super().increment(*args, **kwargs)


class OnItsOwn(Retry):
    def increment(self, *args, **kwargs):
        logging.info("again")
        return self


class Slows(Retry):
    def increment(self, *args, **kwargs):
        new = super().increment(*args, **kwargs)
        new.backoff_factor = 60
        return new


class Above(Raises):
    def increment(self, *args, **kwargs):
        return super().increment(*args, **kwargs)


class Wrapped(Retry):
    increment = functools.partialmethod(Retry.increment)


class Elsewhere(Logging):
    def is_exhausted(self):
        return False


def with_own_attribute() -> Retry:
    retry = Logging(3)
    retry.increment = lambda *_, **__: retry
    return retry


@pytest.mark.parametrize(
    ("make", "name"),
    [
        *((lambda kind=kind: kind(3), "increment") for kind in (Raises, OnItsOwn, Slows, Above, Wrapped)),
        (lambda: Elsewhere(3), "is_exhausted"),
        (with_own_attribute, "increment"),
    ],
)
def test_one_that_may_decide_is_refused(make, name) -> None:
    """It raises by itself, sets what is no count, calls nothing above, cannot be read; or another method decides."""
    with pytest.raises(RetryConfigError, match=f"overrides {name}: "):
        RetryAdapter(max_retries=make())
