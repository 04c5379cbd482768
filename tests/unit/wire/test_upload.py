"""A body on its way: within the attempt's deadline (contract 8.1), and of the declared length (contract 5)."""

from __future__ import annotations

import contextlib
import copy
import io
import socket
import ssl
import threading
import time
from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryAdapter, RetryListener, StopReason, retry_history
from requests_smithy_retry.clock import Deadline
from requests_smithy_retry.features.addresses import AddressMemory
from requests_smithy_retry.testing import FakeClock, FaultServer, ResetAfterRequest, refusing_port
from requests_smithy_retry.wire.connect import LARGE_PIECE, PIECE, Connect
from requests_smithy_retry.wire.state import this_thread
from requests_smithy_retry.wire.upload import (
    BodyChanged,
    IterableUpload,
    ReadableUpload,
    SeekableUpload,
    declared_length,
    size_in_memory,
)
from tests.faults.oracle import tls_contexts

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


def test_a_socket_of_the_standard_library_gets_large_pieces() -> None:
    """Its ``sendall`` ends by its timeout as a whole."""
    connection: Any = Connection(seconds=2)
    connection.sock, other = socket.socketpair()
    with connection.sock, other:
        connection.sock.settimeout(30)
        send(connection, bytes(LARGE_PIECE + 1), 10)
    assert [(LARGE_PIECE, 10), (1, 8)] == connection.sent


@pytest.mark.real_time
@pytest.mark.parametrize("is_tls", [False, True])
def test_a_large_piece_ends_by_the_deadline_however_slowly_it_is_read(is_tls: bool) -> None:
    """A peer that takes a little of it every 50 ms does not make the time longer."""
    server, client = tls_contexts()
    near, far = socket.socketpair()

    def read(sock: socket.socket) -> None:
        with contextlib.suppress(OSError), server.wrap_socket(sock, server_side=True) if is_tls else sock as reader:
            while reader.recv(16_384):
                time.sleep(0.05)

    reading = threading.Thread(target=read, args=(far,))
    reading.start()
    with client.wrap_socket(near, server_hostname="127.0.0.1") if is_tls else near as sock:
        assert type(sock) in {socket.socket, ssl.SSLSocket}
        sock.settimeout(0.3)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            sock.sendall(bytes(2 * LARGE_PIECE))
        assert time.monotonic() - began < 0.6
    reading.join()


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


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ("10", 10),
        (b"10", 10),
        (10, 10),
        (" 10 ", 10),
        ("0", 0),
        (None, None),
        ("", None),
        ("ten", None),
        ("-1", None),
        ("1_0", None),
        ("\u0661", None),
        (b"\xb2", None),
    ],
)
def test_the_length_that_a_head_declares(value: Any, length: int | None) -> None:
    """Digits count, as text, bytes or a number; anything else declares nothing."""
    assert length == declared_length({} if value is None else {"Content-Length": value})


@pytest.mark.parametrize(
    ("body", "size"),
    [
        (bytearray(b"123"), 3),
        (memoryview(b"1234").cast("H"), 4),
        ([b"1", "\xe4", bytearray(b"3"), memoryview(b"45").cast("H")], 6),
        (("1", b""), 1),
        ([], 0),
    ],
)
def test_the_size_of_what_lies_in_memory(body: Any, size: int) -> None:
    """Bytes count, not items or characters."""
    assert size == size_in_memory(body)


PARTS = ["1", b"23", bytearray(b"4"), memoryview(b"56").cast("H"), b"", None]


@pytest.mark.parametrize(
    ("length", "sent"),
    [
        (None, "123456"),
        (6, "123456"),
        (5, "12345"),
        (3, "123"),
        (2, "12"),
        (0, ""),
        (7, BodyChanged),
    ],
)
def test_the_parts_of_an_iterable_up_to_its_length(length: int | None, sent: Any) -> None:
    """Each time that it is iterated over; the part that is too long is cut."""
    upload = IterableUpload(PARTS, length)
    for _ in range(2):
        if sent is BodyChanged:
            with pytest.raises(BodyChanged, match="after 6 of the 7 bytes"):
                list(upload)
        else:
            assert sent == b"".join(bytes(part) for part in upload if part).decode()
        assert (upload.given, upload.is_whole) == (min(6, 6 if length is None else length), sent is not BodyChanged)


def test_an_iterable_that_was_sent_before_has_to_give_something() -> None:
    """What an earlier request used up is not sent empty."""
    upload = IterableUpload([], None)
    assert [] == list(upload)
    upload.is_again = True
    with pytest.raises(BodyChanged, match="earlier request"):
        list(upload)


@pytest.mark.parametrize("size", [None, -1])
@pytest.mark.parametrize(("length", "sent"), [(None, b"12345"), (5, b"12345"), (3, b"123")])
def test_all_of_a_file_at_once(size: int | None, length: int | None, sent: bytes) -> None:
    """Who asks for all gets what is declared."""
    assert sent == ReadableUpload(io.BytesIO(b"12345"), length).read(size)


def test_a_file_is_read_no_further_than_its_length() -> None:
    """It stands there then, however much it is asked for, and is iterated over likewise."""
    body = io.BytesIO(b"12345")
    upload = SeekableUpload(body, 3, 0)
    assert (b"", b"12", b"3", b"", 3) == (upload.read(0), upload.read(2), upload.read(2), upload.read(2), body.tell())
    assert upload.is_whole
    assert 0 == upload.seek(0)
    assert not upload.is_whole
    assert [b"123"] == list(upload)


def test_what_a_stream_that_is_not_ready_gives_is_its_end() -> None:
    """None of a non-blocking stream ends an upload in urllib3, too; where more is declared, it is an error."""

    class NotReady(io.BytesIO):
        def read(self, size: int | None = -1) -> Any:
            return None

    assert b"" == ReadableUpload(NotReady(), None).read(1)
    with pytest.raises(BodyChanged, match="after 0 of the 1 bytes"):
        ReadableUpload(NotReady(), 1).read(1)


def test_a_copy_of_a_watched_body_is_made_by_the_usual_way() -> None:
    """Who copies a request deeply copies its body, as without us."""
    upload = copy.deepcopy(ReadableUpload(io.BytesIO(b"123"), 2))
    assert b"12" == upload.read()
