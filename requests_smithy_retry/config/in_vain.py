"""The bound on retries in vain, in closed form: ``at_first + per_success * successes + per_second * seconds``.

It holds for each scope of one client, whatever the server answers and however operations interleave. First attempts are
not in it, and each further client or process adds its own. ``docs/explanation/do-no-harm.md`` derives it, and
``benchmarks/bound.py`` checks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from ..core.line import IDLE, LEAST_GAP, MOST_CREDIT, Terms
from ..core.payoff import PayoffTokenBucket
from .retry_config import has_line

if TYPE_CHECKING:
    from ..features.redis import RedisQuota
    from ..smithy.buckets import TokenBucket
    from .retry_config import RetryConfig

REWARD = 1.0
"""The tokens that a first-try success gives to a bucket whose capacity alone is told."""


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
    if not config.enabled or config.most_attempts == 1:
        return InVain(0, 0, 0)
    quota = config.effective_quota
    if quota is None:
        return None
    if isinstance(quota, str | PayoffTokenBucket):
        return _payoff(config, waits)
    if has_line(quota):
        return _shared(config, cast("RedisQuota", quota), waits)
    if isinstance(quota, int | float):
        return _priced(config, quota, REWARD)
    if hasattr(quota, "refill_rate"):
        bucket = cast("TokenBucket", quota)
        return _priced(config, bucket.capacity, bucket.success_reward, bucket.refill_rate)
    return None  # nothing is known of it


def _payoff(config: RetryConfig, waits: bool) -> InVain:
    # A first-try success fills the bucket, and lets waiters go; an operation that retried gets back what its retries
    # cost, and room for another one, if nobody waits.
    room = Terms(config.most_attempts).room
    per_second = max(room / IDLE, waits / LEAST_GAP)
    return InVain(room, room + max(MOST_CREDIT * waits, room), per_second)


def _priced(config: RetryConfig, capacity: float, success_reward: float, refill_rate: float = 0.0) -> InVain:
    """Return the bound of a bucket whose retries have prices."""
    numbers = config.numbers
    least = min(numbers.retry_cost, numbers.throttling_cost, numbers.timeout_cost)
    return InVain(capacity / least, success_reward / least, refill_rate / least)


def _shared(config: RetryConfig, quota: RedisQuota, waits: bool) -> InVain:
    """Return the bound of a bucket that processes share, with a line before it."""
    numbers, size = config.numbers, min(quota.capacity, 500)
    prices = (numbers.retry_cost, numbers.throttling_cost, numbers.timeout_cost)
    # A success gives back all that its operation's retries cost, to the bucket that stands in as well.
    given = max(1.0, Terms(config.most_attempts).retries * max(prices))
    tokens, per_success, least = quota.capacity + size, given + min(size, given), min(prices)
    per_second = quota.capacity / quota.ttl / least + waits / LEAST_GAP
    return InVain(tokens / least, per_success / least + waits * MOST_CREDIT, per_second)
