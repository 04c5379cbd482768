"""The events of an operation, and the listeners that get them (contract 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..config.parsers import EVENTS
from ..errors import safe_error

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from ..wire.addresses import Peer
    from .history import AttemptRecord, RetryHistory
    from .observed_operation import ObservedOperation


class BeforeAttempt(NamedTuple):
    """An attempt is about to be sent.

    :param operation: the call of ``send``.
    :param number: the attempt's number, from 1.
    """

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

    :param operation: the call of ``send``.
    :param number: the attempt's number, from 1.
    :param response: the response; None with an error. Do not read a body that the caller wants to stream.
    :param error: the exception, or None. A ``BaseException`` such as Ctrl-C is raised after this event.
    :param duration: the attempt's duration in seconds.
    :param noted: the history's record of the attempt, if it exists already; see :attr:`record`.
    :param peer: the far end of the connection; False or None if it is not known. See :attr:`address`.
    """

    operation: ObservedOperation
    number: int
    response: Response | None
    error: BaseException | None
    duration: float
    noted: AttemptRecord | None = None
    peer: Peer | bool | None = None

    @property
    def address(self) -> str | None:
        """The IP address that the request went to, or all that were tried; None if it is not known."""
        if self.noted is not None:
            return self.noted.address
        return getattr(self.peer, "address", None)

    @property
    def record(self) -> AttemptRecord:
        """The history's record of the attempt: votes, delay, quota. It holds no header, body or query."""
        return self.noted or self.operation.record_of(self)

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


class RetryScheduled(NamedTuple):
    """Another attempt follows.

    :param operation: the call of ``send``.
    :param number: the number of the attempt that failed, from 1.
    :param delay: the wait that begins now, in seconds.
    :param delay_source: ``"backoff"``, the name of the server's hint, or ``"patience"`` for a late last retry.
    :param record: the record of the attempt that failed.
    :param line_wait: the wait for the service to be back, which is over now, in seconds; 0: there was none.
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

    :param operation: the call of ``send``.
    :param number: the attempt's number, from 1.
    :param record: the record of the attempt.
    """

    operation: ObservedOperation
    number: int
    record: AttemptRecord


class GaveUp(NamedTuple):
    """A retry was indicated and could not be made. An outcome without an indicated retry (a 404) is not giving up.

    :param operation: the call of ``send`` that ended.
    :param number: the number of the last attempt; 0 if none was made, because no permit came in time.
    :param history: the whole record; ``history.stop_reason`` and ``history.sentence`` say why.
    """

    operation: ObservedOperation
    number: int
    history: RetryHistory


class Succeeded(NamedTuple):
    """The operation succeeded at its second attempt or later.

    :param operation: the call of ``send`` that ended.
    :param number: the number of the last attempt.
    :param history: the whole record.
    """

    operation: ObservedOperation
    number: int
    history: RetryHistory


class BodyProgress(NamedTuple):
    """A part of a body arrived. With ``stream=True`` the caller may be about to read it.

    :param operation: the call of ``send``.
    :param received: the encoded bytes that came so far.
    :param total: the length of the encoded body; None where the server has not told.
    :param resumes: how often the body broke off and was continued.
    """

    operation: ObservedOperation
    received: int
    total: int | None
    resumes: int


class RetryListener:
    """A listener of operations. Override the methods you need; the others cost nothing.

    Any class with some of these methods is a listener, too. One listener may serve many adapters and threads at once.
    It keeps the state of one operation in ``event.operation.data``. The methods run in the sending thread, so a slow
    one slows down every request.
    """

    def before_attempt(self, event: BeforeAttempt, /) -> None:
        """Handle an attempt that is about to be sent. ``event.request`` is a copy for it, which may be changed."""

    def after_attempt(self, event: AfterAttempt, /) -> None:
        """Handle the end of an attempt, exactly once for each :meth:`before_attempt`, whatever happens."""

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        """Handle a retry whose delay is about to begin."""

    def throttled(self, event: Throttled, /) -> None:
        """Handle a server's request for fewer requests."""

    def gave_up(self, event: GaveUp, /) -> None:
        """Handle the end of an operation whose indicated retry could not be made."""

    def succeeded(self, event: Succeeded, /) -> None:
        """Handle the success of an operation after one retry or more."""

    def body_progress(self, event: BodyProgress, /) -> None:
        """Handle a part of a body that came: once for each read from the connection."""

    def __deepcopy__(self, memo: dict[int, Any]) -> RetryListener:
        # A copy of an adapter reports to the same listener.
        return self


Tell = Callable[[Any], None]


class Listeners:
    """The listeners of one adapter, as one callable per event; :func:`ignore` where there is none.

    :param listeners: called in this order.
    """

    __slots__ = EVENTS

    before_attempt: Tell
    after_attempt: Tell
    retry_scheduled: Tell
    throttled: Tell
    gave_up: Tell
    succeeded: Tell
    body_progress: Tell

    def __init__(self, listeners: Iterable[Any]) -> None:
        items = tuple(listeners)
        for name in EVENTS:
            calls = [getattr(item, name) for item in items if _overrides(item, name)]
            setattr(self, name, _each(calls) if name == "after_attempt" else _as_one(calls))

    @property
    def hears_attempts(self) -> bool:
        """Return True if a first-try success has an event with a listener."""
        return self.hears_bodies or not (self.before_attempt is self.after_attempt is ignore)

    @property
    def hears_bodies(self) -> bool:
        """Return True if a listener hears of the parts of bodies."""
        return self.body_progress is not ignore


def _overrides(listener: Any, name: str) -> bool:
    """Return True if a listener has a method of its own for an event."""
    method = getattr(listener, name, None)
    return callable(method) and getattr(method, "__func__", None) is not getattr(RetryListener, name)


def ignore(event: Any, /) -> None:
    """Do nothing with an event."""


def _as_one(calls: list[Tell]) -> Tell:
    if len(calls) < 2:
        return calls[0] if calls else ignore

    def tell_all(event: Any) -> None:
        for call in calls:
            call(event)

    return cast("Tell", tell_all)


def _each(calls: list[Tell]) -> Tell:
    """Return one call that reaches every listener, even if an earlier one raises."""
    if len(calls) < 2:
        return _as_one(calls)

    def tell_each(event: Any) -> None:
        failed: BaseException | None = None
        for call in calls:
            try:
                call(event)
            except BaseException as error:  # noqa: PERF203 - the others are told first
                failed = failed or error
        if failed is not None:
            try:
                raise failed
            finally:
                del failed  # its traceback refers to this frame

    return cast("Tell", tell_each)


INVOCATION_ID = "amz-sdk-invocation-id"
REQUEST = "amz-sdk-request"


class SdkHeaders(RetryListener):
    """Sets ``amz-sdk-invocation-id`` (one UUID per operation) and ``amz-sdk-request: attempt=N; max=M``.

    The caller's own invocation id is kept. Without a known ``max_attempts``, and in attempts beyond it, ``max`` is left
    out.
    """

    def before_attempt(self, event: BeforeAttempt, /) -> None:
        """Set the headers on this attempt's copy of the request."""
        headers = event.request.headers
        headers.setdefault(INVOCATION_ID, event.operation.invocation_id)
        most = event.operation.max_attempts
        is_bounded = most is not None and event.number <= most
        headers[REQUEST] = f"attempt={event.number}" + (f"; max={most}" if is_bounded else "")


SDK_HEADERS = SdkHeaders()
