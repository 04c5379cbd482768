"""The quotas of a strategy: which kind the options ask for, and the quota of each scope (contract 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from ..clock import Clock
from ..config.retry_config import PUBLISHED_CAPACITY, RetryConfig
from ..quotas.bucket import RetryQuota, TokenBucket
from ..quotas.payoff import CountedQuota, PatientQuota, PayoffTokenBucket, line_before
from ..quotas.scope_quota import PricedQuota, ScopeQuota
from ..quotas.scopes import NO_SCOPE, ScopeTable

MakeBucket = Callable[[str], RetryQuota]
"""Makes the bucket of a scope, in a place that processes share."""


class OneQuota:
    """One quota for all scopes, or none."""

    def __init__(self, quota: ScopeQuota | None) -> None:
        self._quota = quota

    def use(self, scope: str | None) -> AbstractContextManager[ScopeQuota | None]:  # noqa: ARG002
        return nullcontext(self._quota)

    def get(self, scope: str | None) -> ScopeQuota | None:  # noqa: ARG002
        return self._quota

    known = get

    def __iter__(self) -> Iterator[tuple[str | None, ScopeQuota]]:
        return iter(() if self._quota is None else ((None, self._quota),))


Quotas = OneQuota | ScopeTable[ScopeQuota]
"""The quota of each scope."""


def _read_part(timeout: Any) -> float | None:
    from ..wire.state import read_part  # imported here: it knows HTTP libraries, which the strategies do without

    return read_part(timeout)


def shared_buckets(config: RetryConfig, clock: Clock) -> MakeBucket | None:
    """Return the factory of buckets in the place that a config names; None if it names none."""
    quota, url = config.effective_quota, config.quota_url
    if url is None or quota is None or isinstance(quota, RetryQuota):
        return None
    from ..quotas.url import quota_factory

    return quota_factory(
        url,
        capacity=PUBLISHED_CAPACITY if isinstance(quota, str) else quota,
        refill_rate=config.refill_rate,
        on_empty=config.on_empty,
        clock=clock,
        source=config.source("quota_url"),
    )


def quotas_for(
    config: RetryConfig,
    clock: Clock,
    busy: set[Any],
    forget: Callable[[], object],
    make: MakeBucket | None,
) -> Quotas:
    """Return the quotas that a config asks for.

    :param make: makes the buckets; None: they are in memory.
    """
    quota = config.effective_quota
    if quota is None:
        return OneQuota(None)
    if isinstance(quota, RetryQuota):
        return OneQuota(quota_before(quota, config, clock))
    patient = partial(PatientQuota, clock=clock, timeout_of=_read_part, lines=busy)
    counted = partial(CountedQuota, reward=config.success_reward)

    def quota_of(name: str) -> ScopeQuota:
        bucket = None if make is None else make(name)
        if isinstance(quota, str):
            scope = None if name == NO_SCOPE else name
            return patient(None if bucket is None else counted(bucket), name=scope)
        if bucket is None:
            bucket = TokenBucket(quota, refill_rate=config.refill_rate, on_empty=config.on_empty, clock=clock)
        return PricedQuota(bucket, reward=config.success_reward)

    def give_up(given_up: ScopeQuota) -> None:
        given_up.retired = True
        forget()

    return ScopeTable(quota_of, lambda quota: quota.is_spare(), clock=clock, retire=give_up)


def quota_before(bucket: RetryQuota, config: RetryConfig, clock: Clock) -> ScopeQuota:
    """Return the quota for a bucket that the caller gave: others may spend it, unseen from here."""
    if isinstance(bucket, PayoffTokenBucket):
        return line_before(bucket, clock, _read_part)
    return PricedQuota(bucket, reward=config.success_reward, is_shared=True)
