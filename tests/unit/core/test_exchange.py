"""A response while it is judged (contract 2.7): what is read, let go and handed on, and when."""

from __future__ import annotations

import gzip
import io
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import urllib3
from urllib3 import HTTPConnectionPool

from requests_smithy_retry import Outcome, RetryAction, classifier
from requests_smithy_retry.core import exchange as module
from requests_smithy_retry.core.exchange import Exchange, release_connection
from requests_smithy_retry.testing import CutBody, FaultServer, Reply
from tests.support import prepare
from tests.unit.wire.support import session

pytestmark = pytest.mark.real_time


def idle(response: requests.Response) -> int:
    """Count the open connections in the pool of a response."""
    pool: HTTPConnectionPool = response.raw._pool
    return sum(getattr(connection, "sock", None) is not None for connection in pool.pool.queue)


def test_a_recorded_stream_outlives_its_connection() -> None:
    """A recorded response has no connection that its stream could end with, nor a socket to look at."""
    response = requests.Response()
    response.status_code, response.request = 503, prepare()
    response.raw = urllib3.HTTPResponse(io.BytesIO(b"why"), preload_content=False)
    recorded = Exchange(response, None, is_streamed=True, limits=None)
    assert recorded.look() == b""
    assert recorded.release(reusable=False)


def test_a_pool_of_gevent_has_no_lock_to_take() -> None:
    """The connection is closed although gevent's queue has no mutex."""
    original, closed = object(), []
    connection = SimpleNamespace(_HTTPConnection__response=original, close=lambda: closed.append(1))
    pool = SimpleNamespace(pool=SimpleNamespace(queue=[None, connection]))
    release_connection(SimpleNamespace(_original_response=original, _pool=pool), reusable=False)
    assert closed == [1]


