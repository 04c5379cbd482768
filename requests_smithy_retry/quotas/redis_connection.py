"""One connection to a Redis server on which every step is bounded by one moment in time.

redis-py makes the connection, speaks the protocol and logs in; its socket is wrapped, so that no byte is waited for
past the moment that was set, however the bytes drip.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..clock import Clock
from .redis_script import DIGEST, SCRIPT, Reply, reply_of

OnReply = Callable[[Reply | None], None]
"""Told of the answer to a posted command; None: the server did nothing."""

Command = tuple[str, tuple[str, ...], OnReply]
"""A key, the script's arguments, and who is told of the answer."""


class BoxedSocket:
    """A socket whose reads and writes end at ``until``.

    :param sock: the socket.
    :param clock: its ``now`` is compared with ``until``.
    :param until: the first bound.
    """

    def __init__(self, sock: Any, clock: Clock, until: float) -> None:
        self._sock = sock
        self.now: Callable[[], float] = clock.now
        self.until = until

    def recv(self, *args: Any) -> Any:
        """As the socket's."""
        self._arm()
        return self._sock.recv(*args)

    def recv_into(self, *args: Any) -> Any:
        """As the socket's."""
        self._arm()
        return self._sock.recv_into(*args)

    def sendall(self, data: Any) -> None:
        """As the socket's."""
        self._arm()
        self._sock.sendall(data)

    def settimeout(self, timeout: float | None) -> None:
        """Nothing: ``until`` bounds."""

    def _arm(self) -> None:
        left = self.until - self.now()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


class RedisConnection:
    """A connection that is logged in and knows how to run the script.

    :param connection: redis-py's, connected, with a :class:`BoxedSocket`.
    :param boxed: that socket.
    """

    def __init__(self, connection: Any, boxed: BoxedSocket) -> None:
        self._connection = connection
        self._boxed = boxed
        self._knows_script = True
        self._owed: list[OnReply] = []
        self.served: bool = False
        """Whether it was used before: then the server may have closed it since."""
        self.posted_at: float = float("-inf")

    def settle(self, until: float) -> None:
        """Read the answers that are owed, before the next use.

        :param until: no longer than to this moment.
        """
        self._boxed.until = until
        owed, self._owed = self._owed, []
        for position, on_reply in enumerate(owed):
            try:
                reply = reply_of(self._connection.read_response())
            except redis_error("NoScriptError"):
                self._knows_script = False
                on_reply(None)
            except Exception as error:
                if not is_late(error):
                    for failed in owed[position:]:
                        failed(None)
                raise
            else:
                on_reply(reply)
            self.served = True

    def call(self, until: float, key: str, arguments: tuple[str, ...]) -> Reply:
        """Run the script and wait for its answer; :meth:`settle` comes first.

        :param until: no longer than to this moment.
        """
        self._boxed.until = until
        try:
            answer = self._run("EVALSHA", DIGEST, key, arguments)
        except redis_error("NoScriptError"):
            answer = self._run("EVAL", SCRIPT, key, arguments)
        self.served = self._knows_script = True
        return reply_of(answer)

    def post(self, patience: float, commands: list[Command]) -> None:
        """Send commands without waiting for their answers; :meth:`settle` comes first.

        :param patience: wait no longer for room in the socket's buffer, in seconds.
        """
        how, what = ("EVALSHA", DIGEST) if self._knows_script else ("EVAL", SCRIPT)
        pack = self._connection.pack_command
        packed = b"".join(part for key, arguments, _ in commands for part in pack(how, what, 1, key, *arguments))
        self._owed = [on_reply for _, _, on_reply in commands]
        self.posted_at = self._boxed.now()
        self._boxed.until = self.posted_at + patience
        self._connection.send_packed_command([packed])

    def close(self) -> None:
        """Close it; in a forked child, without a word to the server that the parent still talks to."""
        self._connection.disconnect()

    def _run(self, how: str, what: str, key: str, arguments: tuple[str, ...]) -> Any:
        self._connection.send_command(how, what, 1, key, *arguments)
        return self._connection.read_response()


def redis_error(name: str) -> type[Exception]:
    """One of redis-py's exceptions; redis-py is imported by those alone who use it."""
    error: type[Exception] = getattr(import_module("redis").exceptions, name)
    return error


def is_late(error: BaseException) -> bool:
    """The answer may still come, so the command will be, or was, executed."""
    return isinstance(error, (TimeoutError, redis_error("TimeoutError")))


def check(url: str) -> None:
    """See that redis-py can make something of a URL, without connecting.

    :raises ValueError: if it cannot; its own words, which may quote the URL, are kept back.
    """
    connection = import_module("redis").connection
    problem = ""
    try:
        options = connection.parse_url(url)
        options.pop("connection_class", connection.Connection)(**options)
    except Exception as error:
        problem = type(error).__name__
    if problem:
        raise ValueError(f"url: redis-py refuses its query or its path ({problem})")


def connect(url: str, clock: Clock, timeout: float) -> RedisConnection:
    """Connect and log in.

    :param url: as redis-py takes it.
    :param timeout: seconds for connecting, and as many for logging in. Name resolution cannot be bounded.
    """
    redis = import_module("redis")
    options = redis.connection.parse_url(url)
    boxes: list[BoxedSocket] = []

    class Boxed(options.pop("connection_class", redis.Connection)):  # type: ignore[misc]
        def _connect(self) -> BoxedSocket:
            boxes.append(BoxedSocket(super()._connect(), clock, clock.now() + timeout))
            return boxes[-1]

    once = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
    connection = Boxed(**{**options, "retry": once, "socket_timeout": timeout, "socket_connect_timeout": timeout})
    connection.connect()
    return RedisConnection(connection, boxes[-1])
