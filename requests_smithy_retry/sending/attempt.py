"""One attempt that was made: its outcome, its further use, and the release of its connection (contract 2.7, 13)."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Any, NamedTuple

import requests.exceptions
from requests import PreparedRequest, Response

from ..classifiers.transport_faults import forget_frames, is_timeout, is_transient, never_left
from ..clock import after, earliest
from ..interruptions import is_interruption
from ..wire.body import WatchedBody
from ..wire.decoding import verify_whole
from ..wire.response import UNREAD_BYTES, Peeked, peek, reader_of
from ..wire.state import AttemptState, this_thread, timeout_of
from .replay import BodyChanged
from .time_limits import TimeLimits, as_body_failure

if TYPE_CHECKING:
    from ..config.retry_config import RetryConfig
    from ..config.retry_options import OperationOptions
    from ..observing.events import ObservedOperation
    from ..wire.addresses import Peer

BROKEN = requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError
"""The errors in a body that do not count in a redirect, whose body is not needed, as in requests."""

DRAIN_BYTES = 65_536
"""The most bytes of a discarded body that are read to keep its connection."""
DRAIN_STALL = 0.1
"""The most seconds that reading a discarded body waits for the server's next bytes."""
DRAIN_SECONDS = 1.0
"""The most seconds that reading a discarded body takes in all."""
MUTEX_SECONDS = 1.0
"""Seconds to wait for a pool's lock; a signal that hit its queue may have left it locked for good."""
BODY_PART = 10_240
"""The size of the parts in which requests reads."""
NO_HOOKS: dict[str, list[Any]] = {"response": []}
"""The hooks of a request without any hook that could see its body unread."""


class Call(NamedTuple):
    """One call of ``send``.

    :param config: the policy of its adapter.
    :param request: the caller's; it is not changed.
    :param stream: the caller wants the body unread; otherwise it is read inside the attempt.
    :param timeout: the caller's, or else that of the option.
    :param how: the other arguments of ``send``.
    :param options: of the ``retry_options`` blocks around it, or None.
    :param limits: its bounds of time, or None.
    :param observed: the call as listeners see it, or None.
    """

    config: RetryConfig
    request: PreparedRequest
    stream: bool
    timeout: Any
    how: dict[str, Any]
    options: OperationOptions | None = None
    limits: TimeLimits | None = None
    observed: ObservedOperation | None = None


