"""Letting go of a response that is not handed on (contract 2.7), and of its connection (contract 14.3).

Before a wait, the connection goes back to its pool or is closed; none is held while sleeping.
"""

from __future__ import annotations

import http.client
from contextlib import nullcontext
from typing import Any

from requests import Response

from .deadline import Deadline, after, earliest
from .wire.state import attempt, timeout_of

DRAIN_BYTES = 65_536
"""So much of a discarded body is read at most, to keep its connection."""
DRAIN_STALL = 0.1
"""A server that keeps a discarded body back for longer, in seconds, loses the connection."""
DRAIN_SECONDS = 1.0
"""Reading a discarded body takes no longer than this in all."""


class HeldConnection:
    """A response's connection, kept from its pool until it is known whether it shall be closed.

    urllib3 puts a connection back the moment its response has been read; by the time a failure is classified, another
    thread may be using it. So it is taken off the response before the body is read.

    :param response: a response whose body was not read yet.
    """

    __slots__ = ("_connection", "_pool", "_raw")

    def __init__(self, response: Response) -> None:
        self._raw: Any = response.raw
        self._pool: Any = getattr(self._raw, "_pool", None)
        self._connection: Any = None if self._pool is None else getattr(self._raw, "_connection", None)
        if self._connection is not None:
            self._raw._connection = None

    def put_back(self) -> None:
        """Give the connection back to its pool, for the next request."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool._put_conn(connection)

    def close(self) -> None:
        """Close the connection and give its place back to the pool."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            self._pool._put_conn(None)

    def return_to_response(self) -> None:
        """Undo: the response is handed on unread, with its connection."""
        if self._connection is not None:
            self._raw._connection, self._connection = self._connection, None

    def discard(self, *, keep: bool) -> None:
        """Let the response go.

        :param keep: put its connection back if the rest of the body is little and quickly there; else close it.
        """
        if keep and self._drained():
            self.put_back()
        else:
            self.close()

    def _drained(self) -> bool:
        original = getattr(self._raw, "_original_response", None)
        socket = getattr(self._connection, "sock", None)
        if original is None or original.isclosed() or socket is None:
            return True
        timeout = timeout_of(socket)
        until = earliest(after(DRAIN_SECONDS), attempt.deadline)
        assert until is not None
        socket.settimeout(DRAIN_STALL)
        try:
            # The deadline also ends a line of chunk framing that trickles, of which one read makes many.
            with attempt.ending(until):
                return _read_up(original, until)
        finally:
            socket.settimeout(timeout)


def close_pooled(raw: Any) -> None:
    """Close the connection that a response was read over, where it lies in its pool again.

    urllib3 puts it back once the last byte was read, which is before a body turns out not to be decodable. Whom the
    pool gave it to meanwhile keeps it: nothing is closed under another thread.

    :param raw: the urllib3 response.
    """
    original: Any = getattr(raw, "_original_response", None)
    queue: Any = getattr(getattr(raw, "_pool", None), "pool", None)
    if original is None or queue is None:
        return
    with getattr(queue, "mutex", None) or nullcontext():  # gevent's queue has none, and needs none
        for connection in getattr(queue, "queue", ()):
            # A connection knows the last response that it read, until it sends the next request.
            if getattr(connection, "_HTTPConnection__response", None) is original:
                connection.close()


def _read_up(original: Any, until: Deadline) -> bool:
    """Read a raw response to its end, if that is near. ``read1`` waits for one packet, not for a full part."""
    left = DRAIN_BYTES
    try:
        while left > 0 and until.left() > 0:
            part = original.read1(left)
            if not part:
                return True
            left -= len(part)
    except (OSError, http.client.HTTPException, ValueError):
        return False
    return bool(original.length == 0)  # its end is known without another read
