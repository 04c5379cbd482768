"""The smithy-kotlin retry design as a bridge: a policy judges each result, a Smithy strategy counts and waits.

The names are those of that design; ``max_time`` is its ``maxTime``, in seconds. Nothing here knows HTTP. The strategy
may be any object with the three methods of :class:`~requests_smithy_retry.RetryStrategy`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from .actions import ErrorKind, RetryAction, RetryIndicated, RetryReason
from .classification import classify
from .classifier import RetryClassifier, in_order
from .clock import SYSTEM_CLOCK, Clock
from .error_info import ErrorRetryInfo, Fault
from .errors import RetryError, TokenError
from .interfaces import RetryStrategy
from .operation_options import OperationOptions
from .outcome import Outcome, RetryContext, context_of
from .stop_reason import StopReason
from .tokens import RetryToken

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class RetryErrorType(enum.Enum):
    """What sort of error was seen; strategies may price and delay them differently."""

    ServerSide = "server side"
    ClientSide = "client side"
    Throttling = "throttling"
    Timeout = "timeout"


_REASONS = {
    RetryErrorType.ServerSide: RetryReason(ErrorKind.SERVER),
    RetryErrorType.ClientSide: RetryReason(ErrorKind.CLIENT),
    RetryErrorType.Throttling: RetryReason(ErrorKind.THROTTLING),
    RetryErrorType.Timeout: RetryReason(ErrorKind.TRANSIENT, timeout=True),
}


@dataclass(frozen=True, slots=True)
class Result(Generic[R]):
    """What a block of code came to: a value, or an exception.

    :param value: what it returned.
    :param error: what it raised; None if it returned.
    """

    value: R | None = None
    error: Exception | None = None

    @property
    def is_success(self) -> bool:
        """Whether it returned."""
        return self.error is None


class RetryDirective:
    """What a policy wants: :class:`TerminateAndSucceed`, :class:`TerminateAndFail`, or a retry for a reason."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TerminateAndSucceed(RetryDirective):
    """Hand the value on (None, where an exception was meant by success)."""


@dataclass(frozen=True, slots=True)
class TerminateAndFail(RetryDirective):
    """Raise the exception."""


@dataclass(frozen=True, slots=True)
class RetryOnError(RetryDirective):
    """Run the block again, if the strategy allows. The design calls it ``RetryError``, which is another class here.

    :param reason: what sort of error it was.
    """

    reason: RetryErrorType


class RetryPolicy(Protocol[R_contra]):
    """Judges each result of a block."""

    def evaluate(self, result: Result[R_contra], /) -> RetryDirective:
        """Say how to go on."""
        ...


class StandardRetryPolicy:
    """Any value is a success; an exception is judged by classifiers. Override :meth:`evaluate_other_exceptions`.

    :param classifiers: in place of the default ones.
    """

    def __init__(self, classifiers: Iterable[RetryClassifier] | None = None) -> None:
        if classifiers is None:
            from .classifiers import default_classifiers

            classifiers = default_classifiers()
        self.classifiers = in_order(classifiers)

    def evaluate(self, result: Result[object], /) -> RetryDirective:
        """Judge a result."""
        if result.error is None:
            return TerminateAndSucceed()
        action = classify(self.classifiers, context_of(result.error).outcome).action
        if isinstance(action, RetryIndicated):
            return RetryOnError(_type_of(action.reason))
        if action == RetryAction.no_action_indicated():
            return self.evaluate_other_exceptions(result.error) or TerminateAndFail()
        return TerminateAndFail()

    def evaluate_other_exceptions(self, error: Exception) -> RetryDirective | None:  # noqa: ARG002
        """What to do about an exception of which no classifier has an opinion; None: fail."""
        return None


def _type_of(reason: RetryReason) -> RetryErrorType:
    if reason.kind is ErrorKind.THROTTLING:
        return RetryErrorType.Throttling
    if reason.timeout:
        return RetryErrorType.Timeout
    return RetryErrorType.ClientSide if reason.kind is ErrorKind.CLIENT else RetryErrorType.ServerSide


class RetryFailure(RetryError):
    """The end of the retries where the block raised nothing that could be raised again.

    :param value: what the block returned last.
    """

    value: object = None


class DirectedError(Exception):
    """Tells a strategy what the policy wants, in the words of ErrorRetryInfo and HasFault."""

    is_retry_safe: bool | None = True

    def __init__(self, reason: RetryErrorType, error: Exception | None, deadline: float | None) -> None:
        super().__init__(f"the policy asks for a retry: {reason.value}")
        self.is_throttling_error = reason is RetryErrorType.Throttling
        self.is_timeout_error = reason is RetryErrorType.Timeout
        self.retry_after = error.retry_after if isinstance(error, ErrorRetryInfo) else None
        self.fault: Fault = "client" if reason is RetryErrorType.ClientSide else "server"
        outcome = Outcome() if error is None else context_of(error).outcome
        options = OperationOptions(classifiers=(_Directed(reason, self.retry_after),), default_classifiers=False)
        self.retry_context = RetryContext(outcome, deadline, options)


