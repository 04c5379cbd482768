"""A body is watched, and goes on over another connection while it is read, by an operation of its own: who reads it
notices nothing.
"""

from __future__ import annotations

import functools
import ssl
import weakref
from typing import Any

import requests.exceptions
import urllib3.exceptions as uex
from requests import PreparedRequest, Response

from ...core.call import Call
from ...core.loop import go_on
from ...core.waiting import WaitEnded
from ...observing.history import add_piece, attach, retry_history
from .body import WatchedBody, skip, watch
from .rules import Piece, Resumable, resumable

LONG = 100_000
"""A shorter body that breaks off inside an attempt is begun anew: asking for its rest would save nothing."""


def watch_body(call: Call, response: Response) -> None:
    """Watch a body that may be continued, or of which listeners hear."""
    heard, request = None if call.observed is None else call.observed.heard, call.sent
    plan = _plan(call, request, response)
    if heard is None and plan is None:
        return
    body = watch(response.raw, heard)
    if body is not None and plan is not None:
        body.mend = functools.partial(mend, call, request, weakref.ref(response), plan)


def _plan(call: Call, request: PreparedRequest, response: Response) -> Resumable | None:
    """Return how a body may be continued; None: it may not, or nobody would ask."""
    chosen = call.options.resume
    if not (call.config.resume if chosen is None else chosen):
        return None
    length = None if call.stream else getattr(response.raw, "length_remaining", None)
    is_short = length is not None and length <= LONG
    return None if is_short else resumable(request, response)


class Rest:
    """The rest of a body, as one continuation asks for it."""

    def __init__(self, body: WatchedBody, plan: Resumable) -> None:
        self.body = body
        self.plan = plan
        self.is_taken: bool = False
        self.why: str = ""

    def receive(self, response: Response) -> None:
        found = self.plan.fit(response, self.body.received)
        if not isinstance(found, Piece):
            self.why = found
            return
        if found.until == self.body.received:  # nothing is missing
            self.body.end(found.total)
            self.is_taken = True
            response.close()
            return
        skip(response.raw, found.skipped)
        self.body.take_over(response.raw, found.until, found.total)
        try:
            self.body.prove()
        except BaseException:
            self.body.close_connection()  # nothing is held while its operation waits
            raise
        self.is_taken = True


def mend(
    call: Call,
    request: PreparedRequest,
    response: weakref.ref[Response],
    plan: Resumable,
    body: WatchedBody,
    error: Exception,
) -> None:
    """Have a body go on over another connection; else raise the original error, with the position and the reason."""
    rest, failure = Rest(body, plan), as_failure(body, error)
    ended: Any = None
    try:
        try:
            rest_of_it, brought = plan.request_from(request, body.received), body.brought
            ended = go_on(call, rest_of_it, rest.receive, failure, brought)
        except requests.exceptions.RequestException as raised:
            ended = raised
        history = add_piece(response(), retry_history(ended))
        if rest.is_taken:
            return
        last = type(ended).__name__
        if isinstance(ended, Response):
            last = str(ended.status_code)
            ended.close()
        ending = broken_off(body, error, rest.why or f"the last attempt ended with {last}")
        if history is not None:
            attach(ending, history)
        ending.__cause__ = ended if isinstance(ended, WaitEnded) else None
        raise ending
    finally:
        del error, ended, rest, failure  # their tracebacks refer to this frame


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
