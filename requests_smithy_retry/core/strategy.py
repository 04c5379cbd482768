"""The strategies of the Smithy papers (contract 1). They decide for each send of an adapter, and for any block of code.

They need no HTTP library, and can be driven by hand.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from ..checks import safe_repr
from ..classifiers.actions import ErrorKind, RetryReason
from ..classifiers.fold import Classification
from ..classifiers.outcome import Outcome
from ..clock import SYSTEM_CLOCK, Clock, checked_clock
from ..config.retry_config import DEFAULTS, RetryConfig, RetryOptions
from ..errors import RetryConfigError, RetryError, StopReason, TokenError, is_unresolved
from ..observing.log import log_back
from .attempt import AttemptFailed
from .health import had_time, shows_failure
from .policy import Delay, Policy, TooLong, is_seconds, leaves_time
from .quota import Payment, Quota, Refused, RetryQuota, TokenBucketSnapshot
from .rules import RetryKind, is_answer, is_last, kind_of, no_poll, refusal, too_late, too_long
from .scope import Scope, Scopes, quotas_of
from .server_hints import Hint
from .wait_queue import UNLIMITED, Bounds, Failure, Progress

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack
else:  # pragma: no branch - for typing.get_type_hints
    from ..typing_names import Self, Unpack


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

    def refresh_retry_token_for_retry(self, *, token_to_renew: Any, error: Any) -> RetryToken:
        """Called after an attempt failed, for permission to make another.

        :param token_to_renew: the failed attempt's token.
        :param error: an :class:`AttemptFailed`; or, where a program drives the strategy by hand, the exception that its
            code raised.
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


@dataclass(frozen=True, init=False)
class StandardRetryToken:
    """The token of the built-in strategies. It never changes, except for two private marks: its attempt was sent, and
    it was used.

    :param issuer: the strategy that made it.
    :param scope: whose quota the operation spends.
    :param retry_delay: seconds to wait before the attempt.
    :param progress: the operation's record so far.
    :param delay_source: ``"backoff"``, the name of the hint that made the delay longer, or ``"patience"`` for a last
        retry that is made late, because the client sends the service hardly anything else.
    :param classification: the verdict that led to this retry.
    :param payment: for this retry, from a bucket; None: it cost nothing.
    :param line_why: the event that ended the wait for this token, as a phrase; empty if there was none.
    """

    issuer: StandardRetryStrategy = field(repr=False)
    scope: Scope = field(repr=False)
    retry_delay: float
    progress: Progress = field(repr=False)
    delay_source: str
    classification: Classification | None = field(repr=False)
    payment: Payment | None = field(repr=False)
    line_why: str = field(repr=False)
    _marks: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        *,
        issuer: StandardRetryStrategy,
        scope: Scope,
        progress: Progress,
        retry_delay: float = 0.0,
        delay_source: str = "backoff",
        classification: Classification | None = None,
        payment: Payment | None = None,
        line_why: str = "",
    ) -> None:
        # All at once: each request makes a token, and the usual constructor of a frozen dataclass takes five times as
        # long.
        vars(self).update(
            issuer=issuer,
            scope=scope,
            retry_delay=retry_delay,
            progress=progress,
            delay_source=delay_source,
            classification=classification,
            payment=payment,
            line_why=line_why,
            _marks={"unused": True},
        )

    @property
    def token_scope(self) -> str | None:
        """The name of the scope whose quota the operation spends."""
        return self.scope.name

    @property
    def retry_count(self) -> int:
        """Attempts so far without the first."""
        return self.progress.retries + self.progress.polls

    @property
    def acquired(self) -> float:
        """The tokens that this retry took from the quota; a success gives them back."""
        return self.progress.acquired

    def unredeem(self) -> None:
        """Mark the token as unused again: it was looked at, without a decision."""
        self._marks["unused"] = True

    def note_sent(self, at: float, allowed: float | None) -> None:
        """Record when the successful attempt was sent, for :meth:`StandardRetryStrategy.record_success`.

        :param at: the moment, on the strategy's clock.
        :param allowed: seconds that it was allowed; None: as long as it took.
        """
        self._marks["sent"] = at, allowed

    @property
    def sent(self) -> tuple[float, float | None] | None:
        """When its attempt was sent, and the seconds that it was allowed; None: unknown."""
        return self._marks.get("sent")

    def give_back(self) -> None:
        """Give back what this retry cost, because it is not sent, unless the token was used already."""
        if self._marks.pop("unused", None) is None:
            return
        self.scope.quota.unsent(self.progress)


