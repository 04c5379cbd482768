"""Failed responses that are meant to hurt: bounded bytes, bounded time (contract 13)."""

from __future__ import annotations

import contextlib
import functools
import gzip
import itertools
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

from requests_smithy_retry import Outcome, RetryAction, StopReason, classifier, retry_history
from requests_smithy_retry.core import exchange
from requests_smithy_retry.wire.response import PEEK_SECONDS, Reader
from tests.faults import CutBody, Drip, EndlessBody, FaultServer, Reply, coded_reply, gzip_bomb

from .support import session

ENOUGH = 60.0
"""Seconds that no machine needs for what is quick. Without a bound, each of these bodies would take much longer."""


@pytest.fixture
def _short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at a body, and drain it, for a tenth of the time."""
    assert (1.0, 1.0, 0.1) == (PEEK_SECONDS, exchange.DRAIN_SECONDS, exchange.DRAIN_STALL)
    monkeypatch.setattr(exchange, "peek", functools.partial(exchange.peek, seconds=PEEK_SECONDS / 10))
    monkeypatch.setattr(exchange, "DRAIN_SECONDS", exchange.DRAIN_SECONDS / 10)


@contextlib.contextmanager
def soon() -> Iterator[None]:
    """Fail if it takes longer than what is quick ever does."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < ENOUGH


BIG = b"0123456789abcdef" * 10_000
DRIPPING_404 = EndlessBody(404, piece=b"x", interval=0.02)


@pytest.mark.usefixtures("_short_looks")
@pytest.mark.parametrize(
    "behaviour",
    [
        EndlessBody(503),
        EndlessBody(503, framing="length"),
        EndlessBody(503, framing="chunked"),
        EndlessBody(429, framing="chunked"),
        EndlessBody(503, piece=b"x", interval=0.02),
        EndlessBody(429, piece=b"x", interval=0.02, framing="length"),
        EndlessBody(429, piece=b"x", interval=0.02, framing="chunked"),
        Drip("body", 0.02, Reply(503, body=BIG)),
        gzip_bomb(32 << 20, 503),
    ],
    ids=repr,
)
def test_a_discarded_response_costs_little(behaviour: Any) -> None:
    """The retry follows soon, however long the body of the failure would be."""
    tracemalloc = pytest.importorskip("tracemalloc")  # PyPy has none
    with FaultServer([behaviour]) as server, session() as made, soon():
        tracemalloc.start()
        try:
            assert made.get(server.url).status_code == 200
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < 8 << 20


class OwnWay(HTTPConnection):
    """Connects in a way of its own, as those over Unix sockets do, so that it is not prepared."""

    def connect(self) -> None:
        super().connect()


def use_own_way(made: requests.Session) -> None:
    """Have none of a session's connections be ours; they use the standard library's reader, which can be bounded."""
    pool: Any = type("Pool", (HTTPConnectionPool,), {"ConnectionCls": OwnWay})
    made.get_adapter("http://").poolmanager.pool_classes_by_scheme = {"http": pool}  # type: ignore[attr-defined]


@pytest.mark.parametrize("framing", ["close", "chunked"])
def test_a_discarded_response_costs_little_where_the_connection_is_none_of_ours(framing: str) -> None:
    """As over one of ours."""
    with FaultServer([EndlessBody(503, framing=framing)]) as server, session() as made, soon():
        use_own_way(made)
        assert made.get(server.url).status_code == 200


@pytest.mark.parametrize("prepare", [lambda made: None, use_own_way], ids=["ours", "not ours"])
@pytest.mark.parametrize("fault", [Drip("body", 0.02, Reply(200, body=b"x" * 10_000)), DRIPPING_404], ids=repr)
def test_a_deadline_ends_a_body_that_drips(fault: Any, prepare: Callable[[requests.Session], None]) -> None:
    """Each read from the socket does, with the name that running out of time has."""
    late = pytest.raises(requests.exceptions.Timeout)  # on a busy machine, it may not even have connected
    with FaultServer(fault) as server, session(max_attempts=1, operation_timeout=0.2) as made, soon(), late:
        prepare(made)
        made.get(server.url, timeout=600)


CHUNKED = b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n"
LENGTHLESS = b'Content-Type: application/json\r\nConnection: close\r\n\r\n{"error":'


