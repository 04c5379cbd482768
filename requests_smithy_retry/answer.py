"""A response while it is judged (contract 2.7, 13): looked at no further than that needs, then let go or handed on."""

from __future__ import annotations

import requests.exceptions
from requests import PreparedRequest, Response

from .bodies import BodyChanged
from .discarded import HeldConnection, close_pooled
from .time_limits import TimeLimits, as_body_failure
from .wire import Peeked, peek, verify_whole


class Answer:
    """A response whose connection is kept from its pool until it is known whether there is a retry.

    :param response: what came. Below 400, its body was read already where the caller wanted that.
    :param preload: the caller wants the body read.
    """

    __slots__ = ("held", "peeked", "preload", "response")

    def __init__(self, response: Response, *, preload: bool) -> None:
        self.response: Response = response
        self.preload: bool = preload
        self.peeked: Peeked | None = None
        self.held: HeldConnection | None = HeldConnection(response) if response.status_code >= 400 else None

    def look(self) -> bool:
        """Look at the beginning of a failed response's body. False: it is short, or close by: read it.

        True: there is nothing to read now; ``peeked`` has the beginning of a body that is long or slow.
        """
        if self.held is None or not self.preload:
            return True
        peeked = peek(self.response)
        if peeked is None or peeked.whole:
            return False
        self.peeked = peeked
        return True

    def read(self, limits: TimeLimits) -> Exception | None:
        """Read the body to its end. What goes wrong in it is the attempt's failure, and is returned.

        :param limits: the operation's.
        """
        try:
            _ = self.response.content
            verify_whole(self.response)
        except Exception as error:
            return as_requests_error(error, self.response, limits, self.response.request)
        return None

    def discard(self, *, keep: bool) -> None:
        """A retry follows: let it go.

        :param keep: keep the connection, if the rest of the body is little and quickly there.
        """
        if self.held is not None:
            self.held.discard(keep=keep)
        elif not keep:
            close_pooled(self.response.raw)
        self._close_response()

    def hand_on(self, limits: TimeLimits, *, is_broken: bool, is_raised: bool = False) -> None:
        """It is the last one: ready it for the caller.

        :param limits: the operation's, which end here for a body that the caller reads.
        :param is_broken: reading it failed, so that the caller gets the exception.
        :param is_raised: the caller gets an exception that carries it. Whoever wanted to stream it never enters the
            ``with`` block that would have let go of its connection.
        """
        if is_broken or (is_raised and not self.preload and not self.is_read_at_once(limits)):
            self.close()
            return
        if not self.preload:
            limits.hand_on(self.response)
        if self.held is not None:
            if self.preload:
                self.held.put_back()
            else:
                self.held.return_to_response()

    def is_read_at_once(self, limits: TimeLimits) -> bool:
        """Read an unwanted body if it is short and there, and say whether that was so, as of one that was wanted."""
        if self.preload:
            return self.peeked is None
        self.preload = True
        return not self.look() and self.read(limits) is None

    def close(self) -> None:
        """Let it go with its connection."""
        if self.held is not None:
            self.held.close()
        else:
            close_pooled(self.response.raw)
        self._close_response()

    def _close_response(self) -> None:
        if self.response.raw is not None:  # one that a mix-in or a test made by hand need not have any
            self.response.close()


def as_requests_error(
    error: Exception, response: Response | None, limits: TimeLimits, request: PreparedRequest
) -> Exception:
    """The exception of ``requests`` that says what went wrong.

    :param error: what was raised.
    :param response: whose body was being read, or None.
    :param limits: tell whether the time was up.
    :param request: the caller's.
    """
    if isinstance(error, BodyChanged):
        return requests.exceptions.UnrewindableBodyError(str(error), request=request)
    named = limits.translated(error, request)
    return named if response is None else as_body_failure(named, request)
