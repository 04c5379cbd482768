"""What an attempt ended with, as classifiers see it (contract 3), and how an exception carries it (contract 1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .actions import ErrorKind, RetryAction, RetryForbidden, RetryIndicated
from .error_info import ErrorRetryInfo, Fault

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from .operation_options import OperationOptions
    from .resend import ResendFacts


BODY_PREFIX = 65_536
"""So many bytes of a body are there to be classified."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attempt ended with: a response, or an exception; both where driven by hand with one that carries one.

    :param error: the exception that was raised, or None.
    :param response: the response, or None. With ``stream`` its body must not be looked at.
    :param request: the request that was sent, where there is one.
    :param attempt: the attempt's number, from 1.
    :param stream: the caller asked for an unread body.
    :param resend: what decides whether the request may be sent again (contract 4); None where there is no HTTP.
    :param peeked: how a body begins that was not read whole, because it is long or slow; see ``body_prefix``.
    """

    error: BaseException | None = None
    response: Response | None = None
    request: PreparedRequest | None = None
    attempt: int = 1
    stream: bool = False
    resend: ResendFacts | None = None
    peeked: bytes | None = field(default=None, repr=False)

    @property
    def body_prefix(self) -> bytes:
        """The body of a response, decoded, but not more of it than the first 64 KiB.

        Empty with ``stream``, and where there is no response. ``response.content`` is the whole body; of a long or
        slow one, that reads what may not be wanted, for as long as the server likes.
        """
        if self.stream or self.response is None:
            return b""
        if self.peeked is not None:
            return self.peeked
        try:
            body: object = self.response.content
        except Exception:  # another library's response, driven by hand, may not give out what was not read
            return b""
        return body[:BODY_PREFIX] if isinstance(body, bytes) else b""

    @property
    def status(self) -> int | None:
        """The response's status, or None where there is no response."""
        return None if self.response is None else self.response.status_code

    @property
    def is_success(self) -> bool:
        """Whether there is a response below 400, and no exception."""
        return self.error is None and self.response is not None and self.response.status_code < 400


@dataclass(frozen=True, slots=True)
class RetryContext:
    """What the adapter's errors carry for the decision, in the attribute ``retry_context``.

    :param outcome: what the attempt ended with.
    :param deadline: the moment, on the strategy's clock, past which no wait may last; None: there is none.
    :param options: what ``retry_options`` says of this operation; None: nothing.
    """

    outcome: Outcome
    deadline: float | None = None
    options: OperationOptions | None = None


class ResponseError(Exception):
    """Carries a response to a strategy, which takes exceptions (contract 1). Never raised to a caller.

    It implements :class:`ErrorRetryInfo` and :class:`HasFault`, so that a strategy which knows nothing of HTTP can
    decide. The adapter fills these in from the default classifiers.

    :param response: the response.
    :param retry_context: everything else that a decision needs.
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
    """The exception that carries a context to a strategy: the one that was raised, or one made around the response.

    Whoever asks takes ``retry_context`` off again: a raised one carries it only while the strategy decides.
    """
    outcome = context.outcome
    if outcome.error is None:
        assert outcome.response is not None
        return ResponseError(outcome.response, context)
    error: Any = outcome.error
    error.retry_context = context
    return error


def context_of(error: Any) -> RetryContext:
    """The context that an error carries, or a bare one around an exception that somebody's code raised.

    An exception of ``raise_for_status`` carries the response that it complains about, which is then judged as well.
    """
    context = getattr(error, "retry_context", None)
    if isinstance(context, RetryContext):
        return context
    response = getattr(error, "response", None)
    if not isinstance(getattr(response, "status_code", None), int) or not hasattr(response, "headers"):
        return RetryContext(Outcome(error=error))
    # A body that was not read stays unread: reading it here could wait, and take it from whoever wants it.
    unread = getattr(response, "_content", None) is False
    return RetryContext(Outcome(error=error, response=response, stream=unread))


def describe(error: Exception, action: RetryAction) -> None:
    """Have an error say of itself what the classifiers said, for strategies that know :class:`ErrorRetryInfo` alone."""
    if isinstance(error, ErrorRetryInfo) and not isinstance(error, ResponseError):
        return
    reason = action.reason if isinstance(action, RetryIndicated) else None
    safe = True if reason is not None else False if isinstance(action, RetryForbidden) else None
    for name, value in (
        ("is_retry_safe", safe),
        ("retry_after", None if reason is None else reason.retry_after),
        ("is_throttling_error", reason is not None and reason.kind is ErrorKind.THROTTLING),
        ("is_timeout_error", reason is not None and reason.timeout),
    ):
        setattr(error, name, value)