class Attempt:
    """One attempt. It owns its response, and so its connection, until it is let go or handed over.

    :param response: the response, or None; its body is looked at as little as possible.
    """

    answer: Response | None = None
    """The response; None beside an error."""
    is_success: bool = False
    """There is a response below 400 and no error."""
    unwritten: bool = False
    """No byte of the request was written."""
    peer: Peer | None = None
    """The far end, where it is known."""
    address: str | None = None
    """The far end's address, or all that were tried."""
    received: int | None = None
    """The encoded bytes of the body that came over the connection; None where they were not counted."""
    peeked: Peeked | None = None
    """The beginning of a failed response's body, where it was looked at."""
    is_lost: bool = False
    """The response was let go before its body was known, so it cannot be handed over any more."""
    was_let_go: bool = False
    """Its connection was let go, because its operation waits for the service; its body is at hand."""
    is_unknown: bool = False
    """The end of a failed response's body is long, late or broken, and must be read if the response is the last one."""
    _call: Call
    _reads_body = True
    _is_examined = False

    def __init__(self, started: float, response: Response | None = None, error: Exception | None = None) -> None:
        self.started: float = started
        self.response = response
        self.error = error

    def examine(self, call: Call) -> None:
        """Name the error as ``requests`` does, and look at as much of a failed body as is at hand.

        The traceback of an error refers to this frame, so no local refers to the error or to the operation.
        """
        response, request = self.response, call.request
        self.peer = reached(this_thread)
        self.address = None if self.peer is None else self.peer.address
        if self.error is not None:
            self.unwritten = bool(this_thread.connecting is True or never_left(self.error))
            self.error = as_requests_error(self.error, response, call)
        this_thread.connecting = False  # an attempt whose body made this one must not take it for its own
        if isinstance(self.error, requests.exceptions.RequestException):
            self.error.request = request  # not the copy that a watched body was sent with
        self.body: WatchedBody | None = watched_body(response)
        self.received = None if self.body is None else self.body.received - self.body.began_at
        self._call, self._reads_body, self._is_examined = call, not call.stream, True
        if response is not None:
            response.request = request
            if isinstance(self.error, BROKEN) and response.is_redirect:
                self.error = None
            if self.error is None and not self._look(response):
                self.error = self._read(response, request)
            if self.error is None:
                self.answer, self.is_success = response, response.status_code < 400

    def _look(self, response: Response) -> bool:
        """Look at the beginning of a failed response's body. False: it cannot be looked at, only read.

        True: there is nothing to read now, or ``peeked`` has what is there.
        """
        if response.status_code < 400 or not self._reads_body:
            return True
        self.peeked = peeked = peek(response)
        self.is_unknown = peeked is not None and not peeked.whole
        return peeked is not None

    def _read(self, response: Response, request: PreparedRequest | None = None) -> Exception | None:
        """Read the body to its end, and return the error in it, which is then the attempt's failure.

        :param request: whose hooks may find a short body unread; None: it is read.
        """
        try:
            complete(response, request)
        except Exception as error:
            return as_requests_error(error, response, self._call)
        return None

    def read_rest(self) -> bool:
        """Read the long or late rest of a body whose response is final; return True if that failed."""
        assert self.response is not None
        self.error = self._read(self.response, self.response.request)
        if self.error is None:
            return False
        self.unwritten, self.answer = False, None
        return True

    def blame(self, tried: set[tuple[str, str]]) -> None:
        """Have the memory of addresses know of a failure.

        :param tried: the addresses at which the operation failed, to which this one is added.
        """
        peer, error, response = self.peer, self.error, self.response
        try:
            if peer is None:
                return
            if error is not None and is_transient(error):
                tried.add((peer.origin, peer.address))
                # A kept connection may break because it was idle for too long, which is not the address's fault.
                if is_timeout(error) or peer.since >= self.started:
                    peer.failed(type(error).__name__)
            elif error is None and response is not None and response.status_code >= 500:
                tried.add((peer.origin, peer.address))
                peer.failed(str(response.status_code), answers=True)
        finally:
            del error, response  # an error's traceback refers to this frame

    def let_go(self, *, keep: bool) -> bool:
        """Let go of its connection while the operation waits, and may yet end with this response. False: it cannot."""
        response = self.response
        if response is not None and not self.was_let_go:
            if self.error is None and not self._outlives_connection(response):
                return False
            self._let_go(response, keep=keep)
            self.was_let_go = True
        return True

    def discard(self, *, keep: bool, may_be_refused: bool) -> None:
        """Discard it, because a retry follows.

        :param may_be_refused: the strategy may still refuse to send the retry after its wait, so that this response
            would be the last one.
        """
        response = self.response
        if response is not None and not self.was_let_go:
            self.is_lost = may_be_refused and not self._outlives_connection(response)
            self._let_go(response, keep=keep)
        if self.error is not None:
            forget_frames(self.error)

    def _let_go(self, response: Response, *, keep: bool) -> None:
        """Let the connection go. A short body stays with the response, in case a listener kept it."""
        if self.peeked is not None and self.peeked.whole:
            hold(response, self.peeked.prefix)
        let_go(response.raw, keep=keep)
        _close(response)

    def _outlives_connection(self, response: Response) -> bool:
        """Return True if the whole body is there once the connection is let go; an unread one is looked at for it."""
        if not self._reads_body:
            self._reads_body = True
            if not self._look(response):
                return self._read(response) is None
        return not self.is_unknown and (self.peeked is not None or is_read(response))

    def keep(self, *, raises: bool) -> None:
        """Prepare it for the caller, because it is the last one. Its limits end here for a body that the caller reads.

        :param raises: the caller gets an exception that carries the response. A caller who wanted to stream it never
            enters the ``with`` block that would have let go of its connection.
        """
        response = self.response
        if response is None:
            return
        if self.error is not None or (raises and not self._is_read_out(response)):
            self.close()
        elif self._call.limits is not None and not self._reads_body:
            self._call.limits.lift(response)

    def _is_read_out(self, response: Response) -> bool:
        """Read the body, unless it is wanted unread and is neither short nor there; return True if it is read."""
        if not self._reads_body:
            self._reads_body = True
            self._look(response)
            if self.is_unknown:
                return False
        return self._read(response) is None

    def close(self) -> None:
        """Close the response and its connection."""
        if self.response is not None:
            if self._is_examined:
                let_go(self.response.raw, keep=False)
            _close(self.response)


