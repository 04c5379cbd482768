"""The one owner of a response, and so of its connection, from the attempt that got it until it is handed over or let go
(contract 2.7, 13).
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import requests.exceptions
from requests import PreparedRequest, Response

from ..clock import after, earliest
from ..interruptions import is_interruption
from ..wire.decoding import verify_whole
from ..wire.response import (
    PEEK_SECONDS,
    UNREAD_BYTES,
    Arrived,
    Peeked,
    arrived,
    holds_all,
    peek,
    peek_streamed,
    reader_of,
)
from ..wire.state import this_thread, timeout_of
from ..wire.upload import BodyChanged
from .time_limits import TimeLimits, as_body_failure

BROKEN = requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError
"""The errors in a body that are ignored for a redirect, whose body is not needed, as in requests."""
DRAIN_BYTES = 65_536
"""The most bytes of a discarded body that are read to keep its connection."""
DRAIN_STALL = 0.1
"""The most seconds that reading a discarded body waits for the server's next bytes."""
DRAIN_SECONDS = 1.0
"""The most seconds that reading a discarded body takes in all."""
MUTEX_SECONDS = 1.0
"""Seconds to wait for a pool's lock; a signal that hit its queue may have left it locked for good."""
BODY_PART = 10_240
"""The size of the chunks that requests reads."""
HOOK_SECONDS = 0.25
"""The most seconds for which a response hook waits for the body to be at hand."""
NO_HOOKS: dict[str, list[Any]] = {"response": []}
"""The hooks of a request without any hook that could see its body unread."""
IN_ANY_TIME = nullcontext()


