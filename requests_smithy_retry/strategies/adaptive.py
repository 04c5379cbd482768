"""The adaptive mode: the standard strategy and a client rate limiter per scope (contract 9)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ..actions import ErrorKind, NoActionIndicated, RetryIndicated, RetryReason
from ..classification import Classification
from ..errors import RetryError
from ..outcome import RetryContext
from ..rate_limiter import ClientRateLimiter, PermitWait
from ..scopes import ScopeTable, shown
from ..stop_reason import StopReason
from ..tokens import RetryToken, StandardRetryToken
from .snapshot import StrategySnapshot
from .standard import StandardRetryStrategy


class AdaptiveRetryStrategy(StandardRetryStrategy):
    """The standard strategy, and beside it a limiter that slows each scope down once its server has throttled.

    A limiter learns of every attempt from the same three methods. What it adds is :meth:`send_permit`: whoever
    sends asks it before each attempt, after the backoff.

    :param config: the policy; or give options by name.
    :param backoff_strategy: computes delays in place of the configured backoff, for every kind of failure.
    :param clock: tells the time.
    :param options: any option of :class:`RetryConfig`, on top of ``config``.
    :raises RetryConfigError: for a bad option.
    """

    measures_rate = True

    def _open_books(self) -> None:
        super()._open_books()
        self._limiters: ScopeTable[ClientRateLimiter] = ScopeTable(
            self._new_limiter,
            lambda limiter: limiter.is_spare,
            used_at=lambda limiter: limiter.used_at,
            retire=self._retire,
        )
        self.throttled: set[ClientRateLimiter] = set()
        """The limiters that have been throttled. While it is empty, nobody needs to ask for a permit."""

    def _new_limiter(self) -> ClientRateLimiter:
        return ClientRateLimiter(self.config.rate_limiter, clock=self.clock)

    def _retire(self, limiter: ClientRateLimiter) -> None:
        limiter.retired = True
        self.throttled.discard(limiter)

    def limiter(self, token_scope: str | None = None) -> ClientRateLimiter:
        """The limiter of a scope."""
        return self._limiters.get(token_scope)

    def send_permit(
        self, *, token: RetryToken, deadline: float | None = None, waited: float = 0.0
    ) -> PermitWait | None:
        """Ask for leave to make one attempt. One permit is good for one attempt.

        :param token: the attempt's token.
        :param deadline: the moment, on the strategy's clock, past which no wait may last; None: there is none.
        :param waited: seconds waited for this permit so far.
        :returns: None: send. Otherwise wait as it says, and ask again.
        :raises RetryError: if there will be no permit in time; a retry's price is given back then.
        """
        scope = token.token_scope if isinstance(token, StandardRetryToken) else None
        with self._limiters.use(scope) as limiter:
            wait = limiter.try_acquire()
        if wait is None:
            return None
        longest = self.config.max_permit_wait
        if longest is not None and waited + wait.seconds > longest:
            bound = f"max_permit_wait is {longest:g} s"
        elif deadline is not None and self.clock.now() + wait.seconds >= deadline:
            bound = "that is past the deadline"
        else:
            return wait
        self._refund(token)
        whose = "" if scope is None else f" for {shown(scope)}"
        raise RetryError(
            f"the client's rate limiter has no send permit{whose}: the next one comes in {wait.seconds:.3g} s, {bound}",
            stop_reason=StopReason.RATE_LIMITED,
        )

    def record_success(self, *, token: RetryToken) -> None:
        """Give back to the quota as the standard strategy does, and tell the limiter.

        :param token: the successful attempt's token.
        :raises TokenError: for a token that was used before or is another strategy's.
        """
        super().record_success(token=token)
        assert isinstance(token, StandardRetryToken)
        self._record(token.token_scope, throttled=False)

    def snapshot(self) -> StrategySnapshot:
        """An immutable view of the buckets and of the limiters."""
        limiters = {scope: limiter.snapshot() for scope, limiter in self._limiters}
        return StrategySnapshot(super().snapshot().buckets, MappingProxyType(limiters))

    def _reason(self, classification: Classification, context: RetryContext, token: StandardRetryToken) -> RetryReason:
        # Every verdict passes here. A success that was only looked at is recorded by record_success.
        if not (context.outcome.is_success and isinstance(classification.action, NoActionIndicated)):
            self._record(token.token_scope, throttled=_is_throttled(classification))
        return super()._reason(classification, context, token)

    def _record(self, scope: str | None, *, throttled: bool) -> None:
        with self._limiters.use(scope) as limiter:
            limiter.record_response(throttled)
            if throttled:
                self.throttled.add(limiter)

    def _refund(self, token: RetryToken) -> None:
        """A retry that was paid and not made costs nothing (contract 2.6)."""
        own = self._redeem(token)
        if own.acquired:
            self._give_back(own.token_scope, own.acquired, own.loan)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        for name in ("_limiters", "throttled"):
            del state[name]
        return state


def _is_throttled(classification: Classification) -> bool:
    """Whether the outcome was throttling, also where the request may not be sent again."""
    verdicts = [vote.action for vote in classification.votes if isinstance(vote.action, RetryIndicated)]
    return bool(verdicts) and verdicts[-1].reason.kind is ErrorKind.THROTTLING