@contextlib.contextmanager
def answering(first: bytes, end: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server whose first connection gets these bytes and then that end; each later one a 200."""

    def serve() -> None:
        for number in itertools.count():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.recv(65_536)
                connection.sendall(first if number == 0 else b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfine")
                if number == 0:
                    end(connection)

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def keep_open(connection: socket.socket) -> None:
    connection.recv(1)


def trail_on(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"A: b\r\n")
        time.sleep(0.02)


def reset(connection: socket.socket) -> None:
    time.sleep(0.1)  # what was sent is to be read first
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.real_time
@pytest.mark.usefixtures("_short_looks")
@pytest.mark.parametrize("end", [keep_open, trail_on])
def test_the_trailers_of_a_discarded_body_are_waited_for_no_longer_than_the_rest_of_it(
    end: Callable[[socket.socket], None],
) -> None:
    """A last chunk is no end: urllib3 reads until the blank line after its trailers."""
    with answering(CHUNKED, end) as url, session() as made, soon():
        assert made.get(url, timeout=600).content == b"fine"


@pytest.mark.real_time
@pytest.mark.parametrize("status", [404, 503])
def test_an_error_body_without_length_that_ends_in_a_reset_is_cut(status: int) -> None:
    """The cut is found in a 404 and in a 503, although the kernel reports the reset only once."""
    head = b"HTTP/1.1 %d No\r\n" % status
    broken = pytest.raises(requests.exceptions.ChunkedEncodingError)
    with answering(head + LENGTHLESS, reset) as url, session(max_attempts=1) as made, broken:
        made.get(url, timeout=600)


def waits_in_vain(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """The timeouts of sockets that expired, in a list that grows."""
    waited: list[float | None] = []

    def telling(receive: Any) -> Any:
        def receiving(sock: socket.socket, *arguments: Any) -> Any:
            try:
                return receive(sock, *arguments)
            except TimeoutError:
                waited.append(sock.gettimeout())
                raise

        return receiving

    for name in ("recv", "recv_into"):
        monkeypatch.setattr(socket.socket, name, telling(getattr(socket.socket, name)), raising=False)
    return waited


@pytest.mark.real_time
def test_an_error_body_that_stalls_takes_as_long_as_the_read_timeout_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for once: neither for a second, nor for twice the timeout."""
    waited = waits_in_vain(monkeypatch)
    stalled = b"HTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\nno"
    with answering(stalled, keep_open) as url, session(max_attempts=1) as made:
        with pytest.raises(requests.exceptions.ConnectionError):
            made.get(url, timeout=0.2)
        assert waited == [0.2]


def test_the_body_that_head_never_has_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A response to HEAD is not read, even if its head announces chunks."""
    monkeypatch.setattr(Reader, "fetch_ahead", None)
    with FaultServer(Reply(404, body=b"x", framing="chunked")) as server, session(max_attempts=1) as made:
        assert made.head(server.url, timeout=600).status_code == 404


@pytest.mark.usefixtures("_short_looks")
def test_a_trickling_line_of_chunk_framing_is_not_drained_for_long() -> None:
    """One read of a chunk's size reads the socket many times; all of them together are bounded."""
    head = b"HTTP/1.1 429 Slow\r\nTransfer-Encoding: chunked\r\n\r\n"

    class Trickle(Reply):
        def act(self, wire: Any, request: Any) -> None:
            wire.send(head)
            wire.drip(b"0" * 10_000, 0.02)

    with FaultServer([Trickle()]) as server, session() as made, soon():
        assert made.get(server.url).status_code == 200


@pytest.mark.parametrize(
    "reply",
    [
        Reply(404, body=BIG),
        Reply(404, body=BIG, framing="chunked"),
        Reply(404, body=BIG, framing="close"),
        *[coded_reply("gzip", BIG, status=404, framing=framing) for framing in ("length", "chunked", "close")],
        coded_reply("deflate", BIG, status=404, framing="chunked"),
        gzip_bomb(1 << 20, 404),
        Reply(404, body=b"small"),
        Reply(404, body=b"small", framing="chunked"),
        Reply(404),
    ],
    ids=repr,
)
def test_a_final_failure_is_handed_over_whole(reply: Reply) -> None:
    """Bytes that were looked at first are not lost to the caller."""
    with FaultServer([reply]) as server, session() as made:
        response = made.get(server.url)
        coded = response.headers.get("content-encoding")
        expected = gzip.decompress(reply.body) if coded == "gzip" else BIG if coded else reply.body
        assert response.content == expected
        assert made.get(server.url).status_code == 200
        assert server.connections == (2 if reply.framing == "close" else 1)


@pytest.mark.usefixtures("_short_looks")
def test_a_slow_final_failure_is_read_to_its_end() -> None:
    """The body of a final failure is read to its end, as by plain requests, because no retry follows."""
    body = b"x" * 30
    with FaultServer([Drip("body", 0.02, Reply(404, body=body))]) as server, session() as made:
        assert made.get(server.url).content == body


def test_the_cut_body_of_a_last_failure_is_raised() -> None:
    """No attempt is left to mend it."""
    fault, broken = CutBody(Reply(503, body=BIG), -5), requests.exceptions.ChunkedEncodingError
    with FaultServer([fault]) as server, session(max_attempts=1) as made, pytest.raises(broken) as caught:
        made.get(server.url)
    assert retry_history(caught.value).stop_reason is StopReason.MAX_ATTEMPTS


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(400, body=b"small"), b"small"),
        (Reply(400, body=BIG), BIG[:65536]),
        (Reply(400, body=BIG, framing="chunked"), BIG[:65000]),
        (coded_reply("gzip", b"small", status=400), b"small"),
        (gzip_bomb(1 << 20, 400), bytes(65536)),
        (Reply(400), b""),
    ],
    ids=repr,
)
def test_a_classifier_sees_how_a_body_begins(reply: Reply, expected: bytes) -> None:
    """Decoded, and at most 64 KiB of it."""
    seen: list[bytes] = []

    @classifier
    def look(outcome: Outcome) -> RetryAction | None:
        seen.append(outcome.body_prefix)
        return None

    with FaultServer([reply]) as server, session(classifiers=[look]) as made:
        made.get(server.url)
        made.get(server.url, stream=True).close()
    assert len(seen[0]) <= 65536
    assert seen[0].startswith(expected)
    assert seen[1:] in ([], [b""])
