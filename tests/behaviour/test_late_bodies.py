"""Bodies that are read after the head was handed over, and by way of SOCKS: their deadlines (contract 8.1)."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import requests.exceptions
from requests.auth import HTTPDigestAuth

from requests_smithy_retry import retry_history
from requests_smithy_retry.testing import FakeClock
from tests.faults import Drip, FaultServer, Reply
from tests.unit.wire.support import SocksProxy, session


def test_a_socks_proxy_under_a_deadline() -> None:
    """The body's drip behind it is bounded, as everywhere."""
    pytest.importorskip("socks")
    # The longer times are for machines that are too busy to connect within the shorter ones.
    for seconds in (0.3, 3.0, 30.0):
        bounded = session(max_attempts=1, operation_timeout=seconds)
        drip = Drip("body", seconds / 3, Reply(body=b"x" * 99))
        with (
            SocksProxy() as proxy,
            FaultServer(drip) as server,
            bounded as made,
            pytest.raises(requests.Timeout) as late,
        ):
            made.get(server.url, proxies={"http": f"socks5://127.0.0.1:{proxy.port}"})
        if not isinstance(late.value, requests.exceptions.ConnectTimeout):
            break
    assert isinstance(late.value, requests.exceptions.ReadTimeout)


@pytest.mark.parametrize("bounds", [{"operation_timeout": 60}, {"operation_attempt_timeout": 60}])
def test_a_stream_has_no_deadline_after_its_head(bounds: dict[str, Any]) -> None:
    """Its body is read with the caller's own read timeout (contract 8.1)."""
    drip, clock = Drip("body", 0.002, Reply(body=b"x" * 30)), FakeClock()
    with FaultServer(drip) as server, session(max_attempts=1, clock=clock, **bounds) as made:
        response = made.get(server.url, stream=True, timeout=70)
        assert response.raw._original_response.fp.raw._sock.gettimeout() == 70
        clock.sleep(600)
        assert response.content == b"x" * 30


DIGEST = {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'}


@pytest.mark.parametrize(
    "answer",
    [Reply(302, {"Location": "/next"}, b"x" * 999), Reply(401, DIGEST, b"x" * 999)],
    ids=["redirect", "digest"],
)
def test_what_requests_reads_to_send_again_is_read_within_the_operations_time(answer: Reply) -> None:
    """The bodies of redirects and challenges are no stream of the caller's, who gets the last response alone."""
    # The longer times are for machines that are too busy to get the head within the shorter ones.
    for seconds in (0.15, 1.5, 15.0):
        late = pytest.raises(requests.exceptions.RequestException)
        with (
            FaultServer(Drip("body", 0.04, answer)) as server,
            session(max_attempts=1, operation_timeout=seconds) as made,
            late as caught,
        ):
            made.get(server.url, auth=HTTPDigestAuth("me", "secret"), timeout=70, stream=True)
        assert len(server.requests) <= 1
        if type(caught.value) is requests.exceptions.ConnectionError:
            break
    assert "Read timed out" in str(caught.value)
    assert len(server.requests) == 1


def test_a_redirect_that_is_streamed_late_has_the_time_that_was_left() -> None:
    """A caller may read the body of an unfollowed redirect after the operation's time is over."""
    clock = FakeClock()
    answer = Drip("body", 0.002, Reply(302, {"Location": "/next"}, b"x" * 9))
    with FaultServer(answer) as server, session(operation_timeout=60, clock=clock) as made:
        response = made.get(server.url, stream=True, allow_redirects=False)
        clock.sleep(60)
        assert response.content == b"x" * 9


def test_a_long_stream_that_cannot_wait_is_handed_over_unread() -> None:
    """The last answer's body is its caller's to read, also where the call might have waited without it."""
    long = Reply(503, body=b"x" * 200_000)
    with FaultServer(default=long) as server, session(quota="payoff", patience=60, clock=FakeClock()) as made:
        response = made.get(server.url, stream=True, timeout=60)
        assert "too long to be let go" in retry_history(response).why
        assert response._content is False
        assert long.body == response.content
