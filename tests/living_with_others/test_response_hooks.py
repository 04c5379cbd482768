"""Response hooks see what they see with a plain adapter: requests runs them before it reads a body (contract 1, 11).

Authentication depends on it: requests-ntlm and requests-kerberos take the server's certificate from the socket of its
401.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.response import GzipDecoder

from requests_smithy_retry import Outcome, RetryAction, RetryAdapter, classifier, retry_history
from requests_smithy_retry.smithy import SdkHeaders
from requests_smithy_retry.testing import FakeClock
from tests.behaviour.test_resume import BODY, TAG, Shelf
from tests.faults import Behaviour, CutBody, Drip, FaultServer, Reply, Stall

pytestmark = pytest.mark.real_time

WHY = b"why not, at some length " * 20
LONGER = b"l" * 900_000
LONGEST = b"l" * 1_100_000


def seen_by_hooks(adapter: HTTPAdapter, url: str, method: str = "GET", **options: Any) -> list[Any]:
    """Return the values that a hook finds, and the result of the call."""
    found: list[Any] = []

    def hook(response: requests.Response, **_: Any) -> None:
        raw: Any = response.raw
        peer = None if raw._fp.fp is None else raw._fp.fp.raw._sock.getpeername()
        connected = raw._connection is not None and raw._connection.sock is not None
        found.append((response.status_code, peer, connected, response._content_consumed))  # type: ignore[attr-defined]

    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", adapter)
        response = session.request(method, url, hooks={"response": hook}, timeout=60, **options)
        return [*found, response.status_code, response.content, [hop.content for hop in response.history]]


@pytest.mark.parametrize("options", [{}, {"operation_timeout": 9, "listeners": [SdkHeaders()]}], ids=",".join)
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("status", [200, 302, 401, 503])
def test_a_hook_finds_the_socket_and_an_unread_body(status: int, framing: str, options: dict[str, Any]) -> None:
    """A hook finds the same socket and unread body as with a plain adapter, whether the connection is kept or not."""
    reply = Reply(status, {"Location": "/there"}, WHY, framing=framing)
    with FaultServer(reply) as server:
        plain = seen_by_hooks(HTTPAdapter(), server.url, allow_redirects=False)
        ours = seen_by_hooks(RetryAdapter(max_attempts=1, **options), server.url, allow_redirects=False)
    assert plain == [(status, ("127.0.0.1", server.port), framing != "close", False), status, WHY, []]
    assert ours == plain


@pytest.mark.parametrize("status", [200, 401])
@pytest.mark.parametrize(
    ("headers", "body", "sent"),
    [
        pytest.param({"Content-Encoding": "gzip"}, WHY, gzip.compress(WHY), id="gzip"),
        pytest.param({"Content-Encoding": "of-no-kind"}, WHY, WHY, id="unknown coding"),
        pytest.param({}, b"", b"", id="empty"),
        pytest.param({}, LONGER, LONGER, id="long"),
        pytest.param({}, LONGEST, LONGEST, id="longer"),
    ],
)
def test_a_body_is_left_unread(status: int, headers: dict[str, str], body: bytes, sent: bytes) -> None:
    """One of up to 1 MiB is at hand to its end, so that reading it later cannot fail; a coded success is read."""
    left = status >= 400 or not headers
    with FaultServer(Reply(status, headers, sent)) as server:
        found = seen_by_hooks(RetryAdapter(), server.url)
    seen = (status, ("127.0.0.1", server.port), True, False) if left else (status, None, False, True)
    assert found == [seen, status, body, []]


LATE: dict[str, Behaviour] = {
    "drips": Drip("body", 0.05, Reply(200, body=b"x" * 200)),
    "drips, 302": Drip("body", 0.05, Reply(302, {"Location": "/"}, b"x" * 200)),
    "drips, 404": Drip("body", 0.05, Reply(404, body=b"x" * 200)),
    "an event stream": Drip("body", 0.05, Reply(200, {"Content-Type": "text/event-stream"}, b"x" * 200, "chunked")),
    "without an end": Stall("body", reply=Reply(200, body=b"x" * 10, framing="close")),
    "too large": Stall("body", reply=Reply(200, {"Content-Length": "10000000000"}, b"x" * 10)),
    "too large, 403": Stall("body", reply=Reply(403, {"Content-Length": "10000000000"}, b"x" * 10)),
    "coded": Stall("body", reply=Reply(200, {"Content-Encoding": "gzip"}, gzip.compress(WHY))),
    "with an ETag": Drip("body", 0.05, Reply(200, {"ETag": '"1"'}, b"x" * 200)),
}


class Refused(Exception):
    """A program does not want a response."""


@pytest.mark.parametrize("options", [{}, {"listeners": [SdkHeaders()]}, {"sees": True}], ids=",".join)
@pytest.mark.parametrize("kind", LATE)
def test_a_hook_that_refuses_by_the_head_does_not_wait_for_the_body(kind: str, options: dict[str, Any]) -> None:
    """It is called when it is called with a plain adapter, but for a quarter of a second."""

    def refuse(response: requests.Response, **_: Any) -> None:
        raise Refused

    if options.get("sees"):
        options = {"classifiers": [classifier(sees_successes=True)(lambda outcome, previous: None)]}
    with FaultServer(LATE[kind]) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(**options))
        began = time.monotonic()
        with pytest.raises(Refused):
            session.get(server.url, hooks={"response": refuse}, timeout=60)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("status", [200, 404])
def test_under_a_deadline_the_body_is_read_before_the_hook(status: int) -> None:
    """Its time is a part of the operation's."""
    with FaultServer(Drip("body", 0.05, Reply(status, body=b"x" * 200))) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(operation_timeout=0.5, max_attempts=1))
        with pytest.raises(requests.exceptions.RequestException):
            session.get(server.url, hooks={"response": lambda response, **_: None}, timeout=60)


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_late_body_that_breaks_off_after_the_hook_goes_on(framing: Any) -> None:
    """Where it may be continued; else it ends as with plain requests."""
    late = [CutBody(Reply(200, {"ETag": TAG}, BODY, framing=framing), at=150_000, then="stall")]
    shelf = Shelf(framing=framing)
    with FaultServer(lambda request: late.pop() if late else shelf(request)) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(backoff=0))
        response = session.get(server.url, hooks={"response": lambda response, **_: None}, timeout=1)
        assert response.content == BODY
    assert [True] == [asked is not None and asked > "bytes=1" for asked in shelf.asked]


