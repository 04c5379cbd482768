"""The rules for sending a request again (contract 4, 5): bodies, idempotency keys, and the facts about a request."""

from __future__ import annotations

import http.client
import inspect
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import requests.exceptions
from requests import PreparedRequest, Response

from ..classifiers.outcome import ResendFacts
from ..classifiers.protocol import Vouched, Vouches
from ..classifiers.resend import IDEMPOTENT_METHODS
from ..clock import after, earliest
from ..errors import RetryConfigError
from ..interruptions import is_interruption
from ..wire.state import this_thread

if TYPE_CHECKING:
    from ..config.retry_config import RetryConfig
    from ..config.retry_options import OperationOptions
    from .policy import Policy


SIMPLE_BODIES = frozenset({type(None), bytes, str})
"""Bodies that never change, so that they need no care."""

FOLLOWED_STATUSES = frozenset({301, 302, 303, 307, 308, 401, 407})
"""After these answers the same body may be sent once more, by redirects and by authentication."""

KEY_HEADER = "Idempotency-Key"
"""A request that has it may be sent again (draft-ietf-httpapi-idempotency-key-header)."""

DRAW_SECONDS = 1.0
"""Seconds for which the rest of a broken-off iteration is drawn on, to know all of it."""


class BodyChanged(RuntimeError):
    """A body that can be iterated again gave other bytes than before; the attempt was broken off before its end."""


class Body:
    """A request's body, as it was before the first attempt.

    :param request: the caller's request; it is not changed.
    :raises requests.exceptions.UnrewindableBodyError: if it was read in an earlier operation, and gives nothing more.
    """

    __slots__ = ("_body", "_guard", "_is_unstarted", "position")

    def __init__(self, request: PreparedRequest) -> None:
        self._body: Any = request.body
        self._is_unstarted = is_unstarted(self._body)
        self.position: Any = _position_of(self._body)
        """Of a file, before the first attempt; None for other bodies."""
        self._guard = ReplayGuard(self._body) if _may_be_re_iterable(self._body) else None
        if is_spent(self._body) or not self._can_be_sent_after_an_answer(request):
            raise requests.exceptions.UnrewindableBodyError(
                "the body was sent in an earlier request, and cannot be sent again", request=request
            )

    def answered(self, response: Response) -> None:
        """Record an answer of :data:`FOLLOWED_STATUSES`.

        One that came over no connection, from a stand-in for a server, was given without the body being read, perhaps.
        """
        original = getattr(response.raw, "_original_response", None)
        if is_unstarted(self._body) or not isinstance(original, http.client.HTTPResponse):
            return
        if self.position is not None:
            _answered.remember(self._body, stood=self.position, left=_position_of(self._body))
        elif not is_bytes_like(self._body):
            _answered.remember(self._body, None if self._guard is None else self._guard.seen_to_the_end())

    def taken(self) -> int | None:
        """Return the bytes of a file that were read for the attempt, the last block included."""
        now = _position_of(self._body)
        return now - self.position if isinstance(now, int) and isinstance(self.position, int) else None

    def _can_be_sent_after_an_answer(self, request: PreparedRequest) -> bool:
        if _answered.body() is not self._body:
            return True
        if self.position is not None:
            return self._has_gone_back(request)
        return is_bytes_like(self._body) or (self._guard is not None and self._guard.begin_after(_answered.seen))

    def _has_gone_back(self, request: PreparedRequest) -> bool:
        """Bring a file back from where an earlier operation left it, unless the request was made from there.

        For a redirect, requests brings back only what has ``__iter__`` (a memory map has not); for a challenge,
        nothing: that is for the authentication to do, and not each does. What is left would go out as the body.
        """
        if self.position != _answered.left or getattr(request, "_body_position", None) == self.position:
            return True
        self.position = _answered.stood
        return _seek(self._body, self.position)

    def request_to_send(self, request: PreparedRequest) -> PreparedRequest:
        """Return the request for an attempt: the caller's own, or a copy whose body is watched."""
        if self._guard is None:
            return request
        copy = request.copy()
        copy.body = self._guard
        return copy

    def rewind(self, *, unwritten: bool) -> bool:
        """Make the body ready to be sent again, and say whether it is.

        A file goes back to the position it had before the first attempt. A one-shot body is ready only if none of it
        was read. An iterable is asked for a new iterator, and only then: until the request has to be sent
        again, a body is drawn on no more often than ``requests`` itself does.

        :param unwritten: no byte of the request was written in the attempt that failed.
        """
        if self.position is not None:
            return _seek(self._body, self.position)
        if self._guard is not None:
            return self._guard.rewind()
        if is_bytes_like(self._body):
            return True
        # Of a generator it can be seen; of another iterator only the connection knows.
        return is_unstarted(self._body) if self._is_unstarted else unwritten


