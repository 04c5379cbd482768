"""Bodies that are continued over another connection (contract 14.6), inside an attempt and in the caller's hands.

What fits is decided in :mod:`resuming`, what is sent in :mod:`send_loop`.
"""

from __future__ import annotations

import ssl
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import requests.exceptions
import urllib3.exceptions as uex
from requests import PreparedRequest, Response

from ..observing.history import MAX_KEPT, AttemptRecord, RetryHistory, attach, retry_history
from ..wire.body import PART, WatchedBody
from ..wire.state import this_thread
from .attempt import hold, verify_decoded
from .resuming import Piece, Resumable

KEPT = "_retry_kept"
"""The attribute of a response that has what was read of its body before it broke off."""


class Refused:
    """A body in the caller's hands that cannot be continued."""

    __slots__ = ("_why",)

    def __init__(self, why: str) -> None:
        self._why = why

    def __call__(self, body: WatchedBody, error: Exception) -> None:
        """Raise the original error, with the position and the reason."""
        try:
            raise broken_off(body, error, self._why)
        finally:
            del error  # its traceback refers to this frame


class KeptPart:
    """The part of a body that was read inside an attempt before it broke off.

    :param plan: how it may be continued; None if it may not.
    """

    __slots__ = ("is_void", "parts", "plan")

    def __init__(self, plan: Resumable | None) -> None:
        self.plan: Resumable | None = plan
        self.parts: list[bytes] = []
        self.is_void: bool = False

    def read_on(self, response: Response) -> None:
        """Read the body to its end, or as far as it comes, by the attempt's deadline."""
        for part in response.iter_content(PART):
            self.parts.append(part)
            this_thread.seconds(None)


class Rest:
    """The rest of a body that a next attempt asks for.

    :param response: whose body it is, and which the caller gets once it is whole.
    """

    __slots__ = ("_body", "_kept", "_plan", "_response", "is_taken")

    def __init__(self, response: Response, kept: KeptPart, plan: Resumable, body: WatchedBody) -> None:
        self._response = response
        self._kept = kept
        self._plan = plan
        self._body = body
        self.is_taken: bool = False

    @property
    def is_void(self) -> bool:
        """It cannot be continued any more."""
        return self._kept.is_void or not self._body.is_broken

    @property
    def brought(self) -> int | None:
        """The bytes that the attempt under way brought; None if it brought none of this body."""
        return self._body.received - self._body.began_at if self.is_taken else None

    def request(self, request: PreparedRequest) -> PreparedRequest:
        """Return the request for the rest."""
        self.is_taken = False
        return self._plan.request_from(request, self._body.received)

    def receive(self, response: Response) -> Response | None:
        """Go on with an answer, and return the response that is whole now; None if the answer is one of its own.

        :raises requests.exceptions.ChunkedEncodingError: for the wrong part, which nobody asked for.
        """
        found = self._plan.fit(response, self._body.received)
        if isinstance(found, Piece):
            self._body.take_over(response.raw, *found)
            self.is_taken = True
            self._kept.read_on(self._response)
            hold_whole(self._response, self._kept)
            return self._response
        self._kept.is_void = response.status_code < 400 or response.status_code == 416
        if response.status_code in (206, 416):
            error = uex.ProtocolError(f"not continued at byte {self._body.received}: {found}")
            raise requests.exceptions.ChunkedEncodingError(error)
        return None


def hold_whole(response: Response, kept: KeptPart) -> None:
    """Have a response give out the body that was read in parts.

    :raises requests.exceptions.ContentDecodingError: if its content coding is incomplete.
    """
    verify_decoded(response)
    hold(response, b"".join(kept.parts))
    kept.parts.clear()
    delattr(response, KEPT)


def rest_of(response: Response, body: WatchedBody) -> Rest | None:
    """Return the rest of a body that broke off inside an attempt; None if there is nothing to go on with."""
    kept = getattr(response, KEPT, None)
    if kept is None or kept.plan is None or not body.is_broken or not body.received:
        return None
    return Rest(response, kept, kept.plan, body)


class InHand:
    """The rest of a body that its caller is reading, as one continuation asks for it."""

    __slots__ = ("_body", "_plan", "brought", "is_taken", "why")

    is_void = False

    def __init__(self, body: WatchedBody, plan: Resumable) -> None:
        self._body = body
        self._plan = plan
        self.is_taken: bool = False
        self.why: str = ""
        self.brought: int | None = body.received - body.began_at
        """The bytes that the connection brought which broke off; of its successor not known before it is read."""

    def request(self, request: PreparedRequest) -> PreparedRequest:
        """Return the request as it is: it asks for the rest already."""
        self.brought = None
        return request

    def receive(self, response: Response) -> Response:
        """Go on with an answer that fits, once its first bytes are there; return the answer, whatever it is."""
        found = self._plan.fit(response, self._body.received)
        if not isinstance(found, Piece):
            self.why = found
            return response
        self._body.take_over(response.raw, *found)
        try:
            self._body.prove()
        except BaseException:
            self._body.let_go()  # nothing is held while its operation waits
            raise
        self.is_taken = True
        return response


class Continuation:
    """Has a body that its caller is reading go on over another connection, as often as it breaks off.

    :param go_on: sends, as the adapter does: the request for the rest, what to do with an answer, and the failure.
    :param response: whose body it is; the reference to it is weak.
    """

    __slots__ = ("_go_on", "_plan", "_request", "_response")

    def __init__(
        self,
        go_on: Callable[[PreparedRequest, InHand, Exception], Response],
        request: PreparedRequest,
        response: Response,
        plan: Resumable,
    ) -> None:
        self._go_on = go_on
        self._request = request
        self._response = weakref.ref(response)
        self._plan = plan

    def __call__(self, body: WatchedBody, error: Exception) -> None:
        """Go on, or raise the original error with the position and the reason."""
        rest = InHand(body, self._plan)
        body.let_go()
        try:
            self._ask(body, rest, error)
        finally:
            del error, rest  # their tracebacks refer to this frame

    def _ask(self, body: WatchedBody, rest: InHand, error: Exception) -> None:
        request = self._plan.request_from(self._request, body.received)
        ended: Any
        try:
            ended = self._go_on(request, rest, as_failure(body, error))
        except requests.exceptions.RequestException as raised:
            ended = raised
        history = self._noted(retry_history(ended))
        try:
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
            del error, ended

    def _noted(self, piece: RetryHistory | None) -> RetryHistory | None:
        """Add the history of one continuation to that of the response, which may be gone; return the whole."""
        response = self._response()
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
    rows[0] = replace(
        rows[0],
        started=last.started,
        delay=last.delay,
        delay_source=last.delay_source,
        permit_wait=last.permit_wait,
        line_wait=last.line_wait,
        line_why=last.line_why,
    )
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
    """Return the exception of urllib3 for a body that broke off and was not continued.

    :param why: the reason why it was not continued, as a phrase.
    """
    total = "unknown" if body.total is None else body.total
    text = f"{error!r} at byte {body.received} of {total}; not continued: {why}"
    if isinstance(error, TimeoutError):
        return uex.ReadTimeoutError(body.pool, None, f"Read timed out: {text}")
    if isinstance(error, ssl.SSLError):
        return uex.SSLError(text)
    return uex.ProtocolError(f"Connection broken: {text}", error)
