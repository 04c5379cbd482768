"""The context of a decision, and the exceptions that carry it to a strategy (contract 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..classifiers.actions import ErrorKind, RetryAction, RetryForbidden, RetryIndicated
from ..classifiers.outcome import ErrorRetryInfo, Fault, Outcome
from ..clock import Clock
from ..config.retry_options import OperationOptions, options_in_force

if TYPE_CHECKING:
    from requests import PreparedRequest, Response


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
    options: OperationOptions | None = None
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

    The caller removes the context again as soon as the strategy has decided.
    """
    outcome = context.outcome
    if outcome.error is None:
        assert outcome.response is not None
        return ResponseError(outcome.response, context)
    vars(outcome.error)["retry_context"] = context  # not setattr: an exception may be frozen
    return outcome.error


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


def context_around(error: Exception, clock: Clock) -> RetryContext:
    """Return the context that an error carries; without an adapter, with the options of the block around."""
    context = context_of(error)
    around = options_in_force() if context.options is None else None
    if around is None:
        return context
    deadline = None if around.deadline is None else around.deadline.on(clock).at
    return replace(context, deadline=deadline, options=around)


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
