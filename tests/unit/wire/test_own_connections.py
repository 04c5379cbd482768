"""Connections that open their sockets in their own way, over a Unix socket say (contract 4.2)."""

from __future__ import annotations

import contextlib
import gc
import socket
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter, install, retry_history, uninstall
from requests_smithy_retry.testing import FakeClock
from requests_smithy_retry.wire import private
from requests_smithy_retry.wire.pools import OWN_POOLS
from requests_smithy_retry.wire.state import this_thread

if not hasattr(socket, "AF_UNIX"):
    pytest.skip("there are no Unix sockets", allow_module_level=True)


class UnixConnection(HTTPConnection):
    """The form of docker's and requests-unixsocket's."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self) -> None:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(60)
        try:
            sock.connect(self.path)
        except BaseException:
            sock.close()
            raise
        self.sock = sock


class Stub(UnixConnection):
    """Sets attributes in its own way, as the stubs of vcrpy do."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)


class UnixPool(HTTPConnectionPool):
    kind = UnixConnection

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self.path = path

    def _new_conn(self) -> Any:
        return self.kind(self.path)


class StubPool(UnixPool):
    kind = Stub


class Unix:
    """A mix-in for adapters that has one pool."""

    pool: Any

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> Any:
        return self.pool

    def get_connection(self, *_: Any, **__: Any) -> Any:
        return self.pool

    def request_url(self, request: Any, proxies: Any) -> Any:
        return request.path_url


def with_pool(adapter: Any, pool: Any) -> Any:
    adapter.pool = pool
    return adapter


@contextmanager
def installed(adapter: Any, **options: Any) -> Iterator[requests.Session]:
    install(mounted="plain", **options)
    try:
        session = requests.Session()
        session.mount("unix://", adapter)
        yield session
    finally:
        uninstall()


@contextmanager
def mounted_by_hand(pool: Any, **options: Any) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.mount("unix://", with_pool(type("Ours", (Unix, RetryAdapter), {})(**options), pool))
        yield session


@contextmanager
def installed_around(pool: Any, **options: Any) -> Iterator[requests.Session]:
    with installed(with_pool(type("Theirs", (Unix, HTTPAdapter), {})(), pool), **options) as session:
        yield session


ways = pytest.mark.parametrize("way", [mounted_by_hand, installed_around])


def serve(path: Path) -> None:
    """Answer each request until nobody has come for a while."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    server.settimeout(2)

    def work() -> None:
        with server, contextlib.suppress(TimeoutError):
            while True:
                with server.accept()[0] as client, contextlib.suppress(OSError):
                    while client.recv(65536):
                        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    threading.Thread(target=work, daemon=True).start()


class Starting(FakeClock):
    """A daemon begins to listen while the client waits."""

    path: Path

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if not self.path.exists():
            serve(self.path)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_request_waits_for_a_socket_that_cannot_be_connected_to(
    method: str, is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A POST, too: no byte of it was written. The path does not exist, or nobody listens there."""
    clock = Starting()
    clock.path = tmp_path / "s"
    pool = UnixPool(str(clock.path))
    if is_there:
        nobody = socket.socket(socket.AF_UNIX)
        nobody.bind(str(tmp_path / "nobody"))
        nobody.close()
        pool.path = str(tmp_path / "nobody")
    with mounted_by_hand(pool, clock=clock, max_attempts=3) as session:
        if is_there:
            real = clock.sleep

            def sleep(seconds: float) -> None:
                real(seconds)
                pool.path = str(clock.path)

            monkeypatch.setattr(clock, "sleep", sleep)
        response = session.request(method, "unix://localhost/x", data=b"x")
    assert (200, 2) == (response.status_code, len(retry_history(response).attempts))  # type: ignore[union-attr]


@ways
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_cannot_be_connected_to_is_recorded_as_unwritten(way: Any, method: str, tmp_path: Path) -> None:
    """By an adapter of ours with pools of its own, and by one around theirs."""
    pool = UnixPool(str(tmp_path / "s"))
    with way(pool, max_attempts=2, backoff=0) as session, pytest.raises(requests.ConnectionError) as caught:
        session.request(method, "unix://localhost/x", data=b"x")
    assert 2 == len(retry_history(caught.value).attempts)  # type: ignore[union-attr]


