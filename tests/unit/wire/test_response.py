"""Responses on the wire: what is read ahead, in time, and to an end that is noticed (contract 13, 14.1)."""

from __future__ import annotations

import http.client
import io
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.wire import response as of_wire
from requests_smithy_retry.wire.response import (
    MOST_LINE,
    Arrived,
    CheckedResponse,
    ChunkedFraming,
    LengthFraming,
    Reader,
    arrived,
    framing_of,
    holds_all,
    reader_of,
    set_read_timeout,
)
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

    def recv(size: int) -> bytes:
        raise ConnectionResetError

    reader.ahead = bytearray(b"abc")
    reader._sock = SimpleNamespace(  # type: ignore[attr-defined]
        gettimeout=near.gettimeout, settimeout=near.settimeout, recv=recv
    )
    assert not reader.fetch_ahead(5)
    reader._sock = near  # type: ignore[attr-defined]
    buffered = io.BufferedReader(reader)
    assert reader.in_buffer(buffered) == b""
    assert read(reader, 2) == b"ab"
    assert read(reader, 2) == b"c"
    with pytest.raises(ConnectionResetError):
        read(reader)
    buffered.detach()


@pytest.mark.parametrize(
    ("left", "took", "connecting", "after"),
    [
        (3, 0, False, 5),
        (3, 0, True, 3),
        (9, 0, True, 5),
        (3, 3, True, 0.001),  # a timeout of 0 would be no timeout but another kind of socket
    ],
)
def test_the_socket_s_timeout_after_a_bound_read(
    pair: tuple[Reader, socket.socket], left: float, took: float, connecting: bool, after: float
) -> None:
    """The socket has its usual timeout again; while a tunnel is made, it has the time left, for the handshake."""
    reader, far = pair
    near, clock = reader._sock, FakeClock()  # type: ignore[attr-defined]
    far.sendall(b"abc")

    def recv_into(buffer: Any) -> int:
        clock.advance(took)
        return int(near.recv_into(buffer))

    reader._sock = SimpleNamespace(  # type: ignore[attr-defined]
        gettimeout=near.gettimeout, settimeout=near.settimeout, recv_into=recv_into
    )
    this_thread.connecting = connecting
    with this_thread.under(Deadline(clock.now() + left, clock)):
        assert read(reader) == b"abc"
    this_thread.connecting = False
    reader._sock = near  # type: ignore[attr-defined]
    assert near.gettimeout() == after


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


@pytest.mark.parametrize(
    ("available", "body", "seen", "whole", "whole_at_the_end"),
    [
        (b"3\r\nabc\r\n0\r\n\r\n", b"abc", True, True, True),
        (b"3;ext=1\r\nabc\r\n0\r\nA: b\r\n\r\nnext", b"abc", True, True, True),
        (b"3\nabc\r\n0\n\r\n", b"abc", True, True, True),
        (b"3\r\nabc\r\n0\r\n", b"abc", False, False, True),
        (b"3\r\nabc\r\n0\r\nA: b\r\n", b"abc", False, False, True),
        (b"3\r\nabc\r\n0\r\n0", b"abc", False, False, False),
        (b"3\r\nabc\r\n0\n\n", b"abc", False, False, True),
        (b"3\r\nabc\r\n0", b"abc", False, False, False),
        (b"3\r\nabc\r\n4\r\nde", b"abcde", False, False, False),
        (b"3\r\nabc\r\n", b"abc", False, False, False),
        (b"3\r\nabc", b"abc", False, False, False),
        (b"zz\r\nabc", b"", True, False, False),
        (b"-1\r\nabc", b"", True, False, False),
        (b"\r\n", b"", True, False, False),
        (b"1;" + b"x" * MOST_LINE, b"", True, False, False),
        (b"1;" + b"x" * MOST_LINE + b"\r\na\r\n", b"", True, False, False),
        (b"", b"", False, False, False),
    ],
)
def test_the_contents_of_chunks(available: bytes, body: bytes, seen: bool, whole: bool, whole_at_the_end: bool) -> None:
    """ChunkedFraming are whole with the blank line after their trailers, or if the connection ends before it."""
    chunks = ChunkedFraming()
    assert chunks.take(available) is seen
    assert (chunks.body, chunks.is_whole(ended=False), chunks.is_whole(ended=True)) == (body, whole, whole_at_the_end)


