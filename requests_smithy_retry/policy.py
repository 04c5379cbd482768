"""Policies as in smithy-kotlin, and a retry loop for any block of code."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar

from .checks import is_finite, safe_repr
from .classifiers.actions import ErrorKind, NoActionIndicated, RetryAction, RetryIndicated, RetryReason
from .classifiers.defaults import default_classifiers
from .classifiers.fold import Classification, Vote, classify
from .classifiers.outcome import Fault, floor_of
from .classifiers.protocol import RetryClassifier, in_order
from .clock import SYSTEM_CLOCK, Clock, rest_until_permitted
from .config.options import warn_once
from .config.retry_options import current_options
from .core.attempt import AttemptFailed, outcome_of
from .core.policy import leaves_time
from .core.strategy import RetryStrategy, RetryToken, StandardRetryStrategy, delay_of
from .errors import RetryError, StopReason, TokenError

R_co = TypeVar("R_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)


class RetryErrorType(enum.Enum):
    """The type of an error; a strategy may price and delay them differently."""

    ServerSide = "server side"
    ClientSide = "client side"
    Throttling = "throttling"
    Timeout = "timeout"


def _check_reason(reason: object) -> None:
    if not isinstance(reason, RetryErrorType):
        raise TypeError(f"reason={safe_repr(reason)}: a RetryErrorType is allowed")


@dataclass(frozen=True, slots=True)
class Result(Generic[R_co]):
    """The result of a block of code: a value, or an exception.

    :param error: the raised exception; None if the block returned.
    """

    value: R_co | None = None
    error: Exception | None = None

    @property
    def is_success(self) -> bool:
        """Return True if the block returned."""
        return self.error is None


@dataclass(frozen=True)
class RetryDirective:
    """The decision of a policy, one of three.

    >>> RetryDirective.RetryError(RetryErrorType.Throttling).reason
    <RetryErrorType.Throttling: 'throttling'>
    """

    does: str
    reason: RetryErrorType | None = None
    """The reason to run the block again; None: the decision ends the loop."""

    TerminateAndSucceed: ClassVar[RetryDirective]
    """Return the value; None if the block raised an exception that the policy takes for success."""
    TerminateAndFail: ClassVar[RetryDirective]
    """Raise the exception."""

    @staticmethod
    def RetryError(reason: RetryErrorType) -> RetryDirective:
        """Run the block again, if the strategy allows it."""
        _check_reason(reason)
        return RetryDirective("retry", reason)


RetryDirective.TerminateAndSucceed = RetryDirective("terminate and succeed")
RetryDirective.TerminateAndFail = RetryDirective("terminate and fail")


class RetryPolicy(Protocol[R_contra]):
    """Judges each result of a block."""

    def evaluate(self, result: Result[R_contra], /) -> RetryDirective:
        """Return the decision."""


class StandardRetryPolicy:
    """Treats any value as a success, and judges an exception by classifiers.

    Override :meth:`evaluate_other_exceptions` for exceptions on which no classifier has an opinion.

    :param classifiers: in place of the default ones.
    """

    def __init__(self, classifiers: Iterable[RetryClassifier] | None = None) -> None:
        if classifiers is None:
            classifiers = default_classifiers()
        self.classifiers: tuple[RetryClassifier, ...] = in_order(classifiers)

    def evaluate(self, result: Result[object], /) -> RetryDirective:
        """Judge a result."""
        if result.error is None:
            return RetryDirective.TerminateAndSucceed
        action = classify(self.classifiers, outcome_of(result.error)).action
        if isinstance(action, RetryIndicated):
            return RetryDirective.RetryError(error_type_of(action.reason, getattr(result.error, "fault", None)))
        other = self.evaluate_other_exceptions(result.error) if isinstance(action, NoActionIndicated) else None
        return RetryDirective.TerminateAndFail if other is None else other

    def evaluate_other_exceptions(self, error: Exception) -> RetryDirective | None:
        """Judge an exception on which no classifier has an opinion; None means failure."""
        return None


def error_type_of(reason: RetryReason, fault: object = None) -> RetryErrorType:
    """Return the design's error type for a reason.

    :param fault: ``"client"`` if the error says that the client is at fault.
    """
    if reason.kind is ErrorKind.THROTTLING:
        return RetryErrorType.Throttling
    if reason.timeout:
        return RetryErrorType.Timeout
    is_client = reason.kind is ErrorKind.CLIENT or fault == "client"
    return RetryErrorType.ClientSide if is_client else RetryErrorType.ServerSide


def reason_of(error_type: RetryErrorType) -> RetryReason:
    """Return the reason that a strategy gets for an error type."""
    return {
        RetryErrorType.ServerSide: RetryReason(ErrorKind.SERVER),
        RetryErrorType.ClientSide: RetryReason(ErrorKind.CLIENT),
        RetryErrorType.Throttling: RetryReason(ErrorKind.THROTTLING),
        RetryErrorType.Timeout: RetryReason(ErrorKind.TRANSIENT, timeout=True),
    }[error_type]


R = TypeVar("R")


class RetryFailure(RetryError):
    """Raised at the end of the retries if the last try returned a value."""

    def __init__(self, value: object, refusal: RetryError) -> None:
        super().__init__(str(refusal), stop_reason=refusal.stop_reason, classification=refusal.classification)
        self.value = value


def directed(reason: RetryErrorType, error: Exception | None, deadline: float | None, clock: Clock) -> AttemptFailed:
    """Return a failed try in the form that a strategy gets, with the policy's decision as its verdict.

    The options of a surrounding ``retry_options`` block apply as well, except its classifiers: the policy judges.
    """
    floor = floor_of(error)
    wanted = dataclasses.replace(
        reason_of(reason), retry_after=floor, retry_after_source=None if floor is None else "error"
    )
    action = RetryAction.retry_indicated(wanted)
    outcome = dataclasses.replace(outcome_of(error), ended=clock.now(), wall=clock.wall())
    failed = AttemptFailed(outcome, clock=clock, deadline=deadline, options=current_options.get())
    fault: Fault = "client" if reason is RetryErrorType.ClientSide else "server"
    failed.judge_as(Classification(action, (Vote("retry policy", action),)), fault)
    return failed


@dataclass(frozen=True, slots=True)
class PolicyToken:
    """The token of one try. Call exactly one of its three methods, once."""

    strategy: RetryStrategy = field(repr=False)
    token: RetryToken
    _unused: list[None] = field(default_factory=lambda: [None], repr=False, compare=False)

    @property
    def retry_delay(self) -> float:
        """The seconds to wait before the try.

        :raises TypeError: if the strategy's own token has no such number.
        """
        return delay_of(self.token, self.strategy)

    def notify_success(self) -> None:
        """Report a success: the quota gets back the price of the try.

        :raises TokenError: if the token was used before.
        """
        self._resolve()
        self.strategy.record_success(token=self.token)

    def notify_failure(self) -> None:
        """Report a final failure: the token is dropped, and its price is not given back.

        :raises TokenError: if the token was used before.
        """
        self._resolve()

    def schedule_retry(
        self, reason: RetryErrorType, *, error: Exception | None = None, deadline: float | None = None
    ) -> PolicyToken:
        """Return a token for another try, to be made after its ``retry_delay``.

        :param error: the exception, whose ``retry_after`` is a floor for the delay.
        :param deadline: the moment, on the strategy's clock, by which the wait must end. The deadline of a surrounding
            ``retry_options`` block holds as well.
        :raises RetryError: if there is no further try.
        :raises TokenError: if the token was used before.
        :raises TypeError: if ``reason`` is not a :class:`RetryErrorType`.
        """
        _check_reason(reason)
        self._resolve()
        own_clock = getattr(self.strategy, "clock", SYSTEM_CLOCK)
        failed = directed(reason, error, _until(deadline, own_clock), own_clock)
        return PolicyToken(
            self.strategy, self.strategy.refresh_retry_token_for_retry(token_to_renew=self.token, error=failed)
        )

    def _resolve(self) -> None:
        try:
            self._unused.pop()
        except IndexError:
            raise TokenError("this token was used before: it is good for one call") from None


def acquire_token(strategy: RetryStrategy, token_scope: str | None = None) -> PolicyToken:
    """Return a token for the first try.

    :raises RetryError: if the strategy refuses one.
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
    """Run a block until its policy is satisfied, or the strategy allows no further try.

    :param policy: judges each result.
    :param block: run at least once; never interrupted.
    :param strategy: counts, prices and delays the retries. With ``max_time``, give it the same clock.
    :param max_time: the most seconds for all tries and waits. A wait that would not end in time is not begun. The
        deadline, ``max_attempts`` and ``enabled`` of a surrounding ``retry_options`` block hold as well. Its ``cancel``
        and ``max_wait`` have no effect, and a warning says so. The strategy's own time limits are those of requests.
    :param token_scope: operations with the same scope share a quota.
    :param clock: tells the time and sleeps.
    :returns: the value of the last try.
    :raises RetryFailure: if the last try returned a value that the policy took for a failure.
    :raises RetryError: if the strategy's rate limiter has no permit for the first try in time.
    :raises Exception: the exception of the last try.
    """
    deadline = _until(_end_of(max_time, clock), clock)
    _warn_of_vain()
    token: PolicyToken | None = None
    refusal = RetryError("the policy wants no retry", stop_reason=StopReason.FORBIDDEN)
    try:
        token = acquire_token(strategy, token_scope)
    except RetryError as no:
        refusal = no  # one try is still made, as in the adapter
    else:
        _wait(token, deadline, clock)
    tries = 0
    while True:
        tries += 1
        result, directive = _try(policy, block)
        if directive == RetryDirective.TerminateAndSucceed:
            if token is not None:
                token.notify_success()
            return result.value
        if token is None or directive.reason is None:
            break
        try:
            _check_block(tries, strategy)
            token = token.schedule_retry(directive.reason, error=result.error, deadline=deadline)
            _check_time(token.retry_delay, deadline, clock)  # a foreign strategy may ignore the deadline
            _wait(token, deadline, clock)
            _check_time(0.0, deadline, clock)  # and a sleep may end late
        except RetryError as no:
            refusal = no
            break
    raise RetryFailure(result.value, refusal) if result.error is None else result.error


