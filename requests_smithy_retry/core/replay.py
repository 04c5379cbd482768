"""The rules for sending a request again (contract 4, 5): bodies, idempotency keys, and the facts about a request."""

from __future__ import annotations

import http.client
import inspect
import io
import threading
import weakref
from collections.abc import Callable, Mapping
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import requests.exceptions
from requests import PreparedRequest, Response
from requests.utils import super_len

from ..checks import copy_of, header_text
from ..classifiers.outcome import ResendFacts
from ..classifiers.protocol import Vouched
from ..classifiers.resend import IDEMPOTENT_METHODS
from ..errors import RetryConfigError, RetryError, StopReason
from ..interruptions import is_interruption
from ..wire.upload import IterableUpload, ReadableUpload, SeekableUpload, declared_length, size_in_memory

if TYPE_CHECKING:
    from ..config.retry_config import RetryConfig
    from ..config.retry_options import OperationOptions
    from .policy import Policy


SIMPLE_BODIES = frozenset({type(None), bytes, str})
"""Types of bodies that never change, so they need no care."""

FOLLOWED_STATUSES = frozenset({301, 302, 303, 307, 308, 401, 407})
"""After these answers the same body may be sent once more, by redirects and by authentication."""

OTHER_LENGTH = "it is not as long as it was"
"""Why a body whose length has changed is not sent again."""

KEY_HEADER = "Idempotency-Key"
"""A request that has it may be sent again (draft-ietf-httpapi-idempotency-key-header)."""


class Body:
    """A request's body, as it was before the first attempt. A subclass overrides what differs."""

    def request_to_send(self, request: PreparedRequest) -> PreparedRequest:
        """Return the request for all attempts: the caller's own, or a copy whose body is counted."""
        raise NotImplementedError  # pragma: no cover - each subclass has it

    def obstacle(self) -> str | None:
        """Return why the whole body cannot be sent again now, as a phrase; None: it can. A file is not moved."""
        raise NotImplementedError  # pragma: no cover - each subclass has it

    def rewind(self) -> None:
        """Prepare a body without obstacles, right before it is sent again."""

    def bytes_read(self) -> int | None:
        """Return the bytes of a file that were read for the attempt, the last block included; None for others."""
        return None

    def remember(self) -> None:
        """Remember that the body was sent, because the same one may be sent once more by another operation."""


def body_of(request: PreparedRequest) -> Body | None:
    """Return the body of a request if sending it again needs care; None: it needs none.

    :param request: the caller's; it is not changed.
    :raises requests.exceptions.UnrewindableBodyError: if it was read in an earlier operation, and is exhausted.
    """
    body: Any = request.body
    if isinstance(body, (bytes, str)):
        return None
    position = _position_of(body)
    if position is not None:
        return FileBody(request, position)
    return InMemoryBody(request) if is_in_memory(body) else OneShotBody(request)


class FileBody(Body):
    """A body that can seek: each attempt sends it from its first position.

    It is sent again only while it is as long as the head says, or without a length there, as long as the first time.
    """

    def __init__(self, request: PreparedRequest, position: int) -> None:
        self._body: Any = request.body
        self._position = self._first_position(request, position)
        self._reader = SeekableUpload(self._body, declared_length(request.headers), self._position)

    def _first_position(self, request: PreparedRequest, position: int) -> int:
        """Return where the body begins; rewind a file from where an earlier operation left it.

        For a redirect, requests rewinds only bodies with ``__iter__`` (a memory map has none); for a challenge nothing,
        because the authentication should do that, but not each one does. Otherwise only the rest would be sent.
        """
        is_where_it_was_left = _last.body() is self._body and _last.ended_at == position
        if not is_where_it_was_left or getattr(request, "_body_position", None) == position:
            return position
        if not _seek(self._body, _last.began_at):
            raise _sent_before(request)
        return _last.began_at

    def request_to_send(self, request: PreparedRequest) -> PreparedRequest:
        return _with_body(request, self._reader)

    def obstacle(self) -> str | None:
        stands = _position_of(self._body)
        if stands is None or not _seek(self._body, self._position):
            return "it cannot go back to where it began"
        has_its_length = self._has_its_length(stands if self._reader.is_whole else None)
        _seek(self._body, stands)
        return None if has_its_length else OTHER_LENGTH

    def _has_its_length(self, end: int | None) -> bool:
        """Return True unless it is known to be longer or shorter than in the first attempt.

        :param end: the position at the end of an attempt that sent all of it; None: there was no such attempt.
        """
        declared = self._reader.length
        if declared is None:
            return end is None or _end_of(self._body) in (end, None)
        return _length_of(self._body) == declared

    def rewind(self) -> None:
        self._reader.seek(self._position)

    def bytes_read(self) -> int | None:
        now = _position_of(self._body)
        return None if now is None else now - self._position

    def remember(self) -> None:
        _last.remember(self._body, began_at=self._position, ended_at=_position_of(self._body))