class Keeps:
    """A listener that keeps the first answer, which http.client wants closed before it sends anything else."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def after_attempt(self, event: Any) -> None:
        self.kept.append(event.response)


@pytest.mark.parametrize(
    ("status", "method", "size", "framing", "connections", "left"),
    [
        (429, "GET", 100, "length", [0, 0], 100),
        (429, "GET", 100, "chunked", [0, 0], 100),
        (429, "GET", 100, "close", [0, 1], 100),
        (429, "GET", 65_536, "length", [0, 0], 65_536),
        (429, "GET", 65_537, "length", [0, 1], 0),
        (429, "HEAD", 100, "length", [0, 0], 0),
        (429, "HEAD", 100, "chunked", [0, 0], 0),
        (503, "GET", 100, "length", [0, 1], 100),
    ],
)
def test_up_to_64_kib_of_a_discarded_body_are_read(
    status: int, method: str, size: int, framing: Any, connections: list[int], left: int
) -> None:
    """After throttling the connection is kept for that; who has kept the response can read what is left of it."""
    listener, script = Keeps(), [Reply(status, body=b"x" * size, framing=framing), Reply(body=b"fine")]
    with FaultServer(script) as server, session(listeners=[listener]) as made:
        assert made.request(method, server.url).status_code == 200
        assert [item.connection_id for item in server.requests] == connections
    assert listener.kept[0].raw._original_response.isclosed()
    assert len(listener.kept[0].content) == left


@pytest.mark.parametrize(
    ("fault", "expected", "kept"),
    [
        (Reply(503, body=b"why"), b"why", 1),
        (Reply(503, body=b"x" * 300_000), b"", 0),
        (CutBody(Reply(503, body=b"why not")), None, 0),  # the exception is that of its status all the same
    ],
)
def test_an_unread_answer_that_an_exception_carries_holds_no_connection(
    fault: Any, expected: bytes | None, kept: int
) -> None:
    """No caller has a response to close, so a short body is read, and anything else is closed unread."""
    options: dict[str, Any] = {"max_attempts": 1, "pool_block": True, "pool_maxsize": 1, "raise_on_status": True}
    with FaultServer(fault) as server, session(**options) as made:
        for _ in range(2):
            with pytest.raises(requests.exceptions.RetryError) as caught:
                made.get(server.url, stream=True, timeout=60)
        response = caught.value.response
        assert response is not None
        assert idle(response) == kept
        assert expected in (None, response.content)


def coded(body: bytes) -> Reply:
    return Reply(200, {"Content-Encoding": "gzip"}, body)


UNDECODABLE = {"cut": gzip.compress(b"whole")[:-4], "garbage": b"no gzip at all"}


@pytest.mark.parametrize("options", [{}, {"timeout": 60}, {"operation_timeout": 60}], ids=str)
@pytest.mark.parametrize("body", UNDECODABLE.values(), ids=UNDECODABLE)
def test_a_retry_after_an_undecodable_body_takes_a_fresh_path(body: bytes, options: dict[str, Any]) -> None:
    """urllib3 had put its connection back before it was known that the body is bad; it is closed there."""
    with FaultServer([coded(body), Reply(body=b"fine")]) as server, session(**options) as made:
        assert made.get(server.url).content == b"fine"
        assert [item.connection_id for item in server.requests] == [0, 1]


def test_an_undecodable_body_that_is_the_last_one_closes_its_connection_too() -> None:
    """The next request does not go where bodies get lost."""
    with FaultServer([coded(b"no gzip"), Reply(body=b"fine")]) as server, session(max_attempts=1) as made:
        with pytest.raises(requests.exceptions.ContentDecodingError):
            made.get(server.url)
        assert made.get(server.url).content == b"fine"
        assert [item.connection_id for item in server.requests] == [0, 1]


@pytest.mark.parametrize(
    ("verdict", "connections"),
    [(RetryAction.transient_error(), [0, 1]), (RetryAction.throttling_error(), [0, 0])],
)
def test_a_success_that_is_none_is_let_go_like_any_failure(verdict: RetryAction, connections: list[int]) -> None:
    """An error inside a 200: after a transient one the connection is closed, after throttling it is kept."""

    @classifier(sees_successes=True)
    def inside(outcome: Outcome, previous: RetryAction) -> RetryAction | None:
        return verdict if outcome.body_prefix == b"error" else None

    with FaultServer([Reply(body=b"error"), Reply(body=b"fine")]) as server, session(classifiers=[inside]) as made:
        assert made.get(server.url).content == b"fine"
        assert [item.connection_id for item in server.requests] == connections


def test_the_connections_of_others_stay_open() -> None:
    """Of the pool's connections, only that of the response is closed."""
    with FaultServer(Reply(body=b"fine")) as server, session() as made:
        first, second = (made.get(server.url, stream=True) for _ in range(2))
        first.content, second.content  # noqa: B018 - reads them, so that both connections are idle
        release_connection(first.raw, reusable=False)
        made.get(server.url)
        made.get(server.url)
        assert [item.connection_id for item in server.requests] == [0, 1, 1, 1]


def test_a_pool_whose_lock_was_left_taken_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that hits a queue leaves its lock taken; its exception is not to be held up by that."""
    monkeypatch.setattr(module, "MUTEX_SECONDS", 0.01)
    with FaultServer(Reply(body=b"fine")) as server, session() as made:
        response = made.get(server.url)
        mutex = response.raw._pool.pool.mutex
        with mutex:
            release_connection(response.raw, reusable=False)
        assert idle(response) == 1
        release_connection(response.raw, reusable=False)
        assert idle(response) == 0
        assert not mutex.locked()


@pytest.mark.parametrize("raw", [None, SimpleNamespace(_connection=object(), close=lambda: None)])
def test_a_response_without_what_urllib3_has_is_let_go(raw: Any) -> None:
    """One that a mix-in or a recording made need have no raw response, or one without ``release_conn``."""
    response = requests.Response()
    response.status_code, response.request, response.raw = 503, prepare(), raw
    exchange = Exchange(response, None, is_streamed=False, limits=None)
    exchange.discard(reusable=False)
    assert exchange.is_released