@dataclass(frozen=True, slots=True)
class _Directed:
    """The only classifier that is asked: it says what the policy said."""

    reason: RetryErrorType
    retry_after: float | None
    name: str = "retry policy"

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        reason = _REASONS[self.reason]
        if self.retry_after is None:
            return RetryAction.retry_indicated(reason)
        return RetryAction.retry_indicated(RetryReason(reason.kind, self.retry_after, "error", timeout=reason.timeout))


@dataclass(frozen=True, slots=True)
class PolicyToken:
    """One try's token. Exactly one of its three methods is called, once.

    :param strategy: who gave it.
    :param token: the strategy's own token.
    """

    strategy: RetryStrategy = field(repr=False)
    token: RetryToken
    _open: list[None] = field(default_factory=lambda: [None], repr=False, compare=False)

    @property
    def retry_delay(self) -> float:
        """Seconds to wait before the try."""
        return self.token.retry_delay

    def notify_success(self) -> None:
        """The try was a success: give back what it took.

        :raises TokenError: if the token was used before.
        """
        self._resolve()
        self.strategy.record_success(token=self.token)

    def notify_failure(self) -> None:
        """The try failed for good: the token is dropped, and what it took is not given back.

        :raises TokenError: if the token was used before.
        """
        self._resolve()

    def schedule_retry(
        self, reason: RetryErrorType, *, error: Exception | None = None, deadline: float | None = None
    ) -> PolicyToken:
        """Ask for another try. The token it gives says how long to wait first.

        :param reason: what sort of error it was.
        :param error: the exception, whose ``retry_after`` is a floor for the delay.
        :param deadline: on the strategy's clock; no wait may end later.
        :raises RetryError: if there shall be no further try.
        :raises TokenError: if the token was used before.
        """
        self._resolve()
        asked = DirectedError(reason, error, deadline)
        renewed = self.strategy.refresh_retry_token_for_retry(token_to_renew=self.token, error=asked)
        return PolicyToken(self.strategy, renewed)

    def _resolve(self) -> None:
        try:
            self._open.pop()
        except IndexError:
            raise TokenError("this token was used before: it is good for one call") from None


def acquire_token(strategy: RetryStrategy, token_scope: str | None = None) -> PolicyToken:
    """A token for the first try.

    :raises RetryError: if the strategy has none.
    """
    return PolicyToken(strategy, strategy.acquire_initial_retry_token(token_scope=token_scope))


def retry(
    policy: RetryPolicy[R],
    block: Callable[[], R],
    *,
    strategy: RetryStrategy,
    max_time: float | None = None,
    token_scope: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> R | None:
    """Run a block until its policy is content, or the strategy allows no further try.

    :param policy: judges each result.
    :param block: run at least once; it is never interrupted.
    :param strategy: counts, prices and delays. With ``max_time``, give it the same clock.
    :param max_time: seconds for all tries and waits. A wait that would not end in time is not begun.
    :param token_scope: operations with the same scope share a quota.
    :param clock: tells the time and sleeps.
    :returns: the value of the last try.
    :raises RetryFailure: if the last try returned a value that the policy took for a failure.
    :raises Exception: what the last try raised.
    """
    deadline = None if max_time is None else clock.now() + max_time
    token, refusal = _first_token(strategy, token_scope)
    while True:
        if token is not None and token.retry_delay > 0:
            clock.sleep(token.retry_delay)
        result = _run(block)
        directive = policy.evaluate(result)
        if isinstance(directive, TerminateAndSucceed):
            if token is not None:
                token.notify_success()
            return result.value
        if not isinstance(directive, RetryOnError):
            if token is not None:
                token.notify_failure()
            refusal = RetryError("the policy wants no retry", stop_reason=StopReason.FORBIDDEN)
            break
        if token is None:
            break
        try:
            token = _next_token(token, directive, result, deadline, clock)
        except RetryError as no:
            refusal = no
            break
    raise _failure(result, refusal)


def _first_token(strategy: RetryStrategy, scope: str | None) -> tuple[PolicyToken | None, RetryError]:
    try:
        return acquire_token(strategy, scope), RetryError()
    except RetryError as refusal:
        # One try is made all the same, as in the adapter.
        return None, refusal


def _run(block: Callable[[], R]) -> Result[R]:
    try:
        return Result(value=block())
    except Exception as error:
        return Result(error=error)


def _next_token(
    token: PolicyToken, directive: RetryOnError, result: Result[R], deadline: float | None, clock: Clock
) -> PolicyToken:
    renewed = token.schedule_retry(directive.reason, error=result.error, deadline=deadline)
    # A strategy of somebody else's may know of no deadline.
    if deadline is not None and clock.now() + renewed.retry_delay >= deadline:
        raise RetryError(stop_reason=StopReason.DEADLINE)
    return renewed


def _failure(result: Result[R], refusal: RetryError) -> Exception:
    if result.error is not None:
        return result.error
    failure = RetryFailure(str(refusal), stop_reason=refusal.stop_reason, classification=refusal.classification)
    failure.value = result.value
    return failure
