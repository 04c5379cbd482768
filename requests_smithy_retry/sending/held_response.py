"""A response while it is judged (contract 2.7, 13): looked at as little as possible, then let go or handed over."""

from __future__ import annotations

import http.client
from typing import Any

import requests.exceptions
from requests import PreparedRequest, Response

from ..clock import Deadline, after, earliest
from ..interruptions import is_interruption
from ..wire import UNREAD_BYTES, Peeked, peek, reader_of, verify_whole
from ..wire.state import this_thread, timeout_of
from .replay import BodyChanged
from .time_limits import TimeLimits, as_body_failure

DRAIN_BYTES = 65_536
"""So much of a discarded body is read at most, to keep its connection."""
DRAIN_STALL = 0.1
"""A server that keeps a discarded body back for longer, in seconds, loses the connection."""
DRAIN_SECONDS = 1.0
"""Reading a discarded body takes no longer than this in all."""
MUTEX_SECONDS = 1.0
"""A pool whose lock is taken for longer was left so by a signal that hit its queue; nobody waits for that here."""


def let_go(raw: Any, *, keep: bool) -> None:
    """Let the connection of a response go: an idle one to its pool, any other one closed, and its place to the pool.

    :param raw: the urllib3 response, read or not; somebody else's, or None, has no connection to let go.
    :param keep: keep the connection if the rest of the body is little and quickly there; else close it.
    """
    connection: Any = getattr(raw, "_connection", None)
    if connection is None:
        if not keep:
            _close_idle(raw)
        return
    if not (keep and _drained(raw, connection)):
        raw.close()
    release: Any = getattr(raw, "release_conn", None)  # a recording may have none
    if release is not None:
        release()


def _drained(raw: Any, connection: Any) -> bool:
    original = getattr(raw, "_original_response", None)
    socket = getattr(connection, "sock", None)
    if original is None or socket is None:  # a connection that is not kept anyway
        return False
    timeout = timeout_of(socket)
    until = earliest(after(DRAIN_SECONDS), this_thread.deadline)
    assert until is not None
    socket.settimeout(DRAIN_STALL)
    try:
        # The deadline also ends a line of chunk framing that trickles, of which one read makes many.
        with this_thread.under(until):
            return _read_up(original, until)
    finally:
        socket.settimeout(timeout)


def _close_idle(raw: Any) -> None:
    """Close the connection that a response was read over, where it lies in its pool again.

    urllib3 puts it back once the last byte was read, which is before a body turns out not to be decodable. Whom the
    pool gave it to meanwhile keeps it: nothing is closed under another thread.
    """
    original: Any = getattr(raw, "_original_response", None)
    queue: Any = getattr(getattr(raw, "_pool", None), "pool", None)
    if original is None or queue is None:
        return
    mutex: Any = getattr(queue, "mutex", None)  # gevent's queue has none, and needs none
    if mutex is not None and not mutex.acquire(timeout=MUTEX_SECONDS):
        return
    try:
        for connection in getattr(queue, "queue", ()):
            # A connection knows the last response that it read, until it sends the next request.
            if getattr(connection, "_HTTPConnection__response", None) is original:
                connection.close()
    finally:
        if mutex is not None:
            mutex.release()


def _read_up(original: Any, until: Deadline) -> bool:
    """Read a raw response to its end, if that is near. ``read1`` waits for one packet, not for a full part."""
    left = DRAIN_BYTES
    try:
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
    original.close()  # the connection takes no request before, whoever has kept the response
    return True


NO_HOOKS: dict[str, list[Any]] = {"response": []}
"""The hooks of a request that nobody looks at before its body is read."""
BODY_PART = 10_240
"""As requests reads."""


