"""The quota that the options ask for (contract 6): which kind, for which scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..clock import Clock
from .line import Terms
from .payoff import PayoffQuota, PayoffTokenBucket
from .quota import NO_QUOTA, Quota

if TYPE_CHECKING:
    from ..config.retry_config import RetryConfig

NO_SCOPE = "default"
"""The name by which a function that makes buckets is asked for that of operations without a scope."""

MakeQuota = Callable[[str | None, float], Quota]
"""Makes the quota of a scope, by its name, at a moment."""


def no_quota(name: str | None, now: float) -> Quota:
    """Make the quota of a scope that has none."""
    return NO_QUOTA


def quotas_of(config: RetryConfig, clock: Clock) -> MakeQuota:
    """Return the maker of quotas that a config asks for."""
    quota = config.effective_quota
    if quota is None:
        return no_quota
    if quota == "payoff":
        room = Terms(config.most_attempts).room
        return lambda name, now: PayoffQuota(PayoffTokenBucket(room), now)
    if isinstance(quota, PayoffTokenBucket):
        return lambda name, now: line_before(quota, now)
    # Imported here: other quotas are features, which a program may do without.
    from ..features.table import quota_maker

    return quota_maker(quota, config, clock)


def line_before(bucket: PayoffTokenBucket, now: float) -> PayoffQuota:
    """Return the one line before a bucket that was passed in: adapters that share the bucket share its line."""
    with bucket._lock:
        if bucket.quota is None:
            bucket.quota = PayoffQuota(bucket, now)
        return bucket.quota
