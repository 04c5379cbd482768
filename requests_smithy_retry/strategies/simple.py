"""Classify, count, wait: the decision of contract 2.6 without a quota. Pure but for the clock it reads.

The other modes add to it: :mod:`standard` the quota.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..actions import ErrorKind, RetryForbidden, RetryIndicated, RetryReason
from ..backoff import ExponentialRetryBackoffStrategy, RetryBackoffStrategy, takes_previous_delay
from ..classification import Classification, classify, fold_of
from ..classifier import RetryClassifier, in_order, sees_successes
from ..clock import SYSTEM_CLOCK, Clock
from ..config import RetryConfig, RetryOptions
from ..errors import RetryError, TokenError
from ..operation_options import NOTHING
from ..outcome import Outcome, RetryContext
from ..quota import RetryQuota
from ..server_hints import AMZ_HEADER, Hint, delay_for, is_too_long, read_hint
from ..stop_reason import StopReason
from ..tokens import RetryToken, StandardRetryToken
from ..urllib3_rules import count_failure, heeds_hints, with_jitter
from ..waiting import Loan
from .by_hand import context_around
from .snapshot import StrategySnapshot

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Payment(NamedTuple):
    """What a retry took from the quota."""

    acquired: float = 0
    before: float | None = None
    after: float | None = None
    loan: Loan | None = None
    source: str | None = None


class SimpleRetryStrategy:
    """Retries what the classifiers say, up to ``max_attempts``, with backoff; no quota, no limiter.

    :param config: the policy; or give options by name.
    :param backoff_strategy: computes delays in place of the configured backoff, for every kind of failure.
    :param clock: tells the time, for deadlines and dates.
    :param options: any option of :class:`RetryConfig`, on top of ``config``.
    :raises RetryConfigError: for a bad option.
    """

    spent_scopes: Collection[str | None] = ()
    """Scopes to which a success owes something. While it is empty, a first-try success needs no bookkeeping."""

    wants_latency: bool = False
    """Whether its quota goes by every operation and by how long attempts take."""

    measures_rate: bool = False
    """Whether it counts every success, to measure how fast requests are sent."""

    def __init__(
        self,
        *,
        config: RetryConfig | None = None,
        backoff_strategy: RetryBackoffStrategy | None = None,
        clock: Clock = SYSTEM_CLOCK,
        **options: Unpack[RetryOptions],
    ) -> None:
        base = RetryConfig() if config is None else config
        self.config: RetryConfig = base.replace(**options)
        self.clock = clock
        given, bases = backoff_strategy, (self.config.transient_base, self.config.throttling_base)
        transient, throttling = (self._exponential(base) if given is None else given for base in bases)
        self.backoff_strategy: RetryBackoffStrategy = transient
        self.throttling_backoff_strategy: RetryBackoffStrategy = throttling
        self.classifiers: tuple[RetryClassifier, ...] = in_order(
            (*self._default_classifiers(), *self.config.classifiers)
        )
        self.sees_successes: bool = any(map(sees_successes, self.classifiers))
        self._open_books()

    def _open_books(self) -> None:
        """Begin to keep what a copy does not take over: quotas and limiters, of which this mode has none."""

    @property
    def max_attempts(self) -> int:
        """Most attempts of an operation, the first one included."""
        return self.config.max_attempts

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> StandardRetryToken:
        """A token for the first attempt: always given, without delay, and free.

        :param token_scope: operations with the same scope share a quota.
        """
        return StandardRetryToken(issuer=self, token_scope=token_scope)

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> StandardRetryToken:
        """A token for another attempt, or the reason why there is none.

        In this order (contract 2.6): is a retry indicated, may the request be sent again, are attempts left, is the
        server's hint bearable, is there time, is there quota. A refusal costs no quota.

        :param token_to_renew: the failed attempt's token.
        :param error: what was raised, or what carries the response.
        :raises RetryError: with the first rule that said no.
        :raises TokenError: for a token that was used before or is another strategy's.
        """
        token = self._redeem(token_to_renew)
        context = context_around(error, self.clock)
        options = context.options or NOTHING
        if options.enabled is False:
            raise RetryError(stop_reason=StopReason.DISABLED)
        try:
            classification = classify(fold_of(self.classifiers, options), context.outcome)
        except BaseException:
            token.unredeem()
            raise
        reason = self._reason(classification, context, token)
        retry = token.retry_count + 1
        most = self.max_attempts if options.max_attempts is None else options.max_attempts
        if retry >= most:
            _refuse(StopReason.MAX_ATTEMPTS, None, classification)
        failures, exceeded = count_failure(self.config.urllib3_rules, token.failures, context.outcome)
        if exceeded is not None:
            _refuse(StopReason.MAX_ATTEMPTS, exceeded, classification)
        backoff = self._backoff(reason.kind, retry, token.previous_delay)
        hint = self._hint(reason, context.outcome, classification, backoff)
        delay = delay_for(backoff, hint)
        if context.deadline is not None and self.clock.now() + delay >= context.deadline:
            _refuse(StopReason.DEADLINE, f"the next wait of {delay:.3g} s would not end in time", classification)
        payment = self._pay(reason, token, context, delay, classification)
        return StandardRetryToken(
            issuer=self,
            token_scope=token.token_scope,
            retry_count=retry,
            retry_delay=delay,
            acquired=payment.acquired,
            spent=token.spent + payment.acquired,
            previous_delay=backoff,
            delay_source=hint.source if hint is not None and delay != backoff else "backoff",
            quota_before=payment.before,
            quota_after=payment.after,
            loan=payment.loan,
            quota_source=payment.source,
            classification=classification,
            failures=failures,
        )

    def record_success(self, *, token: RetryToken) -> None:
        """Take note that an attempt succeeded.

        :param token: that attempt's token.
        :raises TokenError: for a token that was used before or is another strategy's.
        """
        self._redeem(token)

    def snapshot(self) -> StrategySnapshot:
        """An immutable view of what the strategy holds now."""
        return StrategySnapshot()

    def _pay(
        self,
        reason: RetryReason,  # noqa: ARG002
        token: StandardRetryToken,  # noqa: ARG002
        context: RetryContext,  # noqa: ARG002
        delay: float,  # noqa: ARG002
        classification: Classification,  # noqa: ARG002
    ) -> Payment:
        """Take the retry's price from the quota; without a quota there is none."""
        return Payment()

    def _reason(self, classification: Classification, context: RetryContext, token: StandardRetryToken) -> RetryReason:
        action = classification.action
        if isinstance(action, RetryIndicated):
            return action.reason
        if isinstance(action, RetryForbidden):
            _refuse(action.stop_reason, action.why, classification)
        if context.outcome.is_success:
            # It was only looked at: the token is still good for record_success.
            token.unredeem()
        raise RetryError(stop_reason=StopReason.NOT_RETRYABLE, classification=classification)

    def _backoff(self, kind: ErrorKind, retry: int, previous: float | None) -> float:
        strategy = self.throttling_backoff_strategy if kind is ErrorKind.THROTTLING else self.backoff_strategy
        if takes_previous_delay(strategy):
            return strategy.compute_next_backoff_delay(retry, previous)  # type: ignore[call-arg]
        return strategy.compute_next_backoff_delay(retry)

    def _hint(
        self, reason: RetryReason, outcome: Outcome, classification: Classification, backoff: float
    ) -> Hint | None:
        """The hint that makes the longest delay: what the classifier says, or what the response's headers say."""
        hints = []
        heeds_server = heeds_hints(self.config.urllib3_rules)
        if reason.retry_after is not None and (heeds_server or reason.retry_after_source != AMZ_HEADER):
            hints.append(Hint(reason.retry_after, reason.retry_after_source or "classifier"))
        if heeds_server and outcome.response is not None:
            header = read_hint(outcome.response.headers, wall=self.clock.wall())
            if header is not None:
                hints.append(header)
        limit = self.config.max_retry_after
        for hint in hints:
            if is_too_long(hint, limit):
                why = f"{hint.source} asks for {hint.seconds:.15g} s, max_retry_after is {limit:g} s"
                _refuse(StopReason.HINT_TOO_LONG, why, classification)
        return max(hints, key=lambda hint: delay_for(backoff, hint), default=None)

    def _redeem(self, token: RetryToken) -> StandardRetryToken:
        if not isinstance(token, StandardRetryToken):
            raise TokenError(f"this token was issued by another strategy: {token!r}")
        token.redeem(self)
        return token

    def _exponential(self, base: float) -> RetryBackoffStrategy:
        most, jitter = self.config.max_backoff, self.config.jitter
        backoff = ExponentialRetryBackoffStrategy(backoff_scale_value=base, max_backoff=most, jitter_type=jitter)
        return with_jitter(backoff, self.config.urllib3_rules)

    def _default_classifiers(self) -> tuple[RetryClassifier, ...]:
        if not self.config.default_classifiers:
            return ()
        # Imported here: the strategy layer knows no HTTP library, only its default classifiers do.
        from ..classifiers import default_classifiers

        return default_classifiers(self.config)

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open_books()

    def __copy__(self) -> Any:
        # A copy keeps the policy and starts with a full quota of its own (contract 11.1).
        state = self.__getstate__()
        if isinstance(self.config.quota, RetryQuota):
            state["config"] = self.config.replace(quota=copy.copy(self.config.quota))
        other = type(self).__new__(type(self))
        other.__setstate__(state)
        return other

    def __repr__(self) -> str:
        return f"<{type(self).__name__} max_attempts={self.max_attempts}>"


def _refuse(stop_reason: StopReason, why: str | None, classification: Classification) -> NoReturn:
    raise RetryError(why or "", stop_reason=stop_reason, classification=classification)