class Seen:
    """The bytes that an iterable body gave in its first iteration: their number and hash, not the bytes or the body."""

    def __init__(self) -> None:
        self.count: int = 0
        self.digest: Any = sha256()
        self.first: tuple[int, bytes] = 0, b""
        self.is_whole: bool = False

    def note(self, part: Any) -> None:
        """Record the next part."""
        data = _bytes_of(part)
        self.digest.update(data)
        self.count += data.nbytes
        if self.first[0] == 0:
            self.first = self.count, self.digest.digest()

    def begins_like(self, first: tuple[Any, ...]) -> bool:
        """Return True if a new iteration may be the same, going by its first part: empty, or a tuple of one."""
        size, digest = self.first
        data = _bytes_of(first[0] if first else b"")
        return size == 0 or (bool(first) and (data.nbytes < size or sha256(data[:size]).digest() == digest))

    def held_to(self, parts: Iterable[Any]) -> Iterator[Any]:
        """Yield the parts of another iteration while they can be the same; the last one only if they are."""
        given, digest = 0, sha256()
        for part in parts:
            data = _bytes_of(part)
            given += data.nbytes
            digest.update(data)
            if given > self.count:
                raise BodyChanged(f"the body gave more than the {self.count} bytes of before; it cannot be replayed")
            if given == self.count and digest.digest() != self.digest.digest():
                raise BodyChanged("the body gave other bytes than before; it cannot be replayed")
            yield part
        if given < self.count:
            raise BodyChanged(f"the body gave {given} bytes where it gave {self.count} before; it cannot be replayed")


