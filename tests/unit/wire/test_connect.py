"""Connecting by a deadline: addresses, refusals, names that stand for nothing, other ways to connect."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import urllib3.util.connection
from urllib3.connectionpool import HTTPConnectionPool

from requests_smithy_retry import StopReason, retry_history
from requests_smithy_retry.clock import Deadline, after
from requests_smithy_retry.testing import (
    CloseAfterRequest,
    FakeClock,
    FaultServer,
    Reply,
    ResetAfterRequest,
    refusing_port,
)
from requests_smithy_retry.wire.connect import Opener
from requests_smithy_retry.wire.pools import preparing
from requests_smithy_retry.wire.state import AttemptState, this_thread

from .support import resolving, session


def test_a_socket_that_was_connected_too_late_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection made just after the deadline is closed at once, even while the exception is still held."""
    real, clock, opened = socket.socket.connect, FakeClock(), []

    def late(sock: socket.socket, address: Any) -> None:
        real(sock, address)
        opened.append(sock)
        clock.sleep(3)

    with FaultServer() as server, session(operation_timeout=2, max_attempts=1, clock=clock) as made:
        monkeypatch.setattr(socket.socket, "connect", late)
        with pytest.raises(requests.ConnectTimeout):
            made.get(server.url)
        monkeypatch.undo()
        assert [-1] == [sock.fileno() for sock in opened]


def test_what_a_step_may_take() -> None:
    """The less of its own timeout and of what is left; nothing once the deadline has passed."""
    clock, state = FakeClock(), AttemptState()
    assert state.seconds(None) is None
    with state.under(Deadline(clock.now() + 3, clock)):
        assert (state.seconds(None), state.seconds(2), state.seconds(9)) == (3, 2, 3)
        clock.sleep(3)
        with pytest.raises(TimeoutError):
            state.seconds(2)
    assert state.deadline is None
    assert this_thread.deadline is None


class AsksASideService:
    """A body that asks another server between its parts, over the adapter's own pools, and can do without."""

    def __init__(self, ask: Callable[[], object], *, again: bool) -> None:
        self.ask = ask
        self.again = again

    def parts(self) -> Iterator[bytes]:
        yield b"part"
        with contextlib.suppress(Exception):
            self.ask()
        yield b"part"

    def __call__(self) -> Any:
        return self if self.again else self.parts()

    def __iter__(self) -> Iterator[bytes]:
        return self.parts()


@pytest.mark.parametrize("again", [False, True], ids=["generator", "iterable"])
@pytest.mark.parametrize("kept_alive", [False, True])
@pytest.mark.parametrize("by", ["pool", "session", "session, then pool"])
@pytest.mark.parametrize("options", [{}, {"operation_timeout": 20}], ids=["", "deadline"])
def test_a_connection_that_a_body_makes_does_not_make_its_request_unwritten(
    again: bool, kept_alive: bool, by: str, options: dict[str, Any]
) -> None:
    """A POST of which parts were sent is not sent again, whatever failed meanwhile in the same thread."""
    with FaultServer() as server, refusing_port() as port, session(**options) as made:
        url, manager = f"http://127.0.0.1:{port}/", made.get_adapter(server.url).poolmanager
        if kept_alive:
            made.get(server.url)

        def ask() -> None:
            with contextlib.suppress(requests.ConnectionError):
                if "session" in by:
                    made.get(url)
            if "pool" in by:
                manager.request("GET", url, retries=False)

        server.script([ResetAfterRequest(), Reply(200)])
        before = len(server.requests)
        with pytest.raises(requests.ConnectionError) as caught:
            made.post(server.url, data=AsksASideService(ask, again=again)())
        history = retry_history(caught.value)
        assert history is not None
        assert StopReason.BODY_NOT_REPLAYABLE is history.stop_reason
        assert [b"partpart"] == [request.body for request in server.requests[before:]]


def test_the_head_of_a_tunnel_is_no_byte_of_the_request() -> None:
    """A POST is sent again when the proxy hangs up on CONNECT: no byte of it was written."""
    with FaultServer([CloseAfterRequest()] * 3) as proxy, session() as made, pytest.raises(requests.ConnectionError):
        made.post("https://example.test/", data=b"x", proxies={"https": proxy.url})
    assert ["CONNECT"] * 3 == [request.method for request in proxy.requests]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (("fe80::1", 80, 0, 4), "fe80::1%4"),
        (("fe80::1%eth0", 80, 0, 4), "fe80::1%eth0"),
        (("2001:db8::1", 80, 0, 0), "2001:db8::1"),
        (("127.0.0.1", 80), "127.0.0.1"),
    ],
)
def test_an_address_keeps_its_scope(monkeypatch: pytest.MonkeyPatch, address: Any, expected: str) -> None:
    """A link-local address means nothing without the interface, with a deadline as without one."""
    connected = []

    def connect(_: Any, there: Any) -> None:
        connected.append(there)
        raise ConnectionRefusedError

    resolving(monkeypatch, address)
    monkeypatch.setattr(socket.socket, "connect", connect)
    with session(operation_timeout=60, max_attempts=1) as made, pytest.raises(requests.ConnectionError) as caught:
        made.get("http://name.test/")
    assert ([address], expected) == (connected, retry_history(caught.value).attempts[0].address)


@pytest.mark.parametrize("seconds", [None, 60.0])
def test_without_the_feature_urllib3_opens_the_socket(monkeypatch: pytest.MonkeyPatch, seconds: float | None) -> None:
    """By the deadline, if there is one; nothing is known of addresses."""
    given: list[Any] = []
    real = urllib3.util.connection.create_connection

    def create_connection(address: Any, timeout: Any, **more: Any) -> Any:
        given.append(timeout)
        return real(address, timeout, **more)

    monkeypatch.setattr(urllib3.util.connection, "create_connection", create_connection)
    monkeypatch.setattr(this_thread, "connecting", None)  # as an attempt begins
    pool: Any
    with FaultServer() as server, preparing(HTTPConnectionPool)("127.0.0.1", server.port) as pool:
        pool.addresses = Opener(FakeClock())
        with this_thread.under(after(seconds, pool.addresses.clock)):
            assert 200 == pool.request("GET", "/", timeout=90, retries=False).status
        pool.addresses.forget()
    assert ([seconds or 90], None, ()) == (given, this_thread.peer, pool.addresses.snapshot())
