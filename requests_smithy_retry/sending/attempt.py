"""One attempt that was made: its outcome, its further use, and the release of its connection (contract 2.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import requests.exceptions
from requests import PreparedRequest, Response

from ..classifiers.transport_faults import forget_frames, is_timeout, is_transient, never_left
from ..wire.body import bytes_received
from ..wire.state import this_thread
from .held_response import HeldResponse, as_requests_error

if TYPE_CHECKING:
    from ..wire.addresses import Peer
    from .operation import Operation
    from .time_limits import TimeLimits


class Attempt:
    """One attempt. It owns its response, and so its connection, until it is let go or handed over."""

    __slots__ = ("error", "held", "is_lost", "peer", "received", "response", "started", "unwritten", "was_let_go")

    def __init__(self, started: float, response: Response | None = None, error: Exception | None = None) -> None:
        self.started: float = started
        self.response = response
        self.error = error
        self.unwritten: bool = False
        """No byte of the request was written."""
        self.peer: Peer | None = None
        """The far end, where it is known."""
        self.held: HeldResponse | None = None
        self.is_lost: bool = False
        """The response was let go before its body was known, so it cannot be handed over any more."""
        self.was_let_go: bool = False
        """Its connection was let go, because its operation waits for the service; its body is at hand."""

    def examine(self, request: PreparedRequest, limits: TimeLimits, *, preload: bool) -> None:
        """Name the error as ``requests`` does, and look at as much of a failed body as is at hand.

        The traceback of an error refers to this frame, so no local refers to the error or to the operation.
        """
        response = self.response
        self.peer = this_thread.reached()
        if self.error is not None:
            self.unwritten = bool(this_thread.connecting is True or never_left(self.error))
            self.error = as_requests_error(self.error, response, limits, request)
        this_thread.connecting = False  # an attempt whose body made this one must not take it for its own
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
    def address(self) -> str | None:
        """The address that the request went to; None if it is not known."""
        return None if self.peer is None else self.peer.address

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

    @property
    def is_success(self) -> bool:
        """Return True if there is a response below 400 and no error."""
        return self.error is None and self.response is not None and self.response.status_code < 400

    @property
    def prefix(self) -> bytes | None:
        """The beginning of a body that was not read whole."""
        peeked = None if self.held is None or self.error is not None else self.held.peeked
        return None if peeked is None else peeked.prefix

    def let_go(self, limits: TimeLimits, *, keep: bool) -> bool:
        """Let go of its connection while the operation waits, and may yet end with this response. False: it cannot."""
        if self.held is not None and not self.was_let_go:
            if self.error is None and not self.held.outlives_connection(limits):
                return False
            self.held.discard(keep=keep)
            self.was_let_go = True
        return True

    def discard(self, operation: Operation, *, keep: bool) -> None:
        """Discard it, because a retry follows."""
        if self.held is not None and not self.was_let_go:
            # A permit may be refused after the wait, when there is nothing left to read.
            self.is_lost = operation.may_be_refused_later and not self.held.outlives_connection(operation.limits)
            self.held.discard(keep=keep)
        if self.error is not None:
            forget_frames(self.error)

    def keep(self, operation: Operation, *, raises: bool) -> None:
        """Prepare it for the caller, because it is the last one."""
        if self.held is not None:
            self.held.hand_over(operation.limits, is_broken=self.error is not None, is_raised=raises)

    def close(self) -> None:
        if self.held is not None:
            self.held.close()
        elif self.response is not None:
            self.response.close()

    def forget(self) -> None:
        """Drop all references: the tracebacks of attempts would keep it alive."""
        self.response = self.error = self.held = None
