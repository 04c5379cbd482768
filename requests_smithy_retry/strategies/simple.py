"""Classify, count, wait: the decision of contract 2.6 without a quota. Pure but for the clock it reads."""

from __future__ import annotations

import copy
import sys
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeGuard

from ..checks import safe_repr
from ..classifiers.actions import ErrorKind, RetryForbidden, RetryIndicated, RetryReason
from ..classifiers.fold import Classification, classify_operation
from ..classifiers.outcome import Outcome
from ..classifiers.protocol import RetryClassifier, in_order, sees_successes
from ..clock import SYSTEM_CLOCK, Clock
from ..config.retry_config import RetryConfig, RetryOptions
from ..config.retry_options import NOTHING, OperationOptions, options_in_force, patience_given
from ..config.urllib3_rules import heeds_hints, kind_of
from ..errors import RetryConfigError, RetryError, StopReason
from ..forgetting import forgets_with_all
from ..pacing.announced import DIALECTS, announced_in, dialects_of, limit_hint
from ..pacing.backoff import ExponentialRetryBackoffStrategy, RetryBackoffStrategy
from ..pacing.gate import Gates
from ..pacing.server_hints import AMZ_HEADER, Hint, delay_for, is_too_long, read_hint, until_text
from ..quotas.bucket import RetryQuota
from ..quotas.line import UNLIMITED, Standing, Terms
from .first_tries import NOTHING_TO_TELL, FirstTryHook, remember
from .protocol import RetryContext, RetryToken, StandardRetryToken, StrategySnapshot, redeemed

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


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


def context_around(error: Exception, clock: Clock) -> RetryContext:
    """Return the context that an error carries; without an adapter, with the options of the block around."""
    context = context_of(error)
    around = options_in_force() if context.options is None else None
    if around is None:
        return context
    deadline = None if around.deadline is None else around.deadline.on(clock).at
    return replace(context, deadline=deadline, options=around)


OWN_RULE = "classifier"
"""The source of a wait for which the program itself asks, by a classifier."""
BOOKS = frozenset({"busy", "hooks", "gates", "_quotas", "_has_own_buckets", "_limiters"})
"""The attributes that a copy of a strategy has anew."""


