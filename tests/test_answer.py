"""A response while it is judged (contract 2.7): what is read, let go and handed on, and when."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
import requests
from urllib3 import HTTPConnectionPool

from requests_smithy_retry.answer import Answer, as_requests_error
from requests_smithy_retry.bodies import BodyChanged
from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.config import RetryConfig
from requests_smithy_retry.operation_options import NOTHING
from requests_smithy_retry.testing import FaultServer, Reply
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


def test_a_body_that_changed_is_named_as_requests_names_it() -> None:
    """The caller meets only exceptions of requests, in the body's own words."""
    request = prepare("POST")
    error: Any = as_requests_error(BodyChanged("less than before"), None, limits(), request)
    assert type(error) is requests.exceptions.UnrewindableBodyError
    assert (str(error), error.request) == ("less than before", request)
