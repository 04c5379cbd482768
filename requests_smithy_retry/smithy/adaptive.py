"""The adaptive mode: the standard strategy and a client rate limiter per scope (contract 9)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..checks import is_finite
from ..classifiers.actions import ErrorKind, NoActionIndicated, RetryIndicated
from ..classifiers.fold import Classification
from ..classifiers.outcome import Outcome
from ..core.machine import Passed
from ..core.port import Feature
from ..core.scope import Scope
from ..core.steps import Before, Join, Refused, Steps
from ..core.strategy import RetryToken, StandardRetryStrategy, StandardRetryToken, StrategySnapshot, redeemed
from ..errors import RetryConfigError, RetryError, StopReason
from ..urls import display_scope
from .rate_limiter import DEFAULT_SETTINGS, ClientRateLimiter, PermitWait, RateLimiterSettings, TooLate, UntilPermitted

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from ..core.driver import Driver
    from ..core.plan import Call

NAME = "limiter"


class AdaptiveRetryStrategy(StandardRetryStrategy):
    """The standard strategy, and beside it a limiter that slows each scope down once its server has throttled.

    A limiter learns of every attempt from the same three methods. In addition there is :meth:`send_permit`, which the
    code that sends calls before each attempt, after the backoff.

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

    def features(self) -> tuple[Feature, ...]:
        """Return the hooks by which the adapter asks for permits."""
        return (Permits(self),)

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
        scope = token.token_scope if isinstance(token, StandardRetryToken) else None
        wait = self.limiter(scope).try_acquire()
        if wait is None:
            return None
        longest, at = self.max_permit_wait, self.clock.now() + wait.seconds
        too_late = TooLate.of(waited + wait.seconds, longest, at, deadline)
        if too_late is None:
            return wait
        own = redeemed(token, self)
        with self.scopes.use(scope) as used:
            used.quota.unsent(own.progress)
        raise RetryError(_why(wait.seconds, too_late.bound, scope), stop_reason=StopReason.RATE_LIMITED)

    def note_success(self, scope: Scope) -> None:
        """Have the limiter take in a success."""
        self.limiter_of(scope).record_response(False)

    def verdicts(self, scope: Scope) -> tuple[Callable[[Outcome, Classification], object], ...]:
        """Have the limiter take in the verdict on each attempt."""
        return (partial(record, self.limiter_of(scope)),)

    def snapshot(self) -> StrategySnapshot:
        """An immutable view of the buckets and of the limiters."""
        found = {name: scope.parts[NAME] for name, scope in self.scopes if NAME in scope.parts}
        limiters = {name: limiter.snapshot() for name, limiter in found.items()}
        return StrategySnapshot(super().snapshot().buckets, MappingProxyType(limiters))


AdaptiveRetryStrategy.own_methods = {
    **StandardRetryStrategy.own_methods,
    "send_permit": AdaptiveRetryStrategy.send_permit,
}


class Permits(Feature):
    """The hooks of a strategy: its limiters measure how fast requests are sent, and give permits once throttled."""

    def __init__(self, strategy: AdaptiveRetryStrategy) -> None:
        self.strategy = strategy

    def gate(self, call: Call, scope: Scope) -> PermitGate | None:
        limiter = self.strategy.limiter_of(scope)
        if not limiter.enabled:
            return None
        return PermitGate(limiter, self.strategy.max_permit_wait, call.deadline, scope.name)

    def received(self, driver: Driver, call: Call, request: PreparedRequest, response: Response, scope: Scope) -> None:
        """Count a success, before it is known whether its body is whole."""
        if response.status_code < 400:
            self.strategy.limiter_of(scope).record_success()
            call.data[NAME] = True

    def on_verdict(self, call: Call, scope: Scope, outcome: Outcome, verdict: Classification) -> None:
        """Count a failure, unless it was counted as a success; throttling is told in any case."""
        if not call.data.pop(NAME, False) or is_throttled(verdict):
            record(self.strategy.limiter_of(scope), outcome, verdict)


def record(limiter: ClientRateLimiter, outcome: Outcome, verdict: Classification) -> None:
    """Have a limiter take in the verdict on an attempt. A success that was only looked at is recorded elsewhere."""
    if not (outcome.is_success and isinstance(verdict.action, NoActionIndicated)):
        limiter.record_response(is_throttled(verdict))


def is_throttled(classification: Classification) -> bool:
    """Return True if the outcome was throttling, even if the request may not be sent again."""
    verdicts = [vote.action for vote in classification.votes if isinstance(vote.action, RetryIndicated)]
    return bool(verdicts) and verdicts[-1].reason.kind is ErrorKind.THROTTLING


class PermitGate:
    """The gate of one call: each of its attempts needs a permit.

    :param scope: its name, for people.
    """

    def __init__(self, limiter: ClientRateLimiter, longest: float | None, deadline: float | None, scope: Any) -> None:
        self._limiter = limiter
        self._longest = longest
        self._deadline = deadline
        self._scope = scope

    def is_open(self, now: float) -> bool:
        """Permits are the machine's business."""
        return False

    def admit(self, waited: float, began: float) -> Steps:
        seen = yield Join(UntilPermitted(self._limiter, self._longest, self._deadline))
        if isinstance(seen, TooLate):
            return Refused(StopReason.RATE_LIMITED, 0.0, _why(seen.seconds, seen.bound, self._scope))
        return Passed(seen)

    def add_to(self, before: Before, passed: Passed) -> Before:
        return before._replace(permit_wait=passed.waited)


def _why(seconds: float, bound: str, scope: str | None) -> str:
    whose = "" if scope is None else f" for {display_scope(scope)}"
    return f"the client's rate limiter has no send permit{whose}: the next one comes in {seconds:.3g} s, {bound}"
