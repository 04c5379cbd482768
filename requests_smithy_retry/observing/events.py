"""An operation as listeners see it, its events, their emission, and the listeners that get them (contract 12).

Without listeners it costs nothing; with them, a first-try success costs two events.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from requests import PreparedRequest, Response

from ..checks import copy_of, most_attempts
from ..classifiers.actions import ErrorKind, RetryIndicated
from ..classifiers.fold import Classification
from ..config.parsers import EVENTS
from ..config.retry_options import OperationOptions
from ..errors import StopReason, safe_error
from ..interruptions import StoppedByProgram, ask_program
from ..urls import safe_url
from ..wire.state import Peer, this_thread
from .history import AttemptRecord, Before, RetryHistory

if TYPE_CHECKING:
    from ..adapter import RetryAdapter
else:  # pragma: no branch - for typing.get_type_hints; the adapter imports this module
    RetryAdapter = Any


class BeforeAttempt(NamedTuple):
    """An attempt is about to be sent."""

    operation: ObservedOperation
    number: int

    @property
    def request(self) -> PreparedRequest:
        """The attempt's own copy of the request, which may be changed; it is made on first use.

        The caller's request stays as it is: the next attempt starts from it, and it is ``response.request``. The copy
        has its own headers, URL and hooks, but shares the body: replace the body rather than read it.
        """
        return self.operation.attempt_request()


class AfterAttempt(NamedTuple):
    """An attempt has ended, and its body was read if it had to be. No wait that follows it has begun.

    :param response: the response; None with an error. Do not read a body that the caller wants to stream.
    :param error: the exception, or None. A ``BaseException`` such as Ctrl-C is raised after this event.
    :param duration: the attempt's duration in seconds.
    :param noted: the history's record of the attempt, if it exists already; see :attr:`record`.
    :param peer: the far end of the connection; None if it is not known. See :attr:`address`.
    """

    operation: ObservedOperation
    number: int
    response: Response | None
    error: BaseException | None
    duration: float
    noted: AttemptRecord | None = None
    peer: Peer | None = None

    @property
    def address(self) -> str | None:
        """The IP address that the request went to, or all that were tried; None if it is not known."""
        if self.noted is not None:
            return self.noted.address
        return None if self.peer is None else self.peer.address

    @property
    def record(self) -> AttemptRecord:
        """The history's record of the attempt: votes, delay, quota. It holds no header, body or query."""
        if self.noted is not None:
            return self.noted
        started = self.operation.adapter.clock.wall() - self.duration
        error = None if self.error is None else type(self.error).__name__
        return AttemptRecord(self.number, started, self.duration, self.status, error, address=self.address)

    @property
    def status(self) -> int | None:
        """The response's status; None with an error."""
        return None if self.response is None else self.response.status_code

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(operation={self.operation!r}, number={self.number!r}, response={self.response!r}, "
            f"error={safe_error(self.error)}, duration={self.duration!r}, noted={self.noted!r}, "
            f"address={self.address!r})"
        )


class WaitBegan(NamedTuple):
    """The operation waits from now on: for a service that fails, or for a rate limit.

    :class:`RetryScheduled` reports the delay before a retry.

    :param number: the number of the last attempt; 0 before the first.
    :param what: what it waits for, as a phrase: ``"the failing service"``, ``"a rate limit"``.
    :param seconds: the expected duration of the wait; None: unknown.
    """

    operation: ObservedOperation
    number: int
    what: str
    seconds: float | None = None


class RetryScheduled(NamedTuple):
    """Another attempt follows.

    :param number: the number of the attempt that failed, from 1.
    :param delay: the wait that begins now, in seconds.
    :param delay_source: ``"backoff"``, the name of the server's hint, or ``"patience"`` for a late last retry.
    :param record: the record of the attempt that failed.
    :param line_wait: seconds that the operation waited for the service before this, 0 if it did not.
    :param line_why: the event that ended that wait, as a phrase.
    """

    operation: ObservedOperation
    number: int
    delay: float
    delay_source: str
    record: AttemptRecord
    line_wait: float = 0.0
    line_why: str = ""


class Throttled(NamedTuple):
    """The server asked for fewer requests, whether or not a retry follows.

    :param record: the record of the attempt.
    """

    operation: ObservedOperation
    number: int
    record: AttemptRecord


class GaveUp(NamedTuple):
    """A retry was indicated and could not be made. A 404, say, for which no retry is indicated, is not giving up.

    :param number: the number of the last attempt; 0 if no attempt was made.
    :param history: the whole record; ``history.stop_reason`` and ``history.sentence`` say why.
    """

    operation: ObservedOperation
    number: int
    history: RetryHistory


