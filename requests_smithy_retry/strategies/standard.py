"""The default strategy: the simple one and a retry quota per scope (contract 6)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any

from ..actions import ErrorKind, RetryReason
from ..classification import Classification
from ..errors import RetryError
from ..operation_options import NOTHING
from ..outcome import RetryContext, context_of
from ..payoff_numbers import PAYOFF_NUMBERS
from ..payoff_quota import PayoffQuota, RetryCause
from ..quota import RetryQuota, TokenBucket, is_full
from ..scopes import NamedScopeTable, ScopeTable, shown
from ..stop_reason import StopReason
from ..tokens import RetryToken, StandardRetryToken
from ..waiting import Loan, loan_of
from .retry_cause import cause_of
from .simple import Payment, SimpleRetryStrategy
from .snapshot import StrategySnapshot
from .spent_scopes import SpentScopes


class StandardRetryStrategy(SimpleRetryStrategy):
    """The standard mode of the AWS SDKs (Retries 2.1; the numbers of 2.0 with ``retry_spec="2.0"``).

    Each scope has a bucket of retry tokens. A retry takes some before it is made; a success after retries gives back
    what its last retry took, a first-try success gives ``success_reward``, a final failure gives nothing. An empty
    bucket means no retries: an outage is not made worse by them.

    :param config: the policy; or give options by name.
    :param backoff_strategy: computes delays in place of the configured backoff, for every kind of failure.
    :param clock: tells the time.
    :param options: any option of :class:`RetryConfig`, on top of ``config``.
    :raises RetryConfigError: for a bad option.
    """

    def _open_books(self) -> None:
        super()._open_books()
        quota = self.config.quota
        self._shared = quota if isinstance(quota, RetryQuota) else None
        self.wants_latency: bool = isinstance(quota, (str, PayoffQuota))
        self._scopes: ScopeTable[RetryQuota] = ScopeTable(self._new_bucket, is_full)
        if isinstance(quota, str):
            self._scopes = ScopeTable(self._new_payoff_bucket, is_full, retire=_retire)
        if isinstance(quota, (int, float)) and self.config.quota_url is not None:
            from ..quota_backends import quota_factory

            self._scopes = NamedScopeTable(
                quota_factory(
                    self.config.quota_url,
                    capacity=quota,
                    refill_rate=self.config.refill_rate,
                    on_empty=self.config.on_empty,
                    clock=self.clock,
                    source=self.config.source("quota_url"),
                ),
                is_full,
            )
        # A bucket that was passed in may be spent by others, unseen from here: there a success always asks.
        self.spent_scopes: SpentScopes = SpentScopes(self._scopes)
        if self._shared is not None and not self.wants_latency:
            self.spent_scopes.add("shared")

    def _new_bucket(self) -> RetryQuota:
        capacity = self.config.quota
        assert isinstance(capacity, (int, float))
        return TokenBucket(
            capacity, refill_rate=self.config.refill_rate, on_empty=self.config.on_empty, clock=self.clock
        )

    def _new_payoff_bucket(self) -> RetryQuota:
        from ..payoff_bucket import PayoffTokenBucket  # few ask for it

        return PayoffTokenBucket(**PAYOFF_NUMBERS[self.config.quota], clock=self.clock)

    def bucket(self, token_scope: str | None = None) -> RetryQuota | None:
        """The bucket of a scope; None with ``quota=None``."""
        if self._shared is not None:
            return self._shared
        return None if self.config.quota is None else self._scopes.get(token_scope)

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> StandardRetryToken:
        """A token for the first attempt: always given, without delay, and free.

        :param token_scope: operations with the same scope share a quota.
        """
        if self.wants_latency:
            with self._bucket_in_use(token_scope) as bucket:
                bucket.on_operation()  # type: ignore[union-attr]
        return super().acquire_initial_retry_token(token_scope=token_scope)

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> StandardRetryToken:
        """A token for another attempt, or the reason why there is none; with ``on_empty="wait"`` it may take a while.

        :param token_to_renew: the failed attempt's token.
        :param error: what was raised, or what carries the response.
        :raises RetryError: with the first rule that said no.
        :raises TokenError: for a token that was used before or is another strategy's.
        """
        try:
            return super().refresh_retry_token_for_retry(token_to_renew=token_to_renew, error=error)
        except RetryError:
            # A final failure gives nothing back, and whoever waits for it shall know.
            loan = getattr(token_to_renew, "loan", None)
            if loan is not None and not context_of(error).outcome.is_success:
                loan.write_off()
            raise

    def record_success(self, *, token: RetryToken) -> None:
        """Give back what the last retry took, or the reward for a first-try success.

        :param token: the successful attempt's token.
        :raises TokenError: for a token that was used before or is another strategy's.
        """
        own = self._redeem(token)
        scope = own.token_scope
        if self.wants_latency:
            with self._bucket_in_use(scope) as bucket:
                bucket.on_success(  # type: ignore[union-attr]
                    retries=own.retry_count, spent=own.spent, latency=own.latency, timeout=own.timeout
                )
            return
        if own.retry_count:
            self._give_back(scope, own.acquired, own.loan)
        elif self._shared is not None or self.spent_scopes.owes(scope):
            self._give_back(scope, self.config.success_reward, is_reward=True)

    def _give_back(
        self, scope: str | None, amount: float, loan: Loan | None = None, *, is_reward: bool = False
    ) -> None:
        with self._bucket_in_use(scope) as bucket:
            if bucket is None:
                return
            if loan is not None:
                loan.settle()
            if is_reward:
                getattr(bucket, "reward", bucket.release)(amount)
            else:
                bucket.release(amount)
            if self._shared is None:
                self.spent_scopes.given_back(scope, bucket)

    def _bucket_in_use(self, scope: str | None) -> AbstractContextManager[RetryQuota | None]:
        """The bucket of a scope, which is not given up inside the block."""
        if self._shared is not None or self.config.quota is None:
            return nullcontext(self._shared)
        return self._scopes.use(scope)

    def snapshot(self) -> StrategySnapshot:
        """An immutable view of the buckets; a scope that never spent anything has none."""
        if self._shared is not None:
            return StrategySnapshot(MappingProxyType({None: self._shared.snapshot()}))
        return StrategySnapshot(MappingProxyType({scope: bucket.snapshot() for scope, bucket in self._scopes}))

    def _pay(
        self,
        reason: RetryReason,
        token: StandardRetryToken,
        context: RetryContext,
        delay: float,
        classification: Classification,
    ) -> Payment:
        scope = token.token_scope
        if token.loan is not None:
            token.loan.write_off()
        with self._bucket_in_use(scope) as bucket:
            if bucket is None:
                return Payment()
            cause = cause_of(reason, context.outcome)
            price = bucket.price_of(cause) if self.wants_latency else self._price(reason)  # type: ignore[attr-defined]
            # Whoever waits for tokens still has the backoff before it.
            until = None if context.deadline is None else context.deadline - delay
            granted = bucket.acquire(price, deadline=until)
            if self._shared is None and not self.wants_latency:
                # Also when it is refused: other processes may have spent a bucket that they share with this one.
                self.spent_scopes.spent(scope, bucket)
            source = getattr(bucket, "source", "memory")
            if granted:
                after = bucket.available
                return Payment(price, after + price, after, loan_of(bucket, price), source)
        long_poll = (context.options or NOTHING).long_poll
        raise RetryError(
            self._refusal(bucket, scope, price, cause),
            stop_reason=StopReason.QUOTA_EXCEEDED,
            delay=delay if long_poll else None,
            classification=classification,
        )

    def _price(self, reason: RetryReason) -> int:
        numbers = self.config.numbers
        if reason.kind is ErrorKind.THROTTLING:
            return numbers.throttling_cost
        return numbers.timeout_cost if reason.timeout else numbers.retry_cost

    def _refusal(self, bucket: Any, scope: str | None, price: float, cause: RetryCause) -> str:
        if self.wants_latency:
            return str(bucket.refusal(cause, "" if scope is None else f" on {shown(scope)}"))
        whose = "" if scope is None else f" of {shown(scope)}"
        source = getattr(bucket, "source", "memory")
        where = "" if source == "memory" else f" ({source})"
        trouble = "too small" if 0 < bucket.capacity < price else "empty"
        held = f"{bucket.available:g} of {bucket.capacity:g}"
        return f"the retry quota{whose}{where} is {trouble} ({held}, needs {price:g})"

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        for name in ("_scopes", "_shared", "spent_scopes"):
            del state[name]
        return state


def _retire(bucket: Any) -> None:
    bucket.retire()