def test_chunks_may_come_in_parts_of_any_size() -> None:
    """Bytes that were parsed once are not parsed again."""
    available, chunks = b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\nA: b\r\n\r\n", ChunkedFraming()
    seen = [chunks.take(available[:count]) for count in range(len(available) + 1)]
    assert seen == [False] * len(available) + [True]
    assert (chunks.body, chunks.is_whole(ended=False)) == (b"abc0123456789", True)


@pytest.mark.parametrize(
    ("length", "seen", "whole", "whole_at_the_end"),
    [(2, True, True, True), (3, True, True, True), (4, False, False, False), (None, False, False, True)],
)
def test_a_body_of_a_length_or_of_none(length: int | None, seen: bool, whole: bool, whole_at_the_end: bool) -> None:
    """A body without a length ends with its connection."""
    sized = LengthFraming(length)
    assert sized.take(b"abc") is seen
    assert sized.body == b"abc"[:length]
    assert (sized.is_whole(ended=False), sized.is_whole(ended=True)) == (whole, whole_at_the_end)


@pytest.mark.parametrize(
    ("before", "ahead", "ended", "expected"),
    [
        (b"3\r\nabc\r\n0\r\n\r\n", b"", False, True),
        (b"3\r\nabc\r\n0\r", b"\n\r\n", False, True),
        (b"", b"0\r\n\r\n", False, True),
        (b"3\r\nabc\r\n0\r\nA: b\r\n\r\n", b"", False, True),
        (b"3\r\nabc\r\n0\r\n", b"", False, False),
        (b"3\r\nabc\r\n0\r\n", b"", True, True),
        (b"3\r\nabc\r\n", b"", True, False),
        (b"4\r\n\r\n\r\n\r\n", b"", False, False),  # an event whose end looks like that of the trailers
        (b"", b"", False, False),
    ],
)
def test_the_end_of_chunks_is_seen_by_their_last_bytes(
    before: bytes, ahead: bytes, ended: bool, expected: bool
) -> None:
    """ChunkedFraming are parsed only for trailers, and where the connection has ended."""
    assert ChunkedFraming().is_complete(before, bytearray(ahead), ended=ended) is expected
    assert not ChunkedFraming().is_above(0)


def unread(reader: Reader, length: int | None) -> Any:
    """A urllib3 response of which nothing was read yet."""
    original = SimpleNamespace(fp=io.BufferedReader(reader), length=length)
    return SimpleNamespace(_original_response=original, chunked=False)


@pytest.mark.parametrize(
    ("length", "seconds", "sent", "closes", "expected"),
    [
        (3, 5, b"abc", False, Arrived.WHOLE),
        (4, 5, b"abc", True, Arrived.BROKEN),
        (None, 5, b"abc", True, Arrived.WHOLE),
        (None, 5, b"abcd" * 100, False, Arrived.COMING),
        (200, 5, b"abc", False, Arrived.COMING),
        (4, 0.01, b"abc", False, Arrived.COMING),
        (4, 0.0, b"abc", False, Arrived.COMING),
        (4, None, b"abc", False, Arrived.BROKEN),
    ],
)
@pytest.mark.real_time
def test_how_much_of_a_body_is_at_hand(
    pair: tuple[Reader, socket.socket],
    length: int | None,
    seconds: float | None,
    sent: bytes,
    closes: bool,
    expected: Any,
) -> None:
    """Whole, broken, or coming: longer than what is waited for, or late. The read time-out that runs out is a break."""
    reader, far = pair
    reader._sock.settimeout(0.05 if seconds is None else 5)  # type: ignore[attr-defined]
    far.sendall(sent)
    if closes:
        far.close()
    raw = unread(reader, length)
    assert arrived(raw, 100, seconds) is expected
    raw._original_response.fp.detach()
    assert arrived(object(), 100, 5) is None


