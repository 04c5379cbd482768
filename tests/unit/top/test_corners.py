"""Rarely used paths: lazy names and odd values."""

from __future__ import annotations

import socket
import threading

import pytest
import requests

import requests_smithy_retry.smithy
from requests_smithy_retry import (
    RetryAdapter,
    RetryConfigError,
    RetryConfigWarning,
    StopReason,
    retry_history,
)
from requests_smithy_retry.testing import FakeClock, scripted
from requests_smithy_retry.wire.state import this_thread
from tests.support import send


def test_the_smithy_package_has_no_other_names() -> None:
    """A name that nobody defined is an AttributeError, as in any module."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        requests_smithy_retry.smithy.nothing  # noqa: B018


@pytest.mark.parametrize("value", [b"5", object(), requests.Session()])
def test_a_timeout_is_no_object_of_another_class(value: object) -> None:
    """Numbers, pairs and urllib3's Timeout are allowed."""
    with pytest.raises((RetryConfigError, TypeError), match="timeout="):
        RetryAdapter(timeout=value)  # type: ignore[arg-type]


class Wrapped:
    """urllib3's wrapper of a pyOpenSSL socket: it has ``settimeout``, and the socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.settimeout = sock.settimeout


def test_a_socket_without_gettimeout_is_bounded_by_the_one_it_wraps() -> None:
    """The wrapped socket's timeout is returned, to be restored."""
    with socket.socket() as sock:
        sock.settimeout(7.0)
        assert 7.0 == this_thread.bound(Wrapped(sock))


def test_a_deadline_cuts_the_wait_for_the_service_and_says_so() -> None:
    """The reason for the stop is the deadline's, and so is its sentence."""
    clock = FakeClock()
    adapter = scripted(*[503] * 100, clock=clock, quota="payoff", patience=60, operation_timeout=8.0, backoff=0)
    response = send(adapter)
    assert 503 == response.status_code
    assert StopReason.DEADLINE == retry_history(response).stop_reason
    assert "was failing until the deadline" in retry_history(response).explain()


def test_a_patch_that_comes_too_late_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where gevent has patched threads after the import, greenlets would share what an attempt knows of itself."""
    monkeypatch.setattr(threading, "local", type("local", (), {}))
    with pytest.warns(RetryConfigWarning, match="greenlets share the state of their attempts.* Patch first"):
        RetryAdapter()
