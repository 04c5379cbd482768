from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from requests_smithy_retry.quotas.redis_connection import BoxedSocket, check, connect, is_late, redis_error
from requests_smithy_retry.testing.clock import FakeClock


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, two = socket.socketpair()
    with one, two:
        yield one, two


class TestTheBoxedSocket:
    def test_it_reads_and_writes_until_the_moment(self, pair: tuple[socket.socket, socket.socket]) -> None:
        """Within the time it is a socket like any other; the timeout of each step is what is left."""
        clock = FakeClock(now=10)
        boxed = BoxedSocket(pair[0], clock, until=12.5)
        boxed.settimeout(100)
        boxed.sendall(b"hello")
        assert (pair[1].recv(10), pair[0].gettimeout()) == (b"hello", 2.5)
        clock.advance(1)
        pair[1].sendall(b"abcd")
        space = bytearray(2)
        assert (boxed.recv(2), boxed.recv_into(space), bytes(space)) == (b"ab", 2, b"cd")
        assert (pair[0].gettimeout(), boxed.fileno()) == (1.5, pair[0].fileno())

    def test_past_the_moment_nothing_is_read_or_written(self, pair: tuple[socket.socket, socket.socket]) -> None:
        """Not even what is there: a drip would go on for ever."""
        pair[1].sendall(b"abcd")
        boxed = BoxedSocket(pair[0], FakeClock(now=10), until=10)
        for step in (lambda: boxed.recv(1), lambda: boxed.recv_into(bytearray(1)), lambda: boxed.sendall(b"x")):
            with pytest.raises(TimeoutError):
                step()


def test_what_comes_late_is_told_from_what_does_not_come() -> None:
    """A timeout leaves the command with the server; any other failure does not."""
    assert [is_late(error) for error in (TimeoutError(), redis_error("TimeoutError")(), OSError(), ValueError())] == [
        True,
        True,
        False,
        False,
    ]


def test_a_url_is_checked_without_connecting() -> None:
    """Port 1 has no server; only the words of the URL are looked at."""
    check("redis://127.0.0.1:1?socket_keepalive=1&client_name=fleet")
    check("unix:///nowhere?db=1")
    check("rediss://127.0.0.1:1?ssl_cert_reqs=required")


def test_a_server_that_is_not_there_is_redis_pys_error() -> None:
    """The pool turns it into a word."""
    with pytest.raises(redis_error("ConnectionError")):
        connect("redis://127.0.0.1:1", FakeClock(), 1)
