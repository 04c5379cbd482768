"""Running a block of code under a policy and a strategy: the smithy-kotlin design as a bridge to the Smithy one.

A policy says what a result means; a strategy, any object with the three methods of
:class:`~requests_smithy_retry.RetryStrategy`, counts, prices and delays. ``max_time`` is the design's ``maxTime``, in
seconds. Nothing here knows HTTP.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .actions import RetryAction
from .clock import SYSTEM_CLOCK, Clock
from .error_info import ErrorRetryInfo, Fault
from .errors import RetryError, TokenError
from .interfaces import RetryStrategy
from .operation_options import OperationOptions
from .outcome import Outcome, RetryContext, context_of
from .policy import Result, RetryDirective, RetryErrorType, RetryOnError, RetryPolicy, reason_of
from .stop_reason import StopReason
from .tokens import RetryToken

R = TypeVar("R")


class RetryFailure(RetryError):
    """The end of the retries where the block raised nothing that could be raised again.

    :param value: what the block returned last.
    :param refusal: why there is no further try.
    """

    def __init__(self, value: object, refusal: RetryError) -> None:
        super().__init__(str(refusal), stop_reason=refusal.stop_reason, classification=refusal.classification)
        self.value = value


class DirectedError(Exception):
    """Tells a strategy what a policy wants, in the words of ``ErrorRetryInfo`` and ``HasFault``.

    :param reason: the policy's.
    :param error: the exception that it judged, or None where it judged a value.
    :param deadline: on the strategy's clock, or None.
    """

    is_retry_safe: bool | None = True

    def __init__(self, reason: RetryErrorType, error: Any, deadline: float | None) -> None:
        super().__init__(f"the policy asks for a retry: {reason.value}")
        self.is_throttling_error: bool = reason is RetryErrorType.Throttling
        self.is_timeout_error: bool = reason is RetryErrorType.Timeout
        self.retry_after: float | None = error.retry_after if isinstance(error, ErrorRetryInfo) else None
        self.fault: Fault = "client" if reason is RetryErrorType.ClientSide else "server"
        outcome = Outcome() if error is None else context_of(error).outcome
        options = OperationOptions(classifiers=(_Directed(reason, self.retry_after),), default_classifiers=False)
        self.retry_context: RetryContext = RetryContext(outcome, deadline, options)


@dataclass(frozen=True, slots=True)
class _Directed:
    """The only classifier that is asked: it says what the policy said."""

    reason: RetryErrorType
    retry_after: float | None
    name: str = "retry policy"

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        source = None if self.retry_after is None else "error"
        reason = dataclasses.replace(reason_of(self.reason), retry_after=self.retry_after, retry_after_source=source)
        return RetryAction.retry_indicated(reason)


@dataclass(frozen=True, slots=True)
class PolicyToken:
    """One try's token. Exactly one of its three methods is called, once.

    :param strategy: who gave it.
    :param token: the strategy's own token.
    """

    strategy: RetryStrategy = field(repr=False)
    token: RetryToken
    _unused: list[None] = field(default_factory=lambda: [None], repr=False, compare=False)

    @property
    def retry_delay(self) -> float:
        """Seconds to wait before the try."""
        return self.token.retry_delay

    def notify_success(self) -> None:
        """The try was a success: what it took is given back.

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
        """Ask for another try. The token that it gives says how long to wait first.

        :param reason: what sort of error it was.
        :param error: the exception, whose ``retry_after`` is a floor for the delay.
        :param deadline: on the strategy's clock; no wait may end later.
        :raises RetryError: if there shall be no further try.
        :raises TokenError: if the token was used before.
        """
        self._resolve()
        directed = DirectedError(reason, error, deadline)
        return PolicyToken(
            self.strategy, self.strategy.refresh_retry_token_for_retry(token_to_renew=self.token, error=directed)
        )

    def _resolve(self) -> None:
        try:
            self._unused.pop()
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
    token: PolicyToken | None = None
    refusal = RetryError("the policy wants no retry", stop_reason=StopReason.FORBIDDEN)
    try:
        token = acquire_token(strategy, token_scope)
    except RetryError as no:
        refusal = no  # one try is made all the same, as in the adapter
    while True:
        if token is not None and token.retry_delay > 0:
            clock.sleep(token.retry_delay)
        result = _run(block)
        directive = policy.evaluate(result)
        if directive is RetryDirective.TerminateAndSucceed:
            if token is not None:
                token.notify_success()
            return result.value
        try:
            token = _next_token(token, directive, result.error, deadline, clock)
        except RetryError as no:
            refusal = no
            break
        if token is None:
            break
    raise RetryFailure(result.value, refusal) if result.error is None else result.error


def _run(block: Callable[[], R]) -> Result[R]:
    try:
        return Result(value=block())
    except Exception as error:
        return Result(error=error)


def _next_token(
    token: PolicyToken | None,
    directive: RetryDirective,
    error: Exception | None,
    deadline: float | None,
    clock: Clock,
) -> PolicyToken | None:
    """A token for another try; None where the policy wants none, or where there never was a token."""
    if token is None:
        return None
    if not isinstance(directive, RetryOnError):
        token.notify_failure()
        return None
    renewed = token.schedule_retry(directive.reason, error=error, deadline=deadline)
    # A strategy of somebody else's may know of no deadline.
    if deadline is not None and clock.now() + renewed.retry_delay >= deadline:
        raise RetryError(stop_reason=StopReason.DEADLINE)
    return renewed
