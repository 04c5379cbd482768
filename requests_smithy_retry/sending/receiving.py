"""The body of a success (contract 14.4, 14.6): received, watched, and continued over another connection.

It goes on inside an attempt or in the caller's hands. What fits is decided in :mod:`resuming`, what is sent in
:mod:`send_loop`.
"""

from __future__ import annotations

import functools
import ssl
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import requests.exceptions
import urllib3.exceptions as uex
from requests import PreparedRequest, Response

from ..observing.history import MAX_KEPT, AttemptRecord, RetryHistory, attach, retry_history
from ..wire.body import PART, WatchedBody, watch
from .attempt import Call, complete, is_left_for_hooks, read_by_the_clock, verify_decoded
from .credentials import origin_chosen
from .resuming import Piece, Resumable, resumable

VALIDATORS = frozenset({"etag", "last-modified"})
NOTABLE = frozenset({"content-encoding", *VALIDATORS})
"""The header fields, in lower case, for which a body is more than bytes to be read."""

is_plain: Callable[[Collection[str]], bool] = NOTABLE.isdisjoint
"""Tells from the names of a response's header fields, in lower case, whether :func:`receive` would only read."""

LONG = 100_000
"""A shorter body that breaks off inside an attempt is begun anew: asking for its rest would save nothing."""
_DIGITS = len(str(LONG))

KEPT = "_retry_kept"
"""The attribute of a response that has what was read of its body before it broke off, and how it may be continued."""


def receive(go_on: GoOn, response: Response, request: PreparedRequest, call: Call) -> None:
    """Have the body of a success watched where there is reason to, and read it where that is wanted.

    :param response: its status is below 400, and nothing of its body was read.
    :param request: as it was sent.
    :raises Exception: for a body that is not whole, or not the one that was sent.
    """
    heard = None if call.observed is None else call.observed.heard
    plan = _plan(response, request, call)
    body = watch(response, heard) if heard or plan else None
    if body is None:
        if not call.stream:
            complete(response, request)
        return
    if not body.is_on_a_wire:
        plan = None
    if call.stream:
        body.mend = _mend(go_on, response, request, call, plan)
    elif not is_left_for_hooks(response, request):
        read_in_parts(response, plan if isinstance(plan, Resumable) else None, [])


def _mend(
    go_on: GoOn, response: Response, request: PreparedRequest, call: Call, plan: Resumable | str | None
) -> Callable[[WatchedBody, Exception], None] | None:
    """Return the answer to a body that breaks off in the caller's hands; None: the usual error."""
    if isinstance(plan, Resumable):
        origin = "" if call.config.on_unauthorized is None else origin_chosen(request)
        return functools.partial(mend, go_on, call, request, weakref.ref(response), plan, origin)
    return functools.partial(refuse, plan) if plan is not None and response.status_code == 200 else None


def _plan(response: Response, request: PreparedRequest, call: Call) -> Resumable | str | None:
    """Return how a body may be continued, or why it may not; None where nobody would ask."""
    # By their names in lower case, with the field as it was sent; headers of another class are not looked into.
    fields = getattr(response.headers, "_store", {})
    if VALIDATORS.isdisjoint(fields) or not _resumes(call):
        return None
    if call.stream:
        return resumable(request, response)
    if "content-length" in fields and len(fields["content-length"][1]) < _DIGITS:
        return None
    plan = resumable(request, response)
    is_long = isinstance(plan, Resumable) and (plan.end is None or plan.end - plan.start > LONG)
    return plan if is_long else None


def _resumes(call: Call) -> bool:
    chosen = None if call.options is None else call.options.resume
    return call.config.resume if chosen is None else chosen


def read_in_parts(response: Response, plan: Resumable | None, parts: list[bytes]) -> None:
    """Read a body to its end by the attempt's deadline, and have the response give it out.

    :param plan: how it may be continued where it breaks off; None if it may not.
    :param parts: what was read of it already.
    """
    setattr(response, KEPT, (plan, parts))
    read_by_the_clock(response, parts, PART)
    verify_decoded(response)
    parts.clear()
    delattr(response, KEPT)


@dataclass(eq=False, slots=True)
class Rest:
    """The rest of a body that a next attempt asks for.

    :param response: whose body it is, and which the caller gets once it is whole; ``parts`` were read of it.
    """

    response: Response
    body: WatchedBody
    plan: Resumable
    parts: list[bytes]
    is_taken: bool = False
    has_changed: bool = False

    @property
    def is_void(self) -> bool:
        """It cannot be continued any more."""
        return self.has_changed or not self.body.is_broken

    @property
    def brought(self) -> int | None:
        """The bytes that the attempt under way brought; None if it brought none of this body."""
        return self.body.received - self.body.began_at if self.is_taken else None

    def request(self, request: PreparedRequest) -> PreparedRequest:
        """Return the request for the rest."""
        self.is_taken = False
        return self.plan.request_from(request, self.body.received)

    def receive(self, response: Response) -> Response | None:
        """Go on with an answer, and return the response that is whole now; None if the answer is one of its own.

        :raises requests.exceptions.ChunkedEncodingError: for the wrong part, which nobody asked for.
        """
        found = self.plan.fit(response, self.body.received)
        if isinstance(found, Piece):
            self.body.take_over(response.raw, *found)
            self.is_taken = True
            read_in_parts(self.response, self.plan, self.parts)
            return self.response
        self.has_changed = response.status_code < 400 or response.status_code == 416
        if response.status_code in (206, 416):
            error = uex.ProtocolError(f"not continued at byte {self.body.received}: {found}")
            raise requests.exceptions.ChunkedEncodingError(error)
        return None


