"""The strategies of the Smithy papers (contract 1): tokens by hand.

The machine's ``decide`` decides, as for every send; the loop is the caller's. They need no HTTP library,
and can be driven around any block of code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeGuard, runtime_checkable

from ..classifiers.fold import Classification
from ..classifiers.outcome import Fault, Outcome
from ..clock import SYSTEM_CLOCK, Clock, wait_in
from ..config.retry_config import RetryConfig, RetryOptions
from ..config.retry_options import NOTHING, OperationOptions, current_options
from ..errors import RetryConfigError, RetryError, StopReason, TokenError
from .line import UNLIMITED, Progress
from .machine import Context, decide
from .policy import Policy
from .port import Feature
from .quota import RetryQuota, TokenBucketSnapshot
from .scope import Scope, Scopes, quotas_of
from .steps import Again, Join, Stop

if TYPE_CHECKING:
    from requests import PreparedRequest, Response
    from typing_extensions import Self, Unpack

    from .steps import Steps
else:  # pragma: no branch - for typing.get_type_hints; strategies know no HTTP library
    from ..typing_names import Self, Unpack

    PreparedRequest = Response = Any


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

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Exception) -> RetryToken:
        """Called after an attempt failed, for permission to make another.

        :param token_to_renew: the failed attempt's token.
        :param error: the exception that the code raised, or one that carries the failed response.
        :raises RetryError: if no further attempt is allowed.
        """

    def record_success(self, *, token: Any) -> None:
        """Called after an attempt succeeded.

        :param token: that attempt's token.
        """


@runtime_checkable
class RetryToken(Protocol):
    """The token that a strategy issues for each attempt."""

    @property
    def retry_count(self) -> int:
        """Attempts so far without the first: 0 for the first attempt."""

    @property
    def retry_delay(self) -> float:
        """Seconds to wait before the attempt."""


@dataclass(frozen=True, kw_only=True)
class StandardRetryToken:
    """The token of the built-in strategies. It never changes, except for one private mark: that it was used.

    :param issuer: the strategy that made it.
    :param token_scope: whose quota the operation spends.
    :param retry_delay: seconds to wait before the attempt.
    :param progress: the operation's record so far.
    :param delay_source: ``"backoff"``, the name of the hint that made the delay longer, or ``"patience"`` for a last
        retry that is made late, because hardly anybody else asks the service.
    :param classification: the verdict that led to this retry.
    """

    issuer: object = field(repr=False)
    token_scope: str | None = None
    retry_delay: float = 0.0
    progress: Progress = field(default=Progress(0.0), repr=False)
    delay_source: str = "backoff"
    classification: Classification | None = field(default=None, repr=False)
    _unused: list[None] = field(default_factory=[None].copy, repr=False, compare=False)

    @property
    def retry_count(self) -> int:
        """Attempts so far without the first."""
        return self.progress.retries

    @property
    def acquired(self) -> float:
        """The tokens that this retry took from the quota; a success gives them back."""
        return self.progress.acquired

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


@dataclass(frozen=True)
class RetryContext:
    """The context that the adapter's errors carry in the attribute ``retry_context``.

    :param outcome: the outcome of the attempt.
    :param deadline: the moment, on the strategy's clock, by which any wait must end; None for no limit.
    :param options: the operation's ``retry_options``, or None.
    :param began: the start of its first attempt, on the strategy's clock; None: when its first token was made.
    """

    outcome: Outcome
    deadline: float | None = None
    options: OperationOptions | None = None
    began: float | None = None


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


def context_of(error: Any) -> RetryContext:
    """Return the context that an error carries, or a new one.

    A new one includes the response that the exception carries, as those of ``raise_for_status`` do.
    """
    context = getattr(error, "retry_context", None)
    if isinstance(context, RetryContext):
        return context
    response = getattr(error, "response", None)
    if not isinstance(getattr(response, "status_code", None), int) or not hasattr(response, "headers"):
        return RetryContext(Outcome(error=error))
    # An unread body stays unread: reading it could take long, and the caller may want to stream it.
    unread = getattr(response, "_content", None) is False
    return RetryContext(Outcome(error=error, response=response, stream=unread))


class StrategySnapshot(NamedTuple):
    """A strategy at one moment.

    :param buckets: the quota of each scope that was used; empty where there is no quota.
    :param limiters: the rate limiter of each scope; empty but in adaptive mode.
    """

    buckets: Mapping[str | None, TokenBucketSnapshot] = MappingProxyType({})
    limiters: Mapping[str | None, Any] = MappingProxyType({})


class StandardRetryStrategy:
    """The standard mode of the AWS SDKs, with a quota that rides out outages.

    Each scope has a bucket of the retries of one operation, filled by first-try successes and enlarged by retries that
    pay. An operation that
    finds it empty waits until a success of another one proves that the service is back, as long as ``patience`` and the
    deadline allow. With ``retry_spec="2.1"`` or ``"2.0"``, with AWS settings or a number as ``quota``, each scope has
    the published bucket instead: a retry has its price, and an empty bucket means no retries.

    :param config: a :class:`RetryConfig`; or give options by name.
    :param clock: tells the time, and waits.
    :param options: any option of :class:`RetryConfig`, on top of ``config``.
    :raises RetryConfigError: for a bad option, and for the ``mode`` of another strategy.
    """

    mode: ClassVar[str] = "standard"
    """The value of the option ``mode`` that stands for this class."""
    own_methods: ClassVar[Mapping[str, Callable[..., Any]]]
    """The methods by which it decides, as they are here: the adapter need not call them, the machine does the same."""

    def __init__(
        self,
        *,
        config: RetryConfig | None = None,
        clock: Clock = SYSTEM_CLOCK,
        **options: Unpack[RetryOptions],
    ) -> None:
        base = RetryConfig() if config is None else config
        if not isinstance(base, RetryConfig):
            raise RetryConfigError("config", config, "code", "a RetryConfig is allowed")
        self.clock = clock
        self._go_by(self._in_own_mode(base.replace(**options)))
        self.scopes: Scopes = self._new_scopes()

    def _go_by(self, config: RetryConfig) -> None:
        self.config: RetryConfig = config
        # Imported here: features are what a program may do without.
        from ..features.table import judging_features

        self.policy: Policy = Policy.of(config, judging_features(config, self.clock))

    def _new_scopes(self) -> Scopes:
        return Scopes(quotas_of(self.config, self.clock), self.clock)

    def _in_own_mode(self, config: RetryConfig) -> RetryConfig:
        """Return the config with the mode of this strategy: its class decides, whatever the environment says."""
        if config.mode == self.mode:
            return config
        source, name = config.source("mode"), type(self).__name__
        if source == "code":
            raise RetryConfigError("mode", config.mode, source, f"{name} is mode {self.mode!r}, no other is allowed")
        return config.replace_from({"mode": f"strategy {name}"}, mode=self.mode)

    def under(self, config: RetryConfig) -> Self:
        """Return a strategy with another config and this one's scopes, so that spent tokens stay spent.

        :param config: with the same options about quotas and limiters.
        """
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._go_by(config)
        return other

    @property
    def max_attempts(self) -> int | None:
        """Most requests that an operation sends; None: no number says so."""
        most = self.policy.most_attempts
        return None if most == UNLIMITED else most

    def features(self) -> tuple[Feature, ...]:
        """Return what it adds to the sending of an adapter (a port of features)."""
        return ()

    def bucket(self, token_scope: str | None = None) -> Any:
        """Return the bucket of a scope; None where there is no quota."""
        return getattr(self.scopes.get(token_scope).quota, "bucket", None)

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> StandardRetryToken:
        """Return a token for the first attempt: always given, without delay, and free.

        :param token_scope: operations with the same scope share a quota.
        """
        now = self.clock.now()
        with self.scopes.use(token_scope) as scope:
            scope.quota.began(now)
        return StandardRetryToken(issuer=self, token_scope=token_scope, progress=Progress(now))

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Exception) -> StandardRetryToken:
        """Return a token for another attempt, or raise the reason why there is none.

        In this order (contract 2.6): is a retry indicated, may the request be sent again, are attempts left, is the
        server's hint bearable, is there time, is there quota. A refusal costs no quota. Where the quota lets operations
        wait, it may take a while: see ``patience``.

        :param token_to_renew: the failed attempt's token.
        :param error: the exception that was raised, or one that carries the response.
        :raises RetryError: with the first rule that said no.
        :raises TokenError: for a token that was used before or is another strategy's.
        """
        token = redeemed(token_to_renew, self)
        with self.scopes.use(token.token_scope) as scope:
            decision = self._decide(token, context_of(error), scope)
        if isinstance(decision, Stop):
            raise RetryError(
                decision.why,
                stop_reason=decision.reason,
                delay=decision.delay or None,
                classification=decision.verdict,
            )
        return StandardRetryToken(
            issuer=self,
            token_scope=token.token_scope,
            retry_delay=decision.delay,
            progress=decision.progress,
            delay_source=decision.source,
            classification=decision.verdict,
        )

    def _decide(self, token: StandardRetryToken, given: RetryContext, scope: Scope) -> Again | Stop:
        options, deadline = given.options, given.deadline
        if options is None:
            options = current_options.get()
            deadline = deadline if options.deadline is None else options.deadline.on(self.clock).at
        bounds, told = self.policy.bounds(options, deadline), self.verdicts(scope)
        context = Context(self.policy, scope.quota, scope.quota.succeeded, options, bounds, token.token_scope, told)
        progress, wall = token.progress, self.clock.wall()
        if given.began is not None and not progress.retries:
            progress = progress._replace(began=given.began)
        outcome = replace(given.outcome, ended=self.clock.now(), wall=wall)
        decision: Again | Stop | None = None
        try:
            decision = drive(decide(context, progress, outcome), self.clock)
        finally:
            if decision is None:
                token.unredeem()  # a classifier raised: nothing was decided
        if isinstance(decision, Again):
            return decision
        if decision.reason is StopReason.SUCCESS:
            token.unredeem()  # it was only looked at, and is still good for record_success
            return decision._replace(reason=StopReason.NOT_RETRYABLE, why=StopReason.NOT_RETRYABLE.value)
        return decision

    def verdicts(self, scope: Scope) -> tuple[Callable[[Outcome, Classification], object], ...]:
        """Return what is told of each verdict on an attempt in a scope."""
        return ()

    def record_success(self, *, token: RetryToken) -> None:
        """Record that an attempt succeeded: the quota gets back what its retries took, and who waits may ask again.

        :param token: that attempt's token.
        :raises TokenError: for a token that was used before or is another strategy's.
        """
        own = redeemed(token, self)
        bounds = self.policy.bounds(NOTHING, None)
        with self.scopes.use(own.token_scope) as scope:
            scope.quota.succeeded(own.progress, bounds, self.clock.now())
            self.note_success(scope)

    def note_success(self, scope: Scope) -> None:
        """Record a success besides."""

    def snapshot(self) -> StrategySnapshot:
        """Return an immutable view of the strategy's state; a scope never used is not in it."""
        now = self.clock.now()
        seen = {name: scope.quota.snapshot(now) for name, scope in self.scopes}
        return StrategySnapshot(MappingProxyType({name: held for name, held in seen.items() if held is not None}))

    def forget(self) -> None:
        """Begin anew in every scope, as if nobody had ever sent anything. Operations that wait go at once."""
        self.scopes.forget()

    # A copy keeps the policy and starts with a full quota of its own (contract 11.1).

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("scopes", "policy")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._go_by(self.config)
        self.scopes = self._new_scopes()

    def __copy__(self) -> Any:
        state = self.__getstate__()
        if isinstance(self.config.quota, RetryQuota):
            state["config"] = self.config.replace(quota=copy.copy(self.config.quota))
        other = type(self).__new__(type(self))
        other.__setstate__(state)
        return other

    def __repr__(self) -> str:
        return f"<{type(self).__name__} max_attempts={self.max_attempts}>"


