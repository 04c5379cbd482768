"""A response while it is judged (contract 2.7): what is read, let go and handed on, and when."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool

from requests_smithy_retry import Outcome, RetryAction, RetryAdapter, classifier
from requests_smithy_retry.answer import Answer, as_requests_error
from requests_smithy_retry.bodies import BodyChanged
from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.config import RetryConfig
from requests_smithy_retry.discarded import close_pooled
from requests_smithy_retry.operation_options import NOTHING
from requests_smithy_retry.testing import CutBody, FaultServer, Reply
from requests_smithy_retry.testing.clock import FakeClock
from requests_smithy_retry.time_limits import TimeLimits
from tests.support import prepare, read_timeout
from tests.wire.support import session

pytestmark = pytest.mark.real_time

LONG = b"a line of a long body\n" * 20_000


def limits() -> TimeLimits:
    return TimeLimits(RetryConfig(), NOTHING, SYSTEM_CLOCK)


def unread(server: FaultServer, made: requests.Session) -> requests.Response:
    """A response with its connection, from pools that can look ahead."""
    return made.get(server.url, stream=True)


def idle(response: requests.Response) -> int:
    """How many connections lie in the pool of a response."""
    pool: HTTPConnectionPool = response.raw._pool
    return sum(connection is not None for connection in pool.pool.queue)


@pytest.mark.parametrize(("keep", "expected"), [(True, 1), (False, 0)])
def test_a_discarded_response_keeps_its_connection_only_where_that_is_wanted(keep: bool, expected: int) -> None:
    """After throttling it goes back to the pool, after a transient failure it is closed."""
    with FaultServer(Reply(503, body=b"later")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        answer = Answer(response, preload=False)
        assert answer.look()
        answer.discard(keep=keep)
        assert idle(response) == expected


@pytest.mark.parametrize(("size", "expected"), [(65_536, 1), (65_537, 0)])
def test_64_kib_of_a_discarded_body_are_read_and_no_more(size: int, expected: int) -> None:
    """To keep its connection."""
    with FaultServer(Reply(429, body=b"x" * size)) as server, requests.Session() as session:
        response = session.get(server.url, stream=True)
        Answer(response, preload=False).discard(keep=True)
        assert idle(response) == expected


def test_an_unread_answer_that_is_handed_on_has_its_connection_back() -> None:
    """The caller of a stream reads the body as if nobody had held it; nobody else has the connection before."""
    with FaultServer(Reply(404, body=b"not here")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        answer = Answer(response, preload=False)
        answer.hand_on(limits(), is_broken=False)
        assert idle(response) == 0
        assert response.content == b"not here"
        assert idle(response) == 1


def test_a_success_is_left_its_connection() -> None:
    """Whoever reads it meanwhile, a classifier that sees successes say, does with it as always."""
    with FaultServer(Reply(200, body=b"here")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        answer = Answer(response, preload=False)
        assert response.content == b"here"
        assert idle(response) == 1
        assert Answer(response, preload=True).look()
        assert answer.peeked is None


@pytest.mark.parametrize("way", ["discard", "close", "hand_on"])
def test_a_success_is_let_go_as_any_other_response(way: str) -> None:
    """Of one that was not read nothing stays open, unless it is the caller's."""
    with FaultServer(Reply(200, body=LONG)) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        connection = response.raw._connection
        answer = Answer(response, preload=False)
        if way == "discard":
            answer.discard(keep=False)
        elif way == "close":
            answer.close()
        else:
            answer.hand_on(limits(), is_broken=False)
            assert connection.sock is not None
            assert response.content == LONG
            response.close()
        assert response.raw.closed
        assert (connection.sock is None) == (way != "hand_on")