class SimpleRetryStrategy:
    """Retries as the classifiers say, up to ``max_attempts``, with backoff; no quota, no limiter.

    :param config: the policy; or give options by name.
    :param backoff_strategy: computes delays in place of the configured backoff, for every kind of failure.
    :param clock: tells the time, for deadlines and dates.
    :param options: any option of :class:`RetryConfig`, on top of ``config``.
    :raises RetryConfigError: for a bad option, for the ``mode`` of another strategy, and for a quota.
    """

    mode: ClassVar[str] = "standard"
    """The value that the option ``mode`` has in the config."""

    busy: set[Any]
    """While it is empty, first attempts need nothing of it."""

    hooks: dict[str, FirstTryHook]
    """The hooks for first-try successes, by the origin of the URL."""

    gates: Gates | None
    """Hold sends back while their server has announced that it would refuse them; None: nothing does."""

    def __init__(
        self,
        *,
        config: RetryConfig | None = None,
        backoff_strategy: RetryBackoffStrategy | None = None,
        clock: Clock = SYSTEM_CLOCK,
        **options: Unpack[RetryOptions],
    ) -> None:
        base = RetryConfig() if config is None else config
        if not isinstance(base, RetryConfig):
            raise RetryConfigError("config", config, "code", "a RetryConfig is allowed")
        given: object = backoff_strategy
        computes = not isinstance(given, type) and callable(getattr(given, "compute_next_backoff_delay", None))
        if given is not None and not computes:
            allowed = "an object with compute_next_backoff_delay is allowed"
            raise RetryConfigError("backoff_strategy", backoff_strategy, "code", allowed)
        self.clock = clock
        self._go_by(self._with_own_quota(self._in_own_mode(base.replace(**options))), backoff_strategy)
        self._open_books()
        forgets_with_all(self)

    def _go_by(self, config: RetryConfig, backoff_strategy: RetryBackoffStrategy | None = None) -> None:
        self.config: RetryConfig = config
        given, bases = backoff_strategy, (config.transient_base, config.throttling_base)
        transient, throttling = (config.backoff(base) if given is None else given for base in bases)
        self.backoff_strategy: RetryBackoffStrategy = transient
        self.throttling_backoff_strategy: RetryBackoffStrategy = throttling
        self.classifiers: tuple[RetryClassifier, ...] = classifiers_of(config)
        self.sees_successes: bool = any(map(sees_successes, self.classifiers))
        self._heeds_hints: bool = heeds_hints(config.urllib3_rules)

    def under(self, config: RetryConfig) -> Self:
        """Return a strategy with another config and this one's quotas and limiters, so that spent tokens stay spent.

        :param config: with the same options about quotas and limiters.
        """
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._go_by(config)
        if not other._heeds_hints:
            other.gates = None
        forgets_with_all(other)
        return other

    def _in_own_mode(self, config: RetryConfig) -> RetryConfig:
        """Return the config with the mode of this strategy: its class decides, whatever the environment says."""
        if config.mode == self.mode:
            return config
        source = config.source("mode")
        name = type(self).__name__
        if source == "code":
            raise RetryConfigError("mode", config.mode, source, f"{name} is mode {self.mode!r}, no other is allowed")
        return config.replace_from({"mode": f"strategy {name}"}, mode=self.mode)

    def _with_own_quota(self, config: RetryConfig) -> RetryConfig:
        """Return the config with the quota that this strategy has: none, whatever the environment says."""
        if config.quota is None:
            return config
        if config.is_given("quota") and config.source("quota") == "code":
            raise RetryConfigError("quota", config.quota, "code", f"{type(self).__name__} has none, so None is allowed")
        return config.replace_from({"quota": "code"}, quota=None)

    def _open_books(self) -> None:
        """Begin to keep what a copy does not take over."""
        dialects = dialects_of(self.config.pacing) if self._heeds_hints else None
        self.busy = set()
        self.hooks = {}
        self.gates = None if dialects is None else Gates(self.clock, dialects, self.busy, self.hooks)

    def forget(self) -> None:
        """Begin anew: quotas are full, nobody is known to be down, and no limit is known to be used up.

        Operations under way go on. What a subclass learns by itself, it forgets by overriding this.
        """
        self.hooks.clear()
        if self.gates is not None:
            self.gates.forget()

    @property
    def max_attempts(self) -> int | None:
        """Most requests that an operation sends; None: no number says so."""
        most = self.config.most_attempts
        return None if most == UNLIMITED else most

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> StandardRetryToken:
        """Return a token for the first attempt: always given, without delay, and free.

        :param token_scope: operations with the same scope share a quota.
        """
        return StandardRetryToken(issuer=self, token_scope=token_scope, standing=Standing(self.clock.now()))

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
        context = context_around(error, self.clock)
        try:
            return self._renewed(token, context)
        except RetryError:
            # A final failure gives nothing back, and operations that wait for the tokens must know.
            if token.standing.loan is not None and not context.outcome.is_success:
                token.standing.loan.write_off()
            raise

    def _renewed(self, token: StandardRetryToken, context: RetryContext) -> StandardRetryToken:
        options = context.options or NOTHING
        classification = self._classify(token, context.outcome, options)
        reason = self._reason(classification, context, token)
        retry = token.retry_count + 1
        terms = self._terms(options, context.deadline)
        if self._is_last(retry, reason, context.outcome, terms):
            refuse(StopReason.MAX_ATTEMPTS, None, classification)
        failures, rules = token.failures, self.config.urllib3_rules
        if rules is not None:
            failures = (*failures, kind_of(context.outcome))
            exceeded = rules.exceeded(failures)
            if exceeded is not None:
                refuse(StopReason.MAX_ATTEMPTS, exceeded, classification)
        backoff = self._backoff(reason.kind, retry, token.previous_delay)
        hint = self._hint(reason, context.outcome, classification, backoff)
        delay = self._delay(hint, backoff, token, context, classification)
        if context.deadline is not None and self.clock.now() + delay >= context.deadline:
            refuse(StopReason.DEADLINE, f"the next wait of {delay:.3g} s would not end in time", classification)
        renewed = StandardRetryToken(
            issuer=self,
            token_scope=token.token_scope,
            retry_count=retry,
            retry_delay=delay,
            standing=token.standing,
            terms=terms,
            previous_delay=backoff,
            delay_source=hint.source if hint is not None and delay != backoff else "backoff",
            classification=classification,
            failures=failures,
        )
        return self._paid(renewed, reason, context, 0.0 if hint is None else delay)

    def record_success(self, *, token: RetryToken) -> None:
        """Take note that an attempt succeeded: the quota gets back what its retries took, and who waits may ask again.

        :param token: that attempt's token.
        :raises TokenError: for a token that was used before or is another strategy's.
        """
        redeemed(token, self)

    def gave_up(self, token_scope: str | None, *, is_outage: bool) -> int:  # noqa: ARG002
        """Count an operation that gave up in an outage of its service, and return its number; 0: no outage is known.

        :param token_scope: the operation's.
        :param is_outage: it waited for the service in vain, so an outage is known from now on.
        """
        return 0

    def snapshot(self) -> StrategySnapshot:
        """Return an immutable view of the strategy's state."""
        return StrategySnapshot()

    def _paid(
        self,
        token: StandardRetryToken,
        reason: RetryReason,  # noqa: ARG002
        context: RetryContext,  # noqa: ARG002
        hint: float,  # noqa: ARG002
    ) -> StandardRetryToken:
        """Return a retry's token as the quota lets it have; without a quota there is nothing to pay.

        :param hint: seconds that the server asked for; 0 if it did not.
        """
        return token

    def _terms(self, options: OperationOptions, deadline: float | None) -> Terms:
        most = self.config.most_attempts if options.max_attempts is None else options.max_attempts
        patience = self.config.patience if options.patience is None else options.patience
        return Terms(most, patience, deadline)

    def _is_last(self, attempts: int, reason: RetryReason, outcome: Outcome, terms: Terms) -> bool:
        """Return True if no attempt may follow this many."""
        if terms.max_attempts is not None:
            # Credentials may have been renewed for one of the attempts, which no strategy was asked about.
            return max(attempts, outcome.attempt) >= terms.max_attempts
        return attempts > terms.retries and self._counts_attempts(reason, outcome, terms)

    def _counts_attempts(self, reason: RetryReason, outcome: Outcome, terms: Terms) -> bool:  # noqa: ARG002
        """Return True if each attempt counts against ``max_attempts``; a quota may count by itself."""
        return True

    def first_try_hook(self, scope: str, url: str | None = None) -> FirstTryHook:  # noqa: ARG002
        """Return the hook for first-try successes in a scope, which tells its quota and its limiter.

        :param url: have it found in ``hooks`` by the origin of this URL; None: the next one asks again.
        """
        if url is not None:
            remember(self.hooks, url, NOTHING_TO_TELL)
        return NOTHING_TO_TELL

    def _classify(self, token: StandardRetryToken, outcome: Outcome, options: OperationOptions) -> Classification:
        if options.enabled is False:
            raise RetryError(stop_reason=StopReason.DISABLED)
        replaced = options.default_classifiers is False
        try:
            return classify_operation(self.classifiers, outcome, options.classifiers, replaced=replaced)
        except BaseException:
            token.unredeem()
            raise

    def _reason(self, classification: Classification, context: RetryContext, token: StandardRetryToken) -> RetryReason:
        action = classification.action
        if isinstance(action, RetryIndicated):
            return action.reason
        if isinstance(action, RetryForbidden):
            refuse(action.stop_reason, action.why, classification)
        if context.outcome.is_success:
            # It was only looked at: the token is still good for record_success.
            token.unredeem()
        raise RetryError(stop_reason=StopReason.NOT_RETRYABLE, classification=classification)

    def _backoff(self, kind: ErrorKind, retry: int, previous: float | None) -> float:
        strategy = self.throttling_backoff_strategy if kind is ErrorKind.THROTTLING else self.backoff_strategy
        if takes_previous_delay(strategy):
            delay = strategy.compute_next_backoff_delay(retry, previous)  # type: ignore[call-arg]
        else:
            delay = strategy.compute_next_backoff_delay(retry)
        if not is_seconds(delay) or delay < 0:
            allowed = "a finite number of seconds, 0 or more, is allowed"
            raise TypeError(f"compute_next_backoff_delay of {strategy!r} returned {safe_repr(delay)}: {allowed}")
        return delay

    def _delay(
        self,
        hint: Hint | None,
        backoff: float,
        token: StandardRetryToken,
        context: RetryContext,
        classification: Classification,
    ) -> float:
        """Return the wait before a retry; refuse one that a server asks for, if a given patience has no room for it."""
        if hint is None:
            return backoff
        delay, patience = delay_for(backoff, hint), patience_given(self.config, context.options)
        if patience is None or not hint.seconds or hint.source == OWN_RULE:
            return delay
        began, why = token.standing.began if context.began is None else context.began, ""
        if min(hint.seconds, delay) > patience:  # x-amz-retry-after is shortened to the latter
            why = f"patience is {patience:g} s"
        elif self.clock.now() + delay > Terms(None, patience).in_all(began):
            why = f"all waits must be over {2 * patience:g} s after the call began, twice the patience"
        if why:
            until = until_text(hint, self.clock.wall())
            why = f"{hint.source} asks for {hint.seconds:.15g} s, {why}: allowed again at {until}"
            refuse(StopReason.HINT_TOO_LONG, why, classification)
        return delay

    def _hint(
        self, reason: RetryReason, outcome: Outcome, classification: Classification, backoff: float
    ) -> Hint | None:
        """Return the hint that makes the longest delay: the classifier's floor, or that of the response's headers."""
        hints, wall = [], self.clock.wall()
        if reason.retry_after is not None and (self._heeds_hints or reason.retry_after_source != AMZ_HEADER):
            hints.append(Hint(reason.retry_after, reason.retry_after_source or OWN_RULE))
        header = self._header_hint(reason, outcome, wall) if self._heeds_hints else None
        if header is not None:
            hints.append(header)
        limit = self.config.max_retry_after
        for hint in hints:
            if is_too_long(hint, limit):
                why = f"{hint.source} asks for {hint.seconds:.15g} s, max_retry_after is {limit:g} s"
                refuse(StopReason.HINT_TOO_LONG, f"{why}: allowed again at {until_text(hint, wall)}", classification)
        return max(hints, key=lambda hint: delay_for(backoff, hint), default=None)

    def _header_hint(self, reason: RetryReason, outcome: Outcome, wall: float) -> Hint | None:
        """Return the hint of the response's headers: one for this request, or else that of an announced limit."""
        if outcome.response is None:
            return None
        headers = outcome.response.headers
        hint = read_hint(headers, wall=wall)
        if hint is not None or reason.kind is not ErrorKind.THROTTLING:
            return hint
        dialects = dialects_of(self.config.pacing) or DIALECTS
        return limit_hint(announced_in(headers, wall=wall, dialects=dialects))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in BOOKS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open_books()
        forgets_with_all(self)

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


