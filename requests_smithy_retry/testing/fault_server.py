"""A scriptable HTTP/1.1 server on loopback, with faults on real sockets, and ports that accept no connections."""

from __future__ import annotations

import itertools
import math
import select
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from .behaviour import WELL, Behaviour, ReadSoFar
from .recorded_request import RecordedRequest, has_upload, read_body, read_head
from .wire import HangUp, Wire, wait_ready

Step = Behaviour | Callable[[RecordedRequest], Behaviour]
"""One turn: a behaviour, or a function of the whole request that returns one."""
Turns = Step | Sequence[Step]
"""A single step for every request, or a sequence with one step per request."""
Steps = Turns | Mapping[str, Turns]
"""Turns for all requests, or by path (the whole target with its query is looked up first)."""


class FaultServer:
    """A server that runs from construction to :meth:`close`, with one thread per connection and keep-alive.

    >>> with FaultServer([try_later(503, 1), ResetAfterRequest(), Reply(body=b"at last")]) as server:
    ...     requests.get(server.url)

    :param script: the behaviours: a sequence with one for each request; a single one for every request; a function of
        the :class:`RecordedRequest` that returns one; or a mapping of paths to any of these. A fault that begins before
        the request is read strikes the next connection, or the next request on an open one; picked by path, it waits
        for the head.
    :param tls: serve TLS with this context (server side, with a certificate).
    :param host: a loopback address to listen on.
    :param port: 0 picks a free one. The port of a closed server can be reused at once.
    :param default: the behaviour after the end of the script, and for paths that it does not name.
    :param close_timeout: seconds that :meth:`close` waits for threads; only a function of the script can take so long.
    """

    def __init__(
        self,
        script: Steps = (),
        *,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        default: Behaviour = WELL,
        close_timeout: float = 5.0,
    ) -> None:
        self.host = host
        self._tls = tls
        self._default = default
        self._close_timeout = close_timeout
        self._script = Script(script, default)
        self._changed = threading.Condition()
        self._requests: list[RecordedRequest] = []
        self._errors: list[BaseException] = []
        self.connections: int = 0
        """The number of accepted connections."""
        self._threads: list[threading.Thread] = []
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=128)
        self._listener.setblocking(False)
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._listener.getsockname()[1]
        self._waker, self._wake = socket.socketpair()
        self._closed = False
        self._acceptor = threading.Thread(target=self._accept, name=f"fault-server-{self.port}", daemon=True)
        self._acceptor.start()

    @property
    def url(self) -> str:
        """The base URL, ``http://host:port`` or ``https://host:port``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    @property
    def requests(self) -> list[RecordedRequest]:
        """The requests so far, in the order in which they were read to their end: a copy."""
        return list(self._requests)

    @property
    def errors(self) -> list[BaseException]:
        """The exceptions of the script's functions and behaviours, each of which reset a connection: a copy."""
        return list(self._errors)

    def script(self, steps: Steps) -> None:
        """Replace the script."""
        self._script = Script(steps, self._default)

    def reset(self) -> None:
        """Forget requests, connections and errors, and restart the script. Open connections stay open."""
        with self._changed:
            self._requests.clear()
            self._errors.clear()
            self.connections = 0
        self._script.rewind()

    def wait_for_requests(self, count: int, timeout: float = 5.0) -> list[RecordedRequest]:
        """Wait until at least ``count`` requests were recorded.

        :param timeout: seconds.
        :returns: all requests.
        :raises TimeoutError: if there are fewer after the timeout.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._requests) >= count, timeout):
                raise TimeoutError(f"{len(self._requests)} requests came in {timeout} s, not {count}")
            return list(self._requests)

    def close(self) -> None:
        """Stop listening, and end all connections, threads and stalls. Idempotent.

        :raises RuntimeError: if a function of the script still runs after the close timeout.
        """
        if self._closed:
            return
        self._closed = True
        until = time.monotonic() + self._close_timeout
        self._waker.send(b"x")
        self._acceptor.join()
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))
        self._waker.close()
        self._wake.close()
        if left := [thread.name for thread in self._threads if thread.is_alive()]:
            raise RuntimeError(f"still running {self._close_timeout} s after the close: {', '.join(left)}")

    def __enter__(self) -> FaultServer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()
        if error is None and self._errors:
            raise self._errors[0]

    def _accept(self) -> None:
        with self._listener:
            while True:
                try:
                    wait_ready(math.inf, self._wake, (self._listener, selectors.EVENT_READ))
                    sock, _ = self._listener.accept()
                except HangUp:
                    return
                except OSError:
                    continue  # the client went away before it was accepted
                with self._changed:
                    number = self.connections
                    self.connections += 1
                name = f"fault-server-{self.port}-{number}"
                thread = threading.Thread(target=self._serve, args=(sock, number), name=name, daemon=True)
                thread.start()
                self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]

    def _serve(self, sock: socket.socket, connection: int) -> None:
        wire = Wire(sock, self._wake)
        try:
            self._converse(wire, connection)
        except HangUp:
            pass
        except Exception as error:
            self._errors.append(error)
            wire.reset()
        finally:
            wire.close()

    def _converse(self, wire: Wire, connection: int) -> None:
        step: Step | None = self._greet(wire, ReadSoFar.NOTHING)
        if self._tls is not None and wire.is_open:
            wire.start_tls(self._tls)
        while wire.is_open:
            step = step or self._greet(wire, ReadSoFar.HANDSHAKE)
            if wire.is_open:
                self._exchange(wire, connection, step)
            step = None
            if not wire.has_input():
                return

    def _greet(self, wire: Wire, read: ReadSoFar) -> Step | None:
        early = self._script.take_early(read)
        return early.greet(wire) if early else None

    def _exchange(self, wire: Wire, connection: int, step: Step | None) -> None:
        head = read_head(wire)
        if head is None:
            wire.close()
            return
        request = RecordedRequest(*head, connection_id=connection, arrived=time.monotonic())
        step = step or self._script.take(request)
        if isinstance(step, Behaviour) and step.begins_after <= ReadSoFar.HEAD:
            request = self._record(replace(request, body_complete=not has_upload(request)))
        else:
            body, complete = read_body(wire, request)
            request = self._record(replace(request, body=body, body_complete=complete))
            if not complete:
                wire.close()
                return
        behaviour = step if isinstance(step, Behaviour) else step(request)
        behaviour.act(wire, request)

    def _record(self, request: RecordedRequest) -> RecordedRequest:
        with self._changed:
            request = replace(request, index=len(self._requests))
            self._requests.append(request)
            self._changed.notify_all()
        return request


class Script:
    """Gives each step once, to any number of threads."""

    def __init__(self, steps: Steps, default: Behaviour) -> None:
        self._steps = steps
        self._default = default
        self._lock = threading.Lock()
        self.rewind()

    def rewind(self) -> None:
        by_path, common = (self._steps, ()) if isinstance(self._steps, Mapping) else ({}, self._steps)
        with self._lock:
            self._by_path = {path: _each_of(turns) for path, turns in by_path.items()}
            self._common = _each_of(common)
            self._ahead = next(self._common, None)

    def take_early(self, read: ReadSoFar) -> Behaviour | None:
        """Take the next step if it begins at ``read`` or earlier."""
        with self._lock:
            step = self._ahead
            if not isinstance(step, Behaviour) or step.begins_after > read:
                return None
            self._ahead = next(self._common, None)
        return step

    def take(self, request: RecordedRequest) -> Step:
        """Take the step for a request whose head was read."""
        with self._lock:
            turns = self._by_path.get(request.target) or self._by_path.get(request.path)
            if turns is not None:
                return next(turns, self._default)
            step, self._ahead = self._ahead, next(self._common, None)
            return step or self._default


def _each_of(turns: Turns) -> Iterator[Step]:
    return iter(turns) if isinstance(turns, Sequence) else itertools.repeat(turns)


@contextmanager
def refusing_port(host: str = "127.0.0.1") -> Iterator[int]:
    """Yield a port that refuses connections and is reserved inside the block."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        sock.bind((host, 0))
        yield sock.getsockname()[1]


@contextmanager
def hanging_port(host: str = "127.0.0.1") -> Iterator[int]:
    """Yield a port whose backlog is full, so that a connection attempt is neither accepted nor refused.

    :raises RuntimeError: on a system that accepts beyond the backlog.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family))
        listener.bind((host, 0))
        listener.listen(0)
        for _ in range(16):
            filler = stack.enter_context(socket.socket(family))
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
            if not select.select([], [filler], [], 0.05)[1]:
                break
        else:
            raise RuntimeError("this system accepts connections beyond a full backlog")
        yield listener.getsockname()[1]
