"""Connections across fork (contract 11.1): a child makes connections of its own."""

from __future__ import annotations

import os

import pytest
import requests

from requests_smithy_retry import mount
from tests.faults import FaultProxy, FaultServer, RecordedRequest, Reply

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"), pytest.mark.real_time]


def echo(request: RecordedRequest) -> Reply:
    return Reply(200, body=request.path.encode())


def all_wrong(session: requests.Session, url: str, number: int) -> int:
    """Count the answers, of 20, that belong to another request."""
    paths = [f"/{number}-{step}" for step in range(20)]
    return sum(session.get(url + path, timeout=60).text != path for path in paths)


@pytest.mark.parametrize("proxied", [False, True])
def test_children_do_not_read_each_others_answers(proxied: bool) -> None:
    """The parent kept a connection alive before it forked; three children and the parent go on at the same time."""
    with FaultServer(echo) as server, FaultProxy() as proxy, mount(requests.Session(), max_attempts=1) as session:
        session.trust_env = False
        if proxied:
            session.proxies = {"http": proxy.url}
        session.get(server.url)
        children = []
        for number in range(3):
            child = os.fork()
            if child == 0:
                os._exit(min(all_wrong(session, server.url, number), 1))
            children.append(child)
        assert 0 == all_wrong(session, server.url, 3)
        assert [0, 0, 0] == [os.waitpid(child, 0)[1] for child in children]


def test_the_parent_keeps_its_connection() -> None:
    """A fork costs the parent nothing."""
    with FaultServer(echo) as server, mount(requests.Session()) as session:
        session.get(server.url)
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        session.get(server.url)
        assert 1 == server.connections
