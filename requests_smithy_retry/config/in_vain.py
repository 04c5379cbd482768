"""The bound on retries in vain, in closed form: ``at_first + per_success * successes + per_second * seconds``.

It holds for each scope of one client, whatever the server answers and however operations interleave. First attempts are
not in it, and each further client or process adds its own. ``docs/explanation/do-no-harm.md`` derives it, and
``benchmarks/bound.py`` checks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..quotas.bucket import RetryQuota, TokenBucket
from ..quotas.line import IDLE, LEAST_GAP, MOST_CREDIT, ROOM
from ..quotas.payoff import PayoffTokenBucket
from ..quotas.places import REDIS_SCHEMES, QuotaUrl, quota_url
from ..quotas.settings import RedisSettings, SharedQuotaSettings, settings_from
from .retry_config import PUBLISHED_CAPACITY

if TYPE_CHECKING:
    from .retry_config import RetryConfig


class InVain(NamedTuple):
    """The most retries of one scope that fail, whatever the server does."""

    at_first: float
    """Retries in vain without any success."""
    per_success: float
    """Further ones for each operation that succeeds."""
    per_second: float
    """Further ones for each second that passes: questions of those that wait, and refills."""


def in_vain(config: RetryConfig, *, waits: bool) -> InVain | None:
    """Return the bound where operations wait for a service, or do not; None: the quota sets none."""
    if not config.enabled or config.max_attempts == 1:
        return InVain(0, 0, 0)
    quota = config.effective_quota
    if quota is None:
        return None
    url = None if isinstance(quota, RetryQuota) else quota_url(config.quota_url)
    if isinstance(quota, str | PayoffTokenBucket):
        return _payoff(config, waits) if url is None else _priced(config, PUBLISHED_CAPACITY, url, line=True)
    if isinstance(quota, RetryQuota):
        if not isinstance(quota, TokenBucket):
            return None  # nothing is known of it
        return _priced(config, quota.capacity, None, refill_rate=quota.refill_rate)
    return _priced(config, quota, url)


def _payoff(config: RetryConfig, waits: bool) -> InVain:
    # A first-try success fills the bucket, and lets waiters go; an operation that retried gets back what its retries
    # cost, and room for another one, if nobody waits.
    per_success = max(ROOM + MOST_CREDIT * waits, config.max_attempts - 1 + ROOM)
    return InVain(ROOM, per_success, 1 / LEAST_GAP if waits else ROOM / IDLE)


def _priced(
    config: RetryConfig, capacity: float, url: QuotaUrl | None, *, refill_rate: float | None = None, line: bool = False
) -> InVain:
    """Return the bound of a bucket whose retries have prices, with or without a line of operations that wait."""
    numbers, reward = config.numbers, config.success_reward
    prices = (numbers.retry_cost, numbers.throttling_cost, numbers.timeout_cost)
    # Where operations wait, a success gives back all that its operation's retries cost.
    given = (config.max_attempts - 1) * max(prices) if line else 0.0
    tokens, refill = capacity, config.refill_rate if refill_rate is None else refill_rate
    per_success, per_second = max(reward, given), refill
    if url is not None and url.scheme != "memory":
        # The bucket that stands in for it gets what the shared one gets, whichever of them was paid.
        said = {name: text for name, text in url.settings.items() if name in ("local_capacity", "ttl")}
        settings = settings_from(RedisSettings if url.scheme in REDIS_SCHEMES else SharedQuotaSettings, said)
        size = settings.local_bucket_size(capacity)
        tokens += size
        per_success += min(size, max(reward, given, *prices))
        per_second += min(refill, size)
        if isinstance(settings, RedisSettings):
            per_second += capacity / settings.ttl
    least = min(prices)
    asks = 1 / LEAST_GAP if line else 0.0
    return InVain(tokens / least, per_success / least + MOST_CREDIT * line, per_second / least + asks)
