"""The interface of a strategy (contract 1): methods, tokens, abilities, and what an error carries to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..classifiers.outcome import Fault, Outcome
from ..clock import Clock
from ..config.retry_options import OperationOptions
from ..errors import RetryError, StopReason, TokenError
from ..quotas.line import Standing, Terms

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from ..classifiers.fold import Classification
    from ..config.urllib3_rules import FailureKind
    from ..pacing.rate_limiter import RateLimiterSnapshot
    from ..quotas.bucket import TokenBucketSnapshot


@runtime_checkable
class RetryStrategy(Protocol):
    """Decides, for each operation, whether and when there is another attempt.

    It holds what operations share (a quota, a limiter); what belongs to one operation is in its token.
    """

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> RetryToken:
        """Called before the first attempt.

        :param token_scope: operations with the same scope share a quota.
        :raises RetryError: if there is no token; the first attempt is made all the same.
        """
        ...

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> RetryToken:
        """Called after an attempt failed, for permission to make another.

        :param token_to_renew: the failed attempt's token.
        :param error: the exception that the code raised, or one that carries the failed response.
        :raises RetryError: if no further attempt is allowed.
        """
        ...

    def record_success(self, *, token: Any) -> None:
        """Called after an attempt succeeded.

        :param token: that attempt's token.
        """
        ...


@runtime_checkable
class SendPermits(Protocol):
    """The optional ability to hold attempts back: asked before each one, after the backoff (contract 9)."""

    def send_permit(self, *, token: Any, deadline: float | None, waited: float) -> object | None:
        """Return None to permit the attempt, or an object whose ``rest(clock)`` waits before the next question.

        :param token: the attempt's token.
        :param deadline: the moment, on the strategy's clock, past which no wait may last; None: no deadline.
        :param waited: seconds waited for this permit so far.
        :raises RetryError: if there will be no permit in time.
        """
        ...


@runtime_checkable
class RetryToken(Protocol):
    """The token that a strategy issues for each attempt."""

    @property
    def retry_count(self) -> int:
        """Attempts so far without the first: 0 for the first attempt."""
        ...

    @property
    def retry_delay(self) -> float:
        """Seconds to wait before the attempt."""
        ...


NEW = Standing(0.0)
"""The standing of an operation about which nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardRetryToken:
    """The token of the built-in strategies. It never changes, except for one private mark: that it was used.

    :param issuer: the strategy that made it.
    :param token_scope: whose quota the operation spends.
    :param retry_count: 0 for the first attempt.
    :param retry_delay: seconds to wait before the attempt.
    :param acquired: tokens that this retry took from the quota; a success gives them back.
    :param standing: the operation's record so far, as its quota counts it.
    :param terms: the operation's limits, by which the quota decides.
    :param waited: seconds that the operation waited for the service to be back, before this retry.
    :param why: the cause that ended that waiting, as a phrase.
    :param previous_delay: the computed backoff, for decorrelated jitter; None before the first retry.
    :param delay_source: ``"backoff"``, the name of the hint that made the delay longer, or ``"patience"`` for a last
        retry that is made late, because hardly anybody else asks the service.
    :param quota_before: tokens in the bucket before this retry was paid; None where there is no quota.
    :param quota_after: tokens in it afterwards.
    :param quota_source: which bucket answered, as in its snapshot; None where there is no quota.
    :param classification: the verdict that led to this retry.
    :param latency: seconds that the attempt took, once it succeeded.
    :param timeout: seconds that it was allowed; None: as long as it took.
    :param failures: the operation's failures by urllib3's kinds; counted for a translated ``Retry`` alone.
    """

    issuer: object = field(repr=False)
    token_scope: str | None = None
    retry_count: int = 0
    retry_delay: float = 0.0
    acquired: float = 0
    standing: Standing = field(default=NEW, repr=False)
    terms: Terms = field(default=Terms(), repr=False)
    waited: float = 0.0
    why: str = ""
    previous_delay: float | None = None
    delay_source: str = "backoff"
    quota_before: float | None = None
    quota_after: float | None = None
    quota_source: str | None = None
    classification: Classification | None = field(default=None, repr=False)
    failures: tuple[FailureKind, ...] = field(default=(), repr=False)
    latency: float = 0.0
    timeout: float | None = None
    _unused: list[None] = field(default_factory=[None].copy, repr=False, compare=False)

    def redeem(self, issuer: object) -> None:
        """Mark the token as used. Atomic: of two threads only one gets through.

        :raises TokenError: if it was used before, or if another strategy issued it.
        """
        if self.issuer is not issuer:
            raise TokenError(f"this token was issued by another strategy: {self.issuer!r}, not {issuer!r}")
        try:
            self._unused.pop()
        except IndexError:
            raise TokenError(
                "this token was used before: each token is good for one refresh_retry_token_for_retry "
                "or one record_success"
            ) from None

    def unredeem(self) -> None:
        """Take the mark back: the token was looked at, without a decision."""
        self._unused.append(None)


