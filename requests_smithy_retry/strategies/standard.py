"""The default strategy: the simple one and a retry quota per scope (contract 6)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from ..classifiers.actions import ErrorKind, RetryReason
from ..classifiers.outcome import Outcome
from ..config.retry_config import RetryConfig, has_line
from ..config.retry_options import NOTHING
from ..errors import RetryError, StopReason, is_unresolved
from ..quotas.bucket import RetryQuota
from ..quotas.line import Failure, Go, Refusal, Refused, Terms
from ..quotas.payoff import PayoffTokenBucket
from ..quotas.scope_quota import ScopeQuota
from ..urls import display_scope
from .first_tries import NOTHING_TO_TELL, FirstTryHook, remember
from .protocol import RetryContext, RetryToken, StandardRetryToken, StrategySnapshot, redeemed
from .quotas import Quotas, quota_before, quotas_for
from .simple import SimpleRetryStrategy, is_built_in

NOT_FOUND = 404


class StandardRetryStrategy(SimpleRetryStrategy):
    """The standard mode of the AWS SDKs, with a quota that rides out outages.

    Each scope has a bucket of the retries of one operation, filled by first-try successes and enlarged by retries that
    pay. An operation that finds it empty waits until a success of another one proves that the service is back, as long
    as ``patience`` and the deadline allow. With ``retry_spec="2.1"`` or ``"2.0"``, with AWS settings or a number as
    ``quota``, each scope has the published bucket instead: a retry has its price, and an empty bucket means no retries.

    :param config: the policy; or give options by name.
    :param backoff_strategy: computes delays in place of the configured backoff, for every kind of failure.
    :param clock: tells the time.
    :param options: any option of :class:`RetryConfig`, on top of ``config``.
    :raises RetryConfigError: for a bad option.
    """

    def _with_own_quota(self, config: RetryConfig) -> RetryConfig:
        return config

    def _open_books(self) -> None:
        super()._open_books()
        self._has_own_buckets = not is_built_in(self, "bucket")
        self._quotas: Quotas = quotas_for(self.config, self.clock, self.busy, self.hooks.clear)
        shared = self._quotas.get(None) if isinstance(self.config.quota, RetryQuota) else None
        self.busy: set[Any] = getattr(shared, "lines", self.busy)
        if self.gates is not None:
            self.gates.busy = self.busy

    def forget(self) -> None:
        super().forget()
        for quota in self._quotas.forget():
            quota.forget()  # operations may wait on it

    def bucket(self, token_scope: str | None = None) -> RetryQuota | None:
        """Return the bucket of a scope; None with ``quota=None``. A subclass may override this: it is always called."""
        quota = self._quotas.get(token_scope)
        return None if quota is None else quota.plain

    def first_try_hook(self, scope: str, url: str | None = None) -> FirstTryHook:
        quota = self._own_quota(scope) if self._has_own_buckets else self._quotas.get(scope)
        hook: FirstTryHook = NOTHING_TO_TELL if quota is None else quota
        if url is not None and self._may_remember(hook):
            remember(self.hooks, url, hook)
        return hook

    def _may_remember(self, hook: FirstTryHook) -> bool:
        """Return True unless it is the quota that newcomers share while there is no room."""
        return hook is not getattr(self._quotas, "overflow", None)

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> StandardRetryToken:
        if self.busy:
            with self._quota_in_use(token_scope) as quota:
                if quota is not None:
                    quota.begin()  # who waits need not ask by itself now
        return super().acquire_initial_retry_token(token_scope=token_scope)

    def record_success(self, *, token: RetryToken) -> None:
        own = redeemed(token, self)
        with self._quota_in_use(own.token_scope) as quota:
            if quota is not None:
                quota.succeeded(own.standing, own.terms, latency=own.latency, timeout=own.timeout)

    def _quota_in_use(self, scope: str | None) -> AbstractContextManager[ScopeQuota | None]:
        """Return the quota of a scope, which is not given up inside the block."""
        return nullcontext(self._own_quota(scope)) if self._has_own_buckets else self._quotas.use(scope)

    def _own_quota(self, scope: str | None) -> ScopeQuota | None:
        bucket = self.bucket(scope)
        return None if bucket is None else quota_before(bucket, self.clock)

    def gave_up(self, token_scope: str | None, *, is_outage: bool) -> int:
        quota = self._own_quota(token_scope) if self._has_own_buckets else self._quotas.known(token_scope)
        return 0 if quota is None else quota.gave_up(is_outage=is_outage)

    def snapshot(self) -> StrategySnapshot:
        """Return an immutable view of the buckets and of the waiting operations; a scope never used is not in it."""
        return StrategySnapshot(MappingProxyType({scope: quota.snapshot() for scope, quota in self._quotas}))

    def _counts_attempts(self, reason: RetryReason, outcome: Outcome, terms: Terms) -> bool:
        if self._has_own_buckets or not has_line(self.config.effective_quota) or terms.patience <= 0:
            return True
        return self._is_no_outage(reason, outcome)

    def _asks_again(self, reason: RetryReason, outcome: Outcome) -> bool:
        """Return True if the attempt did not fail, but polls for a result that is not there yet."""
        return self._is_poll(reason, outcome) or is_value(reason, outcome)

    def _is_no_outage(self, reason: RetryReason, outcome: Outcome) -> bool:
        """Return True if the service is well: it has no result yet, or it refused this one request."""
        return self._asks_again(reason, outcome) or is_refused_alone(reason, outcome)

    def _is_poll(self, reason: RetryReason, outcome: Outcome) -> bool:
        """Return True if another attempt polls for a result, which is not a failure (contract 6.2).

        That is the case if the attempt succeeded, and its response shows neither throttling nor a server's fault; and
        after a 404 that a translated ``Retry`` lists, by which programs wait for a thing to appear.
        """
        if outcome.error is not None or reason.kind in (ErrorKind.THROTTLING, ErrorKind.SERVER):
            return False
        return outcome.is_success or (self.config.urllib3_rules is not None and outcome.status == NOT_FOUND)

    def _paid(
        self, token: StandardRetryToken, reason: RetryReason, context: RetryContext, hint: float
    ) -> StandardRetryToken:
        outcome, standing = context.outcome, token.standing
        if standing.successes is None and context.began is not None:
            standing = replace(standing, began=context.began)
        with self._quota_in_use(token.token_scope) as quota:
            if quota is None:
                return replace(token, standing=standing)
            if self._asks_again(reason, outcome):
                standing = quota.answered(standing)
            is_free = self._is_no_outage if quota.counts_attempts else self._is_poll
            if is_free(reason, outcome):
                return replace(token, standing=standing, acquired=standing.acquired)
            throttled = reason.kind is ErrorKind.THROTTLING
            unresolved = outcome.error is not None and is_unresolved(outcome.error)
            failure = Failure(price_of(self.config, quota, reason), token.retry_delay, hint, throttled, unresolved)
            let_go = context.before_waiting and partial(context.before_waiting, token.classification)
            seen = quota.failed(standing, token.terms, failure, before_waiting=let_go)
            if isinstance(seen, Go):
                return _sent(token, seen, quota)
        is_long_poll = bool((context.options or NOTHING).long_poll)
        raise _refusal(token, seen, standing.waited + seen.waited, is_long_poll=is_long_poll)


def is_value(reason: RetryReason, outcome: Outcome) -> bool:
    """Return True if a policy judged a value, other than one that means throttling: it waits for another value.

    Such a retry has its price, which the next value gives back: who waits takes no more than one price at a time.
    """
    is_nothing = outcome.error is None and outcome.response is None
    return is_nothing and reason.kind is not ErrorKind.THROTTLING


def is_refused_alone(reason: RetryReason, outcome: Outcome) -> bool:
    """Return True if a classifier says that the service is well and refused this one request, such as a 409 or 423.

    That is no outage, so the retry costs nothing, and nobody else waits for it.
    """
    return reason.kind is ErrorKind.CLIENT and outcome.response is not None and outcome.error is None


def price_of(config: RetryConfig, quota: ScopeQuota, reason: RetryReason) -> float:
    """Return the price of a retry: one token of two, or that of the specification out of 500."""
    if isinstance(quota.plain, PayoffTokenBucket):
        return 1.0
    numbers = config.numbers
    if reason.kind is ErrorKind.THROTTLING:
        return numbers.throttling_cost
    return numbers.timeout_cost if reason.timeout else numbers.retry_cost


def _sent(token: StandardRetryToken, go: Go, quota: ScopeQuota) -> StandardRetryToken:
    """Return the token of a retry that the quota lets go."""
    paid = go.standing.acquired
    sent = replace(
        token,
        retry_delay=go.delay,
        delay_source="patience" if go.delay > token.retry_delay else token.delay_source,
        standing=go.standing,
        acquired=paid,
        waited=go.waited,
        why=go.why,
    )
    if not paid:
        return sent
    after, source = quota.plain.available, getattr(quota.plain, "source", "memory")
    return replace(sent, quota_before=after + paid, quota_after=after, quota_source=source)


def _refusal(token: StandardRetryToken, refused: Refused, seconds: float, *, is_long_poll: bool) -> RetryError:
    """Return the error for a retry that the quota refuses, after so many seconds of waiting for the service in all."""
    stop_reason, why = _told(refused, token.terms, token.token_scope, seconds)
    delay = token.retry_delay if is_long_poll and refused.reason is not Refusal.MAX_ATTEMPTS else None
    return RetryError(why, stop_reason=stop_reason, delay=delay, classification=token.classification)


def _told(refused: Refused, terms: Terms, scope: str | None, seconds: float) -> tuple[StopReason, str]:
    """Return the stop reason, and a plain sentence that says why; it is empty where attempts ran out."""
    service = "the service" if scope is None else display_scope(scope)
    waited = f"waited {seconds:.3g} s: " if seconds else ""
    if refused.reason in (Refusal.PATIENCE, Refusal.DEADLINE) and terms.patience <= 0:
        return StopReason.QUOTA_EXCEEDED, f"the retry quota of {service} is empty, and patience is 0"
    if refused.reason is Refusal.EMPTY:
        of_scope = "" if scope is None else f" of {service}"
        return StopReason.QUOTA_EXCEEDED, f"the retry quota{of_scope}{refused.why}"
    if refused.reason is Refusal.PATIENCE:
        why = f"{waited}{service} has been failing for longer than patience allows ({terms.patience:g} s)"
        return StopReason.PATIENCE, why
    if refused.reason is Refusal.DEADLINE:
        return StopReason.DEADLINE, f"{waited}{service} was failing until the deadline"
    if refused.reason is Refusal.FULL:
        return StopReason.LINE_FULL, f"too many operations are waiting for {service} already"
    if refused.reason is Refusal.HELD:
        why = f"the response of {service} is too long to be let go, so its operation cannot wait"
        return StopReason.QUOTA_EXCEEDED, why
    return StopReason.MAX_ATTEMPTS, ""
