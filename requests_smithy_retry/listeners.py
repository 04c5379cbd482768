"""Who is told of events (contract 12), and how a telling becomes one call.

An exception that a listener raises is a bug in user code, as one in a classifier is: it reaches the caller, nothing is
sent after it, and no connection stays behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from .events import AfterAttempt, BeforeAttempt, GaveUp, RetryScheduled, Succeeded, Throttled

EVENTS = ("before_attempt", "after_attempt", "retry_scheduled", "throttled", "gave_up", "succeeded")
"""The methods of a listener."""


class RetryListener:
    """Is told what happens. Override what you want to hear; the rest costs nothing.

    A class of your own with some of these methods will do as well. One listener may serve many adapters and threads
    at once; what it needs to remember of one operation it keeps in ``event.operation.data``. The methods run in the
    thread that sends, so what takes long there makes every request longer.
    """

    def before_attempt(self, event: BeforeAttempt, /) -> None:
        """An attempt is about to be sent. ``event.request`` is its own copy of the request, to be changed at will."""

    def after_attempt(self, event: AfterAttempt, /) -> None:
        """An attempt ended. Every :meth:`before_attempt` is followed by one of these, whatever comes between."""

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        """Another attempt follows, after a delay."""

    def throttled(self, event: Throttled, /) -> None:
        """The server asked for fewer requests."""

    def gave_up(self, event: GaveUp, /) -> None:
        """A retry was wanted and could not be had."""

    def succeeded(self, event: Succeeded, /) -> None:
        """The operation succeeded after one retry or more."""

    def __deepcopy__(self, memo: dict[int, Any]) -> RetryListener:
        # A copy of an adapter reports to the same listener.
        return self


def is_listener(value: Any) -> bool:
    """Whether a value has at least one of the methods."""
    return not isinstance(value, type) and any(callable(getattr(value, name, None)) for name in EVENTS)


Tell = Callable[[Any], None]


class Listeners:
    """The listeners of one adapter, as one callable per event; :func:`ignore` where nobody listens.

    :param listeners: told in this order.
    """

    __slots__ = EVENTS

    before_attempt: Tell
    after_attempt: Tell
    retry_scheduled: Tell
    throttled: Tell
    gave_up: Tell
    succeeded: Tell

    def __init__(self, listeners: Iterable[Any]) -> None:
        items = tuple(listeners)
        for name in EVENTS:
            calls = [getattr(item, name) for item in items if _says(item, name)]
            setattr(self, name, _each(calls) if name == "after_attempt" else _as_one(calls))


def _says(listener: Any, name: str) -> bool:
    """Whether a listener has this method, and not just the one that does nothing."""
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
    """As one call that reaches every listener, also where an earlier one raises: what began with an attempt ends."""
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
