"""Facts that only a wire can show: a server that misbehaves on loopback, and the requests that reach it."""

from __future__ import annotations

import gc
import io
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
import requests.exceptions as rex
from requests.adapters import HTTPAdapter

from requests_smithy_retry import RetryAdapter, StopReason, mount, retry_history
from requests_smithy_retry.testing import Behaviour, FakeClock
from tests.faults import (
    AnswerBeforeUpload,
    BadChunkSize,
    CloseAfterRequest,
    CutBody,
    FaultServer,
    Reply,
    ResetAfterRequest,
    ResetBeforeRequest,
    Stall,
    TwoLengths,
    refusing_port,
    try_later,
)
from tests.faults.oracle import until
from tests.support import session_with

OK = Reply(body=b"at last")


def session(**options) -> requests.Session:
    """A session that sleeps on a fake clock, without jitter."""
    options.setdefault("clock", FakeClock())
    if "strategy" not in options:
        options.setdefault("jitter", "none")
        options.setdefault("quota", 500)
    return session_with(RetryAdapter(**options))


def adapter_of(some: requests.Session) -> RetryAdapter:
    adapter = some.get_adapter("http://")
    assert isinstance(adapter, RetryAdapter)
    return adapter


@pytest.mark.parametrize(
    "fault",
    [Reply(503), CloseAfterRequest(), ResetAfterRequest(), CutBody(OK), AnswerBeforeUpload(Reply(503))],
    ids=lambda fault: type(fault).__name__,
)
@pytest.mark.parametrize("make", [lambda: iter([b"one", b"two"]), lambda: (part for part in [b"onetwo"])])
def test_no_empty_upload_is_ever_sent(make, fault):
    """With every fault, a one-shot upload reaches the server once at most, and never empty."""
    with FaultServer([fault, OK, OK]) as server, session() as client:
        try:
            client.put(server.url, data=make())
        except rex.RequestException:
            pass
        assert 1 == len(server.requests)
        assert server.requests[0].body in (b"onetwo", b"") if isinstance(fault, AnswerBeforeUpload) else True
        assert all(item.body == b"onetwo" for item in server.requests if item.body_complete)


def test_a_generator_is_sent_after_a_refused_connection():
    """Nothing was read from the generator, so it is whole, and goes out when the service is there."""
    with refusing_port() as port:
        pass
    server = None

    class Starting(FakeClock):
        def sleep(self, seconds):
            nonlocal server
            server = FaultServer([OK], port=port)
            super().sleep(seconds)

    with session(clock=Starting()) as client:
        response = client.post(f"http://127.0.0.1:{port}/", data=iter([b"one", b"two"]))
    assert server is not None
    with server:
        assert (200, [b"onetwo"]) == (response.status_code, [item.body for item in server.requests])


@pytest.mark.parametrize("fault", [Reply(503), ResetAfterRequest(), CutBody(OK)], ids=lambda item: type(item).__name__)
@pytest.mark.parametrize("offset", [0, 3])
def test_a_file_is_sent_again_from_its_offset(offset, fault):
    """An upload from a file at offset 3 is re-sent from offset 3, byte for byte."""
    data = os.urandom(100_000)
    with FaultServer([fault, fault, OK]) as server, session() as client:
        file = io.BytesIO(data)
        file.seek(offset)
        assert 200 == client.put(server.url, data=file).status_code
        assert [data[offset:]] * 3 == [item.body for item in server.requests]


