"""A 421 came over a connection that is not for its host: once more over a fresh one (RFC 9110 15.5.20)."""

from __future__ import annotations

import io
from typing import Any

import pytest
import requests

from requests_smithy_retry import StopReason, retry_history
from tests.faults import FaultServer, RecordedRequest, Reply
from tests.unit.wire.support import session


def misdirected_on(*connections: int) -> Any:
    """A server that knows its host over other connections than these; the first request over each is answered."""
    begun: set[int] = set()

    def answer(request: RecordedRequest) -> Reply:
        is_first = request.connection_id not in begun
        begun.add(request.connection_id)
        is_misdirected = request.connection_id in connections and not (request.path == "/first" and is_first)
        return Reply(421, body=b"misdirected") if is_misdirected else Reply(body=b"fine")

    return answer


BODIES: dict[str, Any] = {"none": None, "bytes": b"x", "file": io.BytesIO(b"abc")}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "HEAD"])
def test_it_is_sent_again_over_a_fresh_connection(method: str, body: str, stream: bool) -> None:
    """Whatever the method; the connection that is not for the host is closed, and later calls take the fresh one."""
    with FaultServer(misdirected_on(0)) as server, session() as made:
        made.get(f"{server.url}/first", timeout=60)
        for _ in range(2):
            response = made.request(method, server.url, data=BODIES[body], stream=stream, timeout=60)
            assert (200, b"" if method == "HEAD" else b"fine") == (response.status_code, response.content)
    assert [0, 0, 1, 1] == [request.connection_id for request in server.requests]


def test_other_connections_of_the_pool_are_not_asked() -> None:
    """They may be as wrong as the first one: several lie in a pool after several threads have used it."""
    with FaultServer(misdirected_on(0, 1, 2)) as server, session() as made:
        responses = [made.get(f"{server.url}/first", timeout=60, stream=True) for _ in range(3)]
        assert [b"fine"] * 3 == [response.content for response in responses]
        assert 200 == made.post(server.url, data=b"x", timeout=60).status_code
    assert [0, 1, 2, 2, 3] == [request.connection_id for request in server.requests]


@pytest.mark.parametrize("options", [{}, {"max_attempts": 10}, {"quota": "payoff"}])
def test_a_server_that_always_says_so_gets_three_requests(options: dict[str, Any]) -> None:
    """Each over a connection of its own, the last of which is closed, too."""
    with FaultServer(default=Reply(421, body=b"misdirected")) as server, session(**options) as made:
        assert (421, b"misdirected") == ((response := made.get(server.url, timeout=60)).status_code, response.content)
        assert 3 == len(retry_history(response).attempts)
        made.get(server.url, timeout=60)
    assert [*range(6)] == [request.connection_id for request in server.requests]


def test_a_body_that_cannot_be_sent_twice_ends_with_the_421() -> None:
    """Its connection is closed all the same."""
    with FaultServer(misdirected_on(0)) as server, session() as made:
        made.get(f"{server.url}/first", timeout=60)
        response = made.post(server.url, data=iter([b"once"]), timeout=60)
        assert 421 == response.status_code
        assert StopReason.BODY_NOT_REPLAYABLE is retry_history(response).stop_reason
        assert 200 == made.get(server.url, timeout=60).status_code
    assert [0, 0, 1] == [request.connection_id for request in server.requests]


@pytest.mark.parametrize("options", [{"max_attempts": 1}, {"enabled": False}])
def test_without_retries_it_is_the_callers(options: dict[str, Any]) -> None:
    """The adapter hands it over; switched off, it keeps the connection as a plain one does."""
    with FaultServer(default=Reply(421)) as server, session(**options) as made:
        assert [421] * 2 == [made.get(server.url, timeout=60).status_code for _ in range(2)]
    assert [0, int("max_attempts" in options)] == [request.connection_id for request in server.requests]


def test_the_next_request_of_the_thread_is_usual_again() -> None:
    """One fresh connection is enough."""
    with FaultServer(misdirected_on(0)) as server, session() as made:
        for _ in range(4):
            assert 200 == made.get(server.url, timeout=60).status_code
    assert [0, 1, 1, 1, 1] == [request.connection_id for request in server.requests]


def test_a_redirect_hop_has_its_own() -> None:
    """An operation of its own, as with every other answer."""
    turns = iter([Reply(421), Reply(302, {"Location": "/there"}), Reply(421), Reply(body=b"there")])
    with FaultServer(lambda request: next(turns)) as server, session() as made:
        response: requests.Response = made.get(server.url, timeout=60)
    assert (b"there", 4) == (response.content, len(server.requests))