@ways
def test_what_was_sent_may_have_been_applied(way: Any, tmp_path: Path) -> None:
    """A POST whose body connects elsewhere, and fails there, is not sent again, over a new connection or a kept one."""
    serve(tmp_path / "s")
    with way(UnixPool(str(tmp_path / "s")), max_attempts=3, backoff=0) as session:

        class Body:
            """Fetched while it is sent; it can be sent again."""

            def __len__(self) -> int:
                return 3

            def tell(self) -> int:
                return 0

            def seek(self, *_: Any) -> int:
                return 0

            def read(self, *_: Any) -> bytes:
                connection = session.get_adapter("unix://").pool._new_conn()
                connection.path = str(tmp_path / "nobody")
                connection.connect()
                raise AssertionError

        for is_kept in (False, True):
            if is_kept:
                assert b"ok" == session.get("unix://localhost/").content
            with pytest.raises((requests.ConnectionError, OSError)) as caught:
                session.post("unix://localhost/x", data=Body())
            history = retry_history(caught.value)
            assert history is None or 1 == len(history.attempts)


def test_a_connection_that_is_made_by_hand_concerns_no_attempt(tmp_path: Path) -> None:
    """It connects and sends as urllib3's does."""
    serve(tmp_path / "s")
    adapter = with_pool(type("Ours", (Unix, RetryAdapter), {})(), UnixPool(str(tmp_path / "s")))
    connection = adapter.get_connection_with_tls_context(None, True)._new_conn()
    with contextlib.closing(connection):
        connection.connect()
        connection.request("GET", "/")
        assert 200 == connection.getresponse().status
    assert this_thread.connecting is False


def test_a_connection_that_sets_attributes_in_its_own_way_is_left_alone(tmp_path: Path) -> None:
    """Nothing is put on it."""
    serve(tmp_path / "s")
    pool = StubPool(str(tmp_path / "s"))
    with mounted_by_hand(pool) as session:
        assert b"ok" == session.get("unix://localhost/").content
    (connection,) = [each for each in pool.pool.queue if each is not None]
    assert not {"connect", "send"} & vars(connection).keys()


def test_pools_of_a_known_kind_are_prepared_whole() -> None:
    """An adapter that has pools of urllib3's own class: their connections are those of ours."""
    adapter = with_pool(type("Ours", (Unix, RetryAdapter), {})(), HTTPConnectionPool("localhost"))
    connection = adapter.get_connection_with_tls_context(None, True)._new_conn()
    assert "response_class" in vars(connection)
    again = adapter.get_connection_with_tls_context(None, True)._new_conn()
    assert connection is not again


def test_pools_that_are_not_of_urllib3_are_left_alone() -> None:
    """They are handed on as they are."""
    pool = object()
    adapter = with_pool(type("Ours", (Unix, RetryAdapter), {})(max_retries=Retry(0)), pool)
    assert pool is adapter.get_connection(None)


def test_a_release_of_urllib3_that_is_not_known_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools and their connections are urllib3's own."""
    monkeypatch.setattr(private, "are_known", lambda: False)
    adapter = with_pool(type("Ours", (Unix, RetryAdapter), {})(), UnixPool("/nowhere"))
    assert {} == {name: vars(adapter.get_connection(None)).get(name) for name in vars(adapter) if name in OWN_POOLS}


def test_nothing_is_kept_alive() -> None:
    """Neither the adapter nor the pool is in a cycle."""
    gc.collect()
    gc.disable()
    try:
        pool = UnixPool("/nowhere")
        adapter = with_pool(type("Ours", (Unix, RetryAdapter), {})(), pool)
        adapter.get_connection(None)._new_conn()
        gone = weakref.ref(adapter), weakref.ref(pool)
        del adapter, pool
        assert (None, None) == (gone[0](), gone[1]())
    finally:
        gc.enable()