def redeemed(token: object, issuer: object) -> StandardRetryToken:
    """Mark a token as used, and return it. Atomic: of two threads only one gets through.

    :raises TokenError: if it was used before, or if another strategy issued it.
    """
    if not isinstance(token, StandardRetryToken):
        raise TokenError(f"this token was issued by another strategy: {token!r}")
    if token.issuer is not issuer:
        raise TokenError(f"this token was issued by another strategy: {token.issuer!r}, not {issuer!r}")
    try:
        del token._marks["unused"]
    except KeyError:
        raise TokenError(
            "this token was used before: each token is good for one refresh_retry_token_for_retry or one record_success"
        ) from None
    return token


def delay_of(token: Any, strategy: object) -> float:
    """Return the delay that a token asks for, in seconds; None, as in the published request loop, is 0 s."""
    try:
        delay = token.retry_delay
    except AttributeError as error:
        what = "a token with a retry_delay is allowed, or RetryError is to be raised"
        raise TypeError(f"{strategy!r} returned {safe_repr(token)}: {what}") from error
    if delay is None or delay == 0:
        return 0.0
    if not is_seconds(delay) or delay < 0:
        shown = safe_repr(delay)
        raise TypeError(
            f"retry_delay={shown} of a token of {strategy!r}: a finite number of seconds, 0 or more, or None is allowed"
        )
    return delay


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
    pay off. An operation that finds it empty waits until another one's success proves that the service is back, as long
    as ``patience`` and the deadline allow. With ``retry_spec="2.1"`` or ``"2.0"``, with AWS settings or a number as
    ``quota``, each scope has the published bucket instead: a retry has its price, and an empty bucket means no retries.

    :param config: a :class:`RetryConfig`; or give options by name.
    :param clock: tells the time, and waits.
    :param options: any option of :class:`RetryConfig`, on top of ``config``.
    :raises RetryConfigError: for a bad option, and for the ``mode`` of another strategy.
    """

    mode: ClassVar[str] = "standard"
    """The value of the option ``mode`` that stands for this class."""

    # Private names have two underscores, so that a subclass may use any name with one.

    def __init__(
        self,
        *,
        config: RetryConfig | None = None,
        clock: Clock = SYSTEM_CLOCK,
        **options: Unpack[RetryOptions],
    ) -> None:
        base = DEFAULTS if config is None else config
        if not isinstance(base, RetryConfig):
            raise RetryConfigError("config", config, "code", "a RetryConfig is allowed")
        self.clock: Clock = checked_clock(clock)
        self.__go_by(self.__in_own_mode(base.replace(**options)))
        self.scopes: Scopes = self.__new_scopes()

    def __go_by(self, config: RetryConfig) -> None:
        self.config: RetryConfig = config
        # Imported here: a program may do without features.
        from ..features.table import judging_features

        self.policy: Policy = Policy.of(config, judging_features(config, self.clock))

    def __new_scopes(self) -> Scopes:
        return Scopes(quotas_of(self.config, self.clock), self.clock)

    def __in_own_mode(self, config: RetryConfig) -> RetryConfig:
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
        other.__go_by(config)
        return other

    @property
    def max_attempts(self) -> int | None:
        """The most requests that an operation sends; None: no number limits them."""
        most = self.policy.most_attempts
        return None if most == UNLIMITED else most

    def bucket(self, token_scope: str | None = None) -> Any:
        """Return the bucket of a scope; None where there is no quota."""
        return self.scopes.get(token_scope).quota.bucket

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> StandardRetryToken:
        """Return a token for the first attempt: always given, without delay, and free.

        :param token_scope: operations with the same scope share a quota.
        """
        now, scope = self.clock.now(), self.scopes.get(token_scope)
        scope.quota.began(now)
        return StandardRetryToken(issuer=self, scope=scope, progress=Progress(now))

    def refresh_retry_token_for_retry(self, *, token_to_renew: RetryToken, error: Any) -> StandardRetryToken:
        """Return a token for another attempt, or raise the reason why there is none.

        In this order (contract 2.6): is a retry indicated, may the request be sent again, are attempts left, is the
        server's hint acceptable, is there time, is there quota. A refusal costs no quota. If the quota lets operations
        wait, the call may block: see ``patience``.

        :param token_to_renew: the failed attempt's token.
        :param error: the failed attempt, as an adapter passes it, or the exception that a program's own code raised.
        :raises RetryError: with the first rule that said no.
        :raises TokenError: for a token that was used before or is another strategy's.
        """
        token, failed = redeemed(token_to_renew, self), AttemptFailed.around(error, self.clock)
        is_decided = False
        try:
            renewed = self.__renewed(token, failed)
            is_decided = True
            return renewed
        except RetryError as no:
            is_decided = no.stop_reason is not StopReason.NOT_RETRYABLE
            raise
        finally:
            if not is_decided:
                token.unredeem()  # it was only looked at, or a classifier raised: it is good for another use

    def __renewed(self, token: StandardRetryToken, failed: AttemptFailed) -> StandardRetryToken:
        """Decide about a retry: ask the classifiers, count, compute the delay, and take the price, which may block."""
        if failed.options.enabled is False:
            raise RetryError(stop_reason=StopReason.DISABLED)
        try:
            reason = self.indicated(failed, token.scope)
        finally:
            self.__note_health(token.scope, failed)
        bounds = self.policy.bounds(failed.options, failed.deadline)
        try:
            kind = self.__kind_of(failed, reason, token.scope.quota)
            progress = self.__counted(token, failed.outcome, kind, bounds)
            if kind.wait is not None:
                self.__check_poll(failed, progress, bounds, kind.wait)
                return self.__token(token, progress, kind.wait.seconds, kind.wait.source, failed.verdict)
            delay = self.__delay(failed, reason, progress)
            progress = progress._replace(backoff=delay.backoff)
            if kind.is_free:
                return self.__token(token, progress, delay.seconds, delay.source, failed.verdict)
            failure = failure_of(failed, reason, delay)
            go = token.scope.quota.acquire(progress, bounds, failure, failed)
            if isinstance(go, Refused):
                raise self.__refused(go, bounds, failed, token, progress.waited + go.waited, delay.seconds)
        except RetryError as no:
            no.classification = no.classification or failed.verdict
            raise
        source = "patience" if go.delay > delay.seconds else delay.source
        return self.__token(token, go.progress, go.delay, source, failed.verdict, payment=go.payment, line_why=go.why)

    def __note_health(self, scope: Scope, failed: AttemptFailed) -> None:
        """Record what an attempt shows of its service."""
        outcome, health = failed.outcome, scope.health
        fails = shows_failure(
            outcome,
            failed.known_verdict,
            is_translated=self.policy.counts is not None,
            had_time=had_time(outcome, failed.options, failed.deadline, health.latency),
        )
        if fails:
            health.failed(outcome.started, outcome.ended)
        elif fails is False:
            log_back(scope.name, health.answered(outcome.started), outcome.ended)

    def indicated(self, failed: AttemptFailed, scope: Scope) -> RetryReason:
        """Ask the classifiers, and return the reason for which a retry is indicated.

        :raises RetryError: if none is.
        """
        return failed.indicated(self.policy)

    def __kind_of(self, failed: AttemptFailed, reason: RetryReason, quota: Quota) -> RetryKind:
        return kind_of(
            failed.outcome,
            reason,
            is_translated=self.policy.counts is not None,
            heeds_hints=self.policy.heeds_hints,
            counts_attempts=quota.counts_attempts,
        )

    def __counted(self, token: StandardRetryToken, outcome: Outcome, kind: RetryKind, bounds: Bounds) -> Progress:
        """Count an attempt, and return its operation's progress.

        :param kind: of the retry that would follow.
        :raises RetryError: if no attempts are left.
        """
        progress, quota = token.progress, token.scope.quota
        if outcome.has_progressed:
            # It brought a body further, so the service is up: what it spent comes back, and it counts as a first one.
            quota.succeeded(progress, outcome.ended)
            progress = Progress(progress.began, free=outcome.attempt - 1)
        retries, polls, failures, exceeded = progress.retries, progress.polls, progress.failures, None
        if self.policy.counts is not None:
            failures, exceeded = self.policy.counts(failures, outcome)
        sent = max(retries + polls + 1, outcome.attempt - progress.free)
        if is_last(bounds, kind, sent=sent, retries=retries, counts_attempts=quota.counts_attempts):
            exceeded = StopReason.MAX_ATTEMPTS.value
        if exceeded is not None:
            raise RetryError(exceeded, stop_reason=StopReason.MAX_ATTEMPTS)
        if outcome.has_progressed:
            return progress
        if kind.polls:
            progress = quota.polled(progress)
        if kind.wait is not None:
            return progress._replace(polls=polls + 1, failures=failures)
        return progress._replace(retries=retries + 1, failures=failures)

    def __delay(self, failed: AttemptFailed, reason: RetryReason, progress: Progress) -> Delay:
        """Return the wait before a retry.

        :raises RetryError: if a server asks for a longer one than allowed, or if it would not end in time.
        """
        outcome, retry = failed.outcome, max(1, progress.retries - progress.probes)
        delay = self.policy.delay(reason, outcome, failed.options, retry, progress.backoff)
        if isinstance(delay, TooLong):
            raise too_long(delay.hint, delay.why, outcome.wall)
        if delay.asked is not None and outcome.ended + delay.seconds > progress.began + delay.longest:
            why = f"all waits must be over {delay.longest:g} s after the call began, twice the patience"
            raise too_long(delay.asked, why, outcome.wall)
        if not leaves_time(outcome.ended + delay.seconds, failed.deadline):
            is_over = not leaves_time(outcome.ended, failed.deadline)
            raise too_late(delay.seconds, delay.source, is_over=is_over)
        return delay

    def __check_poll(self, failed: AttemptFailed, progress: Progress, bounds: Bounds, wait: Hint) -> None:
        """Check that the wait before a poll is allowed.

        :raises RetryError: if it is longer than allowed, or if it would not end in time.
        """
        outcome = failed.outcome
        why = no_poll(wait.seconds, bounds, progress.began, outcome.ended, self.config.max_retry_after)
        if why is not None:
            raise too_long(wait, why, outcome.wall)
        if not leaves_time(outcome.ended + wait.seconds, failed.deadline):
            raise too_late(wait.seconds, wait.source)

    def __refused(
        self,
        refused: Refused,
        bounds: Bounds,
        failed: AttemptFailed,
        token: StandardRetryToken,
        waited: float,
        delay: float,
    ) -> RetryError:
        """Return the refusal of a quota; that of a long poll has the delay before its answer is handed over."""
        error = refusal(refused, bounds, token.token_scope, waited, is_throttled=failed.is_throttling_error)
        resend = failed.outcome.resend
        is_long_poll = failed.options.long_poll if resend is None else resend.long_poll
        if is_long_poll and refused.reason is not StopReason.MAX_ATTEMPTS:
            error.delay = delay or None
        return error

    def __token(
        self,
        renewed: StandardRetryToken,
        progress: Progress,
        delay: float,
        source: str,
        verdict: Classification,
        *,
        payment: Payment | None = None,
        line_why: str = "",
    ) -> StandardRetryToken:
        return StandardRetryToken(
            issuer=self,
            scope=renewed.scope,
            retry_delay=delay,
            progress=progress,
            delay_source=source,
            classification=verdict,
            payment=payment,
            line_why=line_why,
        )

    def record_success(self, *, token: RetryToken) -> None:
        """Record a successful attempt: the quota gets back what its retries took, and waiting operations may ask again.

        :param token: that attempt's token.
        :raises TokenError: for a token that was used before or is another strategy's.
        """
        own, now = redeemed(token, self), self.clock.now()
        sent, allowed = own.sent or (now, None)
        scope, progress = own.scope, own.progress
        scope.health.latency = now - sent
        log_back(scope.name, scope.health.answered(sent), now)
        if progress.retries or progress.free:
            scope.quota.succeeded(progress, now, now - sent, allowed)
        else:
            scope.quota.first_try(now, now - sent, allowed)
        self.note_success(scope)

    def note_success(self, scope: Scope) -> None:
        """Record a success as well, in a subclass."""

    def snapshot(self) -> StrategySnapshot:
        """Return an immutable view of the strategy's state; a scope never used is not in it."""
        now, seen = self.clock.now(), {}
        for name, scope in self.scopes:
            held = scope.quota.snapshot(now)
            if held is not None:
                seen[name] = held._replace(down_for=scope.health.down_for(now))
        return StrategySnapshot(MappingProxyType(seen))

    def forget(self) -> None:
        """Start over in every scope, as if nothing had ever been sent. Operations that wait proceed at once."""
        self.scopes.forget()

    # A copy keeps the policy and starts with a full quota of its own (contract 11.1).

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("scopes", "policy")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__go_by(self.config)
        self.scopes = self.__new_scopes()

    def __copy__(self) -> Any:
        state = self.__getstate__()
        if isinstance(self.config.quota, RetryQuota):
            state["config"] = self.config.replace(quota=copy.copy(self.config.quota))
        other = type(self).__new__(type(self))
        other.__setstate__(state)
        return other

    def __repr__(self) -> str:
        return f"<{type(self).__name__} max_attempts={self.max_attempts}>"


def failure_of(failed: AttemptFailed, reason: RetryReason, delay: Delay) -> Failure:
    """Return the facts about a failed attempt on which a quota bases its decision."""
    outcome, throttled = failed.outcome, reason.kind is ErrorKind.THROTTLING
    asked_for = 0.0 if delay.asked is None else delay.seconds
    return Failure(
        delay=delay.seconds,
        hint=asked_for,
        throttled=throttled,
        unresolved=outcome.error is not None and is_unresolved(outcome.error),
        is_cut=outcome.resend is not None and outcome.resend.is_cut,
        is_answer=is_answer(outcome, reason),
        reason=reason,
        uncounted=asked_for if throttled and delay.longest == inf else 0.0,
    )


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