@pytest.mark.parametrize("status", [200, 401])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_body_that_is_cut_never_reaches_a_hook(status: int, method: str) -> None:
    """A cut body is the attempt's failure, with hooks or without; the response to HEAD has no body to cut."""
    with FaultServer([CutBody(Reply(status, body=WHY)), Reply(body=b"fine")]) as server:
        found = seen_by_hooks(RetryAdapter(backoff=0), server.url, method)
    if method == "GET":
        assert found == [(200, ("127.0.0.1", server.port), True, False), 200, b"fine", []]
    else:
        assert found == [(status, ("127.0.0.1", server.port), True, False), status, b"", []]


def test_a_hook_s_second_request_takes_the_connection_of_the_first() -> None:
    """NTLM authenticates a connection, not a request; ``pool_block`` shows that its place came back in time."""

    def answer(response: requests.Response, **how: Any) -> requests.Response:
        assert response.content == WHY
        response.raw.release_conn()
        again: Any = response.request.copy()
        again.headers["Authorization"] = "proof"
        return response.connection.send(again, **how)  # type: ignore[attr-defined,no-any-return]

    with FaultServer([Reply(401, body=WHY), Reply(body=b"in")]) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(pool_block=True, pool_maxsize=1))
        response = session.get(server.url, hooks={"response": answer}, timeout=60)
        assert (response.status_code, response.content) == (200, b"in")
        assert [request.connection_id for request in server.requests] == [0, 0]
        assert ("Authorization", "proof") in server.requests[1].headers


@pytest.mark.parametrize("reads", ["body_prefix", "content"])
@pytest.mark.parametrize(("verdict", "expected"), [(None, WHY), (RetryAction.transient_error(), b"fine")])
def test_a_classifier_that_looks_at_the_body_costs_no_place_of_the_pool(
    reads: str, verdict: RetryAction | None, expected: bytes
) -> None:
    """A classifier may look at the prefix, which leaves the body unread, or read all of it."""

    @classifier
    def looks(outcome: Outcome, previous: RetryAction) -> RetryAction | None:
        assert outcome.response is not None
        assert (outcome.body_prefix if reads == "body_prefix" else outcome.response.content) == WHY
        return verdict

    script = [Reply(418, body=WHY), Reply(body=b"fine")]
    with FaultServer(script * 2) as server, requests.Session() as session:
        adapter = RetryAdapter(pool_block=True, pool_maxsize=1, classifiers=[looks], backoff=0)
        session.mount("http://", adapter)
        assert session.get(server.url, timeout=60).content == expected
        assert session.get(server.url, timeout=60).content == b"fine"


@pytest.mark.parametrize("broken", ["cut", "mislabelled", "no last chunk"])
@pytest.mark.parametrize("hooks", [{}, {"response": lambda response, **_: None}], ids=["no hook", "hook"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirect_is_followed_whatever_its_body(
    broken: str, hooks: dict[str, Callable[..., Any]], method: str
) -> None:
    """A redirect's body is not needed, and the server has acted, so a cut one does not lead to another attempt."""
    to = {"Location": "/there"}
    reply: Any = {
        "cut": CutBody(Reply(303, to, WHY)),
        "mislabelled": Reply(303, {**to, "Content-Encoding": "gzip"}, WHY),
        "no last chunk": CutBody(Reply(303, to, WHY, framing="chunked")),
    }[broken]
    with FaultServer([reply, Reply(body=b"there")]) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(pool_block=True, pool_maxsize=1))
        response = session.request(method, server.url, hooks=hooks, timeout=60)
        assert (response.content, [hop.status_code for hop in response.history]) == (b"there", [303])
        assert [request.path for request in server.requests] == ["/", "/there"]
        assert retry_history(response.history[0]) is not None or method == "GET"


class Ticking(FakeClock):
    """A clock on which looking takes time."""

    def now(self) -> float:
        self.advance(0.01)
        return super().now()


@pytest.mark.skipif(
    "max_length" not in GzipDecoder.decompress.__code__.co_varnames, reason="this urllib3 decodes a buffer in one go"
)
@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("hooks", [{}, {"response": lambda response, **_: None}], ids=["no hook", "hook"])
def test_decoding_ends_by_the_deadline(status: int, hooks: dict[str, Callable[..., Any]]) -> None:
    """A body of some kilobytes may decode to gigabytes, and no read from the socket happens meanwhile."""
    bomb = Reply(status, {"Content-Encoding": "gzip"}, gzip.compress(bytes(4 << 20)))
    with FaultServer(bomb) as server, requests.Session() as session:
        session.mount("http://", RetryAdapter(operation_timeout=2, max_attempts=1, clock=Ticking()))
        with pytest.raises(requests.exceptions.ReadTimeout):
            session.get(server.url, hooks=hooks)