class Exchange:
    """The result of one attempt: a response with its connection, or an error, or both if a body broke off.

    :param is_streamed: the caller wants the body of the last response unread.
    """

    peeked: Peeked | None = None
    """The beginning of an unread body, if it was peeked at."""
    is_unread: bool = False
    """The rest of a failed response's body is long, late or broken: it must be read if the response is the last."""
    is_released: bool = False
    """Its connection was released; its body is at hand."""
    is_lost: bool = False
    """It was released before its body was known, so it can no longer be handed over."""

    def __init__(
        self, response: Response | None, error: Exception | None, *, is_streamed: bool, limits: TimeLimits | None
    ) -> None:
        self.response = response
        self.error = error
        self.is_streamed = is_streamed
        self.limits = limits
        if isinstance(error, BROKEN) and response is not None and response.is_redirect:
            self.error = None
        has_failed = self.error is None and response is not None and response.status_code >= 400
        if has_failed and not is_streamed and not self._peek():
            self.error = self._read()

    @property
    def is_success(self) -> bool:
        """The response is complete and below 400, as far as is known."""
        return self.error is None and self.response is not None and self.response.status_code < 400

    @property
    def is_cut(self) -> bool:
        """The body of a response below 400 broke off."""
        return self.error is not None and self.response is not None and self.response.status_code < 400

    @property
    def head(self) -> Mapping[str, str] | None:
        """The header fields of a response of 400 or above, whose body may have broken off; None: there is none."""
        return None if self.response is None or self.response.status_code < 400 else self.response.headers

    def _peek(self) -> bool:
        """Peek at the beginning of a failed response's body. False: it can only be read."""
        assert self.response is not None
        with self._in_time():
            waits_for_hooks = has_hooks(self.response.request) and this_thread.deadline is None
            self._take_in(peek(self.response, seconds=HOOK_SECONDS if waits_for_hooks else PEEK_SECONDS))
        return self.peeked is not None

    def look(self) -> bytes:
        """Return the decoded beginning of an unread body that is short JSON, as far as it arrives in time.

        It is peeked at only once, before the response is handed over or released.
        """
        if self.peeked is None and self.response is not None:
            with self._in_time():
                self._take_in(peek_streamed(self.response))
        return b"" if self.peeked is None else self.peeked.prefix

    def _take_in(self, peeked: Peeked | None) -> None:
        self.peeked, self.is_unread = peeked, peeked is not None and not peeked.whole

    def _read(self) -> Exception | None:
        """Read the body to its end, and return the error in it, which is then the attempt's failure."""
        assert self.response is not None
        try:
            with self._in_time():
                complete(self.response, self.response.request)
        except Exception as error:
            return named(error, self.response.request, has_response=True, limits=self.limits)
        return None

    def read_on(self) -> bool:
        """Read the long or late rest of a body whose response is final; return True if it broke off.

        A body that the caller streams is left to the caller.
        """
        self.is_unread = False
        if not self.is_streamed:
            self.error = self._read()
        return self.error is not None

    def release(self, *, reusable: bool) -> bool:
        """Release the connection for a wait after which this response may still be returned. False: it cannot be."""
        if self.response is not None and not self.is_released:
            if self.error is None and not self._outlives_connection():
                return False
            self._release(self.response, reusable=reusable)
        return True

    def discard(self, *, reusable: bool) -> None:
        """Discard it, because a retry follows. If the retry is not sent after all, this response is the last one."""
        if self.response is not None and not self.is_released:
            self.is_lost = not self._outlives_connection()
            self._release(self.response, reusable=reusable)

    def _release(self, response: Response, *, reusable: bool) -> None:
        """Release the connection. A short body stays with the response, in case somebody kept it."""
        if self.peeked is not None and self.peeked.whole and not is_read(response):
            response._content, response._content_consumed = self.peeked.prefix, True
        with self._in_time():
            self._close(response, reusable=reusable)

    def _close(self, response: Response, *, reusable: bool) -> None:
        release_connection(response.raw, reusable=reusable)
        if response.raw is not None:  # one made by hand, by a mix-in or a test, may have none
            response.close()
        self.is_released = True

    def _in_time(self) -> AbstractContextManager[None]:
        """Bound reads by the end of the attempt, even once it is over."""
        return IN_ANY_TIME if self.limits is None else this_thread.under(self.limits.bound)

    def _outlives_connection(self) -> bool:
        """Return True if the whole body stays available without the connection; peek at an unread one to find out."""
        assert self.response is not None
        if self.is_streamed and self.response.status_code >= 400 and not self._peek():
            return self._read() is None
        return not self.is_unread and (self.peeked is not None or is_read(self.response))

    def finalize(self, *, raises: bool) -> None:
        """Prepare it for the caller, because it is the last one. Its limits end here if the caller reads the body.

        :param raises: the caller gets an exception that carries the response. A caller who wanted to stream it never
            enters the ``with`` block that would have released its connection.
        """
        response = self.response
        if response is None or self.is_released:
            return
        if self.error is not None or (raises and not self._is_read_out()):
            self.close()
        elif self.limits is not None and self.is_streamed:
            self.limits.lift(response)

    def _is_read_out(self) -> bool:
        """Read the body, unless the caller streams it and it is neither short nor read; return True if it is read."""
        if self.is_streamed and not self._outlives_connection():
            return False
        return self._read() is None

    def close(self) -> None:
        """Close the response and its connection, unless it was released."""
        if self.response is not None and not self.is_released:
            self._close(self.response, reusable=False)

    def forget(self) -> None:
        """Drop the references to what was handed over: the traceback of its error may refer to this object."""
        self.response = self.error = None


def named(error: Exception, request: PreparedRequest, *, has_response: bool, limits: TimeLimits | None) -> Exception:
    """Return an attempt's error as ``requests`` names it, with the caller's request."""
    if isinstance(error, BodyChanged):
        return requests.exceptions.UnrewindableBodyError(str(error), request=request)
    renamed = error if limits is None else limits.translated(error, request)
    renamed = as_body_failure(renamed, request) if has_response else renamed
    if isinstance(renamed, requests.exceptions.RequestException):
        renamed.request = request  # not the copy that was sent
    return renamed


def release_connection(raw: Any, *, reusable: bool) -> None:
    """Release a response's connection: return an idle one to its pool; close any other, and free its place there."""
    connection: Any = getattr(raw, "_connection", None)
    if connection is None:
        if not reusable:
            _close_idle(raw)
        return
    if not (reusable and _drained(raw, connection)):
        raw.close()
    release: Any = getattr(raw, "release_conn", None)  # a recorded response may lack the method
    if release is not None:
        release()


