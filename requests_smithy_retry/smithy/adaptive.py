"""The adaptive mode: the standard strategy and a client rate limiter per scope (contract 9)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ..checks import is_finite
from ..classifiers.actions import ErrorKind, NoActionIndicated, RetryReason
from ..classifiers.fold import reason_wanted
from ..core.attempt import AttemptFailed
from ..core.scope import Scope
from ..core.strategy import RetryToken, StandardRetryStrategy, StandardRetryToken, StrategySnapshot
from ..errors import RetryConfigError, RetryError, StopReason, seconds_text
from ..urls import display_scope
from .rate_limiter import DEFAULT_SETTINGS, ClientRateLimiter, PermitWait, RateLimiterSettings

NAME = "limiter"


class AdaptiveRetryStrategy(StandardRetryStrategy):
    """The standard strategy, with a limiter for each scope that slows it down once its server has throttled.

    The limiter learns from the same three methods. The code that sends also calls :meth:`send_permit` before each
    attempt, after the backoff.

    :param rate_limiter: the numbers of the limiters.
    :param max_permit_wait: the longest wait for a send permit, in seconds; None: as long as it takes.
    :param rest: all that :class:`StandardRetryStrategy` takes.
    :raises RetryConfigError: for a bad option.
    """

    mode = "adaptive"

    def __init__(
        self,
        *,
        rate_limiter: RateLimiterSettings = DEFAULT_SETTINGS,
        max_permit_wait: float | None = None,
        **rest: Any,
    ) -> None:
        if not isinstance(rate_limiter, RateLimiterSettings):
            raise RetryConfigError("rate_limiter", rate_limiter, "code", "a RateLimiterSettings is allowed")
        if max_permit_wait is not None and not (is_finite(max_permit_wait) and max_permit_wait >= 0):
            allowed = "a finite number of seconds, 0 or more, or None is allowed"
            raise RetryConfigError("max_permit_wait", max_permit_wait, "code", allowed)
        self.rate_limiter = rate_limiter
        self.max_permit_wait = max_permit_wait
        super().__init__(**rest)

    def limiter(self, token_scope: str | None = None) -> ClientRateLimiter:
        """Return the limiter of a scope."""
        return self.limiter_of(self.scopes.get(token_scope))

    def limiter_of(self, scope: Scope) -> ClientRateLimiter:
        """Return the limiter of a scope, made on first use."""
        return scope.part(NAME, lambda: ClientRateLimiter(self.rate_limiter, clock=self.clock))

    def send_permit(
        self, *, token: RetryToken, deadline: float | None = None, waited: float = 0.0
    ) -> PermitWait | None:
        """Ask for permission to make one attempt. One permit is good for one attempt.

        :param token: the attempt's token.
        :param deadline: the moment, on the strategy's clock, past which no wait may last; None: no deadline.
        :param waited: seconds waited for this permit so far.
        :returns: None to send. Otherwise the wait after which to ask again.
        :raises RetryError: if there will be no permit in time; a retry's price is given back then.
        """
        own = token if isinstance(token, StandardRetryToken) else None
        scope = self.scopes.get(None) if own is None else own.scope
        wait = self.limiter_of(scope).try_acquire()
        if wait is None:
            return None
        if self.max_permit_wait is not None and waited + wait.seconds > self.max_permit_wait:
            why = f"max_permit_wait is {self.max_permit_wait:g} s"
        elif deadline is not None and self.clock.now() + wait.seconds >= deadline:
            why = "that is past the deadline"
        else:
            return wait
        if own is not None:
            own.give_back()
        whose = "" if scope.name is None else f" for {display_scope(scope.name)}"
        when = f"the next one comes in {seconds_text(wait.seconds)}, {why}"
        late = f"the client's rate limiter has no send permit{whose}: {when}"
        raise RetryError(late, stop_reason=StopReason.RATE_LIMITED)

    def indicated(self, failed: AttemptFailed, scope: Scope) -> RetryReason:
        """Ask the classifiers, and tell the limiter their verdict."""
        verdict = failed.judged(self.policy)
        # A success that was only looked at is recorded elsewhere.
        if not (failed.outcome.is_success and isinstance(verdict.action, NoActionIndicated)):
            wanted = reason_wanted(verdict.votes)  # also if the request may not be sent again
            self.limiter_of(scope).record_response(wanted is not None and wanted.kind is ErrorKind.THROTTLING)
        return super().indicated(failed, scope)

    def note_success(self, scope: Scope) -> None:
        """Tell the limiter about a success."""
        self.limiter_of(scope).record_success()

    def snapshot(self) -> StrategySnapshot:
        """An immutable view of the buckets and of the limiters."""
        found = {name: scope.parts[NAME] for name, scope in self.scopes if NAME in scope.parts}
        limiters = {name: limiter.snapshot() for name, limiter in found.items()}
        return StrategySnapshot(super().snapshot().buckets, MappingProxyType(limiters))
