"""The cookies of a response whose body breaks off reach the session, as with a plain adapter (contract 11.2)."""

from __future__ import annotations

import copy
import gzip
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from requests_smithy_retry import RetryAdapter, retry_history
from tests.faults import CutBody, FaultServer, Reply
from tests.support import session_with

COOKIE = {"Set-Cookie": "sid=1"}
BODY = b"x" * 3000
FAULTS: dict[str, Any] = {
    "length": CutBody(Reply(200, COOKIE, BODY)),
    "chunked": CutBody(Reply(200, COOKIE, BODY, framing="chunked")),
    "reset": CutBody(Reply(200, COOKIE, BODY), then="reset"),
    "stall": CutBody(Reply(200, COOKIE, BODY), then="stall"),
    "undecodable": Reply(200, {**COOKIE, "Content-Encoding": "gzip"}, BODY),
    "401": CutBody(Reply(401, COOKIE, BODY)),
    "503": CutBody(Reply(503, COOKIE, BODY)),
    "continued": CutBody(Reply(200, {**COOKIE, "ETag": '"1"'}, BODY * 100)),
}


def result(adapter: HTTPAdapter, fault: Any, method: str) -> Any:
    """The type of the exception, the session's cookies, and whether its next request has them."""
    with FaultServer(fault) as server, session_with(adapter) as made:
        made.trust_env = False
        with pytest.raises(requests.RequestException) as raised:
            made.request(method, server.url, timeout=0.5)
        server.script([])
        again = made.get(server.url, timeout=60)
        return type(raised.value), made.cookies.get_dict(), again.request.headers.get("Cookie")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_session_keeps_them(fault: str, method: str) -> None:
    """A login whose answer is cut has happened; the exception is that of the body, as with plain requests."""
    for retries in (1, 3):
        ours = result(RetryAdapter(max_attempts=retries, backoff=0), FAULTS[fault], method)
        assert ours[1:] == ({"sid": "1"}, "sid=1")
        if hasattr(urllib3, "BaseHTTPResponse"):  # 1.26 misses cuts
            assert ours == result(HTTPAdapter(), FAULTS[fault], method)


def test_the_exception_has_the_history_and_hooks_see_the_head() -> None:
    """A hook may look at the response; whoever reads its body gets the exception, as often as it is read."""
    seen: list[Any] = []

    def hook(response: requests.Response, **_: Any) -> None:
        with pytest.raises(requests.RequestException) as raised:
            response.content  # noqa: B018
        seen.append((response.status_code, response.cookies.get_dict(), type(raised.value)))

    with FaultServer(FAULTS["length"]) as server, session_with(RetryAdapter(max_attempts=2, backoff=0)) as made:
        with pytest.raises(requests.exceptions.ChunkedEncodingError) as raised:
            made.get(server.url, timeout=60, hooks={"response": hook})
        assert [(200, {"sid": "1"}, requests.exceptions.ChunkedEncodingError)] == seen
        assert 2 == len(retry_history(raised.value).attempts)


def test_who_calls_the_adapter_gets_a_response_that_can_be_copied() -> None:
    """What the session would get: its head, and the exception when the body is read."""
    with FaultServer(FAULTS["length"]) as server:
        adapter = RetryAdapter(max_attempts=1)
        response = adapter.send(requests.Request("GET", server.url).prepare(), timeout=60)
        assert "sid=1" == response.headers["Set-Cookie"]
        assert 200 == copy.copy(response.raw).status
        for read in (lambda: response.content, lambda: response.raw.read(5), lambda: list(response.iter_lines())):
            with pytest.raises(requests.exceptions.ChunkedEncodingError, match="broken: Incomplete") as raised:
                read()
            assert 1 == len(retry_history(raised.value).attempts)
        adapter.close()


def test_without_a_cookie_the_adapter_raises() -> None:
    """There is nothing to keep."""
    with FaultServer(CutBody(Reply(200, {}, gzip.compress(BODY)))) as server:
        adapter = RetryAdapter(max_attempts=1)
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            adapter.send(requests.Request("GET", server.url).prepare(), timeout=60)
        adapter.close()
