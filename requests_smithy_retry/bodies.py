"""Which bodies can be sent again, and from where (contract 5).

Sending an empty or partial body in place of the caller's is the worst thing this library could do, so a body counts
as replayable only where that is known. ``request.body`` itself is judged, not what requests recorded about it.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

from requests import PreparedRequest

SIMPLE_BODIES = frozenset({type(None), bytes, str})
"""Bodies that need no care: they are what they were."""


class BodyChanged(RuntimeError):
    """A body that can be iterated again gave less than before; the attempt was broken off before its end."""


class Body:
    """A request's body, as it was before the first attempt.

    :param request: the caller's request; it is not changed.
    """

    __slots__ = ("_body", "_guard", "_is_unstarted", "_position")

    def __init__(self, request: PreparedRequest) -> None:
        self._body: Any = request.body
        self._is_unstarted = is_unstarted(self._body)
        self._position = _position_of(self._body)
        self._guard = ReplayGuard(self._body) if _may_be_re_iterable(self._body) else None

    def request_to_send(self, request: PreparedRequest) -> PreparedRequest:
        """The request for an attempt: the caller's own, or a copy whose body is watched."""
        if self._guard is None:
            return request
        copy = request.copy()
        copy.body = self._guard
        return copy

    def rewind(self, *, unwritten: bool) -> bool:
        """Make the body ready to be sent again, and say whether it is.

        A file goes back to the position it had before the first attempt. A one-shot body is ready only if none of it
        was read. What can be iterated is asked for a new iterator, and only then: until there is something to send
        again, a body is drawn on no more often than ``requests`` itself does.

        :param unwritten: no byte of the request was written in the attempt that failed.
        """
        if self._position is not None:
            return _seek(self._body, self._position)
        if self._guard is not None:
            return self._guard.rewind()
        if is_bytes_like(self._body):
            return True
        # Of a generator it can be seen; of another iterator only the connection knows.
        return is_unstarted(self._body) if self._is_unstarted else unwritten


class ReplayGuard:
    """A re-iterable body that is held to its word: no iteration may end with less than an earlier one gave.

    An object whose ``__iter__`` makes a new iterator each time can still run dry, where it draws on a shared source.
    Raising in the midst of an upload breaks the connection, so a server never takes the shorter body for a whole one.
    """

    __slots__ = ("_ahead", "_body", "_last", "_most")

    def __init__(self, body: Any) -> None:
        self._body = body
        self._most = 0
        self._last: Any = None
        self._ahead: Any = None

    def rewind(self) -> bool:
        """Whether there is a new iterator with something in it. Its first part is drawn, and kept for the attempt."""
        if self._last is None or self._ahead is not None:
            return True
        try:
            fresh = iter(self._body)
            if fresh is self._last:
                return False
            first = tuple(itertools.islice(fresh, 1))
        except Exception:  # whatever the caller's code raises: it gives no body now
            return False
        if not first and self._most > 0:
            return False
        self._last, self._ahead = fresh, itertools.chain(first, fresh)
        return True

    def __iter__(self) -> Iterator[Any]:
        given = 0
        parts, self._ahead = self._ahead, None
        if parts is None:
            parts = self._last = iter(self._body)
        for part in parts:
            given += len(part)
            self._most = max(self._most, given)
            yield part
        if given < self._most:
            raise BodyChanged(f"the body gave {given} bytes where it gave {self._most} before; it cannot be replayed")


def is_bytes_like(body: Any) -> bool:
    """Whether the body is bytes, text, nothing, or a buffer: the same at every attempt."""
    if body is None or isinstance(body, (str, bytes, bytearray)):
        return True
    try:
        memoryview(body)
    except TypeError:
        return False
    return True


def is_unstarted(body: Any) -> bool:
    """Whether the body is a generator that nobody has drawn on yet."""
    return inspect.isgenerator(body) and inspect.getgeneratorstate(body) == inspect.GEN_CREATED


def _may_be_re_iterable(body: Any) -> bool:
    """Whether the body may give a new iterator each time. It is not asked for one: even that may use it up."""
    return hasattr(body, "__iter__") and not (is_bytes_like(body) or hasattr(body, "read") or hasattr(body, "__next__"))


def _position_of(body: Any) -> Any:
    """Where a file stands, or None for what is no file or cannot go back there."""
    if not hasattr(body, "read"):
        return None
    try:
        if not getattr(body, "seekable", _assumed_seekable)():
            return None
        position = body.tell()
        return position if callable(body.seek) else None
    except (AttributeError, OSError, ValueError):
        return None


def _seek(body: Any, position: Any) -> bool:
    try:
        body.seek(position)
        return bool(body.tell() == position)
    except (OSError, ValueError):
        return False


def _assumed_seekable() -> bool:
    """Stands in for ``seekable`` on objects that have ``tell`` and ``seek`` alone."""
    return True
