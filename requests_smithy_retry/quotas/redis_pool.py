"""The few connections of a process to one Redis server.

Connecting takes as long as it takes (names, TLS, logging in), so it happens in a thread of its own that ends with it;
whoever needs a connection waits for it no longer than it may.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..clock import Clock
from .redis_connection import RedisConnection


class UnreachableError(Exception):
    """There is no connection in time; the message says why, in a word."""


class RedisPool:
    """At most ``most`` connections, opened when they are needed.

    :param connect: opens one.
    :param most: how many.
    :param clock: tells when to stop waiting.
    """

    def __init__(self, connect: Callable[[], RedisConnection], most: int, clock: Clock) -> None:
        self._connect = connect
        self._most = most
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        """Start anew, without connections."""
        self._changed = threading.Condition()
        self._idle: list[RedisConnection] = []
        self._count = 0
        self._opening = False
        self._failures = 0
        self._why = ""

    def take(self, until: float, *, inline: bool = False) -> RedisConnection:
        """A connection for one use, to be put back or discarded.

        :param until: wait for it no longer.
        :param inline: connect in this thread: at exit there are no new ones.
        :raises UnreachableError: if there is none in time.
        """
        with self._changed:
            seen = self._failures
            while not self._idle:
                if self._failures != seen:
                    raise UnreachableError(self._why)
                if not self._opening and self._count < self._most:
                    self._opening = True
                    if inline:
                        self._open()
                        continue
                    self._open_in_background()
                left = until - self._clock.now()
                if left <= 0:
                    raise UnreachableError("no connection in time")
                self._changed.wait(left)
            return self._idle.pop()

    def take_idle(self) -> RedisConnection | None:
        """A connection that nobody uses, or None."""
        with self._changed:
            return self._idle.pop() if self._idle else None

    def put(self, connection: RedisConnection) -> None:
        """Give back a connection that is in order."""
        with self._changed:
            self._idle.append(connection)
            self._changed.notify()

    def discard(self, connection: RedisConnection) -> None:
        """Close a connection that may not be in order."""
        connection.close()
        with self._changed:
            self._count -= 1
            self._changed.notify()

    def close_idle(self) -> None:
        """Close what nobody uses."""
        while (connection := self.take_idle()) is not None:
            self.discard(connection)

    def close_inherited(self) -> None:
        """In a forked child: leave the parent's connections to the parent."""
        inherited = self._idle
        self.forget()
        for connection in inherited:
            connection.close()

    def _open_in_background(self) -> None:
        try:
            threading.Thread(target=self._open, name="requests-smithy-retry-connect", daemon=True).start()
        except BaseException:
            self._opening = False
            raise

    def _open(self) -> None:
        try:
            connection = self._connect()
        except Exception as error:  # whatever it is, there is no connection, and the one who waits says so
            with self._changed:
                self._opening = False
                self._failures += 1
                self._why = type(error).__name__
                self._changed.notify_all()
            return
        with self._changed:
            self._opening = False
            self._count += 1
            self._idle.append(connection)
            self._changed.notify_all()
