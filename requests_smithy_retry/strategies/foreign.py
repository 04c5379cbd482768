"""Strategies as the send loop uses them (contract 1): the built-in one of a mode, or any other object, adapted once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..classifiers.actions import ErrorKind, NoActionIndicated, RetryAction, RetryForbidden, RetryIndicated
from ..classifiers.fold import classification_of, classify_operation
from ..classifiers.outcome import ErrorRetryInfo, Outcome
from ..classifiers.protocol import RetryClassifier, sees_successes
from ..classifiers.resend import resend_ruling
from ..clock import SYSTEM_CLOCK, Clock
from ..config.retry_config import ADAPTER_OPTIONS, CLASSIFIER_OPTIONS, RetryConfig
from ..config.retry_options import NOTHING, OperationOptions
from ..errors import RetryConfigError, StopReason
from ..pacing.gate import Gates
from .protocol import ResponseError, RetryStrategy, SendPermits, StandardRetryToken
from .simple import SimpleRetryStrategy, classifiers_of, context_of, delay_of, is_built_in, refuse
from .standard import StandardRetryStrategy


def strategy_for(config: RetryConfig, clock: Clock = SYSTEM_CLOCK) -> SimpleRetryStrategy:
    """Make the built-in strategy that a config asks for."""
    if config.mode == "adaptive":
        from .adaptive import AdaptiveRetryStrategy  # it brings the rate limiter, which other modes do without

        return AdaptiveRetryStrategy(config=config, clock=clock)
    return StandardRetryStrategy(config=config, clock=clock)


def check_for_foreign(
    own: tuple[RetryClassifier, ...], outcome: Outcome, options: OperationOptions, error: Exception
) -> None:
    """Apply the rules that a foreign strategy is not asked about: the resend rule, and the block's number of attempts.

    The error is made to say of itself what the classifiers say.
    """
    replaced = options.default_classifiers is False
    classification = classify_operation(own, outcome, options.classifiers, replaced=replaced)
    action = classification.action
    assert outcome.resend is not None
    if outcome.is_success and isinstance(action, NoActionIndicated):
        refuse(StopReason.NOT_RETRYABLE, None, classification)
    ruling = resend_ruling(outcome.resend, outcome.status, action)
    if ruling is None and outcome.is_success and isinstance(action, RetryForbidden):
        ruling = action
    if ruling is not None:
        refuse(ruling.stop_reason, ruling.why, classification)
    most = options.max_attempts
    if most is not None and outcome.attempt >= most:
        refuse(StopReason.MAX_ATTEMPTS, f"{outcome.attempt} of {most} attempts were made", classification)
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
        is_throttling_error=reason is not None and reason.kind is ErrorKind.THROTTLING,
        is_timeout_error=reason is not None and reason.timeout,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignToken(StandardRetryToken):
    """The token of a foreign strategy, with the attributes that the send loop reads from a token."""

    token: Any


class ForeignStrategy:
    """Any object with the three methods, with the rules that such a strategy does not know."""

    def __init__(self, strategy: RetryStrategy, config: RetryConfig) -> None:
        self.strategy = strategy
        self.fold: tuple[RetryClassifier, ...] = classifiers_of(config)
        """The adapter asks them for a strategy that consults none itself."""

    @property
    def max_attempts(self) -> int | None:
        """The most attempts of an operation, the first one included, if the strategy tells."""
        most = getattr(self.strategy, "max_attempts", None)
        return most if isinstance(most, int) else None  # a Mock has any attribute

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> ForeignToken:
        return self._wrapped(self.strategy.acquire_initial_retry_token(token_scope=token_scope))

    def refresh_retry_token_for_retry(self, *, token_to_renew: ForeignToken, error: Exception) -> ForeignToken:
        """Apply the rules, then ask the strategy.

        :raises RetryError: if a rule or the strategy refuses.
        """
        context = context_of(error)
        check_for_foreign(self.fold, context.outcome, context.options or NOTHING, error)
        return self._wrapped(
            self.strategy.refresh_retry_token_for_retry(token_to_renew=token_to_renew.token, error=error)
        )

    def _wrapped(self, token: Any) -> ForeignToken:
        return ForeignToken(
            issuer=self,
            token=token,
            retry_delay=delay_of(token, self.strategy),
            delay_source=getattr(token, "delay_source", "strategy"),
            classification=classification_of(token),
        )

    def record_success(self, *, token: ForeignToken) -> None:
        self.strategy.record_success(token=token.token)

    def gave_up(self, token_scope: str | None, *, is_outage: bool) -> int:  # noqa: ARG002
        """Return 0: no outage is known."""
        return 0

    def send_permit(self, *, token: ForeignToken, deadline: float | None, waited: float) -> object | None:
        """Ask the strategy; only called if :func:`adapt` found that it has this ability."""
        assert isinstance(self.strategy, SendPermits)
        return self.strategy.send_permit(token=token.token, deadline=deadline, waited=waited)


class StrategyPort(NamedTuple):
    """A strategy and its optional abilities, looked up once.

    :param strategy: a built-in strategy, or a foreign one adapted.
    :param sees_successes: its classifiers want to be asked about responses below 400.
    :param needs_first_token: a first attempt needs its token before it is sent.
    :param needs_permits: first attempts need permits, now or (a collection) once there is something in it.
    :param send_permit: asked before each attempt; None: attempts need no permit.
    :param gates: hold sends back for limits that servers announced; None: nothing does.
    """

    strategy: SimpleRetryStrategy | ForeignStrategy
    sees_successes: bool
    needs_first_token: bool
    needs_permits: Collection[Any] | bool
    send_permit: Callable[..., object | None] | None
    gates: Gates | None = None

    @property
    def needs_operation(self) -> Collection[Any] | bool:
        """True, or a collection that is not empty, if a first attempt needs more than a send."""
        return self.needs_first_token or self.sees_successes or self.needs_permits


def adapt(strategy: RetryStrategy, config: RetryConfig) -> StrategyPort:
    """Return a strategy as the send loop uses it.

    The built-in strategies give first tokens for free and give leave to everybody until a server throttles, so both
    can be skipped until then. A subclass, or an object, with its own say in either is always asked.
    """
    permit = getattr(strategy, "send_permit", None)
    if not isinstance(strategy, SimpleRetryStrategy):
        foreign = ForeignStrategy(strategy, config)
        sees = any(map(sees_successes, foreign.fold))
        return StrategyPort(foreign, sees, True, permit is not None, permit and foreign.send_permit)
    gives_leave = permit is None or is_built_in(strategy, "send_permit", "limiter")
    return StrategyPort(
        strategy,
        strategy.sees_successes,
        needs_first_token=not is_built_in(strategy, "acquire_initial_retry_token", "record_success"),
        needs_permits=strategy.busy if gives_leave else True,
        send_permit=permit,
        gates=strategy.gates,
    )


def check_beside_strategy(strategy: RetryStrategy, config: RetryConfig | None, options: dict[str, Any]) -> None:
    """Refuse options that would have no effect, because the given strategy has its own."""
    if isinstance(strategy, type) or not isinstance(strategy, RetryStrategy):
        raise RetryConfigError(
            "strategy",
            strategy,
            "code",
            "an object with acquire_initial_retry_token, refresh_retry_token_for_retry and record_success is allowed",
        )
    ours = ADAPTER_OPTIONS
    if not isinstance(strategy, SimpleRetryStrategy):
        ours |= CLASSIFIER_OPTIONS
    elif config is not None:
        raise RetryConfigError("config", config, "code", "only one of config and a built-in strategy is allowed")
    for name, value in options.items():
        if name not in ours:
            raise RetryConfigError(name, value, "code", f"it belongs to the strategy: give it to {strategy!r} instead")