def classifiers_of(config: RetryConfig) -> tuple[RetryClassifier, ...]:
    """Return the classifiers that a config asks for, in order."""
    if not config.default_classifiers:
        return in_order(config.classifiers)
    # Imported here: the strategy layer knows no HTTP library, only its default classifiers do.
    from .default_classifiers import default_classifiers

    return in_order((*default_classifiers(config), *config.classifiers))


def is_built_in(strategy: object, *methods: str) -> bool:
    """Return True if a strategy's methods of these names are ours: not those of a subclass, nor patched."""
    own = [getattr(strategy, name) for name in methods if hasattr(strategy, name)]
    package = str(__package__).partition(".")[0]
    return isinstance(strategy, SimpleRetryStrategy) and all(
        str(getattr(method, "__module__", None)).partition(".")[0] == package for method in own
    )


def is_seconds(value: Any) -> TypeGuard[float]:
    """Return True for a finite real number of any type, numpy's among them, but not for a bool."""
    number_of_any_type = isinstance(value, Real) and not isinstance(value, bool)
    return number_of_any_type and bool(abs(value) <= sys.float_info.max)


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


def takes_previous_delay(strategy: RetryBackoffStrategy) -> bool:
    """Return True if a backoff strategy takes the previous delay as well."""
    compute = strategy.compute_next_backoff_delay
    if getattr(compute, "__func__", None) is ExponentialRetryBackoffStrategy.compute_next_backoff_delay:
        return True

    import inspect  # slow to import, and seldom needed

    try:
        parameters = inspect.signature(compute).parameters
    except (TypeError, ValueError):  # a callable written in C may have no signature
        return False
    return "previous_delay" in parameters


def refuse(stop_reason: StopReason, why: str | None, classification: Classification) -> NoReturn:
    raise RetryError(why or "", stop_reason=stop_reason, classification=classification)