FAULTS = {
    "read timeout": Stall(),
    "close": CloseAfterRequest(),
    "reset": ResetAfterRequest(),
    "reset at once": ResetBeforeRequest(),
    "cut body": CutBody(OK),
    "bad chunk": BadChunkSize(reply=Reply(body=b"x", framing="chunked")),
    "two lengths": TwoLengths(),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_last_outcome_is_what_a_plain_adapter_would_give(name):
    """After three attempts the exception has the type that a plain adapter raises at once, and is its own."""
    timeout = 0.1 if name == "read timeout" else 30
    with FaultServer(FAULTS[name]) as server:
        try:
            session_with(HTTPAdapter()).get(server.url, timeout=timeout)
            expected = rex.ChunkedEncodingError  # urllib3 1.26 hands on a body that was cut
        except rex.RequestException as error:
            expected = type(error)
        server.reset()
        with session() as client, pytest.raises(rex.RequestException) as caught:
            client.get(server.url, timeout=timeout)
    assert expected is type(caught.value)
    chain, error = [], caught.value.__context__
    while error is not None and len(chain) < 20:
        chain.append(type(error).__name__)
        error = error.__context__
    assert "RetryError" not in chain
    history = retry_history(caught.value)
    assert (3, StopReason.MAX_ATTEMPTS) == (len(history.attempts), history.stop_reason)


def test_what_an_earlier_connection_came_to_is_forgotten():
    """A refused connection elsewhere does not count for the POST that follows on a kept connection."""
    with FaultServer([OK, ResetAfterRequest(), OK]) as server, refusing_port() as port, session() as client:
        client.get(server.url)
        with pytest.raises(rex.ConnectionError):
            client.get(f"http://127.0.0.1:{port}/")
        with pytest.raises(rex.ConnectionError):
            client.post(server.url, data=b"pay")
        assert ["GET", "POST"] == [item.method for item in server.requests]
        assert 1 == server.connections


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(("status", "connections"), [(429, 1), (503, 2)])
def test_a_connection_is_kept_after_throttling_and_closed_after_a_failure(status, connections, framing, stream):
    """After 429 it goes out on the same one; after 503 on a fresh one, so to another back end of a balancer."""
    answer = Reply(status, body=b"slow down", framing=framing)
    with FaultServer([answer, OK, OK]) as server, session() as client:
        for _ in range(2):
            assert b"at last" == client.get(server.url, stream=stream).content
        assert [0, connections - 1, connections - 1] == [item.connection_id for item in server.requests]


@pytest.mark.parametrize("stream", [False, True])
def test_a_failed_connection_is_closed_before_the_wait(stream):
    """The server sees the old connection end before the wait begins."""
    ended = []

    class Looking(FakeClock):
        def sleep(self, seconds):
            pool = next(iter(adapter_of(client).poolmanager.pools._container.values()))
            ended.append([item for item in list(pool.pool.queue) if item is not None and item.sock is not None])
            super().sleep(seconds)

    with FaultServer([Reply(503, body=b"down"), OK]) as server, session(clock=Looking()) as client:
        client.get(server.url, stream=stream)
    assert [[]] == ended


@pytest.mark.parametrize("status", [404, 503])
def test_a_final_answer_is_handed_on_unread_with_its_connection(status):
    """With ``stream`` the last bad answer can be read by the caller, and its connection serves on afterwards."""
    with FaultServer([Reply(status, body=b"why" * 50_000), OK]) as server, session(max_attempts=1) as client:
        response = client.get(server.url, stream=True)
        assert (status, False, b"why" * 50_000) == (response.status_code, response._content, response.content)
        assert b"at last" == client.get(server.url).content
        assert 1 == server.connections


def test_a_long_discarded_body_is_not_read_to_its_end():
    """Of a throttled answer's body only so much is read as is worth a connection; the retry takes another."""
    with FaultServer([Reply(429, body=b"x" * 5_000_000), OK]) as server, session() as client:
        assert b"at last" == client.get(server.url, stream=True).content
        assert 2 == server.connections


@pytest.mark.untraced
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "fault", [*FAULTS.values(), Reply(503, body=b"x"), Reply(429, body=b"x"), Reply(404)], ids=repr
)
def test_a_pool_of_one_never_deadlocks(fault, stream):
    """With ``pool_block=True, pool_maxsize=1`` each failed attempt gives its connection back before the wait."""
    said = []
    with (
        FaultServer([fault, fault, OK, fault, OK, OK]) as server,
        session(pool_block=True, pool_maxsize=1, pool_connections=1) as client,
    ):
        timeout = 0.1 if isinstance(fault, Stall) else 60
        said.extend([try_to_get(client, server.url, stream, timeout) for _ in range(3)])
        assert [] == [item for item in said if "EmptyPool" in item or "pool is full" in item]
        if not isinstance(fault, ResetBeforeRequest):
            until(lambda: len(server.requests) >= 3)


def try_to_get(client: requests.Session, url: str, stream: bool, timeout: float) -> str:
    """Return the text of the error, or an empty text after a success."""
    try:
        with client.get(url, stream=stream, timeout=timeout) as response:
            _ = response.content
    except rex.RequestException as error:
        return str(error)
    return ""


def test_a_pool_of_one_is_shared_by_threads():
    """Eight threads on one connection all get through, with failures in between."""
    answers = [Reply(503, body=b"x"), Reply(429, body=b"y"), OK, CutBody(OK), OK] * 20
    with (
        FaultServer(answers) as server,
        session(pool_block=True, pool_maxsize=1, quota=None, max_attempts=61) as client,
        ThreadPoolExecutor(8) as pool,
    ):
        got = pool.map(lambda _: [client.get(server.url, timeout=60).content for _ in range(3)], range(8))
        assert [[b"at last"] * 3] * 8 == list(got)


@pytest.mark.real_time
def test_the_default_clock_really_waits():
    """Without a fake clock a hint of 60 ms is slept."""
    with FaultServer([try_later(503, "60", header="retry-after-ms"), OK]) as server:
        client = mount(requests.Session())
        client.trust_env = False
        with client:
            assert 200 == client.get(server.url).status_code
        first, second = server.requests
        assert 0.06 <= second.arrived - first.arrived < 60


class FirstChunk(Behaviour):
    """Sends the head and a chunk, and no more for now."""

    def act(self, wire, request):
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2710\r\n" + b"x" * 10_000 + b"\r\n")


def test_a_connection_that_is_given_back_unread_is_closed_though_its_response_is_gone():
    """What comes later on it is no answer to the next request."""
    with FaultServer([FirstChunk()], default=Reply(body=b"next")) as server, requests.Session() as made:
        mount(made)
        response = made.get(server.url, stream=True, timeout=20)
        response.raw.release_conn()
        del response
        gc.collect()
        assert b"next" == made.get(server.url, timeout=20).content
        assert 2 == server.connections