class InMemoryBody(Body):
    """A buffer, or a list or tuple of bytes and text, in memory. Its length may change between two attempts."""

    def __init__(self, request: PreparedRequest) -> None:
        self._body: Any = request.body
        self._size = size_in_memory(self._body)
        self._declared = declared_length(request.headers)

    def request_to_send(self, request: PreparedRequest) -> PreparedRequest:
        if isinstance(self._body, (list, tuple)):
            return _with_body(request, IterableUpload(self._body, self._declared))
        if self._declared in (self._size, None):
            return request
        return _with_body(request, IterableUpload((self._body,), self._declared))

    def obstacle(self) -> str | None:
        is_as_long = is_in_memory(self._body) and size_in_memory(self._body) == self._size
        return None if is_as_long else OTHER_LENGTH


class OneShotBody(Body):
    """Any other body: it is sent again only if nothing of it was read yet.

    A generator, an iterator or a stream would continue in the middle, and so might an object whose ``__iter__`` makes
    new iterators over one source.
    """

    def __init__(self, request: PreparedRequest) -> None:
        body: Any = request.body
        declared, self._is_stream = declared_length(request.headers), hasattr(body, "read")
        self._body = body
        self._upload = ReadableUpload(body, declared) if self._is_stream else IterableUpload(body, declared)
        self._upload.is_again = _last.body() is body
        is_spent = isinstance(body, GeneratorType) and inspect.getgeneratorstate(body) == inspect.GEN_CLOSED
        if is_spent or (self._upload.is_again and not self._may_begin_anew()):
            raise _sent_before(request)
        # urllib3 refuses what is not a body at all.
        self._is_watched = self._is_stream or hasattr(body, "__iter__") or hasattr(body, "__getitem__")

    def _may_begin_anew(self) -> bool:
        """Return True if a body that an earlier operation sent may be whole again, as a container's is."""
        return _last.is_whole and not self._is_stream and not hasattr(self._body, "__next__")

    def request_to_send(self, request: PreparedRequest) -> PreparedRequest:
        return _with_body(request, self._upload) if self._is_watched else request

    def obstacle(self) -> str | None:
        return None if self._is_watched and self._upload.given is None else "some of it was read"

    def remember(self) -> None:
        if self._upload.given:
            _last.remember(self._body, is_whole=self._upload.is_whole)


def _with_body(request: PreparedRequest, body: Any) -> PreparedRequest:
    """Return a request with another body and the same headers: what an adapter's ``add_headers`` adds is in both."""
    made = copy_of(request)
    made.body, made.headers = body, request.headers
    return made


def _sent_before(request: PreparedRequest) -> requests.exceptions.UnrewindableBodyError:
    return requests.exceptions.UnrewindableBodyError(
        "the body was sent in an earlier request, and cannot be sent again", request=request
    )


class _LastBody(threading.local):
    """The last body whose answer is often followed by another request with the same body.

    That request is another operation, and the body itself may not show that it was read.
    """

    body: Callable[[], Any] = object
    is_whole: bool = False
    began_at: int = 0
    ended_at: int | None = None

    def remember(self, body: Any, *, is_whole: bool = False, began_at: int = 0, ended_at: int | None = None) -> None:
        """Remember a body, by a weak reference if possible.

        :param is_whole: it was read to its end.
        :param began_at: the position of a file before the operation; ``ended_at`` is that after it.
        """
        try:
            self.body = weakref.ref(body)
        except TypeError:
            self.body = lambda: body
        self.is_whole, self.began_at, self.ended_at = is_whole, began_at, ended_at


_last = _LastBody()


def is_in_memory(body: Any) -> bool:
    """Return True for a body that is entirely in memory: a buffer, or a list or tuple of bytes, buffers and text."""
    if isinstance(body, (list, tuple)):
        return all(isinstance(part, str) or _is_buffer(part) for part in body)
    return _is_buffer(body)


def _is_buffer(body: Any) -> bool:
    try:
        memoryview(body)
    except TypeError:
        return False
    return True


def _position_of(body: Any) -> int | None:
    """Return the position of a file, or None for anything that is not a file or cannot seek back."""
    return _or_none(_position, body) if hasattr(body, "read") else None