class ReplayGuard:
    """An iterable body whose replays must give, byte for byte, what the first iteration gave.

    An object whose ``__iter__`` makes a new iterator each time may draw on a source that all of them share, and go on
    in its middle. So nothing is replayed before a first iteration has come to its end; one that was broken off is
    drawn on, unsent, which leaves a shared source empty.
    Raising in the midst of an upload breaks the connection, so a server never takes other bytes for the body.
    """

    __slots__ = ("_ahead", "_body", "_has_failed", "_last", "_seen")

    def __init__(self, body: Any) -> None:
        self._body = body
        self._last: Any = None
        self._ahead: Any = None
        self._has_failed = False
        self._seen: Seen | None = None

    def rewind(self) -> bool:
        """Return True if there is a new iterator that begins as the first did. Its first part is drawn, and kept."""
        if self._seen is None or self._ahead is not None:
            return True
        try:
            if not self._has_come_to_an_end(self._seen):
                return False
            fresh = iter(self._body)
            if fresh is self._last:
                return False
            first = tuple(itertools.islice(fresh, 1))
        except Exception as error:  # whatever the caller's code raises: it gives no body now
            if is_interruption(error):
                raise
            return False
        if not self._seen.begins_like(first):
            return False
        self._last, self._ahead = fresh, itertools.chain(first, fresh)
        return True

    def seen_to_the_end(self) -> Seen | None:
        """Return the bytes of the first iteration; None if nothing was iterated, or if it did not reach the end."""
        if self._seen is None or not self._has_come_to_an_end(self._seen):
            return None
        return self._seen

    def begin_after(self, seen: Seen | None) -> bool:
        """Return True if this operation's first iteration gives something, as an earlier operation's did."""
        if seen is None:
            return False
        fresh = iter(self._body)
        first = tuple(itertools.islice(fresh, 1))
        self._ahead = itertools.chain(first, fresh)
        return bool(first) or seen.count == 0

    def _has_come_to_an_end(self, seen: Seen) -> bool:
        """Draw the rest of the first iteration. False: it has no end, or takes too long to reach it."""
        if seen.is_whole or self._has_failed:
            return seen.is_whole
        until = earliest(after(DRAW_SECONDS), this_thread.deadline)
        assert until is not None
        for part in self._last:
            seen.note(part)
            if until.left() <= 0:
                return False
        seen.is_whole = True
        return True

    def __iter__(self) -> Iterator[Any]:
        parts, self._ahead = self._ahead, None
        if parts is not None and self._seen is not None:
            return self._seen.held_to(parts)
        self._last, self._seen = iter(self._body) if parts is None else parts, Seen()
        return self._first_iteration(self._last, self._seen)

    def _first_iteration(self, parts: Iterator[Any], seen: Seen) -> Iterator[Any]:
        while not seen.is_whole:
            self._has_failed = True
            part = next(parts, self)  # not by a loop over it: an iterator need not be iterable
            self._has_failed = False
            if part is self:
                seen.is_whole = True
            else:
                seen.note(part)
                yield part


class _Answered(threading.local):
    """The last body whose answer is often followed by another request with the same body.

    That request is an operation of its own, and the body may not say of itself that it was read.
    """

    body: Callable[[], Any] = object
    seen: Seen | None = None
    stood: Any = None
    left: Any = None

    def remember(self, body: Any, seen: Seen | None = None, *, stood: Any = None, left: Any = None) -> None:
        """Remember a body, weakly where that is possible.

        :param stood: the position of a file before the operation; ``left`` is that after it.
        """
        try:
            self.body = weakref.ref(body)
        except TypeError:
            self.body = lambda: body
        self.seen, self.stood, self.left = seen, stood, left


_answered = _Answered()


def is_bytes_like(body: Any) -> bool:
    """True if the body is bytes, text, nothing, or a buffer: the same at every attempt."""
    if body is None or isinstance(body, (str, bytes, bytearray)):
        return True
    try:
        memoryview(body)
    except TypeError:
        return False
    return True


def is_unstarted(body: Any) -> bool:
    """Return True if the body is a generator that has not been drawn on yet."""
    return isinstance(body, GeneratorType) and inspect.getgeneratorstate(body) == inspect.GEN_CREATED


def is_spent(body: Any) -> bool:
    """Return True if the body is a generator that has ended: it would be sent empty."""
    return isinstance(body, GeneratorType) and inspect.getgeneratorstate(body) == inspect.GEN_CLOSED


def _may_be_re_iterable(body: Any) -> bool:
    """True if the body may give a new iterator each time. It is not asked for one: even that may use it up."""
    return hasattr(body, "__iter__") and not (is_bytes_like(body) or hasattr(body, "read") or hasattr(body, "__next__"))


def _position_of(body: Any) -> Any:
    """Return the position of a file, or None for anything that is not a file or cannot seek back."""
    if not hasattr(body, "read"):
        return None
    try:
        if hasattr(body, "seekable") and not body.seekable():
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


def _bytes_of(part: Any) -> memoryview:
    """Return a part of a body as bytes."""
    return memoryview(part.encode() if isinstance(part, str) else part).cast("B")