class Succeeded(NamedTuple):
    """The operation succeeded at its second attempt or later.

    :param number: the number of the last attempt.
    :param history: the whole record.
    """

    operation: ObservedOperation
    number: int
    history: RetryHistory


class BodyProgress(NamedTuple):
    """A part of a body arrived. With ``stream=True`` the caller may be about to read it.

    :param received: the encoded bytes so far.
    :param total: the length of the encoded body; None if the server did not announce it.
    :param resumes: how often the body broke off and was resumed.
    """

    operation: ObservedOperation
    received: int
    total: int | None
    resumes: int


class ObservedOperation:
    """One call of ``send``; the same object in all its events.

    :param adapter: the sending adapter.
    :param request: the caller's request. Do not change it: ``BeforeAttempt.request`` is for that.
    :param options: the operation's ``retry_options``, or None.
    """

    number: int = 1
    """The number of the latest attempt, from 1."""
    own_max_attempts: int | None = None
    """The limit in the operation's own options, or None."""
    is_under_way: bool = False
    """Listeners have seen the beginning of an attempt, but not its end."""
    _base: PreparedRequest | None = None
    _copy: PreparedRequest | None = None

    def __init__(
        self, adapter: RetryAdapter, request: PreparedRequest, options: OperationOptions | None, scope: str
    ) -> None:
        self.adapter = adapter
        self.request = request
        self.scope = scope
        """The scope whose quota the operation spends."""
        if options is not None:
            self.own_max_attempts = options.max_attempts

    @property
    def method(self) -> str:
        """The request's method."""
        return self.request.method or ""

    @functools.cached_property
    def url(self) -> str:
        """The request's URL without userinfo, query and fragment."""
        return safe_url(self.request.url)

    @property
    def max_attempts(self) -> int | None:
        """Most attempts of the operation; None where the strategy does not say."""
        return self.own_max_attempts or most_attempts(self.adapter.strategy)

    @functools.cached_property
    def invocation_id(self) -> str:
        """A random UUID, the same for all attempts."""
        from uuid import uuid4  # slow to import

        return str(uuid4())

    @functools.cached_property
    def data(self) -> dict[Any, Any]:
        """The listeners' own state of this operation, each under a key of its own."""
        return {}

    def begin(self, number: int, base: PreparedRequest) -> PreparedRequest:
        """Emit ``before_attempt``, and return the request to send: ``base``, or a copy that a listener made."""
        self.number, self._base, self._copy, self.is_under_way = number, base, None, True
        try:
            self.adapter.listeners.before_attempt(BeforeAttempt(self, number))
        except BaseException as error:
            self.interrupted(error, None)
            raise
        return self._to_send(base)

    def _to_send(self, base: PreparedRequest) -> PreparedRequest:
        return self._copy or base  # a listener may have made one

    def attempt_request(self) -> PreparedRequest:
        """Return the attempt's own copy of the request."""
        if self._copy is None:
            self._copy = copy_of(self._base or self.request)
        return self._copy

    _stopped_by: Exception | None = None

    def stopped_by(self) -> Exception | None:
        """Return, once, what a listener raised while the attempt's body came: it ends the call, whatever its class."""
        error, self._stopped_by = self._stopped_by, None
        return error

    @property
    def heard(self) -> Callable[[int, int | None, int], None] | None:
        """The function to call with each part of a body; None if no listener wants it."""
        return self._body_came if self.adapter.listeners.hears_bodies else None

    def _body_came(self, received: int, total: int | None, resumes: int) -> None:
        try:
            self.adapter.listeners.body_progress(BodyProgress(self, received, total, resumes))
        except Exception as error:
            if self.is_under_way:
                self._stopped_by = error
            raise

    def succeeded_at_once(self, response: Response, started: float) -> None:
        """Emit ``after_attempt`` of a first-try success."""
        response.request, self.is_under_way = self.request, False
        adapter = self.adapter
        try:
            duration = adapter.clock.now() - started
            adapter.listeners.after_attempt(AfterAttempt(self, 1, response, None, duration, None, this_thread.peer))
        except BaseException:
            response.close()
            raise

    def interrupted(self, error: BaseException, started: float | None) -> None:
        """Emit ``after_attempt`` of an attempt that was interrupted.

        :param started: the start of the attempt on the clock; None if it had not begun.
        """
        self.is_under_way = False
        error = error.error if isinstance(error, StoppedByProgram) else error
        duration = 0.0 if started is None else self.adapter.clock.now() - started
        self.adapter.listeners.after_attempt(AfterAttempt(self, self.number, None, error, duration))

    def attempt_ended(
        self,
        record: AttemptRecord,
        response: Response | None,
        error: Exception | None,
        classification: Classification | None,
    ) -> None:
        """Emit the events of a recorded attempt."""
        listeners, self.is_under_way = self.adapter.listeners, False
        response = response if error is None else None
        listeners.after_attempt(AfterAttempt(self, record.number, response, error, record.duration or 0.0, record))
        action = None if classification is None else classification.action
        if isinstance(action, RetryIndicated) and action.reason.kind is ErrorKind.THROTTLING:
            listeners.throttled(Throttled(self, record.number, record))

    def waits(self, number: int, what: str, seconds: float | None) -> None:
        """Emit ``wait_began``."""
        self.adapter.listeners.wait_began(WaitBegan(self, number, what, seconds))

    def retry_follows(self, record: AttemptRecord, waits: Before) -> None:
        """Emit ``retry_scheduled``."""
        told = waits.delay, waits.delay_source, record, waits.line_wait, waits.line_why
        self.adapter.listeners.retry_scheduled(RetryScheduled(self, record.number, *told))

    def ended(self, history: RetryHistory) -> None:
        """Emit ``gave_up`` or ``succeeded``, if either applies."""
        listeners = self.adapter.listeners
        number = history.attempts[-1].number if history.attempts else 0
        if history.gave_up:
            listeners.gave_up(GaveUp(self, number, history))
        elif history.stop_reason is StopReason.SUCCESS and number > 1:
            listeners.succeeded(Succeeded(self, number, history))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.method} {self.url} attempt {self.number}>"