def _close(response: Response) -> None:
    if response.raw is not None:  # one that a mix-in or a test made by hand need not have any
        response.close()


def reached(thread: AttemptState) -> Peer | None:
    """Return the far end of the attempt's connection; None if it is not known."""
    return thread.peer if thread.connecting is True else thread.connecting or None


def watched_body(response: Response | None) -> WatchedBody | None:
    """Return the watched body of a response; None if it has none."""
    body = getattr(getattr(response, "raw", None), "_fp", None)
    return body if isinstance(body, WatchedBody) else None


def as_requests_error(error: Exception, response: Response | None, call: Call) -> Exception:
    """Return the exception of ``requests`` for an error."""
    if isinstance(error, BodyChanged):
        return requests.exceptions.UnrewindableBodyError(str(error), request=call.request)
    named = error if call.limits is None else call.limits.translated(error, call.request)
    return named if response is None else as_body_failure(named, call.request)


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


def complete(response: Response, request: PreparedRequest | None) -> None:
    """Make sure that a body is whole (contract 14.4), and by the attempt's deadline.

    :param request: where it has hooks, a body that is not long is left unread for them; None: read it.
    :raises Exception: for a body that is not whole, as requests raises it, or ``TimeoutError``.
    """
    if request is not None and request.hooks != NO_HOOKS and is_left_for_hooks(response, request):
        return
    raw: Any = response.raw
    # On any connection each read from the socket ends by the deadline from now on.
    is_bounded = this_thread.deadline is None or (reader_of(raw) is not None and "content-encoding" not in raw.headers)
    if is_bounded or raw is None or is_read(response):
        response.content  # noqa: B018
    else:
        read_by_the_clock(response, [], BODY_PART)
    verify_decoded(response)


def is_left_for_hooks(response: Response, request: PreparedRequest) -> bool:
    """Return True if hooks may find a body unread: it is not long, all of it is there, and it is whole."""
    if request.hooks == NO_HOOKS or is_read(response):
        return False
    peeked = peek(response, UNREAD_BYTES, None)
    return peeked is not None and peeked.whole


def verify_decoded(response: Response) -> None:
    """Check that the content coding of a body that was read to its end is complete."""
    if getattr(response.raw, "_decoder", None):
        verify_whole(response)


def read_by_the_clock(response: Response, parts: list[bytes], size: int) -> None:
    """Read a body by the deadline, even if a few coded bytes make gigabytes without another read from a socket.

    :param parts: what was read of it already; the rest is added, as far as it comes.
    :param size: of a part; after each one the clock is looked at.
    """
    for part in response.iter_content(size):
        parts.append(part)
        this_thread.seconds(None)
    hold(response, b"".join(parts))


def is_read(response: Response) -> bool:
    return getattr(response, "_content", False) is not False


def hold(response: Any, body: bytes) -> None:
    """Have a response give out a body, as if it had been read."""
    if not is_read(response):
        response._content, response._content_consumed = body, True
