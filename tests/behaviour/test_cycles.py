"""A dropped session leaves nothing open, without the help of the garbage collector (contract 14.1; 11.5 on PyPy)."""

from __future__ import annotations

import copy
import gc
import gzip
import pickle
import socket
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import urllib3.util.connection
from requests.adapters import HTTPAdapter

from requests_smithy_retry import RetryAdapter, RetryError, RetryListener, SimpleRetryStrategy, testing
from requests_smithy_retry.testing import FakeClock
from tests.faults import CutBody, CutHead, FaultServer, MissingLastChunk, Reply, ResetAfterRequest
from tests.support import let_go, prepare, session_with

pytestmark = pytest.mark.untraced

OK = Reply(200, body=b"well")


@pytest.fixture
def no_collector() -> Iterator[None]:
    """The garbage collector is off."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


MODES: dict[str, dict[str, Any]] = {
    "no quota": {"quota": None},
    "standard": {},
    "standard, with a published bucket": {"retry_spec": "2.1"},
    "adaptive": {"mode": "adaptive"},
    "deadline": {"operation_timeout": 20},
    "switched off": {"enabled": False},
    "own scopes": {"scope": lambda request: "mine"},
    "listeners": {"listeners": [RetryListener()]},
}


class Heard(RetryListener):
    """A listener that follows bodies."""

    def body_progress(self, event: Any) -> None:
        """Do nothing."""


SCRIPTS: dict[str, list[Any]] = {
    "first try": [OK],
    "a retry": [Reply(503), OK],
    "a throttled retry": [Reply(429), OK],
    "a reset": [ResetAfterRequest(), OK],
    "a cut body": [CutBody(), OK],
    "a failure": [Reply(404, body=b"none")],
    "giving up": [Reply(503)] * 3,
    "resets alone": [ResetAfterRequest()] * 3,
    "cut heads alone": [CutHead()] * 3,
    "a failure that is cut": [CutBody(Reply(404, body=b"long" * 100))] * 3,
    "a failure that cannot be decoded": [Reply(404, {"Content-Encoding": "gzip"}, b"none")] * 3,
    "cut bodies alone": [CutBody()] * 3,
    "no last chunk, and cookies": [MissingLastChunk(Reply(200, {"Set-Cookie": "a=1"}, b"x"))] * 3,
    "codings without their end": [Reply(200, {"Content-Encoding": "gzip"}, gzip.compress(b"x")[:-5])] * 3,
}


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[socket.socket]]:
    """The sockets that clients connected."""
    made: list[weakref.ref[socket.socket]] = []
    real = urllib3.util.connection.create_connection

    def create_connection(*address: Any, **how: Any) -> socket.socket:
        sock = real(*address, **how)
        made.append(weakref.ref(sock))
        return sock

    monkeypatch.setattr(urllib3.util.connection, "create_connection", create_connection)
    return made


def still_open(connections: list[weakref.ref[socket.socket]]) -> int:
    """Count the open ones."""
    let_go()
    return sum((sock := reference()) is not None and sock.fileno() >= 0 for reference in connections)


def plain() -> requests.Session:
    return session_with(HTTPAdapter())


def made(**options: Any) -> requests.Session:
    return session_with(RetryAdapter(backoff=0, clock=FakeClock(), **options))


def is_kept(make: Callable[[], requests.Session], script: str) -> bool:
    """True if a session's adapter is still there after the session went."""
    with FaultServer(SCRIPTS[script]) as server:
        session = make()
        reference = weakref.ref(session.get_adapter(server.url))
        get(session, server.url)
        del session
        let_go()
        return reference() is not None


def get(session: requests.Session, url: str, **how: Any) -> None:
    try:
        session.get(url, **how)
    except requests.RequestException:
        pass


class Guided(SimpleRetryStrategy):
    """Raises what it is shown, as the strategies of the Smithy guide do."""

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any:
        raise error