class HeldResponse:
    """A response that came, from when it is known until it is let go or handed on.

    :param response: the response. Below 400, its body was read already where the caller wanted that.
    :param preload: the caller wants the body read.
    """

    __slots__ = ("peeked", "preload", "response")

    def __init__(self, response: Response, *, preload: bool) -> None:
        self.response: Response = response
        self.preload: bool = preload
        self.peeked: Peeked | None = None

    def forgives(self, error: Exception | None) -> bool:
        """Tell whether what went wrong in the body is no failure: nobody wants a redirect's, as in requests itself."""
        broken = requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError
        return isinstance(error, broken) and self.response.is_redirect

    def look(self) -> bool:
        """Look at the beginning of a failed response's body. False: there is no looking; read it.

        True: there is nothing to read now, or ``peeked`` has what is there.
        """
        if self.response.status_code < 400 or not self.preload:
            return True
        self.peeked = peek(self.response)
        return self.peeked is not None

    @property
    def is_unknown(self) -> bool:
        """The end of its body is long, late or broken, and has yet to be read where the response is the last one."""
        return self.peeked is not None and not self.peeked.whole

    def read(self, limits: TimeLimits, *, for_hooks: bool = True) -> Exception | None:
        """Make sure of the body's end. What goes wrong in it is the attempt's failure, and is returned.

        :param limits: the operation's.
        :param for_hooks: leave the body unread where hooks will see the response.
        """
        request = self.response.request
        try:
            complete(self.response, request if for_hooks else None)
        except Exception as error:
            return as_requests_error(error, self.response, limits, request)
        return None

    def discard(self, *, keep: bool) -> None:
        """A retry follows: let it go. A short body stays with it, for whoever has kept the response.

        :param keep: keep the connection, if the rest of the body is little and quickly there.
        """
        if self.peeked is not None and self.peeked.whole:
            hold(self.response, self.peeked.prefix)
        let_go(self.response.raw, keep=keep)
        self._close_response()

    def outlives_connection(self, limits: TimeLimits) -> bool:
        """Tell whether its whole body is there after :meth:`discard`. One that is wanted unread is looked at for it."""
        if not self.preload:
            self.preload = True
            if not self.look():
                return self.read(limits, for_hooks=False) is None
        return not self.is_unknown and (self.peeked is not None or _is_read(self.response))

    def hand_over(self, limits: TimeLimits, *, is_broken: bool, is_raised: bool = False) -> None:
        """It is the last one: ready it for the caller.

        :param limits: the operation's, which end here for a body that the caller reads.
        :param is_broken: reading it failed, so that the caller gets the exception.
        :param is_raised: the caller gets an exception that carries it. Whoever wanted to stream it never enters the
            ``with`` block that would have let go of its connection.
        """
        if is_broken or (is_raised and not self._is_read_out(limits)):
            self.close()
        elif not self.preload:
            limits.lift(self.response)

    def _is_read_out(self, limits: TimeLimits) -> bool:
        """Read it, unless it was wanted unread and is neither short nor there; tell whether it is read."""
        if not self.preload:
            self.preload = True
            self.look()
            if self.is_unknown:
                return False
        return self.read(limits, for_hooks=False) is None

    def close(self) -> None:
        """Let it go with its connection."""
        let_go(self.response.raw, keep=False)
        self._close_response()

    def _close_response(self) -> None:
        if self.response.raw is not None:  # one that a mix-in or a test made by hand need not have any
            self.response.close()


def complete(response: Response, request: PreparedRequest | None) -> None:
    """Make sure that a body is whole (contract 14.4), and by the attempt's deadline.

    :param response: the response.
    :param request: where it has hooks, a body that is not long is left unread for them; None: read it.
    :raises Exception: for a body that is not whole, as requests raises it, or ``TimeoutError``.
    """
    if request is not None and request.hooks != NO_HOOKS and is_left_for_hooks(response, request):
        return
    raw: Any = response.raw
    # On any connection each read from the socket ends by the deadline from now on.
    if this_thread.deadline is None or (reader_of(raw) is not None and "content-encoding" not in raw.headers):
        response.content  # noqa: B018
    else:
        _read_by_the_clock(response)
    if getattr(raw, "_decoder", None):
        verify_whole(response)


def is_left_for_hooks(response: Response, request: PreparedRequest) -> bool:
    """Return True if hooks may find a body unread: it is not long, all of it is there, and it is whole."""
    if request.hooks == NO_HOOKS or _is_read(response):
        return False
    peeked = peek(response, UNREAD_BYTES, None)
    return peeked is not None and peeked.whole


def verify_decoded(response: Response) -> None:
    """Check the content coding of a body that was read to its end.

    :raises requests.exceptions.ContentDecodingError: if it is incomplete.
    """
    if getattr(response.raw, "_decoder", None):
        verify_whole(response)


def _read_by_the_clock(response: Response) -> None:
    """Read a body by the deadline, also where a few coded bytes make gigabytes without another read from a socket."""
    if response.raw is None or _is_read(response):
        response.content  # noqa: B018
        return
    body = bytearray()
    for part in response.iter_content(BODY_PART):
        this_thread.seconds(None)
        body += part
    hold(response, bytes(body))


def _is_read(response: Response) -> bool:
    return getattr(response, "_content", False) is not False


def hold(response: Any, body: bytes) -> None:
    """Have a response give out a body, as if it had been read."""
    if not _is_read(response):
        response._content, response._content_consumed = body, True


def as_requests_error(
    error: Exception, response: Response | None, limits: TimeLimits, request: PreparedRequest
) -> Exception:
    """The exception of ``requests`` that says what went wrong.

    :param error: the exception that was raised.
    :param response: whose body was being read, or None.
    :param limits: the time limits of the attempt; they tell if its time was up.
    :param request: the caller's.
    """
    if isinstance(error, BodyChanged):
        return requests.exceptions.UnrewindableBodyError(str(error), request=request)
    named = limits.translated(error, request)
    return named if response is None else as_body_failure(named, request)
