"""A scriptable HTTP proxy: absolute-form forwarding and CONNECT tunnels."""

from __future__ import annotations

import math
import selectors
import socket
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from requests_smithy_retry.testing import Behaviour, RecordedRequest, Reply
from requests_smithy_retry.testing.fault_server import Steps

from .server import FaultServer, FaultWire

_HOP_BY_HOP = {"connection", "proxy-connection", "proxy-authorization", "keep-alive", "transfer-encoding"}


@dataclass(frozen=True)
class Forward(Behaviour):
    """Opens a tunnel for CONNECT, forwards any other request, and relays every byte and reset.

    A forwarded exchange ends with the connection; an unreachable target gives 502.

    :param drip: seconds to wait before each byte of the target's; 0: no wait.
    """

    drip: float = 0.0

    def act(self, wire: FaultWire, request: RecordedRequest) -> None:
        """Relay until both sides have closed, or one has reset."""
        try:
            host, port, greeting, onward = self._route(request)
            sock = socket.create_connection((host, port), 5.0)
        except (OSError, ValueError) as error:
            Reply(502, {"Connection": "close"}, str(error).encode()).act(wire, request)
            wire.close()
            return
        sock.settimeout(None)
        upstream = FaultWire(sock, wire.closing)
        used = time.monotonic()  # before the client knows of its path, and so could have it forgotten
        try:
            wire.send(greeting)
            upstream.send(onward)
            _relay(wire, upstream, self, used)
        finally:
            upstream.close()

    def has_forgotten(self, used: float) -> bool:
        """Tell whether a path that was used last at a time of the monotonic clock is no longer known."""
        return False

    def _route(self, request: RecordedRequest) -> tuple[str, int, bytes, bytes]:
        if request.method == "CONNECT":
            target = urlsplit(f"//{request.target}")
            return target.hostname or "", target.port or 443, b"HTTP/1.1 200 Connection established\r\n\r\n", b""
        target = urlsplit(request.target)
        if target.scheme != "http":
            raise ValueError(f"not a target for a proxy: {request.target}")
        path = (target.path or "/") + (f"?{target.query}" if target.query else "")
        head = "\r\n".join([f"{request.method} {path} HTTP/1.1", *_onward_headers(request), "", ""])
        return target.hostname or "", target.port or 80, b"", head.encode("latin-1") + request.body


@dataclass(frozen=True)
class Forget(Forward):
    """Forwards, and drops connections that are idle, as a NAT or a load balancer does.

    What is sent over a forgotten path is dropped: no answer, no reset, and no word to the server. Use it alone, so that
    it serves every request: ``FaultProxy(Forget(idle=1.0))``.

    :param idle: the silence in both directions after which a path is forgotten, in seconds; infinite by default.
    """

    idle: float = math.inf
    _all: list[float] = field(default_factory=lambda: [-math.inf], init=False, repr=False, compare=False)

    def forget(self) -> None:
        """Forget every path there is now. Safe from any thread."""
        self._all[0] = time.monotonic()

    def has_forgotten(self, used: float) -> bool:
        return used <= self._all[0] or time.monotonic() - used >= self.idle


def _onward_headers(request: RecordedRequest) -> list[str]:
    lines = [f"{name}: {value}" for name, value in request.headers if name.lower() not in _HOP_BY_HOP]
    if request.body and request.header("Content-Length") is None:
        lines.append(f"Content-Length: {len(request.body)}")
    return [*lines, "Connection: close"]


class FaultProxy(FaultServer):
    """A proxy that forwards once its script is used up, and for each :class:`Forward` in it.

    The script works like the server's: ``ResetAfterRequest()`` resets after reading a request and before forwarding it,
    ``Reply(407)`` refuses a tunnel, ``Stall("status")`` never answers a CONNECT, and
    ``Stall("status", 0.2, Forward())`` answers it late.

    :param script: the behaviour for each request or tunnel.
    :param tls: the context for TLS with the client.
    :param host: a loopback address to listen on.
    :param port: 0 picks a free one.
    """

    def __init__(
        self, script: Steps = (), *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        super().__init__(script, tls=tls, host=host, port=port, default=Forward())

    @property
    def tunnels(self) -> int:
        """The number of CONNECT requests, granted or not."""
        return sum(request.method == "CONNECT" for request in self.requests)


def _relay(client: FaultWire, upstream: FaultWire, way: Forward, used: float) -> None:
    directions = [(client, upstream), (upstream, client)]
    while directions:
        moved, now = False, time.monotonic()  # before the other side can know of it
        for source, sink in list(directions):
            data = _receive(source, client, upstream)
            if data is not None and way.has_forgotten(used):
                while client.sock.recv(65536):
                    pass  # nobody gets it
                client.close()
                return
            if data:
                _pass_on(data, sink, way.drip if source is upstream else 0.0)
            elif data == b"":
                sink.half_close()
                directions.remove((source, sink))
            moved = moved or data is not None
        if moved:
            used = now
        else:
            _await_input(client, [source.sock for source, _ in directions])
    client.close()


def _pass_on(data: bytes, sink: FaultWire, drip: float) -> None:
    if drip:
        sink.drip(data, drip)
    else:
        sink.send(data)


def _receive(source: FaultWire, *both: FaultWire) -> bytes | None:
    try:
        return source.receive_now()
    except OSError as error:
        for side in both:
            side.reset()
        raise ConnectionAbortedError("one side was reset, so the other was reset, too") from error


def _await_input(client: FaultWire, sockets: Iterable[socket.socket]) -> None:
    with selectors.DefaultSelector() as selector:
        for sock in sockets:
            selector.register(sock, selectors.EVENT_READ)
        while not selector.select(0.05):
            client.stall(0)  # ends the relay when the proxy closes
