"""Every fault of the catalogue, by how often, method, body kind, and stream or not."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import Any

import pytest
import requests

from requests_smithy_retry import StopReason, retry_history
from requests_smithy_retry.testing import Behaviour, RecordedRequest
from tests.faults import DEFAULT_BODY, WELL, CataloguedFault, FaultServer, fault_catalogue
from tests.faults.server import FaultWire

from .support import nothing_left, session

UNASKED_101 = "switching-protocols"
"""Handed on as it is (contract 14.4): its status says all."""
AMPLE = 60.0
"""Seconds for one attempt that nothing holds up; enough for any machine."""
SECONDS = (0.05, 1.0, 20.0)
"""Seconds for one attempt, where the fault lasts until a time limit ends it. The longer ones are for a machine that
is too busy for the shorter ones. No drip ends within them."""

SLOWER = {seconds: {fault.name: fault for fault in fault_catalogue(interval=seconds / 4)} for seconds in SECONDS}
FAULTS = list(SLOWER[SECONDS[0]].values())
BROKEN = [fault for fault in FAULTS if fault.outcome in ("broken", "slow") and fault.name != UNASKED_101]
WHOLE = [fault for fault in FAULTS if fault.outcome == "whole"]
IN_A_BODY = (
    *("body-", "chunk-", "endless-body", "endless-chunks", "last-chunk-", "length-cut", "length-reset", "length-too-"),
    *("gzip-", "deflate-", "stall-body", "trickling-", "head-without-blank-line"),
)
HEAD_FAULTS = frozenset(fault.name for fault in BROKEN if not fault.name.startswith(IN_A_BODY))
"""Faults that occur before there is a response to hand over."""
BODIES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "bytes": lambda: b"payload",
    "generator": lambda: (part for part in (b"pay", b"load")),
    "file": lambda: io.BytesIO(b"payload"),
}


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "urllib3")


def ids(faults: list[CataloguedFault]) -> list[str]:
    return [fault.name for fault in faults]


def call(
    fault: CataloguedFault, method: str, kind: str, stream: bool, times: int, seconds: float = SECONDS[0]
) -> tuple[Any, FaultServer]:
    """A response, read to its end, or the exception; and the server, closed.

    :param seconds: for one attempt, where the fault is a slow one.
    """
    if fault.outcome != "slow":
        seconds = AMPLE
    script = [fault.behaviour] * times
    with FaultServer(script, default=WELL if times < 3 else fault.behaviour) as server:
        with session(max_attempts=3, operation_attempt_timeout=seconds) as made:
            try:
                result: Any = made.request(method, server.url, data=BODIES[kind](), stream=stream, timeout=seconds)
                if stream and fault.outcome == "slow" and fault.name not in HEAD_FAULTS:
                    result.close()  # its body may have no end, and no deadline (contract 8.1)
                else:
                    assert result.content is not None
            except requests.RequestException as error:
                result = error
        return result, server


def undisturbed(
    fault: CataloguedFault, method: str, kind: str, stream: bool, times: int, expected: int
) -> tuple[Any, FaultServer]:
    """A call with a time limit that is too short for the fault alone.

    An attempt too many shows that what is quick was late as well. What is wrong in the library is wrong under each
    limit.

    :param expected: how many requests the server gets.
    """
    for seconds in SECONDS:
        result, server = call(SLOWER[seconds][fault.name], method, kind, stream, times, seconds)
        record = retry_history(result)
        late = len(server.requests) > expected or (record is not None and len(record.attempts) > expected)
        # Where nothing is sent again, the fault itself ends in a timeout.
        late = late or (method != "POST" and isinstance(result, requests.Timeout))
        if not late or fault.outcome != "slow":
            break
    return result, server


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("method", "kind", "times"), [("GET", "none", 1), ("GET", "none", 2), ("PUT", "bytes", 1), ("PUT", "file", 1)]
)
@pytest.mark.parametrize("fault", BROKEN, ids=ids(BROKEN))
def test_a_passing_fault_is_mended(fault: CataloguedFault, method: str, kind: str, times: int) -> None:
    """A request that may be sent again ends with a whole response, however the attempts before were broken."""
    result, server = undisturbed(fault, method, kind, False, times, expected=times + 1)
    assert isinstance(result, requests.Response), result
    assert result.content == DEFAULT_BODY
    assert len(retry_history(result).attempts) == times + 1
    if kind != "none":
        assert server.requests[-1].body == b"payload"


@pytest.mark.untraced
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", BROKEN, ids=ids(BROKEN))
def test_a_lasting_fault_is_an_error(fault: CataloguedFault, stream: bool) -> None:
    """The last attempt's own requests exception, and no body that could be known to be wrong."""
    result, _ = call(fault, "GET", "none", stream, 3)
    if stream and fault.name not in HEAD_FAULTS and isinstance(result, requests.Response):
        return  # the body is the caller's; urllib3 does not look at the end of a coding
    assert isinstance(result, requests.RequestException), result
    if not stream:
        assert retry_history(result).stop_reason is StopReason.MAX_ATTEMPTS


