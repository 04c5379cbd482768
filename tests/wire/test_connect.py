"""Connecting by a deadline: addresses, refusals, names that stand for nothing, other ways to connect."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import requests
import urllib3.util.connection

from requests_smithy_retry import retry_history
from requests_smithy_retry.deadline import Deadline
from requests_smithy_retry.testing import FaultServer, refusing_port
from requests_smithy_retry.testing.clock import FakeClock
from requests_smithy_retry.wire import attempt
from requests_smithy_retry.wire.state import AttemptState

from .support import session


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[str, int]) -> None:
    """Have any name stand for these addresses."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]
    real = socket.getaddrinfo

    def resolve(host: str, *rest: Any, **more: Any) -> Any:
        return found if host == "name.test" else real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_the_next_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused one costs nothing but its time."""
    # Whether a socket is left is not asked: urllib3 1.26 itself keeps a cycle around an address that refused.
    with FaultServer() as server, session(operation_timeout=5, max_attempts=1) as made:
        resolving(monkeypatch, ("127.0.0.2", server.port), ("127.0.0.1", server.port))
        assert made.get(f"http://name.test:{server.port}/").status_code == 200


def test_all_addresses_refuse() -> None:
    """The name of the fault is the one without a deadline, and nothing was written."""
    refused = pytest.raises(requests.ConnectionError, match="Failed to establish a new connection")
    with refusing_port() as port, session(operation_timeout=5, max_attempts=2) as made, refused as caught:
        made.post(f"http://127.0.0.1:{port}/", data=b"x")
    assert len(retry_history(caught.value).attempts) == 2


def test_a_name_that_stands_for_nothing() -> None:
    """It fails as it does without a deadline."""
    failed = pytest.raises(requests.ConnectionError)
    with session(operation_timeout=5, max_attempts=1) as made, failed as caught:
        made.get("http://name.invalid/")
    assert not isinstance(caught.value, requests.exceptions.Timeout)


def test_somebody_elses_way_to_find_a_host_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A patched ``create_connection`` still gets the name."""
    real, asked = urllib3.util.connection.create_connection, []

    def own(address: tuple[str, int], *rest: Any, **more: Any) -> Any:
        asked.append(address[0])
        return real(("127.0.0.1", address[1]), *rest, **more)

    monkeypatch.setattr(urllib3.util.connection, "create_connection", own)
    with FaultServer() as server, session(operation_timeout=5) as made:
        assert made.get(f"http://name.test:{server.port}/").status_code == 200
    assert asked == ["name.test"]


def test_what_a_step_may_take() -> None:
    """The less of its own timeout and of what is left; nothing once the deadline has passed."""
    clock, state = FakeClock(), AttemptState()
    assert state.seconds(None) is None
    with state.ending(Deadline(clock.now() + 3, clock)):
        assert (state.seconds(None), state.seconds(2), state.seconds(9)) == (3, 2, 3)
        clock.sleep(3)
        with pytest.raises(TimeoutError):
            state.seconds(2)
    assert state.deadline is None
    assert attempt.deadline is None