@pytest.mark.parametrize(
    ("length", "coding", "chunked", "is_ahead", "expected"),
    [
        (3, {}, False, False, True),
        (2, {}, False, False, True),
        (4, {}, False, False, False),
        (0, {}, False, False, False),
        (None, {}, False, False, False),
        (3, {"content-encoding": "gzip"}, False, False, False),
        (3, {}, True, False, False),
        (3, {}, False, True, False),
        (100_000, {}, False, False, False),
    ],
)
def test_a_body_is_known_to_be_at_hand(
    pair: tuple[Reader, socket.socket], length: int | None, coding: Any, chunked: bool, is_ahead: bool, expected: bool
) -> None:
    """All of it is in the buffer, as it is: nothing is decoded, and nothing more is read."""
    reader, far = pair
    far.sendall(b"abc")
    raw = unread(reader, length)
    raw.headers, raw.chunked = coding, chunked
    raw._original_response.fp.peek()
    reader.ahead = bytearray(b"d") if is_ahead else None
    assert holds_all(raw) is expected
    raw._original_response.fp.detach()
    assert not holds_all(object())


@pytest.mark.parametrize(
    ("chunked", "length", "expected"),
    [(True, None, ChunkedFraming), (True, 0, LengthFraming), (False, None, LengthFraming), (False, 5, LengthFraming)],
)
def test_head_has_no_chunks_whatever_it_says(chunked: bool, length: int | None, expected: Any) -> None:
    """``http.client`` gives what has no body a length of 0."""
    raw = SimpleNamespace(chunked=chunked, _original_response=SimpleNamespace(length=length))
    assert type(framing_of(raw)) is expected


class StandIn:
    """A socket that makes its own file, as TLS within TLS does."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self.answer)


class Everything(StandIn):
    """Answers to any name with a function, as some mocks do."""

    def __getattr__(self, name: str) -> object:
        return lambda: None


class Forwarding(StandIn):
    """Hands any other name on to a socket that is not connected, as that of httpretty does."""

    def __getattr__(self, name: str) -> object:
        with socket.socket() as real:
            return getattr(real, name)


def begun(sock: StandIn, kind: Any = CheckedResponse) -> Any:
    response = kind(sock, method="GET")
    response.begin()
    return response


WELL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell"


@pytest.mark.parametrize(
    ("sock", "status", "body"),
    [
        (StandIn(WELL), 200, b"well"),
        (Everything(WELL), 200, b"well"),
        (Forwarding(WELL), 200, b"well"),
        # Its file cannot tell whether it has ended, and the response is believed.
        (StandIn(b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"), 204, b""),
    ],
)
def test_what_makes_its_own_file_is_read_from_that(sock: StandIn, status: int, body: bytes) -> None:
    """Our reader is not in place then, and cannot notice the end."""
    response = begun(sock)
    assert (response.status, response.read()) == (status, body)


def test_a_read_finds_the_end_before_the_length() -> None:
    """urllib3 1.26 does not check that a length was reached, so its response raises where the body ends early."""
    whole, cut = (begun(StandIn(WELL.replace(b"4", length)), of_wire._ReadsToLength) for length in (b"4", b"6"))
    assert [b"well", b""] == [whole.read(4), whole.read(4)]
    assert b"well" == cut.read(4)
    with pytest.raises(http.client.IncompleteRead) as raised:
        cut.read(4)
    assert (b"", 2) == (raised.value.partial, raised.value.expected)


def test_a_reader_for_old_releases_notes_that_a_chunk_came() -> None:
    """urllib3 1.26 does not tell."""
    body = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwell\r\n0\r\n\r\n"
    response = begun(StandIn(body), of_wire._ReadsToLength)
    before = response.had_chunk
    assert (False, b"well", True) == (before, response.read(), response.had_chunk)


def test_what_was_read_ahead_is_not_shown() -> None:
    """It may have a secret."""
    assert "Peeked(whole=True, 6 bytes)" == repr(of_wire.Peeked(True, b"secret"))
