"""A POST is applied at most once, whatever goes wrong (contract 4.2): counted by a server that keeps a ledger."""

from __future__ import annotations

import pytest
import requests

from benchmarks import ledger
from requests_smithy_retry import mount, retry_history
from requests_smithy_retry.testing import FakeClock, FaultServer, Reply, refusing_port

pytestmark = pytest.mark.real_time


def test_a_post_is_applied_at_most_once() -> None:
    """Over 200 that ended in resets, cut answers, nonsense and server errors; what was refused was sent again."""
    book = ledger.run(200)
    assert max(book.applied.values()) == 1
    assert len(book.applied) == 200
    assert {book.ended[name] for name in book.refused} == {200}
    assert len(book.refused) > 20
    assert {"ConnectionError", "ChunkedEncodingError", 500, 502, 503, 504} <= set(book.ended.values())


def test_a_post_through_a_proxy_is_applied_at_most_once() -> None:
    """Over 60, with a proxy that resets and answers for the server; "cannot connect to proxy" tells nothing."""
    book = ledger.run(60, through_proxy=True)
    assert max(book.applied.values()) == 1
    assert {"ProxyError", 502, 504} <= set(book.ended.values())
    assert any(book.ended[name] == 200 for name in book.refused)


def test_the_ledger_sees_what_is_applied_twice() -> None:
    """With an idempotency key, which this server does not honour, requests are sent again and counted."""
    book = ledger.run(30, Idempotency_Key="k")
    assert max(book.applied.values()) > 1


def test_a_connection_that_is_reset_before_the_request_is_read_is_no_licence() -> None:
    """The client cannot know what was read."""
    applied = ledger.unread(40)
    assert max(applied.values()) == 1


def test_a_post_after_a_refused_connection_is_sent_again() -> None:
    """Not a byte of the POST was written, so it is sent again; here the server comes up during the wait."""
    servers: list[FaultServer] = []

    class Opening(FakeClock):
        def sleep(self, seconds: float) -> None:
            held.__exit__(None, None, None)
            servers.append(FaultServer(Reply(body=b"fine"), port=port))
            super().sleep(seconds)

    held = refusing_port()
    port = held.__enter__()
    try:
        with mount(requests.Session(), clock=Opening()) as session:
            session.trust_env = False
            response = session.post(f"http://127.0.0.1:{port}/", data=b"once", timeout=60)
        assert response.content == b"fine"
        assert [attempt.error for attempt in retry_history(response).attempts] == ["ConnectionError", None]
        assert [request.body for request in servers[0].requests] == [b"once"]
    finally:
        for server in servers:
            server.close()
