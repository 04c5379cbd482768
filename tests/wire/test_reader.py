"""Reading from a socket: ahead, in time, and to an end that is noticed (contract 14.1)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from requests_smithy_retry.deadline import Deadline
from requests_smithy_retry.testing.clock import FakeClock
from requests_smithy_retry.wire import attempt
from requests_smithy_retry.wire.reader import Reader, reader_of, set_read_timeout


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
    """In the order of the wire, in parts of any size; then the socket is read again."""
    reader, far = pair
    far.sendall(b"abcdef")
    assert reader.fetch_ahead(5)
    far.sendall(b"ghi")
    assert [read(reader, 4), read(reader, 4), read(reader, 4)] == [b"abcd", b"ef", b"ghi"]


def test_while_looking_ahead_nothing_else_is_read(pair: tuple[Reader, socket.socket]) -> None:
    """An empty store says: nothing for now. That is no end."""
    reader, far = pair
    far.sendall(b"abc")
    reader.ahead = b""
    assert read(reader) is None
    assert not reader.ended
    reader.ahead = None
    assert read(reader) == b"abc"


def test_the_end_is_noticed(pair: tuple[Reader, socket.socket]) -> None:
    """By a read, and by a look ahead."""
    reader, far = pair
    far.close()
    assert not reader.fetch_ahead(5)
    assert reader.ended
    reader.ended, reader.ahead = False, None
    assert read(reader) == b""
    assert reader.ended


@pytest.mark.real_time
def test_a_look_ahead_ends_in_time(pair: tuple[Reader, socket.socket]) -> None:
    """Nothing came: that is no failure, no end, and leaves the socket's timeout as it was."""
    reader, _ = pair
    assert not reader.fetch_ahead(0.01)
    assert (reader.ended, reader._sock.gettimeout()) == (False, 5)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("left", "connecting", "after"), [(3, False, 5), (3, True, 3), (9, True, 5)])
def test_the_socket_s_timeout_after_a_bound_read(
    pair: tuple[Reader, socket.socket], left: float, connecting: bool, after: float
) -> None:
    """As it was; while a tunnel is made, what is left: the handshake that follows goes by it."""
    reader, far = pair
    clock = FakeClock()
    far.sendall(b"abc")
    attempt.connecting = connecting
    with attempt.ending(Deadline(clock.now() + left, clock)):
        assert read(reader) == b"abc"
    attempt.connecting = False
    assert reader._sock.gettimeout() == after  # type: ignore[attr-defined]


def test_nothing_is_read_after_the_deadline(pair: tuple[Reader, socket.socket]) -> None:
    """Not even what is there."""
    reader, far = pair
    clock = FakeClock()
    far.sendall(b"abc")
    with attempt.ending(Deadline(clock.now(), clock)), pytest.raises(TimeoutError):
        read(reader)


def test_a_body_that_is_not_ours_keeps_its_timeout(pair: tuple[Reader, socket.socket]) -> None:
    """A mock, or a body that was read out, has no reader to tell."""
    reader, _ = pair
    ours = SimpleNamespace(_original_response=SimpleNamespace(fp=SimpleNamespace(raw=reader)))
    assert reader_of(ours) is reader
    set_read_timeout(ours, 7)
    set_read_timeout(object(), 9)
    assert (reader_of(object()), reader._sock.gettimeout()) == (None, 7)  # type: ignore[attr-defined]
