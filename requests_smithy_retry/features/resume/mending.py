"""A body that breaks off continues over another connection, by its own operation. Its reader notices nothing."""

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
from ...core.port import Sent
from ...core.waiting import WaitEnded
from ...errors import StopReason
from ...observing.history import PART, RetryHistory, add_piece, attach, joined, retry_history
from ...observing.log import log_part
from ...observing.summary import Counters, counted
from ...wire.decoding import ContentRange
from .body import WatchedBody, skip, watch
from .rules import Piece, Resumable, resumable, unasked_part

LONG = 100_000
"""A shorter body that breaks off inside an attempt is read again from the beginning."""


def watch_body(call: Call, response: Response) -> None:
    """Watch a body that may be continued, or that a listener follows."""
    heard, request = None if call.observed is None else call.observed.heard, call.sent
    part = unasked_part(request, response)
    plan = _plan(call, request, response, part)
    is_told = call.stream and response.status_code < 300
    is_watched = is_told or heard is not None or isinstance(plan, Resumable)
    body = watch(response.raw, call.as_sent, heard) if is_watched else None
    if part is not None and not _extends(body, plan, part):
        plan = "nobody asked for a part"
        note_part(request, response, part)
    if body is not None and (is_told or isinstance(plan, Resumable)):
        body.mend = functools.partial(mend, call, weakref.ref(response), plan)


def _extends(body: WatchedBody | None, plan: Resumable | str, part: ContentRange) -> bool:
    """Make a body ask for what follows its part; return False if it cannot."""
    return body is not None and isinstance(plan, Resumable) and body.extend(part.end, plan.total)


def _plan(call: Call, request: PreparedRequest, response: Response, part: ContentRange | None) -> Resumable | str:
    """Return how a body may be continued; or why not, as a phrase."""
    chosen = call.options.resume
    if not (call.config.resume if chosen is None else chosen):
        return "resume=False"
    if part is not None and call.most_attempts == 1:
        return "max_attempts=1"
    length = None if call.stream or part is not None else getattr(response.raw, "length_remaining", None)
    is_short = length is not None and length <= LONG
    return "it is short" if is_short else resumable(request, response)


def note_part(request: PreparedRequest, response: Response, part: ContentRange) -> None:
    """Note in the log and the history that a response is a part, though none was asked for."""
    total = "an unknown number" if part.total is None else part.total
    told = f"the server sent bytes {part.first} to {part.end - 1} of {total}, though the whole was asked for"
    vars(response)[PART] = told
    log_part(request, told)


class Rest:
    """The rest of a body, as one continuation asks for it.

    :param plan: how the body may be continued; or why not, as a phrase.
    :param response: the one whose body it is; None if it is gone.
    """

    def __init__(
        self, body: WatchedBody, plan: Resumable | str, response: Response | None, *, is_streamed: bool
    ) -> None:
        self.body = body
        self.brought_by: Sent = body.brought_by
        self.plan = plan
        self.response = response
        self.is_streamed = is_streamed
        self.is_taken: bool = False
        self.why: str = plan if isinstance(plan, str) else ""

    @property
    def refusal(self) -> tuple[StopReason, str] | None:
        """Why no rest can be asked for, and its phrase; None if one can be."""
        return (StopReason.BODY_NOT_CONTINUED, not_continued(self.plan)) if isinstance(self.plan, str) else None

    def next_request(self) -> PreparedRequest:
        """Return the request for the rest; where none can be asked for, the one that brought the body so far."""
        before = self.brought_by.request
        return before if isinstance(self.plan, str) else self.plan.request_from(before, self.body.received)

    def receive(self, response: Response, sent: Sent) -> None:
        """Go on with an answer, if it fits."""
        assert not isinstance(self.plan, str)
        found = self.plan.fit(response, self.body.received)
        self.why = "" if isinstance(found, Piece) else found
        if not isinstance(found, Piece):
            return
        if found.until == self.body.received:  # nothing is missing
            self.body.end(found.total)
            self.is_taken = True
            response.close()
            return
        skip(response.raw, found.skipped)
        self.body.take_over(response.raw, found.until, found.total, sent)
        try:
            self.body.prove()
        except BaseException:
            self.body.close_connection()  # nothing is held while its operation waits
            raise
        self.is_taken = True

    def ending(self, reason: StopReason, why: str) -> tuple[StopReason, str]:
        """Return why the call is over: for the reader of a stream, an answer that does not fit does not count."""
        if self.is_taken or not self.is_streamed or reason not in (StopReason.SUCCESS, StopReason.NOT_RETRYABLE):
            return reason, why
        return StopReason.BODY_NOT_CONTINUED, not_continued(self.why)

    def count(self, counters: Counters, scope: str, history: RetryHistory) -> None:
        """Count the call as a part of the one whose body it is; an attempt under way counts it itself."""
        before = retry_history(self.response)
        if before is not None:
            counters.ended(scope, joined(before, history), counted(before))


