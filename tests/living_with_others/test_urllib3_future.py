"""Where urllib3-future has taken the place of urllib3 (contract 11.5): retries work, and deadlines are refused aloud.

It comes with niquests. ``tox -e future`` installs it; elsewhere these tests are skipped.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
import urllib3

from requests_smithy_retry import RetryConfigWarning, StopReason, mount, retry_history
from tests.faults import (
    DEFAULT_BODY,
    CloseAfterRequest,
    CutBody,
    FaultServer,
    Reply,
    ResetAfterRequest,
    Stall,
    refusing_port,
)

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif(not hasattr(urllib3, "AsyncPoolManager"), reason="urllib3 is urllib3"),
]

FAULTS = {
    "503": Reply(503),
    "503, long": Reply(503, body=b"x" * 200_000),
    "503, chunked": Reply(503, framing="chunked"),
    "503 to the end": Reply(503, framing="close"),
    "429": Reply(429),
    "reset": ResetAfterRequest(),
    "closed": CloseAfterRequest(),
    "cut": CutBody(),
    "not gzip": Reply(200, {"Content-Encoding": "gzip"}, b"nonsense"),
}


def session(**options: Any) -> requests.Session:
    made = mount(requests.Session(), backoff=0, quota=None, **options)
    made.trust_env = False
    return made


@pytest.mark.parametrize("pool_block", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_retried(name: str, stream: bool, pool_block: bool) -> None:
    """The answer that follows is whole."""
    if stream and name in ("cut", "not gzip"):
        pytest.skip("nobody has read the body yet")
    with FaultServer([FAULTS[name]]) as server, session(pool_block=pool_block) as made:
        response = made.get(server.url, stream=stream, timeout=60)
        assert (200, DEFAULT_BODY) == (response.status_code, response.content)
        assert [2, 2] == [len(retry_history(response).attempts), len(server.requests)]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("size", [10, 65_536, 200_000])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_the_last_answer_is_handed_over_whole(framing: Any, size: int, stream: bool) -> None:
    """Nobody reads from the socket behind the library's back."""
    with FaultServer(Reply(503, body=b"x" * size, framing=framing)) as server, session() as made:
        response = made.get(server.url, stream=stream, timeout=60)
        assert (503, size, 3) == (response.status_code, len(response.content), len(server.requests))


@pytest.mark.parametrize(("step", "attempts"), [(ResetAfterRequest(), 1), (Reply(503), 1), (Reply(429), 2)])
def test_a_post_that_may_have_been_applied_is_not_sent_again(step: Any, attempts: int) -> None:
    """Nothing is known of the bytes written, so all count as written."""
    with FaultServer([step]) as server, session() as made:
        try:
            made.post(server.url, data=b"x", timeout=60)
        except requests.ConnectionError:
            pass
        assert attempts == len(server.requests)


def test_a_refused_connection_is_retried() -> None:
    """And its end is that of any operation."""
    with refusing_port() as port, session() as made, pytest.raises(requests.ConnectionError) as caught:
        made.get(f"http://127.0.0.1:{port}/")
    history: Any = retry_history(caught.value)
    assert (3, StopReason.MAX_ATTEMPTS) == (len(history.attempts), history.stop_reason)


def test_threads_share_a_session() -> None:
    """Every operation ends well, whatever the others meet."""
    numbers, faults = itertools.count(), list(FAULTS.values())[:7]

    def step(request: Any) -> Any:
        number = next(numbers)
        return Reply() if number % 2 else faults[number // 2 % len(faults)]

    with FaultServer(step) as server, session(max_attempts=30, pool_maxsize=4) as made, ThreadPoolExecutor(8) as pool:
        came = pool.map(lambda _: made.get(server.url, timeout=60).status_code, range(160))
        assert [200] * 160 == list(came)


def test_a_deadline_is_refused_aloud_and_bounds_each_wait() -> None:
    """One warning in a process names the package; a server that says nothing is left in time."""
    with FaultServer(Stall("status")) as server, session(operation_timeout=0.3) as made:

        def late() -> None:
            with pytest.raises(requests.Timeout):
                made.get(server.url)

        with pytest.warns(RetryConfigWarning, match="urllib3-future"):
            late()
        late()  # a second warning would be an error
