"""The adaptive mode: the standard strategy and a client rate limiter per scope (contract 9)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any

from ..classifiers.actions import ErrorKind, NoActionIndicated, RetryIndicated, RetryReason
from ..classifiers.fold import Classification
from ..errors import RetryError, StopReason
from ..pacing.rate_limiter import ClientRateLimiter, PermitWait
from ..quotas.scopes import ScopeTable
from ..urls import display_scope
from .first_tries import FirstTryHook, remember
from .protocol import RetryContext, RetryToken, StandardRetryToken, StrategySnapshot, redeemed
from .simple import is_built_in
from .standard import StandardRetryStrategy


class AdaptiveRetryStrategy(StandardRetryStrategy):
    """The standard strategy, and beside it a limiter that slows each scope down once its server has throttled.

    A limiter learns of every attempt from the same three methods. What it adds is :meth:`send_permit`: the code that
    sends asks it before each attempt, after the backoff.

    :param config: the policy; or give options by name.
    :param backoff_strategy: computes delays in place of the configured backoff, for every kind of failure.
    :param clock: tells the time.
    :param options: any option of :class:`RetryConfig`, on top of ``config``.
    :raises RetryConfigError: for a bad option.
    """

    mode = "adaptive"

    def _open_books(self) -> None:
        super()._open_books()
        self._limiters: ScopeTable[ClientRateLimiter] = ScopeTable(
            lambda _: ClientRateLimiter(self.config.rate_limiter, clock=self.clock),
            lambda limiter: limiter.is_spare,
            clock=self.clock,
            used_at=lambda limiter: limiter.used_at,
            retire=self._retire,
        )

    def _retire(self, limiter: ClientRateLimiter) -> None:
        limiter.retired = True
        self.busy.discard(limiter)
        self.hooks.clear()

    def forget(self) -> None:
        super().forget()
        self._limiters.forget()

    def limiter(self, token_scope: str | None = None) -> ClientRateLimiter:
        """Return the limiter of a scope. A subclass may override this method: it is always called."""
        return self._limiters.get(token_scope)

    def first_try_hook(self, scope: str, url: str | None = None) -> FirstTryHook:
        quota, limiter = super().first_try_hook(scope), self.limiter(scope)
        hook = MeasuringHook(quota, limiter)
        if url is not None and self._may_remember(quota) and limiter is not self._limiters.overflow:
            remember(self.hooks, url, hook)
        return hook

    def _limiter_in_use(self, scope: str | None) -> AbstractContextManager[ClientRateLimiter]:
        """Return the limiter of a scope, which is not given up inside the block."""
        return self._limiters.use(scope) if is_built_in(self, "limiter") else nullcontext(self.limiter(scope))

    def send_permit(
        self, *, token: RetryToken, deadline: float | None = None, waited: float = 0.0
    ) -> PermitWait | None:
        """Ask for permission to make one attempt. One permit is good for one attempt.

        :param token: the attempt's token.
        :param deadline: the moment, on the strategy's clock, past which no wait may last; None: no deadline.
        :param waited: seconds waited for this permit so far.
        :returns: None: send. Otherwise wait as it says, and ask again.
        :raises RetryError: if there will be no permit in time; a retry's price is given back then.
        """
        scope = token.token_scope if isinstance(token, StandardRetryToken) else None
        with self._limiter_in_use(scope) as limiter:
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
        whose = "" if scope is None else f" for {display_scope(scope)}"
        raise RetryError(
            f"the client's rate limiter has no send permit{whose}: the next one comes in {wait.seconds:.3g} s, {bound}",
            stop_reason=StopReason.RATE_LIMITED,
        )

    def record_success(self, *, token: RetryToken) -> None:
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
        with self._limiter_in_use(scope) as limiter:
            limiter.record_response(throttled)
            if throttled:
                self.busy.add(limiter)

    def _refund(self, token: RetryToken) -> None:
        """Give back the price of a retry that was paid and not made (contract 2.6)."""
        own = redeemed(token, self)
        if own.acquired:
            with self._quota_in_use(own.token_scope) as quota:
                if quota is not None:
                    quota.unsent(own.standing)


class MeasuringHook:
    """Reports first-try successes to a scope's limiter, too, which measures how fast requests are sent."""

    __slots__ = ("_hook", "_limiter", "_record")

    def __init__(self, hook: FirstTryHook, limiter: ClientRateLimiter) -> None:
        self._hook = hook
        self._limiter = limiter
        is_own = type(limiter).record_response is not ClientRateLimiter.record_response
        self._record: Callable[[], object] = (
            partial(limiter.record_response, False) if is_own else limiter.record_success
        )

    def first_try(self, attempt: tuple[float, Any]) -> object:
        self._hook.first_try(attempt)
        return self._record()

    @property
    def retired(self) -> bool:
        return self._hook.retired or self._limiter.retired


def _is_throttled(classification: Classification) -> bool:
    """Return True if the outcome was throttling, even if the request may not be sent again."""
    verdicts = [vote.action for vote in classification.votes if isinstance(vote.action, RetryIndicated)]
    return bool(verdicts) and verdicts[-1].reason.kind is ErrorKind.THROTTLING