def _position(body: Any) -> int | None:
    if hasattr(body, "seekable") and not body.seekable():
        return None
    position = body.tell()
    return position if callable(body.seek) and isinstance(position, int) else None


def _seek(body: Any, position: int) -> bool:
    """Move a file; return False if it did not get there."""
    return _or_none(_position_after, body, position) == position


def _position_after(body: Any, *where: int) -> int:
    body.seek(*where)
    return int(body.tell())


def _length_of(body: Any) -> int | None:
    """Return the length from a file's position on, measured as for the head; None: unknown."""
    # Text is measured by its bytes, too; requests would warn about it once more.
    return _or_none(super_len, body.buffer if isinstance(body, io.TextIOWrapper) else body)


def _end_of(body: Any) -> int | None:
    """Move a file to its end, and return that position; None: it cannot seek."""
    return _or_none(_position_after, body, 0, io.SEEK_END)


def _or_none(function: Callable[..., int | None], *arguments: Any) -> int | None:
    """Call a function of a file; return None if the file cannot do that."""
    try:
        return function(*arguments)
    except (AttributeError, OSError, TypeError, ValueError) as error:
        if is_interruption(error):
            raise
        return None


def has_key(headers: Mapping[str, Any]) -> bool:
    """Return True if a request carries an idempotency key that is not blank; the draft's quotes do not count."""
    value = headers.get(KEY_HEADER)
    return isinstance(value, (bytes, str)) and header_text(value).strip(' \t"') != ""


def key_for(request: PreparedRequest, option: bool | Callable[..., str]) -> str | None:
    """Return the key to send with a request; None if it needs none, has one, or cannot have one.

    Methods that are idempotent by themselves (RFC 9110 9.2.2) need none.

    :param option: the value of ``idempotency_key``: True, or a function of the request (or of nothing).
    :raises RetryConfigError: if the function gives something that cannot be sent as a key.
    """
    if str(request.method).upper() in IDEMPOTENT_METHODS or has_key(request.headers):
        return None
    if option is True:
        from uuid import uuid4  # it imports much that others do not need

        return f'"{uuid4()}"'  # as the draft writes it: a string of RFC 8941, which has quotes around it
    assert callable(option)
    key: object = option(request) if _takes_request(option) else option()
    if not isinstance(key, str) or not key.isascii() or not key.isprintable() or key.strip(' "') == "":
        # The value is not shown: no header value goes into a message, or stays in a local of the error's traceback.
        kind, allowed = type(key), "a text of printable ASCII, not blank, is allowed"
        del key
        raise RetryConfigError("idempotency_key", kind, "the function's result", allowed)
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

    :param policy: the policy whose classifiers may recognize the request.
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
        self.body: Body | None = None if request.body.__class__ in SIMPLE_BODIES else body_of(request)
        """None if it needs no care."""
        self.to_send: PreparedRequest = request if self.body is None else self.body.request_to_send(request)
        """The request for every attempt: the caller's own, or a copy with a counted body or a minted key.

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
        if self.to_send.headers is self.request.headers:
            self.to_send = copy_of(self.to_send)
        self.to_send.headers.update(headers)

    def obstacle(self) -> str | None:
        """Return why the body cannot be sent again now, as a phrase; None: it can."""
        return None if self.body is None else self.body.obstacle()

    def rewind(self) -> None:
        """Make the body ready, right before it is sent again; its length may have changed during a wait.

        :raises RetryError: if it cannot be sent again.
        """
        if self.body is None:
            return
        obstacle = self.body.obstacle()
        if obstacle is not None:
            stop_reason = StopReason.BODY_NOT_REPLAYABLE
            raise RetryError(f"{stop_reason.value}: {obstacle}", stop_reason=stop_reason)
        self.body.rewind()

    def for_resend(self, *, unwritten: bool, is_cut: bool) -> ResendFacts:
        """Return the facts that decide if the request may be sent again.

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
            body=self.body,
            is_cut=is_cut,
            long_poll=known.long_poll if said.long_poll is None else said.long_poll,
        )

    def answered(self, response: Response) -> None:
        """Remember the body if another operation often sends it once more after such an answer.

        An answer without a connection, such as a mock's, may not have read the body.
        """
        if self.body is None or response.status_code not in FOLLOWED_STATUSES:
            return
        if isinstance(getattr(response.raw, "_original_response", None), http.client.HTTPResponse):
            self.body.remember()

    def _known(self) -> Vouched:
        """Ask the classifiers that may recognize the request, once, when a decision needs it."""
        for item in self.policy.vouching:
            known = item.vouch(self.request)
            if known is not None:
                return known
        return Vouched()