def has_key(headers: Mapping[str, Any]) -> bool:
    """Return True if a request carries an idempotency key that is not blank; the draft's quotes do not count."""
    value = headers.get(KEY_HEADER)
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    return isinstance(value, str) and value.strip(' \t"') != ""


def key_for(request: PreparedRequest, option: bool | Callable[..., str]) -> str | None:
    """Return the key to send with a request; None if it needs none, has one, or cannot have one.

    Methods that are idempotent by themselves (RFC 9110 9.2.2) need none.

    :param option: the value of ``idempotency_key``: True, or a function of the request (or of nothing).
    :raises RetryConfigError: if the function gives something that cannot be sent as a key.
    """
    if str(request.method).upper() in IDEMPOTENT_METHODS or has_key(request.headers):
        return None
    if option is True:
        from uuid import uuid4  # it brings much that others do not need

        return f'"{uuid4()}"'  # as the draft writes it: a string of RFC 8941, which has quotes around it
    assert callable(option)
    key: object = option(request) if _takes_request(option) else option()
    if not isinstance(key, str) or not key.isascii() or not key.isprintable() or key.strip(' "') == "":
        # The value is not shown: no header value goes into a message.
        raise RetryConfigError(
            "idempotency_key", type(key), "the function's result", "a text of printable ASCII, not blank, is allowed"
        )
    return key


def _takes_request(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # a callable written in C may have no signature
        return True
    return True


class RequestFacts:
    """The caller's request, which is not changed, and how it may be sent.

    :param policy: whose classifiers may know a request.
    """

    def __init__(
        self,
        request: PreparedRequest,
        config: RetryConfig,
        options: OperationOptions,
        policy: Policy,
    ) -> None:
        self.request = request
        self.config = config
        self.options = options
        self.body: Body | None = None if request.body.__class__ in SIMPLE_BODIES else Body(request)
        """None: it needs no care."""
        self.to_send: PreparedRequest = request if self.body is None else self.body.request_to_send(request)
        """The request for every attempt: the caller's own, or a copy with a watched body or a minted key.

        A key stays off the caller's request, from which requests makes redirect hops and auth re-sends: those are
        other operations.
        """
        self.policy = policy
        self._vouched: Vouched | None = None
        asked_for = config.idempotency_key if options.idempotency_key is None else options.idempotency_key
        key = None if asked_for is False else key_for(request, asked_for)
        if key is not None:
            self.send_with({KEY_HEADER: key})

    def send_with(self, headers: Mapping[str, str]) -> None:
        """Send other headers from now on; the caller's request stays as it is."""
        if self.to_send is self.request:
            self.to_send = self.request.copy()
        self.to_send.headers.update(headers)

    @property
    def is_replayable(self) -> bool:
        """True if the body can be sent again as it was; it is made ready for that."""
        return self.body is None or self.body.rewind(unwritten=False)

    def prepare_resend(self, *, unwritten: bool, is_cut: bool) -> ResendFacts:
        """Rewind a body that can be replayed, and return the facts that decide if it may be sent again.

        :param is_cut: the body of a response below 400 broke.
        """
        method = str(self.request.method).upper()
        allowed, said = self.config.allowed_methods, self.options
        if self._vouched is None:
            self._vouched = self._known()
        known = self._vouched
        return ResendFacts(
            method=method,
            idempotent=allowed is None or method in allowed,
            keyed=has_key(self.to_send.headers),
            vouched=known.resendable or None if said.idempotent is None else said.idempotent,
            unwritten=unwritten,
            strict=self.config.strict_methods,
            replayable=self.body is None or self.body.rewind(unwritten=unwritten),
            is_cut=is_cut,
            long_poll=known.long_poll if said.long_poll is None else said.long_poll,
        )

    def _known(self) -> Vouched:
        """Ask the classifiers that may know the request. Not before a decision needs it, and once."""
        for item in self.policy.classifiers:
            known = item.vouch(self.request) if isinstance(item, Vouches) else None
            if known is not None:
                return known
        return Vouched()
