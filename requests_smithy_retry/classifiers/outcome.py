"""The outcome of an attempt as classifiers see it (contract 3), and the exceptions that carry it (contract 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from ..errors import safe_error
from .actions import ErrorKind, RetryAction, RetryForbidden, RetryIndicated

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from .protocol import RetryClassifier
    from .resend import ResendFacts


LONGEST = 1e15
"""The longest floor for a delay, in seconds; a larger number could overflow."""

Fault = Literal["client", "server"] | None
"""The party at fault; None if unknown."""


@runtime_checkable
class ErrorRetryInfo(Protocol):
    """An error that says whether it may be retried. A subclass sets only what differs."""

    is_retry_safe: bool | None = None
    """True: a retry is allowed (not promised). False: it is forbidden. None: the error does not know."""
    retry_after: float | None = None
    """A floor for the delay, in seconds, or None."""
    is_throttling_error: bool = False
    """True if the server throttled the request."""
    is_timeout_error: bool = False
    """True for a client-side timeout."""


@runtime_checkable
class HasFault(Protocol):
    """An error that says who is at fault."""

    fault: Fault
    """``"client"``, ``"server"`` or None."""


def floor_of(error: object) -> float | None:
    """Return the floor for the delay in an error's ``retry_after``, in seconds, or None.

    A number of any type, a ``timedelta`` and a number as text are accepted. Anything else is ignored, because an error
    made from a response may carry whatever the server wrote.
    """
    after: Any = getattr(error, "retry_after", None)
    try:
        if hasattr(after, "total_seconds"):
            after = after.total_seconds()
        elif isinstance(after, str):
            after = float(after)
        if isinstance(after, bool) or not isinstance(after, Number):
            return None
        seconds: Any = after
        return float(min(seconds, LONGEST)) if 0 <= seconds < float("inf") else None
    except (TypeError, ValueError, ArithmeticError):  # a complex number, a word, a Decimal NaN
        return None


BODY_PREFIX = 65_536
"""The most bytes of a body that classifiers see."""


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """The outcome of one attempt: a response, an exception, or an exception that carries a response.

    :param error: the exception that was raised, or None.
    :param response: the response, or None. With ``stream`` its body must not be read.
    :param request: the request that was sent, or None.
    :param attempt: the attempt's number, from 1.
    :param stream: True if the caller asked for an unread body.
    :param resend: the facts that decide whether the request may be sent again (contract 4); None without HTTP.
    :param peeked: the beginning of a body that was not read whole, because it is long or slow; see ``body_prefix``.
    """

    error: BaseException | None = None
    response: Response | None = None
    request: PreparedRequest | None = None
    attempt: int = 1
    stream: bool = False
    resend: ResendFacts | None = None
    peeked: bytes | None = None

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(error={safe_error(self.error)}, response={self.response!r}, "
            f"request={self.request!r}, attempt={self.attempt!r}, stream={self.stream!r}, resend={self.resend!r})"
        )

    @property
    def body_prefix(self) -> bytes:
        """The first 64 KiB of the response's body, decoded; empty with ``stream`` and without a response.

        ``response.content`` would read a long or slow body to its end, for as long as the server likes.
        """
        if self.stream or self.response is None:
            return b""
        if self.peeked is not None:
            return self.peeked
        try:
            body: object = self.response.content
        except Exception as error:  # another library's response may refuse to give out an unread body
            from ..interruptions import is_interruption  # imports urllib3, which strategies do without

            if is_interruption(error):
                raise
            return b""
        return body[:BODY_PREFIX] if isinstance(body, bytes) else b""

    @property
    def status(self) -> int | None:
        """The response's status, or None without a response."""
        return None if self.response is None else self.response.status_code

    @property
    def is_success(self) -> bool:
        """Return True if there is a response below 400, and no exception."""
        return self.error is None and self.response is not None and self.response.status_code < 400


