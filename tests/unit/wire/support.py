"""Helpers for tests on real sockets: sessions that never sleep, and what a process holds open."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryAdapter
from tests.support import let_go

LINUX = Path("/proc/self/fd").exists()


@contextlib.contextmanager
def session(**options: Any) -> Iterator[requests.Session]:
    """A session whose retries follow at once, blind to the environment."""
    options.setdefault("backoff", 0)
    options.setdefault("quota", None)
    with requests.Session() as made:
        made.trust_env = False
        adapter = RetryAdapter(**options)
        made.mount("http://", adapter)
        made.mount("https://", adapter)
        yield made


def sockets() -> int:
    """Count the sockets that this process holds; 0 where there is no /proc."""
    if not LINUX:
        return 0
    count = 0
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            count += str(path.readlink()).startswith("socket:")
    return count


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Fail if more sockets or threads are there at the end than there were."""
    before = sockets(), threading.active_count()
    yield
    if sockets() > before[0]:
        let_go()
    after = sockets(), threading.active_count()
    if after > before or after[1] > before[1]:
        pytest.fail(f"sockets and threads: {before} before, {after} after")


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[str, int]) -> None:
    """Have ``name.test`` stand for these addresses, each with a port of its own."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]
    real = socket.getaddrinfo

    def resolve(host: str, *rest: Any, **more: Any) -> Any:
        return found if host == "name.test" else real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


class SocksProxy:
    """A SOCKS5 proxy for numeric IPv4 targets and names of this machine, one thread for each connection.

    :param answer: sends the proxy's bytes: given the socket, the bytes, and the number of the answer, from 0.
    """

    def __init__(self, answer: Callable[[socket.socket, bytes, int], None] | None = None) -> None:
        self._answer = answer or (lambda sock, data, _: sock.sendall(data))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self._socks: list[socket.socket] = []
        self.asked: list[bytes] = []
        """The target of each connection, as it came over the wire."""
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> SocksProxy:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        for sock in self._socks:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._socks.append(client)
                self._threads.append(threading.Thread(target=self._serve, args=(client,)))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), client.makefile("rb") as file:
            file.read(file.read(2)[1])
            self._answer(client, b"\x05\x00", 0)
            asked = file.read(4)
            if not asked:
                return  # the client did not like the first answer
            name = file.read(4) if asked[3] == 1 else file.read(file.read(1)[0])
            self.asked.append(name)
            host = socket.inet_ntoa(name) if asked[3] == 1 else name.decode()
            port = int.from_bytes(file.read(2), "big")
            with socket.create_connection((host, port)) as upstream:
                self._socks.append(upstream)
                self._answer(client, b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00", 1)
                back = threading.Thread(target=_pump, args=(upstream, client))
                back.start()
                _pump(client, upstream)
                back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