@pytest.mark.parametrize("fault", [f for f in BROKEN if f.name not in HEAD_FAULTS])
def test_a_stream_is_never_replayed(fault: CataloguedFault) -> None:
    """With ``stream`` the response is the caller's once there is one: its body is not asked for again."""
    _, server = undisturbed(fault, "GET", "none", True, 1, expected=1)
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [f for f in BROKEN if f.name in HEAD_FAULTS])
def test_a_head_that_fails_is_asked_for_again_with_stream(fault: CataloguedFault) -> None:
    """Before there is a response, ``stream`` makes no difference."""
    result, _ = undisturbed(fault, "GET", "none", True, 1, expected=2)
    assert isinstance(result, requests.Response), result
    assert result.content == DEFAULT_BODY


@pytest.mark.untraced
@pytest.mark.parametrize("kind", ["bytes", "generator"])
@pytest.mark.parametrize("fault", BROKEN, ids=ids(BROKEN))
def test_a_post_that_may_have_been_applied_is_not_repeated(fault: CataloguedFault, kind: str) -> None:
    """A request that was written, without a key, is sent once."""
    result, server = undisturbed(fault, "POST", kind, False, 1, expected=1)
    assert isinstance(result, requests.RequestException), result
    assert len(server.requests) <= 1
    assert len(retry_history(result).attempts) == 1


@pytest.mark.untraced
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
@pytest.mark.parametrize("fault", WHOLE, ids=ids(WHOLE))
def test_what_is_whole_arrives(fault: CataloguedFault, method: str, stream: bool) -> None:
    """Oddities that plain requests takes are taken, at the first attempt."""
    result, _ = call(fault, method, "bytes", stream, 1)
    assert isinstance(result, requests.Response), result
    assert result.content == DEFAULT_BODY
    assert len(retry_history(result).attempts) == 1


@pytest.mark.untraced
@pytest.mark.parametrize("fault", FAULTS, ids=ids(FAULTS))
def test_no_socket_and_no_thread_is_left(fault: CataloguedFault) -> None:
    """Once the session is closed and the result is dropped, nothing of it is there, with no help from the collector."""
    with nothing_left():
        call(fault, "GET", "none", False, 1)


def test_switching_protocols_is_handed_on() -> None:
    """An answer 101 is no interim answer."""
    fault = next(fault for fault in FAULTS if fault.name == UNASKED_101)
    result, _ = call(fault, "GET", "none", False, 1)
    assert result.status_code == 101


class Echo(Behaviour):
    """Switches to a protocol that sends five bytes back, and closes."""

    def act(self, wire: FaultWire, request: RecordedRequest) -> None:
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        wire.send(wire.file.read(5))


def test_the_connection_of_another_protocol_is_the_programs() -> None:
    """After a 101 with ``stream=True`` the program goes on over the connection of the response."""
    with FaultServer(Echo()) as server, session() as made:
        response = made.get(server.url, stream=True, timeout=AMPLE)
        sock = response.raw._connection.sock
        sock.sendall(b"hello")
        assert sock.recv(5) == b"hello"
        response.close()


def test_the_connection_of_another_protocol_carries_no_further_request() -> None:
    """What follows a 101 on its connection is no HTTP: the next request goes over another one."""
    with FaultServer([Echo(), WELL]) as server, session(max_attempts=1) as made:
        assert made.get(server.url, timeout=AMPLE).status_code == 101
        assert made.get(server.url, timeout=AMPLE).content == DEFAULT_BODY
        assert server.connections == 2
