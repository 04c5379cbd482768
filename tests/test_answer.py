"""A response while it is judged (contract 2.7): what is read, let go and handed on, and when."""

from __future__ import annotations

import pytest
import requests
from urllib3 import HTTPConnectionPool

from requests_smithy_retry.answer import Answer, as_requests_error
from requests_smithy_retry.bodies import BodyChanged
from requests_smithy_retry.clock import SYSTEM_CLOCK
from requests_smithy_retry.config import RetryConfig
from requests_smithy_retry.operation_options import NOTHING
from requests_smithy_retry.testing import FaultServer, Reply
from requests_smithy_retry.time_limits import TimeLimits

pytestmark = pytest.mark.real_time


def limits() -> TimeLimits:
    return TimeLimits(RetryConfig(), NOTHING, SYSTEM_CLOCK)


def idle(response: requests.Response) -> int:
    """How many connections lie in the pool of a response."""
    pool: HTTPConnectionPool = response.raw._pool
    return sum(connection is not None for connection in pool.pool.queue)


@pytest.mark.parametrize(("keep", "expected"), [(True, 1), (False, 0)])
def test_a_discarded_response_keeps_its_connection_only_where_that_is_wanted(keep: bool, expected: int) -> None:
    """After throttling it goes back to the pool, after a transient failure it is closed."""
    with FaultServer(Reply(503, body=b"later")) as server, requests.Session() as session:
        response = session.get(server.url, stream=True)
        answer = Answer(response, preload=False, is_broken=False)
        assert answer.look()
        answer.discard(keep=keep)
        assert idle(response) == expected


def test_an_unread_answer_that_is_handed_on_has_its_connection_back() -> None:
    """The caller of a stream reads the body as if nobody had held it."""
    with FaultServer(Reply(404, body=b"not here")) as server, requests.Session() as session:
        response = session.get(server.url, stream=True)
        answer = Answer(response, preload=False, is_broken=False)
        answer.hand_on(limits(), is_broken=False)
        assert response.content == b"not here"
        assert idle(response) == 1


def test_a_short_answer_is_read_and_its_connection_goes_back() -> None:
    """What is close by is read whole, so that a classifier may look at it."""
    with FaultServer(Reply(500, body=b"oh")) as server, requests.Session() as session:
        response = session.get(server.url, stream=True)
        answer = Answer(response, preload=True, is_broken=False)
        assert not answer.look()
        assert answer.read(limits()) is None
        answer.hand_on(limits(), is_broken=False)
        assert (response.content, idle(response)) == (b"oh", 1)


def test_a_broken_answer_is_closed() -> None:
    """Whether it is handed on as an exception or dropped, nothing of it stays open."""
    with FaultServer(Reply(500, body=b"oh")) as server, requests.Session() as session:
        response = session.get(server.url, stream=True)
        Answer(response, preload=True, is_broken=False).hand_on(limits(), is_broken=True)
        assert idle(response) == 0


def test_a_body_that_changed_is_named_as_requests_names_it() -> None:
    """The caller meets only exceptions of requests."""
    request = requests.Request("POST", "https://api.example.com/").prepare()
    error = as_requests_error(BodyChanged("less than before"), None, limits(), request)
    assert type(error) is requests.exceptions.UnrewindableBodyError
