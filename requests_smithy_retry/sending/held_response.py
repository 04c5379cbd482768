"""The body of a response, read with care, and its connection, let go (contract 2.7, 13)."""

from __future__ import annotations

import http.client
from typing import Any

from requests import PreparedRequest, Response

from ..clock import Deadline, after, earliest
from ..interruptions import is_interruption
from ..wire.decoding import verify_whole
from ..wire.response import UNREAD_BYTES, peek, reader_of
from ..wire.state import this_thread, timeout_of

DRAIN_BYTES = 65_536
"""The most bytes of a discarded body that are read to keep its connection."""
DRAIN_STALL = 0.1
"""The most seconds that reading a discarded body waits for the server's next bytes."""
DRAIN_SECONDS = 1.0
"""The most seconds that reading a discarded body takes in all."""
MUTEX_SECONDS = 1.0
"""Seconds to wait for a pool's lock; a signal that hit its queue may have left it locked for good."""


def let_go(raw: Any, *, keep: bool) -> None:
    """Let the connection of a response go: an idle one to its pool, any other one closed, and its place to the pool."""
    connection: Any = getattr(raw, "_connection", None)
    if connection is None:
        if not keep:
            _close_idle(raw)
        return
    if not (keep and _drained(raw, connection)):
        raw.close()
    release: Any = getattr(raw, "release_conn", None)  # a recorded response may lack the method
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
    mutex: Any = getattr(queue, "mutex", None)  # gevent's queue has no mutex and needs no mutex
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
    original.close()  # the connection takes no request before, even if the caller kept the response
    return True


NO_HOOKS: dict[str, list[Any]] = {"response": []}
"""The hooks of a request without any hook that could see its body unread."""
BODY_PART = 10_240
"""The size of the parts in which requests reads."""


def complete(response: Response, request: PreparedRequest | None) -> None:
    """Make sure that a body is whole (contract 14.4), and by the attempt's deadline.

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
    verify_decoded(response)


def is_left_for_hooks(response: Response, request: PreparedRequest) -> bool:
    """Return True if hooks may find a body unread: it is not long, all of it is there, and it is whole."""
    if request.hooks == NO_HOOKS or is_read(response):
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
    """Read a body by the deadline, even if a few coded bytes make gigabytes without another read from a socket."""
    if response.raw is None or is_read(response):
        response.content  # noqa: B018
        return
    body = bytearray()
    for part in response.iter_content(BODY_PART):
        this_thread.seconds(None)
        body += part
    hold(response, bytes(body))


def is_read(response: Response) -> bool:
    return getattr(response, "_content", False) is not False


def hold(response: Any, body: bytes) -> None:
    """Have a response give out a body, as if it had been read."""
    if not is_read(response):
        response._content, response._content_consumed = body, True
