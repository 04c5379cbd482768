"""The listeners that get the events of operations (contract 12), and the one that sets the headers of AWS SDKs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from ..config.parsers import EVENTS

if TYPE_CHECKING:
    from .events import AfterAttempt, BeforeAttempt, BodyProgress, GaveUp, RetryScheduled, Succeeded, Throttled


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

    __slots__ = (*EVENTS, "hears_attempts", "hears_bodies")

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
            setattr(self, name, _as_one(calls, to_each=name == "after_attempt"))
        self.hears_bodies: bool = self.body_progress is not ignore
        self.hears_attempts: bool = self.hears_bodies or not (self.before_attempt is self.after_attempt is ignore)
        """A first-try success has an event with a listener."""


def _overrides(listener: Any, name: str) -> bool:
    """Return True if a listener has a method of its own for an event."""
    method = getattr(listener, name, None)
    return callable(method) and getattr(method, "__func__", None) is not getattr(RetryListener, name)


def ignore(event: Any, /) -> None:
    """Do nothing with an event."""


def _as_one(calls: list[Tell], *, to_each: bool) -> Tell:
    """Return one call for several.

    :param to_each: it reaches every listener, even if an earlier one raises.
    """
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
            except BaseException as error:  # noqa: PERF203 - the others are told first
                failed = failed or error
        if failed is not None:
            try:
                raise failed
            finally:
                del failed  # its traceback refers to this frame

    return cast("Tell", tell_each if to_each else tell_all)


INVOCATION_ID = "amz-sdk-invocation-id"
REQUEST = "amz-sdk-request"


class SdkHeaders(RetryListener):
    """Sets ``amz-sdk-invocation-id`` (one UUID per operation) and ``amz-sdk-request: attempt=N; max=M``.

    The caller's own invocation id is kept. ``max`` is left out where no ``max_attempts`` is given.
    """

    def before_attempt(self, event: BeforeAttempt, /) -> None:
        """Set the headers on this attempt's copy of the request."""
        headers = event.request.headers
        headers.setdefault(INVOCATION_ID, event.operation.invocation_id)
        most = event.operation.max_attempts
        headers[REQUEST] = f"attempt={event.number}" + ("" if most is None else f"; max={most}")


SDK_HEADERS = SdkHeaders()