class Wrapping(SimpleRetryStrategy):
    """Refuses by an error that leads to what it is shown."""

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> Any:
        raise RetryError("no") from error


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("strategy", [SimpleRetryStrategy, Guided, Wrapping])
def test_an_error_goes_with_its_last_reference(strategy: Callable[..., Any]) -> None:
    """Neither the loop nor a strategy's refusal keeps the error that a caller has caught."""
    made = strategy(max_attempts=2, clock=testing.FakeClock())
    adapter = testing.scripted(*[requests.ConnectionError("no") for _ in range(3)], strategy=made)
    with pytest.raises(requests.ConnectionError) as caught:
        adapter.send(prepare())
    reference = weakref.ref(caught.value)
    del caught
    let_go()
    assert reference() is None


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("mode", ["standard", "adaptive", "deadline", "listeners"])
def test_a_dropped_session_leaves_no_connection(mode: str, script: str, connections: Any) -> None:
    """A dropped session with our adapter closes its connection, as one with a plain adapter does."""
    with FaultServer(SCRIPTS[script]) as server:
        for _ in range(3):
            server.script(SCRIPTS[script])
            get(made(**MODES[mode]), server.url)
        assert connections
        assert 0 == still_open(connections)


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("body", [b"", b"abc", b"long" * 100_000])
@pytest.mark.parametrize("options", [{}, {"listeners": [Heard()]}], ids=["", "body_progress"])
def test_a_dropped_session_whose_stream_was_read_leaves_no_connection(
    options: dict[str, Any], body: bytes, framing: Any, connections: Any
) -> None:
    """A kept connection keeps its last response, which keeps nothing else."""
    with FaultServer(default=Reply(200, {"ETag": '"1"'}, body, framing=framing)) as server:
        for stream in (True, False):
            session = made(**options)
            reference = weakref.ref(session.get_adapter(server.url))
            assert body == session.get(server.url, stream=stream).content
            del session
            let_go()
            assert reference() is None
        assert (2, 0) == (len(connections), still_open(connections))


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("mode", MODES)
def test_fifty_dropped_sessions_leave_nothing(mode: str, connections: Any) -> None:
    """Fifty dropped sessions leave neither connections nor adapters."""
    adapters = []
    with FaultServer([OK]) as server:
        for _ in range(50):
            session = made(**MODES[mode])
            adapters.append(weakref.ref(session.get_adapter(server.url)))
            get(session, server.url)
            del session
        assert (50, 0) == (len(connections), still_open(connections))
        assert [] == [adapter for adapter in adapters if adapter() is not None]


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_dropped_copy_leaves_nothing(again: Callable[[Any], Any], connections: Any) -> None:
    """A dropped copy leaves nothing open, and neither does the adapter that it was copied from."""
    with FaultServer([Reply(503), OK]) as server:
        session = made()
        get(session, server.url)
        adapter = again(session.get_adapter(server.url))
        session.mount("http://", adapter)
        get(session, server.url)
        reference = weakref.ref(adapter)
        del session, adapter
        assert (0, None) == (still_open(connections), reference())
        assert connections


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("mode", MODES)
def test_a_dropped_session_leaves_no_connection_to_its_proxy(mode: str, connections: Any) -> None:
    """A session with a proxy, which has two managers of pools, leaves no connection when it is dropped."""
    with FaultServer([Reply(503), OK]) as proxy:
        session = made(**MODES[mode])
        get(session, "http://example.test/", proxies={"http": proxy.url})
        reference = weakref.ref(session.get_adapter("http://"))
        del session
        assert (0, None) == (still_open(connections), reference())
        assert connections


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("script", [name for name in SCRIPTS if name != "resets alone"])
@pytest.mark.parametrize("mode", ["standard", "deadline"])
def test_no_failure_keeps_its_adapter(mode: str, script: str) -> None:
    """A failure keeps neither its adapter nor other connections alive; after a reset urllib3 itself keeps both."""
    if is_kept(plain, script):
        pytest.skip("a plain adapter is kept, too: contextlib's __exit__ holds the traceback since Python 3.12")
    assert not is_kept(lambda: made(**MODES[mode]), script)


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("after", [CutBody(at=1), Reply(404), Reply(503)], ids=["cut", "404", "503"])
def test_no_stream_that_is_lost_keeps_its_adapter(attempts: int, after: Any) -> None:
    """Neither the error of its reader nor what became of its continuation leads back to itself."""
    cut = MissingLastChunk(Reply(200, {"ETag": '"1"'}, b"long" * 100))
    with FaultServer([cut, *[after] * 3]) as server:
        session = made(max_attempts=attempts)
        reference = weakref.ref(session.get_adapter(server.url))
        with pytest.raises(requests.RequestException):
            session.get(server.url, stream=True).content  # noqa: B018
        del session
        let_go()
        assert reference() is None


@pytest.mark.usefixtures("no_collector")
def test_no_stream_that_fails_to_decode_before_it_breaks_off_keeps_its_adapter() -> None:
    """What ends the body is kept for the read after the bytes that came, which is not made any more."""
    cut = CutBody(Reply(200, {"Content-Encoding": "gzip"}, gzip.compress(bytes(range(256)))), at=72)
    with FaultServer(default=cut) as server:
        session = made()
        reference = weakref.ref(session.get_adapter(server.url))
        response = session.get(server.url, stream=True)
        response.raw.read(2)
        with pytest.raises(requests.RequestException, match="failed to decode"):
            response.content  # noqa: B018
        del response, session
        let_go()
        assert reference() is None


@pytest.mark.usefixtures("no_collector")
def test_no_last_answer_whose_coding_ends_early_keeps_its_adapter() -> None:
    """It is read on once no attempt follows; the error that is met then does not lead to what was decided before."""
    cut = Reply(404, {"Content-Encoding": "gzip, gzip"}, gzip.compress(gzip.compress(b"x"))[:7])
    with FaultServer(default=cut) as server:
        session = made()
        reference = weakref.ref(session.get_adapter(server.url))
        get(session, server.url)
        assert server.requests
        del session
        let_go()
        assert reference() is None
