"""Connections that lie idle (contract 14.7): too old ones are closed instead of used, and TCP probes keep paths open.

A NAT or a load balancer forgets an idle connection without telling anybody. A request over such a connection gets no
answer, and one that is not idempotent cannot be sent again.
"""

from __future__ import annotations

import functools
import queue
import socket
import threading
from collections.abc import Callable
from typing import Any

PROBE_AFTER = 30
"""The silence after which the kernel probes a connection, in seconds."""
PROBE_EVERY = 10
"""The time between two probes that nobody answers, in seconds."""


class KeptConnections:
    """The connections of a pool, each with the time at which it was put back.

    It stands in for the last-in, first-out queue of urllib3, and takes less time: each request passes through it twice.

    :param max_idle: a connection that lay this long, in seconds, is closed when it is taken out. urllib3 then connects
        it anew, as it does with a connection that the server closed.
    """

    def __init__(self, maxsize: int, max_idle: float, now: Callable[[], float]) -> None:
        self.maxsize = maxsize
        self._max_idle = max_idle
        self._now = now
        self._kept: list[tuple[float, Any]] = []
        self.mutex: Any = threading.Lock()  # by the name that it has in the standard library
        self._put_back = threading.Condition(self.mutex)
        self._waiters = 0
        self._interrupted = 0
        self.qsize: Callable[[], int] = self._kept.__len__

    @property
    def queue(self) -> list[Any]:
        """The connections, as tools that look into a pool expect them here; the list is a copy."""
        return [connection for _, connection in self._kept]

    def empty(self) -> bool:
        return not self._kept

    def full(self) -> bool:
        return 0 < self.maxsize <= len(self._kept)

    def put_nowait(self, connection: Any) -> None:
        self.put(connection, block=False)

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def put(self, connection: Any, block: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002
        """Put a connection back; a pool never waits for room.

        :raises queue.Full: if there is no room.
        """
        with self.mutex:
            if connection is None and self._interrupted:
                self._interrupted -= 1
                return
            if 0 < self.maxsize <= len(self._kept):
                raise queue.Full
            # One step: a signal's handler may raise between two.
            self._kept.append((self._now(), connection))
            if self._waiters:
                self._put_back.notify()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take out the connection that was used last, closed if it lay too long.

        :param timeout: how long, in seconds; None: until there is one.
        :raises queue.Empty: if there is none, or none in time.
        """
        with self.mutex:
            if not self._kept and not (block and self._wait(timeout)):
                raise queue.Empty
            since, connection = self._kept.pop()
        if connection is not None and self._now() - since >= self._max_idle:
            connection.close()
        return connection

    def _wait(self, timeout: float | None) -> bool:
        self._waiters += 1
        try:
            return self._put_back.wait_for(lambda: self._kept, timeout)  # type: ignore[return-value]
        except BaseException:
            self._interrupted += 1  # urllib3 gives back a place all the same
            raise
        finally:
            self._waiters -= 1


def is_usual_queue(queue_class: Any) -> bool:
    """Return True for the queue of urllib3's own pools, which gevent may have replaced; False for a program's own."""
    return isinstance(queue_class, type) and queue_class.__name__ == "LifoQueue"


@functools.cache
def keep_alive_options() -> tuple[tuple[int, int, int], ...]:
    """Return the socket options that switch TCP keep-alive on, as far as the platform takes them."""
    wanted = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for names, seconds in (("TCP_KEEPIDLE", "TCP_KEEPALIVE"), PROBE_AFTER), (("TCP_KEEPINTVL",), PROBE_EVERY):
        numbers = [getattr(socket, name) for name in names if hasattr(socket, name)]
        wanted += [(socket.IPPROTO_TCP, number, seconds) for number in numbers[:1]]
    return tuple(option for option in wanted if _is_taken(option))


def _is_taken(option: tuple[int, int, int]) -> bool:
    """Return True if a socket takes the option: the name may exist, and the kernel may still refuse it."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.setsockopt(*option)
    except OSError:
        return False
    return True


def keep_alive(connection: Any) -> None:
    """Switch TCP keep-alive on for a connection to be made. What its own options say of it comes later, and wins."""
    connection.socket_options = [*keep_alive_options(), *(connection.socket_options or ())]