def redeemed(token: object, issuer: object) -> StandardRetryToken:
    """Mark a token as used, and return it; raise ``TokenError`` where that is not possible."""
    if not isinstance(token, StandardRetryToken):
        raise TokenError(f"this token was issued by another strategy: {token!r}")
    token.redeem(issuer)
    return token


@dataclass(frozen=True, slots=True)
class RetryContext:
    """The context that the adapter's errors carry in the attribute ``retry_context``.

    :param outcome: the outcome of the attempt.
    :param deadline: the moment, on the strategy's clock, by which any wait must end; None for no limit.
    :param options: the operation's ``retry_options``, or None.
    :param began: the start of its first attempt, on the strategy's clock; None: when its first token was made.
    :param before_waiting: called with the verdict before the operation waits for the service: it lets go of the failed
        attempt's connection and writes the attempt down. It returns False where the connection cannot be let go.
    """

    outcome: Outcome
    deadline: float | None = None
    options: OperationOptions | None = None
    began: float | None = None
    before_waiting: Callable[..., bool] | None = None


class ResponseError(Exception):
    """Carries a response to a strategy, which takes exceptions (contract 1). Never raised to a caller.

    It implements :class:`ErrorRetryInfo` and :class:`HasFault` for strategies that know nothing of HTTP. The adapter
    fills these in from the default classifiers.

    :param response: the response.
    :param retry_context: the rest of the decision's input.
    """

    is_retry_safe: bool | None = None
    retry_after: float | None = None
    is_throttling_error: bool = False
    is_timeout_error: bool = False

    def __init__(self, response: Response, retry_context: RetryContext) -> None:
        super().__init__(f"the server answered {response.status_code}")
        self.response = response
        self.request: PreparedRequest = response.request
        self.retry_context = retry_context

    @property
    def fault(self) -> Fault:
        """``"client"`` for a 4xx, ``"server"`` for a 5xx, None for anything else."""
        status = self.response.status_code
        return "client" if 400 <= status < 500 else "server" if status >= 500 else None


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


@dataclass(frozen=True, slots=True)
class StrategySnapshot:
    """A strategy at one moment.

    :param buckets: the quota of each scope that has spent any; empty where there is no quota.
    :param limiters: the rate limiter of each scope; empty but in adaptive mode.
    """

    buckets: Mapping[str | None, TokenBucketSnapshot] = field(default_factory=lambda: MappingProxyType({}))
    limiters: Mapping[str | None, RateLimiterSnapshot] = field(default_factory=lambda: MappingProxyType({}))


def rest_until_permitted(
    ask: Callable[..., Any], strategy: object, token: object, deadline: float | None, clock: Clock
) -> float:
    """Wait until a strategy permits an attempt; return the seconds that took."""
    began = clock.now()
    while True:
        waited = clock.now() - began
        wait = ask(token=token, deadline=deadline, waited=waited)
        if wait is None:
            return clock.now() - began
        if not hasattr(type(wait), "rest"):  # asking it without end would not be a wait (a Mock has any attribute)
            raise TypeError(f"send_permit of {strategy!r}: None or an object to rest on, not {wait!r}")
        if deadline is not None and clock.now() >= deadline:  # a foreign strategy need not look at it
            raise RetryError(f"{strategy!r} gave no send permit in time", stop_reason=StopReason.RATE_LIMITED)
        wait.rest(clock)
