"""A strategy of the program's (contract 1): any object with the three methods, as a step of the machine."""

from __future__ import annotations

from typing import Any

from ..checks import safe_repr
from ..classifiers.actions import NoActionIndicated, RetryAction, RetryForbidden, RetryIndicated
from ..classifiers.fold import Classification, classification_of, classify_operation
from ..classifiers.outcome import ErrorRetryInfo, Outcome
from ..classifiers.protocol import RetryClassifier
from ..classifiers.resend import resend_ruling
from ..clock import Clock, rest_until_permitted
from ..config.retry_options import OperationOptions
from ..errors import RetryError, StopReason
from .line import Progress
from .machine import SUCCEEDED, Context, Deciding, Passed
from .policy import is_seconds, leaves_time
from .server_hints import Hint
from .steps import Again, Ask, Before, Refused, Steps, Stop
from .strategy import ResponseError, RetryContext, RetryStrategy


class ForeignOperation:
    """One operation of a strategy that is not built in: it holds the strategy's token.

    :param fold: the adapter asks these classifiers for a strategy that consults none itself; None: it consults its own.
    """

    def __init__(
        self, strategy: RetryStrategy, fold: tuple[RetryClassifier, ...] | None, sees_successes: bool, scope: str
    ) -> None:
        self.strategy = strategy
        self.fold = fold
        self.sees_successes = sees_successes
        self._wait = 0.0
        self._token: Any = None
        self._refusal: RetryError | None = None
        try:
            self._token = strategy.acquire_initial_retry_token(token_scope=scope)
            self._wait = delay_of(self._token, strategy)
        except RetryError as refusal:
            # The first attempt is made all the same, and it will be the only one (contract 2.1).
            self._refusal = refusal

    def first_wait(self, deadline: float | None, now: float) -> float:
        """Return the seconds before the first attempt. Where they would not end in time, it is made at once, alone."""
        if leaves_time(now + self._wait, deadline) or not self._wait:
            return self._wait
        why = f"the first wait of {self._wait:.3g} s would not end in time"
        self._refusal = RetryError(why, stop_reason=StopReason.DEADLINE)
        return 0.0

    def gate(self, deadline: float | None, clock: Clock) -> ForeignGate | None:
        """Return the gate of a strategy that has ``send_permit``."""
        return ForeignGate(self, deadline, clock) if hasattr(self.strategy, "send_permit") else None

    def decide(self, context: Context, progress: Progress, outcome: Outcome) -> Deciding:
        """Decide what follows an attempt, as :func:`~.machine.decide` does."""
        if outcome.final is not None:
            return Stop(*outcome.final)
        if outcome.is_success and not (self.sees_successes or context.options.sees_successes):
            return SUCCEEDED
        decision: Again | Stop = yield Ask(self._refreshed, (context, progress, outcome))
        return decision

    def _refreshed(self, context: Context, progress: Progress, outcome: Outcome) -> Again | Stop:
        """Apply the rules that the strategy does not know, and ask it."""
        given = RetryContext(outcome, context.bounds.deadline, context.options, progress.began)
        carrier = carrier_of(given)
        try:
            if self._refusal is not None:
                raise self._refusal
            if self.fold is not None:
                check_for_foreign(self.fold, outcome, context.options, carrier)
            token = self.strategy.refresh_retry_token_for_retry(token_to_renew=self._token, error=carrier)
        except RetryError as refusal:
            if outcome.is_success and refusal.stop_reason is StopReason.NOT_RETRYABLE:
                return SUCCEEDED
            verdict: Any = refusal.classification if isinstance(refusal.classification, Classification) else None
            return Stop(refusal.stop_reason, str(refusal), verdict, refusal.delay or 0.0)
        except Exception as raised:
            if raised is not carrier:
                raise
            # The Smithy guide's strategies propagate the error that they were shown: that is a refusal.
            return Stop(StopReason.STRATEGY_REFUSED, StopReason.STRATEGY_REFUSED.value)
        finally:
            vars(carrier).pop("retry_context", None)
        self._token, delay = token, delay_of(token, self.strategy)
        found = classification_of(token)
        source = str(getattr(token, "delay_source", "strategy"))
        if context.forbids(delay, outcome.ended):  # it need not look at the deadline
            why = f"the next wait of {delay:.3g} s would not end in time"
            return Stop(StopReason.DEADLINE, why, found, unmade=Hint(delay, source))
        return Again(progress._replace(retries=progress.retries + 1), delay, source, found)

    def succeeded(self, *_: object) -> None:
        """Have the strategy record a success."""
        if self._token is not None:
            self.strategy.record_success(token=self._token)


class ForeignGate:
    """The gate of a strategy that has ``send_permit``.

    :param operation: whose token it is asked with.
    """

    def __init__(self, operation: ForeignOperation, deadline: float | None, clock: Clock) -> None:
        self._operation = operation
        self._deadline = deadline
        self._clock = clock

    def admit(self, waited: float, began: float) -> Steps:
        """Have the strategy wait until it permits the next attempt."""
        return (yield Ask(self._permitted))

    def _permitted(self) -> Passed | Refused:
        strategy: Any = self._operation.strategy
        try:
            waited = rest_until_permitted(
                strategy.send_permit, strategy, self._operation._token, self._deadline, self._clock
            )
        except RetryError as refusal:
            return Refused(refusal.stop_reason, 0.0, str(refusal))
        return Passed(waited)

    def add_to(self, before: Before, passed: Passed) -> Before:
        return before._replace(permit_wait=passed.waited)


def check_for_foreign(
    own: tuple[RetryClassifier, ...], outcome: Outcome, options: OperationOptions, error: Exception
) -> None:
    """Apply the rules that a foreign strategy is not asked about: the resend rule, and the block's number of attempts.

    The error is made to say of itself what the classifiers say.
    """
    classification = classify_operation(own, outcome, options.classifiers)
    action = classification.action
    assert outcome.resend is not None
    if outcome.is_success and isinstance(action, NoActionIndicated):
        raise RetryError(stop_reason=StopReason.NOT_RETRYABLE, classification=classification)
    ruling = resend_ruling(outcome.resend, outcome.status, action)
    if ruling is None and outcome.is_success and isinstance(action, RetryForbidden):
        ruling = action
    if ruling is not None:
        raise RetryError(ruling.why or "", stop_reason=ruling.stop_reason, classification=classification)
    most = options.max_attempts
    if most is not None and outcome.attempt >= most:
        why = f"{outcome.attempt} of {most} attempts were made"
        raise RetryError(why, stop_reason=StopReason.MAX_ATTEMPTS, classification=classification)
    describe(error, action)


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
        is_throttling_error=Classification(action).is_throttling,
        is_timeout_error=reason is not None and reason.timeout,
    )


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


def delay_of(token: Any, strategy: object) -> float:
    """Return the seconds for which a token asks; None, as in the published request loop, is 0 s."""
    delay = token.retry_delay
    if delay is None:
        return 0.0
    if not is_seconds(delay):
        shown = safe_repr(delay)
        raise TypeError(
            f"retry_delay={shown} of a token of {strategy!r}: a finite number of seconds or None is allowed"
        )
    return delay