def mend(
    call: Call,
    response: weakref.ref[Response],
    plan: Resumable | str,
    body: WatchedBody,
    error: Exception,
) -> None:
    """Continue a body over another connection; or raise the original error, with the position and the reason."""
    failure = as_failure(body, error)
    ended: Any = None
    ending: Any = None
    rest: Rest | None = None
    try:
        rest = Rest(body, plan, response(), is_streamed=call.stream)
        if rest.refusal is not None and retry_history(rest.response) is None:
            raise broken_off(body, error, rest.why)  # the attempt under way reports it, or the response is gone
        try:
            ended = go_on(call, rest.next_request(), rest, failure, body.brought)
        except requests.exceptions.RequestException as raised:
            ended = raised
        last = retry_history(ended)
        history = add_piece(response(), last)
        if rest.is_taken:
            return
        what = type(ended).__name__
        if isinstance(ended, Response):
            what = str(ended.status_code)
            ended.close()
        why = rest.why or f"the last attempt ended with {what}" + ("" if last is None else f": {last.why}")
        ending = with_history(broken_off(body, error, why), history)
        if isinstance(ended, WaitEnded):
            ending.__cause__ = ended
        raise ending
    finally:
        del error, ended, ending, failure, rest  # their tracebacks refer to this frame


def not_continued(why: str) -> str:
    """Return the phrase about a body that was lost."""
    return f"the body broke off, and was not continued: {why}"


def with_history(error: uex.HTTPError, history: RetryHistory | None) -> uex.HTTPError:
    """Attach a history to an exception."""
    if history is not None:
        attach(error, history)
    return error


def as_failure(body: WatchedBody, error: Exception) -> requests.exceptions.RequestException:
    """Return the exception of ``requests`` for a body that broke off, as its readers expect it."""
    if isinstance(error, TimeoutError):
        return requests.exceptions.ConnectionError(uex.ReadTimeoutError(body.pool, None, "Read timed out."))
    if isinstance(error, ssl.SSLError):
        return requests.exceptions.SSLError(uex.SSLError(error))
    return requests.exceptions.ChunkedEncodingError(uex.ProtocolError(f"Connection broken: {error!r}", error))


def broken_off(body: WatchedBody, error: Exception, why: str) -> uex.HTTPError:
    """Return the exception of urllib3 for a body that broke off and was not continued, and why, as a phrase.

    Its cause is the error, as with urllib3.
    """
    total = "unknown" if body.total is None else body.total
    text = f"{error!r} at byte {body.received} of {total}; not continued: {why}"
    broken: uex.HTTPError = uex.ProtocolError(f"Connection broken: {text}", error)
    if isinstance(error, TimeoutError):
        broken = uex.ReadTimeoutError(body.pool, None, f"Read timed out: {text}")
    elif isinstance(error, ssl.SSLError):
        broken = uex.SSLError(text)
    broken.__cause__ = error
    return broken