class BlockOptions(Protocol):
    """The part of an operation's ``retry_options`` that a strategy reads; None: not set.

    ``most_sent`` counts the attempts that do not count, too; the others are as the user gives them.
    """

    @property
    def enabled(self) -> bool | None: ...
    @property
    def max_attempts(self) -> int | None: ...
    @property
    def most_sent(self) -> int | None: ...
    @property
    def classifiers(self) -> tuple[RetryClassifier, ...]: ...
    @property
    def patience(self) -> float | None: ...
    @property
    def default_classifiers(self) -> bool | None: ...
    @property
    def long_poll(self) -> bool | None: ...


@dataclass(frozen=True, slots=True)
class RetryContext:
    """The context that the adapter's errors carry in the attribute ``retry_context``.

    :param outcome: the outcome of the attempt.
    :param deadline: the moment, on the strategy's clock, by which any wait must end; None for no limit.
    :param options: the operation's ``retry_options``, or None.
    :param began: the start of its first attempt, on the strategy's clock; None: when its first token was made.
    :param before_waiting: called with the verdict before the operation waits for the service: it lets go of the failed
        attempt's connection and writes the attempt down. It returns False where the connection cannot be let go.
    """

    outcome: Outcome
    deadline: float | None = None
    options: BlockOptions | None = None
    began: float | None = None
    before_waiting: Callable[..., bool] | None = None


class ResponseError(Exception):
    """Carries a response to a strategy, which takes exceptions (contract 1). Never raised to a caller.

    It implements :class:`ErrorRetryInfo` and :class:`HasFault` for strategies that know nothing of HTTP. The adapter
    fills these in from the default classifiers.

    :param response: the response.
    :param retry_context: the rest of the decision's input.
    """

    is_retry_safe: bool | None = None
    retry_after: float | None = None
    is_throttling_error: bool = False
    is_timeout_error: bool = False

    def __init__(self, response: Response, retry_context: RetryContext) -> None:
        super().__init__(f"the server answered {response.status_code}")
        self.response = response
        self.request: PreparedRequest = response.request
        self.retry_context = retry_context

    @property
    def fault(self) -> Fault:
        """``"client"`` for a 4xx, ``"server"`` for a 5xx, None for anything else."""
        status = self.response.status_code
        return "client" if 400 <= status < 500 else "server" if status >= 500 else None


def carrier_of(context: RetryContext) -> Any:
    """Return the exception that carries a context to a strategy: the one raised, or one made around the response.

    The caller removes the context with :func:`take_off` as soon as the strategy has decided.
    """
    outcome = context.outcome
    if outcome.error is None:
        assert outcome.response is not None
        return ResponseError(outcome.response, context)
    vars(outcome.error)["retry_context"] = context  # not setattr: an exception may be frozen
    return outcome.error


def take_off(carrier: Exception) -> None:
    """Remove the context from an exception."""
    vars(carrier).pop("retry_context", None)


def context_of(error: Any) -> RetryContext:
    """Return the context that an error carries, or a new one.

    A new one includes the response that the exception carries, as those of ``raise_for_status`` do.
    """
    context = getattr(error, "retry_context", None)
    if isinstance(context, RetryContext):
        return context
    response = getattr(error, "response", None)
    if not isinstance(getattr(response, "status_code", None), int) or not hasattr(response, "headers"):
        return RetryContext(Outcome(error=error))
    # An unread body stays unread: reading it could take long, and the caller may want to stream it.
    unread = getattr(response, "_content", None) is False
    return RetryContext(Outcome(error=error, response=response, stream=unread))


def describe(error: Exception, action: RetryAction) -> None:
    """Set the attributes of :class:`ErrorRetryInfo` on an error by the verdict, for strategies that know only those.

    Where no classifier has an opinion, a client error is not retried: None would mean "maybe". Properties of the error
    stay as they are.
    """
    if isinstance(error, ErrorRetryInfo) and not isinstance(error, ResponseError):
        return
    reason = action.reason if isinstance(action, RetryIndicated) else None
    is_forbidden = isinstance(action, RetryForbidden) or getattr(error, "fault", None) == "client"
    # Not setattr: an exception may be frozen, or have a read-only property.
    vars(error).update(
        is_retry_safe=True if reason is not None else False if is_forbidden else None,
        retry_after=None if reason is None else reason.retry_after,
        is_throttling_error=reason is not None and reason.kind is ErrorKind.THROTTLING,
        is_timeout_error=reason is not None and reason.timeout,
    )
