"""A response while it is judged (contract 2.7): what is read, let go and handed on, and when."""

from __future__ import annotations

import contextlib
import gc
import gzip
import io
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool

from requests_smithy_retry import Outcome, RetryAction, RetryAdapter, classifier
from requests_smithy_retry.config.retry_config import RetryConfig
from requests_smithy_retry.config.retry_options import NOTHING
from requests_smithy_retry.core import held as module
from requests_smithy_retry.core.held import Held, release_connection
from requests_smithy_retry.core.time_limits import TimeLimits
from requests_smithy_retry.testing import CutBody, FakeClock, FaultServer, Reply
from requests_smithy_retry.wire.state import this_thread
from tests.support import prepare
from tests.unit.wire.support import session

pytestmark = pytest.mark.real_time

LONG = b"a line of a long body\n" * 20_000


def examined(response: requests.Response, *, stream: bool, limits: TimeLimits | None = None) -> Held:
    held = Held(stream, limits)
    held.response = response
    held.examine(response.request)
    return held


def discard(held: Held, *, reusable: bool) -> None:
    held.discard(reusable=reusable)


def unread(server: FaultServer, made: requests.Session) -> requests.Response:
    """A response with its connection, from pools that can look ahead."""
    return made.get(server.url, stream=True)


def idle(response: requests.Response) -> int:
    """Count the open connections in the pool of a response."""
    pool: HTTPConnectionPool = response.raw._pool
    return sum(getattr(connection, "sock", None) is not None for connection in pool.pool.queue)