METHODS = ("acquire_initial_retry_token", "refresh_retry_token_for_retry", "record_success", "send_permit")
"""The methods by which a strategy decides; the last one is optional."""
StandardRetryStrategy.own_methods = {name: vars(StandardRetryStrategy)[name] for name in METHODS[:3]}


def is_built_in(strategy: object) -> TypeGuard[StandardRetryStrategy]:
    """Return True if a strategy's methods are ours: not those of a subclass, nor patched."""
    if not isinstance(strategy, StandardRetryStrategy):
        return False
    found = {name: getattr(strategy, name, None) for name in METHODS}
    ours = type(strategy).own_methods
    return all(method is None or getattr(method, "__func__", None) is ours.get(name) for name, method in found.items())


def drive(steps: Steps, clock: Clock) -> Any:
    """Take the steps of a decision without a driver, and return its result: ask and wait, as they say.

    :param steps: of a strategy's token, or of one that a program drives by hand.
    """
    answer: Any = None
    try:
        while True:
            step = steps.send(answer)
            answer = wait_in(step.place, clock) if isinstance(step, Join) else step.function(*step.arguments)  # type: ignore[union-attr]
    except StopIteration as ended:
        return ended.value
    finally:
        steps.close()


class SimpleRetryStrategy(StandardRetryStrategy):
    """Retries as the classifiers say, up to ``max_attempts``, with backoff; no quota, no limiter.

    :param config: a :class:`RetryConfig`; or give options by name, as for :class:`StandardRetryStrategy`.
    :raises RetryConfigError: for a bad option, and for a quota.
    """

    def __init__(self, *, config: RetryConfig | None = None, **rest: Any) -> None:
        quota = rest.pop("quota", None)
        if quota is not None:
            raise RetryConfigError("quota", quota, "code", f"{type(self).__name__} has none, so None is allowed")
        super().__init__(config=config, quota=None, **rest)
