"""Sending within the attempt's deadline, below a connection (contract 8.1)."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryAdapter, RetryListener, StopReason, retry_history
from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.features.addresses import AddressMemory
from requests_smithy_retry.testing import FakeClock, FaultServer, ResetAfterRequest, refusing_port
from requests_smithy_retry.wire.connect import PIECE, Connect
from requests_smithy_retry.wire.state import this_thread

from .support import session


class Sock:
    """Remembers its timeout."""

    timeout: float | None = 30.0

    def gettimeout(self) -> float | None:
        return self.timeout

    def settimeout(self, seconds: float | None) -> None:
        self.timeout = seconds


class Connection:
    """Notes each piece with the time that it may take."""

    def __init__(self, *, is_open: bool = True, auto_open: int = 1, seconds: float = 0.0) -> None:
        self.clock = FakeClock()
        self.sock: Sock | None = Sock() if is_open else None
        self.auto_open = auto_open
        self.seconds = seconds
        self.sent: list[tuple[int, float | None]] = []
        self.last: Any = None

    def connect(self) -> None:
        self.sock = Sock()

    def send(self, data: Any) -> None:
        self.clock.sleep(self.seconds)
        self.sent.append((len(data), None if self.sock is None else self.sock.timeout))
        self.last = data


def send(connection: Any, data: Any, within: float | None) -> None:
    made = Connect(connection, AddressMemory(connection.clock))
    if within is None:
        made.send(data)
        return
    with this_thread.under(Deadline(connection.clock.now() + within, connection.clock)):
        made.send(data)


TWO_AND_A_BYTE = bytes(2 * PIECE + 1)


@pytest.mark.parametrize(
    ("connection", "data", "within", "sent"),
    [
        (Connection(), TWO_AND_A_BYTE, None, [(2 * PIECE + 1, 30)]),  # without a deadline all is sent at once
        (Connection(seconds=2), TWO_AND_A_BYTE, 10, [(PIECE, 10), (PIECE, 8), (1, 6)]),
        (Connection(), b"GET / HTTP/1.1", 10, [(14, 10)]),
        (Connection(is_open=False), b"head", 10, [(4, 10)]),  # as http.client connects when it sends
        (Connection(is_open=False, auto_open=0), b"head", 10, [(4, None)]),  # its own send raises
        (Connection(), memoryview(b"view"), 10, [(4, 30)]),  # views and iterables are left to its own send
        (Connection(), [b"part"], 10, [(1, 30)]),
    ],
)
def test_each_piece_gets_what_is_left(connection: Connection, data: Any, within: float | None, sent: Any) -> None:
    """And the socket has its usual timeout again afterwards. What is no more than a piece is sent as it is."""
    send(connection, data, within)
    assert (sent, len(sent) == 1) == (connection.sent, connection.last is data)
    assert connection.sock is None or connection.sock.gettimeout() == 30


def test_no_piece_is_begun_after_the_deadline() -> None:
    """The upload raises before the third piece, and the socket has its usual timeout again."""
    connection = Connection(seconds=2)
    with pytest.raises(TimeoutError):
        send(connection, bytes(3 * PIECE), 4)
    assert len(connection.sent) == 2
    assert connection.sock.gettimeout() == 30  # type: ignore[union-attr]


def test_a_connection_that_was_closed_meanwhile_has_no_timeout_to_restore() -> None:
    """The failure that closed it is what is raised."""

    class Closing(Connection):
        def send(self, data: Any) -> None:
            self.sock = None
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        send(Closing(), b"head", 10)


class Pages:
    """A one-shot body that makes a request of its own between its parts, as one that copies from elsewhere does."""

    def __init__(self, ask: Any) -> None:
        self.ask, self.left = ask, 3

    def __iter__(self) -> Pages:
        return self

    def __next__(self) -> bytes:
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        if self.left == 1:
            with contextlib.suppress(requests.ConnectionError, KeyboardInterrupt):
                self.ask()
        return b"page"


@pytest.mark.parametrize("inner", [{}, {"enabled": False}, {"listeners": [RetryListener()]}, {"operation_timeout": 5}])
def test_a_failed_connection_within_an_upload_is_not_taken_for_its_own(inner: Any) -> None:
    """A failed connection inside the body does not mean that the upload was never begun, so no rest of it is sent."""
    with FaultServer([ResetAfterRequest()]) as server, session() as outer, session(**inner) as other:
        body = Pages(lambda: other.get(f"http://127.0.0.1:{refused}/"))
        with refusing_port() as refused, pytest.raises(requests.ConnectionError) as caught:
            outer.put(server.url, data=body)
        assert len(server.requests) == 1
    assert retry_history(caught.value).stop_reason is StopReason.BODY_NOT_REPLAYABLE


def test_an_interrupted_connection_within_an_upload_is_not_taken_for_its_own() -> None:
    """A body may also swallow what interrupts its own request."""

    class Interrupted(requests.adapters.HTTPAdapter):
        def send(self, *args: Any, **options: Any) -> Any:
            this_thread.connecting = True
            raise KeyboardInterrupt

    class Adapter(RetryAdapter, Interrupted):
        pass

    with FaultServer([ResetAfterRequest()]) as server, session() as outer, requests.Session() as other:
        other.mount("http://", Adapter())
        with pytest.raises(requests.ConnectionError) as caught:
            outer.put(server.url, data=Pages(lambda: other.get("http://127.0.0.1:1/")))
    assert retry_history(caught.value).stop_reason is StopReason.BODY_NOT_REPLAYABLE