def rest_of(response: Response, body: WatchedBody) -> Rest | None:
    """Return the rest of a body that broke off inside an attempt; None if there is nothing to go on with."""
    plan, parts = getattr(response, KEPT, (None, []))
    return Rest(response, body, plan, parts) if plan is not None and body.is_broken and body.received else None


@dataclass(eq=False, slots=True)
class InHand:
    """The rest of a body that its caller is reading, as one continuation asks for it.

    :param brought: the bytes that the connection brought which broke off; of its successor not known before it is read.
    :param origin: that to which the program itself sent the request, or what became it.
    """

    body: WatchedBody
    plan: Resumable
    brought: int | None
    origin: str
    is_taken: bool = False
    why: str = ""
    is_void: ClassVar[bool] = False

    def request(self, request: PreparedRequest) -> PreparedRequest:
        """Return the request as it is: it asks for the rest already."""
        self.brought = None
        return request

    def receive(self, response: Response) -> Response:
        """Go on with an answer that fits, once its first bytes are there; return the answer, whatever it is."""
        found = self.plan.fit(response, self.body.received)
        if not isinstance(found, Piece):
            self.why = found
            return response
        self.body.take_over(response.raw, *found)
        try:
            self.body.prove()
        except BaseException:
            self.body.let_go()  # nothing is held while its operation waits
            raise
        self.is_taken = True
        return response


GoOn = Callable[[Call, PreparedRequest, InHand, Exception], Response]
"""Sends, as the adapter does: the call that brought a body, the request for the rest, what it is for, the failure."""


def refuse(why: str, body: WatchedBody, error: Exception) -> None:
    """Raise the original error of a body in the caller's hands that cannot be continued, with position and reason."""
    try:
        raise broken_off(body, error, why)
    finally:
        del error  # its traceback refers to this frame


def mend(
    go_on: GoOn,
    call: Call,
    request: PreparedRequest,
    response: weakref.ref[Response],
    plan: Resumable,
    origin: str,
    body: WatchedBody,
    error: Exception,
) -> None:
    """Have a body that its caller is reading go on over another connection.

    :param call: brought the body, as the answer to ``request``.
    :raises urllib3.exceptions.HTTPError: the original error with the position and the reason, if it does not go on.
    """
    rest = InHand(body, plan, body.received - body.began_at, origin)
    body.let_go()
    ended: Any = None
    try:
        try:
            ended = go_on(call, plan.request_from(request, body.received), rest, as_failure(body, error))
        except requests.exceptions.RequestException as raised:
            ended = raised
        history = _noted(response(), retry_history(ended))
        if rest.is_taken:
            return
        last = type(ended).__name__
        if isinstance(ended, Response):
            last = str(ended.status_code)
            ended.close()
        ending = broken_off(body, error, rest.why or f"the last attempt ended with {last}")
        if history is not None:
            attach(ending, history)
        raise ending
    finally:
        del error, ended, rest  # their tracebacks refer to this frame


def _noted(response: Response | None, piece: RetryHistory | None) -> RetryHistory | None:
    """Add the history of one continuation to that of the response, which may be gone; return the whole."""
    before = retry_history(response)
    if before is None or piece is None:
        return piece
    whole = joined(before, piece)
    attach(response, whole)
    return whole


def joined(before: RetryHistory, piece: RetryHistory) -> RetryHistory:
    """Return the history of a body that went on: the last attempt so far is the one that broke off.

    :param piece: that of the continuation, which begins with the attempt that broke off.
    """
    last = before.attempts[-1]
    shift = last.number - 1
    rows: list[AttemptRecord] = [replace(row, number=row.number + shift) for row in piece.attempts]
    of_its_start = ("started", "delay", "delay_source", "permit_wait", "line_wait", "line_why")
    rows[0] = replace(rows[0], **{name: getattr(last, name) for name in of_its_start})
    attempts = [*before.attempts[:-1], *rows]
    while len(attempts) > MAX_KEPT:
        del attempts[MAX_KEPT // 2]
    return replace(piece, attempts=tuple(attempts))


def as_failure(body: WatchedBody, error: Exception) -> requests.exceptions.RequestException:
    """Return the exception of ``requests`` for a body that broke off, as its readers know it."""
    if isinstance(error, TimeoutError):
        return requests.exceptions.ConnectionError(uex.ReadTimeoutError(body.pool, None, "Read timed out."))
    if isinstance(error, ssl.SSLError):
        return requests.exceptions.SSLError(uex.SSLError(error))
    return requests.exceptions.ChunkedEncodingError(uex.ProtocolError(f"Connection broken: {error!r}", error))


def broken_off(body: WatchedBody, error: Exception, why: str) -> uex.HTTPError:
    """Return the exception of urllib3 for a body that broke off and was not continued, and why, as a phrase."""
    total = "unknown" if body.total is None else body.total
    text = f"{error!r} at byte {body.received} of {total}; not continued: {why}"
    if isinstance(error, TimeoutError):
        return uex.ReadTimeoutError(body.pool, None, f"Read timed out: {text}")
    if isinstance(error, ssl.SSLError):
        return uex.SSLError(text)
    return uex.ProtocolError(f"Connection broken: {text}", error)
