"""One attempt that was made: what came of it, what it may still do, and how its connection is let go (contract 2.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import requests.exceptions
from requests import PreparedRequest, Response

from ..classifiers.transport_faults import forget_frames, never_left
from ..wire.body import bytes_received
from ..wire.state import this_thread
from .held_response import HeldResponse, as_requests_error

if TYPE_CHECKING:
    from .operation import Operation
    from .time_limits import TimeLimits


class Attempt:
    """One attempt. It owns its response, and so its connection, until it is let go or handed over.

    :param started: when it began, on the clock.
    :param response: the response, or None.
    :param error: the exception that was raised by sending or by reading the body, or None.
    """

    __slots__ = ("error", "held", "is_lost", "received", "response", "started", "unwritten", "was_let_go")

    def __init__(self, started: float, response: Response | None = None, error: Exception | None = None) -> None:
        self.started: float = started
        self.response = response
        self.error = error
        self.unwritten: bool = False
        """No byte of the request was written."""
        self.held: HeldResponse | None = None
        self.is_lost: bool = False
        """The response was let go before its body was known, so it cannot be handed over any more."""
        self.was_let_go: bool = False
        """Its connection was let go, because its operation waits for the service; its body is at hand."""

    def examine(self, request: PreparedRequest, limits: TimeLimits, *, preload: bool) -> None:
        """Name what went wrong as ``requests`` does, and look at as much of a failed body as is at hand.

        The traceback of an error refers to this frame, so no local refers to the error or to the operation.

        :param request: the caller's.
        :param limits: the operation's.
        :param preload: the caller wants the body read.
        """
        response = self.response
        if self.error is not None:
            self.unwritten = bool(this_thread.connecting or never_left(self.error))
            self.error = as_requests_error(self.error, response, limits, request)
        this_thread.connecting = False  # an attempt whose body made this one shall not take it for its own
        if isinstance(self.error, requests.exceptions.RequestException):
            self.error.request = request  # not the copy that a watched body was sent with
        self.received: int | None = bytes_received(response)
        if response is not None:
            response.request = request
            self.held = HeldResponse(response, preload=preload)
            if self.held.forgives(self.error):
                self.error = None
            if self.error is None and not self.held.look():
                self.error = self.held.read(limits)

    def read_rest(self, limits: TimeLimits) -> bool:
        """Read the long or late rest of a body whose response is final; return True if that failed."""
        if self.held is None or not self.held.is_unknown:
            return False
        self.error = self.held.read(limits)
        self.unwritten = False
        return self.error is not None

    @property
    def is_success(self) -> bool:
        """There is a response below 400, and nothing went wrong with it."""
        return self.error is None and self.response is not None and self.response.status_code < 400

    @property
    def prefix(self) -> bytes | None:
        """The beginning of a body that was not read whole."""
        peeked = None if self.held is None or self.error is not None else self.held.peeked
        return None if peeked is None else peeked.prefix

    def let_go(self, limits: TimeLimits, *, keep: bool) -> bool:
        """Let go of its connection: its operation waits, and may yet end with this response. False: it cannot.

        :param limits: the operation's.
        :param keep: keep the connection, if the rest of the body is little and quickly there.
        """
        if self.held is not None and not self.was_let_go:
            if self.error is None and not self.held.outlives_connection(limits):
                return False
            self.held.discard(keep=keep)
            self.was_let_go = True
        return True

    def discard(self, operation: Operation, *, keep: bool) -> None:
        """Let it go: a retry follows.

        :param keep: keep the connection for the retry.
        """
        if self.held is not None and not self.was_let_go:
            # A permit may be refused after the wait, when there is nothing left to read.
            self.is_lost = operation.may_be_refused_later and not self.held.outlives_connection(operation.limits)
            self.held.discard(keep=keep)
        if self.error is not None:
            forget_frames(self.error)

    def keep(self, operation: Operation, *, raises: bool) -> None:
        """Ready it for the caller: it is the last one.

        :param raises: the caller gets an exception that carries the response.
        """
        if self.held is not None:
            self.held.hand_over(operation.limits, is_broken=self.error is not None, is_raised=raises)

    def close(self) -> None:
        """Close the response, where there is one, with its connection."""
        if self.held is not None:
            self.held.close()
        elif self.response is not None:
            self.response.close()

    def forget(self) -> None:
        """Refer to nothing any more: the tracebacks of attempts would keep it alive."""
        self.response = self.error = self.held = None