def test_a_short_answer_is_read_and_its_connection_goes_back() -> None:
    """What is close by is read whole, so that a classifier may look at it."""
    with FaultServer(Reply(500, body=b"oh")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        answer = Answer(response, preload=True)
        assert not answer.look()
        assert answer.read(limits()) is None
        answer.hand_on(limits(), is_broken=False)
        assert (response.content, idle(response)) == (b"oh", 1)


def test_of_a_long_answer_the_beginning_is_enough() -> None:
    """It is there to be classified; the rest comes when it is read."""
    with FaultServer(Reply(500, body=LONG)) as server, session(max_attempts=1) as made:
        answer = Answer(unread(server, made), preload=True)
        assert answer.look()
        assert answer.peeked is not None
        assert LONG.startswith(answer.peeked.prefix)
        assert len(answer.peeked.prefix) == 65_536
        assert answer.read(limits()) is None
        assert answer.response.content == LONG
        answer.close()


def test_a_broken_answer_is_closed() -> None:
    """Whether it is handed on as an exception or dropped, nothing of it stays open."""
    with FaultServer(Reply(500, body=b"oh")) as server, session(max_attempts=1) as made:
        response = unread(server, made)
        Answer(response, preload=True).hand_on(limits(), is_broken=True)
        assert idle(response) == 0


@pytest.mark.parametrize(("preload", "usual"), [(True, 5), (False, 7)])
def test_only_a_body_that_the_caller_reads_has_no_deadline(preload: bool, usual: float) -> None:
    """From then on each read may take what the caller allows, as without a deadline."""
    with FaultServer(Reply(500, body=b"oh")) as server, session(max_attempts=1) as made:
        bound = TimeLimits(RetryConfig(operation_timeout=5), NOTHING, FakeClock())
        response = made.get(server.url, stream=True, timeout=bound.begin(7))
        socket = response.raw._connection.sock
        Answer(response, preload=preload).hand_on(bound, is_broken=False)
        bound.end()
        assert socket.gettimeout() == usual
        response.close()


def test_a_coding_that_does_not_end_is_the_attempts_failure() -> None:
    """All bytes are there that were announced, and still the body is cut."""
    cut = gzip.compress(b"x" * 1000)[:-10]
    with FaultServer(Reply(500, {"Content-Encoding": "gzip"}, cut)) as server, session(max_attempts=1) as made:
        answer = Answer(unread(server, made), preload=True)
        assert type(answer.read(limits())) is requests.exceptions.ContentDecodingError
        answer.close()


def test_whatever_goes_wrong_in_a_body_is_named_as_requests_names_it() -> None:
    """No input from the network raises anything else (contract 13)."""

    class Odd(requests.Response):
        @property
        def content(self) -> Any:
            raise ValueError("odd")

    response = Odd()
    response.status_code, response.request = 500, prepare()
    error: Any = Answer(response, preload=True).read(limits())
    assert type(error) is requests.exceptions.ChunkedEncodingError
    assert (str(error), error.request) == ("odd", response.request)


def test_what_goes_wrong_before_there_is_a_body_keeps_its_name() -> None:
    """It may be a bug of the caller's own."""
    bug = ValueError("odd")
    assert as_requests_error(bug, None, limits(), prepare()) is bug


def test_time_that_is_up_is_named_as_requests_names_it() -> None:
    """With the caller's request."""
    clock, request = FakeClock(), prepare()
    bound = TimeLimits(RetryConfig(operation_timeout=1), NOTHING, clock)
    bound.begin(None)
    clock.advance(1)
    error: Any = as_requests_error(read_timeout().args[0], None, bound, request)
    bound.end()
    assert type(error) is requests.exceptions.ReadTimeout
    assert error.request is request


@pytest.mark.parametrize(("body", "expected", "kept"), [(b"why", b"why", 1), (b"x" * 300_000, b"", 0)])
def test_an_unread_answer_that_an_exception_carries_holds_no_connection(
    body: bytes, expected: bytes, kept: int
) -> None:
    """Nobody has a response to close: what is short and there is read, anything else is closed unread."""
    with FaultServer(Reply(503, body=body)) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(max_attempts=1, pool_block=True, pool_maxsize=1, raise_on_status=True))
        for _ in range(2):
            with pytest.raises(requests.exceptions.RetryError) as caught:
                session.get(server.url, stream=True, timeout=5)
        response = caught.value.response
        assert response is not None
        assert (response.content, idle(response)) == (expected, kept)


def test_an_unread_answer_that_is_raised_is_closed_where_it_is_cut() -> None:
    """The exception is that of its status."""
    with FaultServer(CutBody(Reply(503, body=b"why not"))) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(max_attempts=1, raise_on_status=True))
        with pytest.raises(requests.exceptions.RetryError) as caught:
            session.get(server.url, stream=True, timeout=5)
        response = caught.value.response
        assert response is not None
        assert idle(response) == 0


def coded(body: bytes) -> Reply:
    return Reply(200, {"Content-Encoding": "gzip"}, body)


UNDECODABLE = {"cut": gzip.compress(b"whole")[:-4], "garbage": b"no gzip at all"}


@pytest.mark.parametrize("body", UNDECODABLE.values(), ids=UNDECODABLE)
def test_a_retry_after_an_undecodable_body_takes_a_fresh_path(body: bytes) -> None:
    """urllib3 had put its connection back before it was known that the body is bad; it is closed there."""
    with FaultServer([coded(body), Reply(body=b"fine")]) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(initial_backoff=0))
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
        session.mount("http://", RetryAdapter(classifiers=[inside], initial_backoff=0, throttling_backoff=0))
        assert session.get(server.url).content == b"fine"
        assert [item.connection_id for item in server.requests] == connections


def test_the_connections_of_others_stay_open() -> None:
    """Of what lies in the pool, only the connection that the response came over is closed."""
    with FaultServer(Reply(body=b"fine")) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter())
        first, second = (session.get(server.url, stream=True) for _ in range(2))
        first.content, second.content  # noqa: B018 - reads them, so that both connections are idle
        close_pooled(first.raw)
        session.get(server.url)
        session.get(server.url)
        assert [item.connection_id for item in server.requests] == [0, 1, 1, 1]


@pytest.mark.parametrize("raw", [None, urllib3.HTTPResponse(b"")])
def test_a_response_of_no_pool_has_nothing_to_close(raw: object) -> None:
    """A recording, say."""
    close_pooled(raw)


def test_a_body_that_changed_is_named_as_requests_names_it() -> None:
    """The caller meets only exceptions of requests, in the body's own words."""
    request = prepare("POST")
    error: Any = as_requests_error(BodyChanged("less than before"), None, limits(), request)
    assert type(error) is requests.exceptions.UnrewindableBodyError
    assert (str(error), error.request) == ("less than before", request)


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

    assert Made(initial_backoff=0).send(prepare(), stream=stream).status_code == 200


@pytest.mark.parametrize("mode", ["standard", "adaptive"])
def test_a_success_that_cannot_be_booked_holds_no_connection(mode: str) -> None:
    """The function for the scope is the caller's, and may fail; nobody has the response then."""
    bugs: list[Exception] = []

    def scope(_: requests.PreparedRequest) -> str:
        if bugs:
            raise bugs[0]
        return "all"

    with FaultServer([Reply(429), Reply(body=b"fine")]) as server, requests.Session() as made:
        adapter = RetryAdapter(mode=mode, scope=scope, max_attempts=1, pool_block=True, pool_maxsize=1)
        made.mount("http://", adapter)
        adapter.strategy.spent_scopes.add("all")  # type: ignore[attr-defined]
        pool = made.get(server.url).raw._pool.pool
        bugs.append(KeyError("no such tenant"))
        with pytest.raises(KeyError):
            made.get(server.url, stream=True, timeout=5)
        assert pool.qsize() == 1