def _try(policy: RetryPolicy[R], block: Callable[[], R]) -> tuple[Result[R], RetryDirective]:
    try:
        result = Result(value=block())
    except Exception as error:
        result = Result(error=error)
    directive: object = policy.evaluate(result)
    if not isinstance(directive, RetryDirective):
        raise TypeError(f"evaluate of {policy!r} returned {safe_repr(directive)}: a RetryDirective is allowed")
    return result, directive


def _end_of(max_time: float | None, clock: Clock) -> float | None:
    if max_time is None:
        return None
    if not (is_finite(max_time) and max_time > 0):
        raise ValueError(f"max_time={safe_repr(max_time)}: a finite number of seconds above 0 or None is allowed")
    return clock.now() + max_time


def _until(deadline: float | None, clock: Clock) -> float | None:
    """Return the earlier of a deadline and that of the surrounding ``retry_options`` block, on a clock."""
    around = current_options.get().deadline
    if around is None:
        return deadline
    at = around.on(clock).at
    return at if deadline is None else min(deadline, at)


def _warn_of_vain() -> None:
    """Warn once about the options of a surrounding block that end only the waits of requests."""
    around = current_options.get()
    for name in ("cancel", "max_wait"):
        if getattr(around, name) is not None:
            warn_once(f"policy.retry: {name}", f"retry_options({name}=...) has no effect on the waits of policy.retry")


def _check_block(tries: int, strategy: RetryStrategy) -> None:
    """Raise ``RetryError`` if the surrounding ``retry_options`` block, which a foreign strategy ignores, forbids it."""
    around = current_options.get()
    if around.enabled is False:
        raise RetryError(stop_reason=StopReason.DISABLED)
    # A built-in strategy reads it itself: it knows which tries count (contract 6.2).
    most = None if isinstance(strategy, StandardRetryStrategy) else around.max_attempts
    if most is not None and tries >= most:
        raise RetryError(stop_reason=StopReason.MAX_ATTEMPTS)


def _check_time(wait: float, deadline: float | None, clock: Clock) -> None:
    """Raise ``RetryError`` if a wait from now on ends too late for another try."""
    if not leaves_time(clock.now() + wait, deadline):
        raise RetryError(stop_reason=StopReason.DEADLINE)


def _wait(token: PolicyToken, deadline: float | None, clock: Clock) -> None:
    """Wait before a try: the backoff first, then for the limiter's permit, as in the adapter."""
    if (delay := token.retry_delay) > 0:
        clock.sleep(delay)
    ask = getattr(token.strategy, "send_permit", None)
    if ask is not None:
        rest_until_permitted(ask, token.strategy, token.token, deadline, clock)
