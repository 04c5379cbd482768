"""Timeouts shrunk to what is left, in each shape (contract 8.1)."""

from __future__ import annotations

import socket
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urllib3.exceptions import TimeoutStateError
from urllib3.util import Timeout

from requests_smithy_retry.wire.state import capped_timeout, read_timeout_of, this_thread, timeout_of

SECONDS = st.floats(0.001, 1e6)


@pytest.mark.parametrize(
    ("timeout", "expected"),
    [
        (1, 1),
        (5.0, 2),
        ((1, 5), (1, 2)),
        ((5, None), (2, 2)),
        ((None, None), (2, 2)),
        ((None, 0.5), (2, 0.5)),
    ],
)
def test_plain_shapes(timeout: Any, expected: Any) -> None:
    """No part is longer than the 2 s that are left, and a shorter one stays."""
    assert capped_timeout(timeout, 2) == expected


def test_a_deadline_far_away_leaves_a_socket_24_days() -> None:
    """More is an error, or wraps round, in what the platform counts milliseconds with: a socket takes it."""
    with socket.socket() as sock:
        sock.settimeout(capped_timeout(None, 1e300))
        assert sock.gettimeout() == 2_147_483
    assert capped_timeout((None, 5), 1e12) == (2_147_483, 5)


@pytest.mark.parametrize(
    ("timeout", "connect", "read"),
    [
        (Timeout(5), 2, 2),
        (Timeout(total=1), 1, 1),
        (Timeout(total=9), 2, 2),
        (Timeout(connect=1, read=None), 1, 2),
        (Timeout(connect=None, read=0.5), 2, 0.5),
        (Timeout(), 2, 2),
    ],
)
def test_a_urllib3_timeout(timeout: Timeout, connect: float, read: float) -> None:
    """The total of a urllib3 timeout is bounded, and the given object is not changed."""
    before = str(timeout)
    result = capped_timeout(timeout, 2)
    result.start_connect()
    assert (result.connect_timeout, result.read_timeout) == (connect, pytest.approx(read, abs=0.05))
    assert str(timeout) == before


def test_where_there_was_no_timeout_each_step_gets_what_is_left() -> None:
    """It is a number of seconds, as a caller may give one."""
    assert capped_timeout(None, 2) == 2


@given(st.one_of(SECONDS, st.tuples(st.one_of(st.none(), SECONDS), st.one_of(st.none(), SECONDS))), SECONDS)
def test_no_part_is_ever_longer_than_what_is_left(timeout: Any, left: float) -> None:
    """For numbers and pairs, no part of the result is longer than the time left."""
    result = capped_timeout(timeout, left)
    assert all(0 < part <= left for part in (result if isinstance(result, tuple) else (result,)))


@pytest.mark.parametrize(
    ("timeout", "expected"), [(None, None), (3, 3), ((1, 2), 2), (Timeout(connect=1, read=4), 4), (Timeout(), None)]
)
def test_the_part_for_reading(timeout: Any, expected: float | None) -> None:
    """``read_timeout_of`` is the number of seconds that a timeout allows one read."""
    assert read_timeout_of(timeout) == expected


@pytest.mark.parametrize(
    "timeout",
    [(), (3,), (1, 2, 3), (1, Timeout.DEFAULT_TIMEOUT), (1, "2"), [1, 2], "3", b"3", True, (1, True), {}, Decimal(3)],
)
def test_what_is_no_number_is_no_limit_for_reading(timeout: Any) -> None:
    """Who refuses it does so with a sentence of its own; until then nothing of ours raises."""
    assert read_timeout_of(timeout) is None


def test_a_total_is_what_is_left_of_it_for_reading() -> None:
    """A urllib3 Timeout with nothing but a total bounds one read by it, and is itself not started."""
    timeout = Timeout(total=5)
    assert read_timeout_of(timeout) == pytest.approx(5, abs=0.5)
    with pytest.raises(TimeoutStateError):
        timeout.get_connect_duration()


@pytest.mark.parametrize("timeout", [True, False, "3", Decimal("1.5"), b"1", [1, 2], {}, ""])
def test_what_is_no_timeout_stays_as_it_is(timeout: Any) -> None:
    """A deadline does not turn it into a good one: urllib3 gets it, and refuses it as it does without a deadline."""
    assert capped_timeout(timeout, 2) is timeout
    assert capped_timeout(timeout, 0.5) is timeout
    assert capped_timeout((1, timeout), 2) == (1, timeout)


def test_the_systems_default_is_bounded() -> None:
    """urllib3's mark for it says nothing that could be compared: all that is left is allowed."""
    assert capped_timeout((Timeout.DEFAULT_TIMEOUT, 1), 2) == (2, 1)


class Wrapped:
    """As urllib3 wraps a socket of pyOpenSSL's: it cannot be asked for its timeout."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.settimeout = sock.settimeout


def test_the_timeout_of_a_socket_is_found() -> None:
    """The timeout of a wrapped socket, which has only a setter, is found as well."""
    with socket.socket() as sock:
        assert timeout_of(sock) is timeout_of(Wrapped(sock)) is None
        sock.settimeout(2.5)
        assert (timeout_of(sock), timeout_of(Wrapped(sock))) == (2.5, 2.5)
        assert this_thread.set_timeout(Wrapped(sock)) == 2.5  # to be restored