class RetryListener:
    """A listener for operations. Override the methods that you need; the others cost nothing.

    Each event has the ``operation``, the call of ``send``, and if it is about an attempt, its ``number``, from 1.

    Any class with some of these methods is a listener, too. One listener may serve many adapters and threads at once.
    Keep the state of one operation in ``event.operation.data``. The methods run in the sending thread, so a slow
    method slows down every request, and one that raises ends the call with its exception.
    """

    def before_attempt(self, event: BeforeAttempt, /) -> None:
        """Handle an attempt that is about to be sent. ``event.request`` is a copy for it, which may be changed."""

    def after_attempt(self, event: AfterAttempt, /) -> None:
        """Handle the end of an attempt, exactly once for each :meth:`before_attempt`, whatever happens."""

    def wait_began(self, event: WaitBegan, /) -> None:
        """Handle the beginning of a wait for a service that fails, or for a rate limit."""

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        """Handle a retry whose delay is about to begin."""

    def throttled(self, event: Throttled, /) -> None:
        """Handle throttling: the server asked for fewer requests."""

    def gave_up(self, event: GaveUp, /) -> None:
        """Handle the end of an operation whose indicated retry could not be made."""

    def succeeded(self, event: Succeeded, /) -> None:
        """Handle the success of an operation that was retried."""

    def body_progress(self, event: BodyProgress, /) -> None:
        """Handle a part of a body: once for each read from the connection."""

    def __deepcopy__(self, memo: dict[int, Any]) -> RetryListener:
        # A copy of an adapter reports to the same listener.
        return self


Tell = Callable[[Any], None]


class Listeners:
    """The listeners of one adapter, as one callable per event, in order; :func:`ignore` where there is none."""

    __slots__ = (*EVENTS, "hears_bodies")

    before_attempt: Tell
    after_attempt: Tell
    wait_began: Tell
    retry_scheduled: Tell
    throttled: Tell
    gave_up: Tell
    succeeded: Tell
    body_progress: Tell

    def __init__(self, listeners: Iterable[Any]) -> None:
        items = tuple(listeners)
        for name in EVENTS:
            calls = [getattr(item, name) for item in items if _overrides(item, name)]
            tell = _as_one(calls, to_each=name == "after_attempt")
            is_within = name != "body_progress"  # which urllib3 calls, perhaps after the send
            setattr(self, name, functools.partial(ask_program, tell) if calls and is_within else tell)
        self.hears_bodies: bool = self.body_progress is not ignore


def _overrides(listener: Any, name: str) -> bool:
    """Return True if a listener has a method of its own for an event."""
    method = getattr(listener, name, None)
    return callable(method) and getattr(method, "__func__", None) is not getattr(RetryListener, name)


def ignore(event: Any, /) -> None:
    """Do nothing with an event."""


def _as_one(calls: list[Tell], *, to_each: bool) -> Tell:
    """Return one call for several; ``to_each``: it reaches every listener, even if an earlier one raises."""
    if len(calls) < 2:
        return calls[0] if calls else ignore

    def tell_all(event: Any) -> None:
        for call in calls:
            call(event)

    def tell_each(event: Any) -> None:
        failed: BaseException | None = None
        for call in calls:
            try:
                call(event)
            except BaseException as error:  # noqa: PERF203 - the others are called first
                failed = failed or error
        if failed is not None:
            try:
                raise failed
            finally:
                del failed  # its traceback refers to this frame

    return cast("Tell", tell_each if to_each else tell_all)