@pytest.mark.parametrize(("reusable", "expected"), [(True, 1), (False, 0)])
def test_a_discarded_response_keeps_its_connection_only_where_that_is_wanted(reusable: bool, expected: int) -> None:
    """A discarded response gives its connection back with ``reusable=True``; otherwise the connection is closed."""
    with FaultServer(Reply(503, body=b"later")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        answer = examined(response, stream=True)
        discard(answer, reusable=reusable)
        assert idle(response) == expected


@pytest.mark.parametrize(("size", "expected"), [(65_536, 1), (65_537, 0)])
def test_64_kib_of_a_discarded_body_are_read_and_no_more(size: int, expected: int) -> None:
    """Up to 64 KiB of a body are read to keep its connection; with a longer body the connection is closed."""
    with FaultServer(Reply(429, body=b"x" * size)) as server, requests.Session() as session:
        response = session.get(server.url, stream=True)
        discard(examined(response, stream=True), reusable=True)
        assert idle(response) == expected


def test_an_unread_answer_that_is_handed_on_has_its_connection() -> None:
    """The caller of a stream reads the body as if nobody had looked; nobody else has the connection before."""
    with FaultServer(Reply(404, body=b"not here")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        answer = examined(response, stream=True)
        answer.finalize(raises=False)
        assert idle(response) == 0
        assert response.content == b"not here"
        assert idle(response) == 1


def test_a_success_is_left_its_connection() -> None:
    """Its body can be read meanwhile as usual, by a classifier that sees successes, for example."""
    with FaultServer(Reply(200, body=b"here")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        answer = examined(response, stream=True)
        assert response.content == b"here"
        assert idle(response) == 1
        assert examined(response, stream=False).peeked is answer.peeked is None


@pytest.mark.parametrize("way", ["discard", "close", "hand_over"])
def test_a_success_is_let_go_as_any_other_response(way: str) -> None:
    """An unread success that is not handed over leaves nothing open."""
    with FaultServer(Reply(200, body=LONG)) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        connection = response.raw._connection
        answer = examined(response, stream=True)
        if way == "discard":
            discard(answer, reusable=False)
        elif way == "close":
            answer.close()
        else:
            answer.finalize(raises=False)
            assert connection.sock is not None
            assert response.content == LONG
            response.close()
        assert response.raw.closed
        assert (connection.sock is None) == (way != "hand_over")


def test_a_short_answer_is_handed_on_unread_with_its_connection() -> None:
    """Hooks find what they find with a plain adapter; who reads it then finds all of it there."""
    with FaultServer(Reply(500, body=b"oh")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        answer = examined(response, stream=False)
        assert answer.peeked == (True, b"oh")
        answer.finalize(raises=False)
        assert (response._content_consumed, idle(response)) == (False, 0)  # type: ignore[attr-defined]
        assert (response.content, idle(response)) == (b"oh", 1)


@pytest.mark.parametrize(("size", "expected"), [(10, True), (300_000, False)])
def test_only_a_short_stream_outlives_its_connection(size: int, expected: bool) -> None:
    """A stream with a short body is read before its connection goes, as no retry may be allowed after the wait."""
    with FaultServer(Reply(503, body=b"x" * size)) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        answer = examined(response, stream=True)
        assert answer.release(reusable=False) is expected
        discard(answer, reusable=False)
        assert response.content == (b"x" * size if expected else b"")


def test_a_recorded_stream_outlives_its_connection() -> None:
    """A recorded response has no connection that its stream could end with."""
    response = requests.Response()
    response.status_code, response.raw, response.request = (
        503,
        urllib3.HTTPResponse(io.BytesIO(b"why"), preload_content=False),
        prepare(),
    )
    assert examined(response, stream=True).release(reusable=False)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_connection_is_kept_after_throttling_while_its_response_is(method: str, framing: str) -> None:
    """http.client sends nothing over a connection whose last response is open."""
    script = [Reply(429, body=b"x" * 100, framing=framing), Reply(body=b"fine")]
    with FaultServer(script) as server, session(max_attempts=1) as made:
        kept = made.request(method, server.url, stream=True)
        discard(examined(kept, stream=True), reusable=True)
        assert made.get(server.url).content == b"fine"
        assert [item.connection_id for item in server.requests] == [0, 0]


def test_a_discarded_response_whose_connection_ends_with_it_is_closed() -> None:
    """A connection that ends with its response is closed, even with ``reusable=True``."""
    with FaultServer(Reply(429, body=b"x" * 100, framing="close")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        discard(examined(response, stream=True), reusable=True)
        assert response.raw._fp.fp is None


def test_a_pool_of_gevent_has_no_lock_to_take() -> None:
    """The connection is closed although gevent's queue has no mutex."""
    original, closed = object(), []
    connection = SimpleNamespace(_HTTPConnection__response=original, close=lambda: closed.append(1))
    pool = SimpleNamespace(pool=SimpleNamespace(queue=[None, connection]))
    release_connection(SimpleNamespace(_original_response=original, _pool=pool), reusable=False)
    assert closed == [1]


def test_a_short_discarded_body_stays_with_its_response() -> None:
    """A listener that has kept the response can still read it."""
    with FaultServer(Reply(500, body=b"oh")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        answer = examined(response, stream=False)
        discard(answer, reusable=False)
        assert (response.content, idle(response)) == (b"oh", 0)


def test_a_discarded_body_of_exactly_64_kib_leaves_a_connection_that_can_be_used() -> None:
    """The connection is usable even while a listener keeps the response, which http.client wants closed first."""
    kept = []

    class Keeps:
        def after_attempt(self, event: Any) -> None:
            kept.append(event.response)

    script = [Reply(429, body=b"x" * 65_536), Reply(body=b"fine")]
    with FaultServer(script) as server, session(listeners=[Keeps()]) as made:
        assert made.get(server.url).content == b"fine"
        assert [item.connection_id for item in server.requests] == [0, 0]
        assert len(kept[0].content) == 65_536


def test_of_a_long_answer_the_beginning_is_enough() -> None:
    """The first 64 KiB are there for classifiers; the rest is read when the caller reads the body."""
    with FaultServer(Reply(500, body=LONG)) as server, session(max_attempts=1) as made:
        answer = examined(unread(server, made), stream=False)
        assert answer.peeked is not None
        assert LONG.startswith(answer.peeked.prefix)
        assert len(answer.peeked.prefix) == 65_536
        assert not answer.read_on()
        assert answer.response is not None
        assert answer.response.content == LONG
        answer.close()


def test_a_broken_answer_is_closed() -> None:
    """A broken answer that is handed over leaves no connection in the pool."""
    with FaultServer(Reply(500, body=b"oh")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        answer = examined(response, stream=False)
        answer.error = OSError("broken")
        answer.finalize(raises=False)
        assert idle(response) == 0


@pytest.mark.parametrize(("stream", "usual"), [(False, 5), (True, 7)])
def test_only_a_body_that_the_caller_reads_has_no_deadline(stream: bool, usual: float) -> None:
    """Once the response is handed over, each read may take the caller's timeout, as without a deadline."""
    with FaultServer(Reply(500, body=b"oh")) as server, session(max_attempts=1) as made:
        bound = TimeLimits(RetryConfig(operation_timeout=5), NOTHING, FakeClock())
        response = made.get(server.url, stream=True, timeout=bound.begin(7))
        socket = response.raw._connection.sock
        examined(response, stream=stream, limits=bound).finalize(raises=False)
        this_thread.deadline = bound.outer
        assert socket.gettimeout() == usual
        response.close()


def test_a_coding_that_does_not_end_is_the_attempts_failure() -> None:
    """All bytes are there that were announced, and still the body is cut."""
    cut = gzip.compress(b"x" * 1000)[:-10]
    with FaultServer(Reply(500, {"Content-Encoding": "gzip"}, cut)) as server, session(max_attempts=1) as made:
        answer = examined(unread(server, made), stream=False)
        assert answer.read_on()
        assert type(answer.error) is requests.exceptions.ContentDecodingError
        answer.close()


def test_whatever_goes_wrong_in_a_body_is_named_as_requests_names_it() -> None:
    """No input from the network raises anything else (contract 13)."""

    class Odd(requests.Response):
        @property
        def content(self) -> Any:
            raise ValueError("odd")

    response = Odd()
    response.status_code, response.request = 500, prepare()
    error: Any = examined(response, stream=False).error
    assert type(error) is requests.exceptions.ChunkedEncodingError
    assert (str(error), error.request) == ("odd", response.request)


@pytest.mark.parametrize(("body", "expected", "kept"), [(b"why", b"why", 1), (b"x" * 300_000, b"", 0)])
def test_an_unread_answer_that_an_exception_carries_holds_no_connection(
    body: bytes, expected: bytes, kept: int
) -> None:
    """No caller has a response to close, so a short body is read, and anything else is closed unread."""
    with FaultServer(Reply(503, body=body)) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(max_attempts=1, pool_block=True, pool_maxsize=1, raise_on_status=True))
        for _ in range(2):
            with pytest.raises(requests.exceptions.RetryError) as caught:
                session.get(server.url, stream=True, timeout=60)
        response = caught.value.response
        assert response is not None
        assert (response.content, idle(response)) == (expected, kept)


def test_an_unread_answer_that_is_raised_is_closed_where_it_is_cut() -> None:
    """The exception is that of its status."""
    with FaultServer(CutBody(Reply(503, body=b"why not"))) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(max_attempts=1, raise_on_status=True))
        with pytest.raises(requests.exceptions.RetryError) as caught:
            session.get(server.url, stream=True, timeout=60)
        response = caught.value.response
        assert response is not None
        assert idle(response) == 0


def coded(body: bytes) -> Reply:
    return Reply(200, {"Content-Encoding": "gzip"}, body)


UNDECODABLE = {"cut": gzip.compress(b"whole")[:-4], "garbage": b"no gzip at all"}


@pytest.mark.parametrize("options", [{}, {"timeout": 60}, {"operation_timeout": 60}], ids=str)
@pytest.mark.parametrize("body", UNDECODABLE.values(), ids=UNDECODABLE)
def test_a_retry_after_an_undecodable_body_takes_a_fresh_path(body: bytes, options: dict[str, Any]) -> None:
    """urllib3 had put its connection back before it was known that the body is bad; it is closed there."""
    with FaultServer([coded(body), Reply(body=b"fine")]) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(backoff=0, **options))
        assert session.get(server.url).content == b"fine"
        assert [item.connection_id for item in server.requests] == [0, 1]


def test_an_undecodable_body_that_is_the_last_one_closes_its_connection_too() -> None:
    """The next request does not go where bodies get lost."""
    with FaultServer([coded(b"no gzip"), Reply(body=b"fine")]) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(max_attempts=1))
        with pytest.raises(requests.exceptions.ContentDecodingError):
            session.get(server.url)
        assert session.get(server.url).content == b"fine"
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

    with FaultServer([Reply(body=b"error"), Reply(body=b"fine")]) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(classifiers=[inside], backoff=0))
        assert session.get(server.url).content == b"fine"
        assert [item.connection_id for item in server.requests] == connections


def test_the_connections_of_others_stay_open() -> None:
    """Of the pool's connections, only that of the response is closed."""
    with FaultServer(Reply(body=b"fine")) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter())
        first, second = (session.get(server.url, stream=True) for _ in range(2))
        first.content, second.content  # noqa: B018 - reads them, so that both connections are idle
        release_connection(first.raw, reusable=False)
        session.get(server.url)
        session.get(server.url)
        assert [item.connection_id for item in server.requests] == [0, 1, 1, 1]


def test_a_pool_whose_lock_was_left_taken_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that hits a queue leaves its lock taken; its exception is not to be held up by that."""
    monkeypatch.setattr(module, "MUTEX_SECONDS", 0.01)
    with FaultServer(Reply(body=b"fine")) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter())
        response = session.get(server.url)
        mutex = response.raw._pool.pool.mutex
        with mutex:
            release_connection(response.raw, reusable=False)
        assert idle(response) == 1
        release_connection(response.raw, reusable=False)
        assert idle(response) == 0
        assert not mutex.locked()


def left_over(made: requests.Session, broken: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count the responses that the garbage collector would have to clear away after three requests."""
    responses, plain = weakref.WeakSet[requests.Response](), requests.Response.__init__

    def noted(response: requests.Response) -> None:
        responses.add(response)
        plain(response)

    made.trust_env = False
    with FaultServer(broken) as server, monkeypatch.context() as patch:
        patch.setattr(requests.Response, "__init__", noted)
        gc.disable()
        try:
            for _ in range(3):
                with contextlib.suppress(requests.RequestException):
                    made.get(server.url)
            return len(responses)
        finally:
            gc.enable()


BROKEN: dict[str, Any] = {
    "cut": lambda status: CutBody(Reply(status, body=b"x" * 200)),
    "undecodable": lambda status: Reply(status, {"Content-Encoding": "gzip"}, b"no gzip at all"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("status", [200, 404, 503])
@pytest.mark.parametrize("options", [{}, {"operation_timeout": 9}], ids=repr)
def test_a_broken_body_leaves_nothing_to_the_garbage_collector(
    broken: Any, status: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response of a broken body is freed with its exception, as with a plain adapter."""
    with requests.Session() as plain:
        if left_over(plain, broken(status), monkeypatch):
            pytest.skip("a plain adapter leaves one, too: contextlib's __exit__ holds the traceback since Python 3.12")
    with session(max_attempts=2, **options) as made:
        assert left_over(made, broken(status), monkeypatch) == 0


@pytest.mark.parametrize("raw", [None, urllib3.HTTPResponse(b"")])
def test_a_response_of_no_pool_has_nothing_to_close(raw: object) -> None:
    """A recording, say."""
    release_connection(raw, reusable=False)


def test_a_recorded_response_without_a_pool_is_closed() -> None:
    """Vcrpy's has a connection, and nothing to release it with."""
    closed = []
    release_connection(SimpleNamespace(_connection=object(), close=lambda: closed.append(True)), reusable=True)
    assert closed == [True]


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_that_was_made_by_hand_may_have_no_body_at_all(stream: bool) -> None:
    """A mix-in below the adapter, or a test, answers with a bare ``Response``."""
    statuses = [503, 200]

    class Below(HTTPAdapter):
        def send(self, *args: Any, **options: Any) -> requests.Response:
            response = requests.Response()
            response.status_code = statuses.pop(0)
            return response

    class Made(RetryAdapter, Below):
        pass

    assert Made(backoff=0).send(prepare(), stream=stream).status_code == 200
