"""Reading from a socket: ahead, in time, and to an end that is noticed (contract 14.1)."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.testing.clock import FakeClock
from requests_smithy_retry.wire.response import Reader, reader_of, set_read_timeout
from requests_smithy_retry.wire.state import this_thread


@pytest.fixture
def pair() -> Iterator[tuple[Reader, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    with ours, theirs, Reader(ours, "r") as reader:
        yield reader, theirs


def read(reader: Reader, size: int = 10) -> bytes | None:
    buffer = bytearray(size)
    count = reader.readinto(memoryview(buffer))
    return None if count is None else bytes(buffer[:count])


def test_what_was_fetched_ahead_is_read_first(pair: tuple[Reader, socket.socket]) -> None:
    """Bytes fetched ahead are read first, in order and in parts of any size; then the socket is read again."""
    reader, far = pair
    far.sendall(b"abcdef")
    assert reader.fetch_ahead(5)
    far.sendall(b"ghi")
    assert [read(reader, 4), read(reader, 4), read(reader, 4)] == [b"abcd", b"ef", b"ghi"]


def test_while_looking_ahead_nothing_else_is_read(pair: tuple[Reader, socket.socket]) -> None:
    """An empty store says: nothing for now. That is no end."""
    reader, far = pair
    far.sendall(b"abc")
    reader.ahead = bytearray()
    assert read(reader) is None
    assert not reader.ended
    reader.ahead = None
    assert read(reader) == b"abc"


def test_the_end_is_noticed(pair: tuple[Reader, socket.socket]) -> None:
    """The end is noticed by a read and by a look ahead."""
    reader, far = pair
    far.close()
    assert not reader.fetch_ahead(5)
    assert reader.ended
    reader.ended, reader.ahead = False, None
    assert read(reader) == b""
    assert reader.ended


@pytest.mark.real_time
def test_a_look_ahead_ends_in_time(pair: tuple[Reader, socket.socket]) -> None:
    """A look ahead without bytes is neither a failure nor the end, and leaves the socket's timeout as it was."""
    reader, _ = pair
    assert not reader.fetch_ahead(0.01)
    assert (reader.ended, reader._sock.gettimeout()) == (False, 5)  # type: ignore[attr-defined]


@pytest.mark.real_time
def test_the_caller_s_own_read_timeout_is_a_failure_while_looking_ahead_too(pair: tuple[Reader, socket.socket]) -> None:
    """The read timeout that ran out is not waited for a second time when the body is read."""
    reader, far = pair
    reader._sock.settimeout(0.01)  # type: ignore[attr-defined]
    far.sendall(b"abc")
    assert reader.fetch_ahead(5)
    assert not reader.fetch_ahead(None)
    assert not reader.fetch_ahead(5)
    far.sendall(b"too late")
    assert read(reader) == b"abc"
    with pytest.raises(TimeoutError):
        read(reader)


def test_a_reset_met_while_looking_ahead_is_raised_when_what_came_before_is_read(
    pair: tuple[Reader, socket.socket],
) -> None:
    """The kernel reports it once; the next read would take it for an end."""
    reader, _ = pair
    near = reader._sock  # type: ignore[attr-defined]

    class Broken:
        gettimeout, settimeout = near.gettimeout, near.settimeout

        def recv(self, size: int) -> bytes:
            raise ConnectionResetError

    reader.ahead = bytearray(b"abc")
    reader._sock = Broken()  # type: ignore[attr-defined]
    assert not reader.fetch_ahead(5)
    reader._sock = near  # type: ignore[attr-defined]
    buffered = io.BufferedReader(reader)
    assert reader.in_buffer(buffered) == b""
    assert read(reader, 2) == b"ab"
    assert read(reader, 2) == b"c"
    with pytest.raises(ConnectionResetError):
        read(reader)
    buffered.detach()


@pytest.mark.parametrize(("left", "connecting", "after"), [(3, False, 5), (3, True, 3), (9, True, 5)])
def test_the_socket_s_timeout_after_a_bound_read(
    pair: tuple[Reader, socket.socket], left: float, connecting: bool, after: float
) -> None:
    """The socket has its usual timeout again; while a tunnel is made, it has the time left, for the handshake."""
    reader, far = pair
    clock = FakeClock()
    far.sendall(b"abc")
    this_thread.connecting = connecting
    with this_thread.under(Deadline(clock.now() + left, clock)):
        assert read(reader) == b"abc"
    this_thread.connecting = False
    assert reader._sock.gettimeout() == after  # type: ignore[attr-defined]


def test_after_the_last_read_in_time_the_handshake_of_a_tunnel_fails_at_once(
    pair: tuple[Reader, socket.socket],
) -> None:
    """The proxy's answer came as the deadline passed; a timeout of 0 would be no timeout but another kind of socket."""
    reader, far = pair
    near, clock = reader._sock, FakeClock()  # type: ignore[attr-defined]
    far.sendall(b"abc")

    class Slow:
        gettimeout, settimeout = near.gettimeout, near.settimeout

        def recv_into(self, buffer: Any) -> int:
            clock.advance(3)
            return int(near.recv_into(buffer))

    reader._sock = Slow()  # type: ignore[attr-defined]
    this_thread.connecting = True
    with this_thread.under(Deadline(clock.now() + 3, clock)):
        assert read(reader) == b"abc"
    this_thread.connecting = False
    reader._sock = near  # type: ignore[attr-defined]
    assert near.gettimeout() == 0.001


def test_nothing_is_read_after_the_deadline(pair: tuple[Reader, socket.socket]) -> None:
    """After the deadline a read raises, even if bytes are there."""
    reader, far = pair
    clock = FakeClock()
    far.sendall(b"abc")
    with this_thread.under(Deadline(clock.now(), clock)), pytest.raises(TimeoutError):
        read(reader)


def test_what_the_standard_library_reads_with_becomes_ours() -> None:
    """Connections that are made in a way of their own, over Unix sockets or TLS within TLS, are not prepared."""
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb") as file:
        made = SimpleNamespace(_original_response=SimpleNamespace(fp=file))
        reader = reader_of(made)
        assert reader is file.raw
        theirs.sendall(b"abc")
        assert reader is not None
        assert reader.fetch_ahead(5)
        assert reader.ahead == b"abc"


def test_a_body_that_is_not_ours_keeps_its_timeout(pair: tuple[Reader, socket.socket]) -> None:
    """A mock, or a body that was read out, has no reader to tell."""
    reader, _ = pair
    ours = SimpleNamespace(_original_response=SimpleNamespace(fp=SimpleNamespace(raw=reader)))
    assert reader_of(ours) is reader
    set_read_timeout(ours, 7)
    mocked = SimpleNamespace(_original_response=SimpleNamespace(fp=io.BufferedReader(io.BytesIO())))
    for other in (object(), mocked):
        set_read_timeout(other, 9)
        assert (reader_of(other), reader._sock.gettimeout()) == (None, 7)  # type: ignore[attr-defined]