def _drained(raw: Any, connection: Any) -> bool:
    """Read a response to its end, if that is near. ``read1`` waits for one packet, not for a full part."""
    original = getattr(raw, "_original_response", None)
    socket = getattr(connection, "sock", None)
    if original is None or socket is None:  # a connection that is not kept anyway
        return False
    left, timeout = DRAIN_BYTES, timeout_of(socket)
    until = earliest(after(DRAIN_SECONDS), this_thread.deadline)
    assert until is not None
    socket.settimeout(DRAIN_STALL)
    try:
        # The deadline also ends a line of chunk framing that trickles, of which one read makes many.
        with this_thread.under(until):
            while left > 0 and until.left() > 0:
                part = original.read1(left)
                if not part:
                    break
                left -= len(part)
            else:
                if original.length != 0:
                    return False  # there may be more
    except (OSError, http.client.HTTPException, ValueError) as error:
        if is_interruption(error):
            raise
        return False
    finally:
        socket.settimeout(timeout)
    original.close()  # the connection takes no request before, even if the caller kept the response
    return True


def _close_idle(raw: Any) -> None:
    """Close the connection that a response was read from, if it is back in its pool.

    urllib3 puts it back once the last byte was read, which is before a body turns out not to be decodable. A thread
    that took it from the pool meanwhile keeps it: nothing is closed under another thread.
    """
    original: Any = getattr(raw, "_original_response", None)
    queue: Any = getattr(getattr(raw, "_pool", None), "pool", None)
    if original is None or queue is None:
        return
    mutex: Any = getattr(queue, "mutex", None)  # gevent's queue has no mutex and needs none
    is_ours = False
    try:
        is_ours = mutex is not None and mutex.acquire(timeout=MUTEX_SECONDS)
        for connection in getattr(queue, "queue", ()) if is_ours or mutex is None else ():
            # A connection knows the last response that it read, until it sends the next request.
            if getattr(connection, "_HTTPConnection__response", None) is original:
                connection.close()
    finally:
        if is_ours:
            mutex.release()


def complete(response: Response, request: PreparedRequest | None) -> None:
    """Make sure that a body is complete (contract 14.4), by the attempt's deadline.

    :param request: if it has hooks, they come first for a body that is long or late, or left unread for them; None:
        read it.
    :raises Exception: for a body that is not whole, as requests raises it, or ``TimeoutError``.
    """
    if is_read(response) or (has_hooks(request) and is_left_to_hooks(response)):
        return
    raw: Any = response.raw
    if type(response) is Response and holds_all(raw):
        # What ``content`` does, without reading in parts.
        response._content, response._content_consumed = raw.read(decode_content=True), True
        return
    # On any connection each read from the socket ends by the deadline from now on.
    is_bounded = this_thread.deadline is None or (reader_of(raw) is not None and "content-encoding" not in raw.headers)
    # A response that does not say whether it was read could not be given its body.
    if is_bounded or raw is None or getattr(response, "_content", None) is not False:
        response.content  # noqa: B018
    else:
        read_by_the_clock(response, [], BODY_PART)
    if getattr(raw, "_decoder", None):
        verify_whole(response)  # the coding of a body that was read to its end may still be incomplete


def has_hooks(request: PreparedRequest | None) -> bool:
    """Return True if a request has a hook that sees its response before the body is read, as requests calls it."""
    return request is not None and request.hooks != NO_HOOKS


def is_left_to_hooks(response: Response) -> bool:
    """Return True if hooks get a body unread: it is complete, or so long or late that they should not wait for it.

    Under a deadline, and if only its decoding shows whether it is complete, it is read first.
    """
    is_bounded = this_thread.deadline is not None
    seconds = None if is_bounded else HOOK_SECONDS if response.status_code < 400 else 0.0  # the wait is over already
    found = arrived(response.raw, UNREAD_BYTES, seconds)
    if found is Arrived.WHOLE and response.headers.get("content-encoding"):
        return not is_bounded and response.status_code >= 300
    return found is Arrived.WHOLE or (found is Arrived.COMING and not is_bounded)


def read_by_the_clock(response: Response, parts: list[bytes], size: int) -> None:
    """Read a body by the deadline, even if a few coded bytes become gigabytes without another read from a socket.

    :param parts: the parts that were read already; the rest is added, as far as it arrives.
    :param size: the size of a part; the clock is checked after each one.
    """
    for part in response.iter_content(size):
        parts.append(part)
        this_thread.seconds(None)
    response._content, response._content_consumed = b"".join(parts), True


def received_by(response: Response) -> int | None:
    """Return the encoded bytes of a body that came over the last connection; None if they were not counted."""
    watch = getattr(getattr(response.raw, "_original_response", None), "watch", None)
    brought = getattr(watch, "brought", None)
    return brought if isinstance(brought, int) else None


def is_read(response: Response) -> bool:
    return getattr(response, "_content", False) is not False
