"""One operation as listeners see it, and the telling of its events (contract 12).

It costs nothing where an adapter has no listeners; where it has, a first-try success costs two events and no more.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from requests import PreparedRequest, Response

from .actions import ErrorKind, RetryIndicated
from .classification import Classification
from .events import AfterAttempt, BeforeAttempt, GaveUp, RetryScheduled, Succeeded, Throttled
from .history import AttemptRecord, RetryHistory, ended_now
from .log import QUIET_ENDINGS
from .redact import safe_url
from .stop_reason import StopReason

if TYPE_CHECKING:
    from .send_loop import SendLoop

# Every attempt makes an event: `tuple.__new__` skips the frame that a named tuple's own constructor would take.
_event: Any = tuple.__new__


class ObservedOperation:
    """One call of ``send``. The same object in all its events.

    :param adapter: that sends.
    :param request: the caller's request. Look, but do not change it: ``BeforeAttempt.request`` is for that.
    """

    number: int = 1
    """Of the latest attempt, from 1."""
    own_max_attempts: int | None = None
    """What the operation's own options say."""
    _base: PreparedRequest | None = None
    _copy: PreparedRequest | None = None

    def __init__(self, adapter: SendLoop, request: PreparedRequest) -> None:
        self.adapter = adapter
        self.request = request

    @property
    def method(self) -> str:
        """The request's method."""
        return self.request.method or ""

    @functools.cached_property
    def url(self) -> str:
        """The request's URL as it may be written anywhere: without userinfo, query and fragment."""
        return safe_url(self.request.url)

    @functools.cached_property
    def scope(self) -> str:
        """Whose quota the operation spends."""
        return self.adapter.scope_of(self.request)

    @property
    def max_attempts(self) -> int | None:
        """Most attempts of the operation; None where the strategy does not say."""
        return self.own_max_attempts or getattr(self.adapter.strategy, "max_attempts", None)

    @functools.cached_property
    def invocation_id(self) -> str:
        """A random UUID, the same for all attempts."""
        from uuid import uuid4  # it brings much that others do not need

        return str(uuid4())

    @functools.cached_property
    def data(self) -> dict[Any, Any]:
        """Where listeners keep what they must remember of this operation, each under a key of its own."""
        return {}

    def begin_first(self) -> PreparedRequest:
        """Tell that the first attempt is about to be sent, and return what to send."""
        try:
            self.adapter.listeners.before_attempt(_event(BeforeAttempt, (self, 1)))
        except BaseException as error:
            self.interrupted(error, None)
            raise
        return self._copy or self.request

    def begin(self, number: int, base: PreparedRequest) -> PreparedRequest:
        """Tell that an attempt is about to be sent, and return what to send.

        :param base: what is sent where no listener changes anything.
        """
        self.number, self._base, self._copy = number, base, None
        try:
            self.adapter.listeners.before_attempt(BeforeAttempt(self, number))
        except BaseException as error:
            self.interrupted(error, None)
            raise
        return self._to_send()

    def _to_send(self) -> PreparedRequest:
        return self._copy or self._base or self.request

    def attempt_request(self) -> PreparedRequest:
        """The attempt's own copy of the request."""
        if self._copy is None:
            self._copy = (self._base or self.request).copy()
        return self._copy

    def succeeded_at_once(self, response: Response, started: float) -> PreparedRequest:
        """Tell that the first attempt was a success, and return the caller's request."""
        response.request = self.request
        adapter = self.adapter
        duration = adapter.clock.now() - started
        try:
            adapter.listeners.after_attempt(_event(AfterAttempt, (self, 1, response, None, duration, None)))
        except BaseException:
            response.close()
            raise
        return self.request

    def interrupted(self, error: BaseException, started: float | None) -> None:
        """Tell that an attempt was broken off by what is not for us to handle.

        :param started: when it began, on the clock; None: it did not come to that.
        """
        duration = 0.0 if started is None else self.adapter.clock.now() - started
        self.adapter.listeners.after_attempt(AfterAttempt(self, self.number, None, error, duration))

    def attempt_ended(
        self,
        record: AttemptRecord,
        response: Response | None,
        error: Exception | None,
        classification: Classification | None,
    ) -> None:
        """Tell of an attempt that is in the record."""
        listeners = self.adapter.listeners
        response = response if error is None else None
        listeners.after_attempt(AfterAttempt(self, self.number, response, error, record.duration or 0.0, record))
        action = None if classification is None else classification.action
        if isinstance(action, RetryIndicated) and action.reason.kind is ErrorKind.THROTTLING:
            listeners.throttled(Throttled(self, self.number, record))

    def retry_follows(self, record: AttemptRecord, delay: float, source: str) -> None:
        """Tell that another attempt follows."""
        self.adapter.listeners.retry_scheduled(RetryScheduled(self, self.number, delay, source, record))

    def ended(self, history: RetryHistory) -> None:
        """Tell how it ended, where there is something to tell."""
        listeners = self.adapter.listeners
        number = history.attempts[-1].number if history.attempts else 0
        if history.stop_reason not in QUIET_ENDINGS:
            listeners.gave_up(GaveUp(self, number, history))
        elif history.stop_reason is StopReason.SUCCESS and number > 1:
            listeners.succeeded(Succeeded(self, number, history))

    def record_of(self, event: AfterAttempt) -> AttemptRecord:
        """The record of an attempt that went without one."""
        error = None if event.error is None else type(event.error).__name__
        return ended_now(self.adapter.clock, event.number, event.duration, event.status, error)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.method} {self.url} attempt {self.number}>"
