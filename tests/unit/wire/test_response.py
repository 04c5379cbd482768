"""The response class by itself; what it takes and refuses on a socket: test_heads.py."""

from __future__ import annotations

import http.client
import io

import pytest

from requests_smithy_retry.wire import response as of_wire
from requests_smithy_retry.wire.response import CheckedResponse


class StandIn:
    """A socket that makes its own file, as TLS within TLS does."""

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell")


def test_what_makes_its_own_file_is_read_from_that() -> None:
    """If a response makes its own file, our reader is not in place and cannot notice the end."""
    response = CheckedResponse(StandIn(), method="GET")
    response.begin()
    assert (response.status, response.read()) == (200, b"well")


def test_a_stand_in_without_a_body_is_looked_at_more_closely() -> None:
    """The file of a stand-in cannot tell whether it has ended, and the response is believed."""

    class Empty:
        def makefile(self, mode: str) -> io.BytesIO:
            return io.BytesIO(b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")

    response = CheckedResponse(Empty())
    response.begin()
    assert response.status == 204


def test_a_stand_in_that_has_everything_is_read_from_its_own_file() -> None:
    """Some mocks answer to any name with a function."""

    class Everything(StandIn):
        def __getattr__(self, name: str) -> object:
            return lambda: None

    response = CheckedResponse(Everything())
    response.begin()
    assert response.read() == b"well"


def test_a_read_finds_the_end_before_the_length() -> None:
    """urllib3 1.26 does not check that a length was reached, so its response raises where the body ends early."""

    class Cut:
        def makefile(self, mode: str) -> io.BytesIO:
            return io.BytesIO(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwell")

    response = of_wire._ReadsToLength(Cut(), method="GET")
    response.begin()
    assert b"well" == response.read(4)
    with pytest.raises(http.client.IncompleteRead) as raised:
        response.read(4)
    assert (b"", 2) == (raised.value.partial, raised.value.expected)


def test_nothing_is_missing_at_the_end_of_a_whole_body() -> None:
    """A read beyond the length is empty, as ``http.client`` has it."""
    response = of_wire._ReadsToLength(StandIn(), method="GET")
    response.begin()
    assert [b"well", b""] == [response.read(4), response.read(4)]
