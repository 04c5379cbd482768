"""The factory of the buckets in the place that a ``quota_url`` names (contract 10.1)."""

from __future__ import annotations

from collections.abc import Callable

from ..checks import Refused
from ..clock import SYSTEM_CLOCK, Clock
from ..errors import RetryConfigError
from .bucket import RetryQuota, TokenBucket
from .places import REDIS_SCHEMES
from .places import QuotaUrl as QuotaUrl

QuotaFactory = Callable[[str], RetryQuota]
"""Makes the bucket of a scope. Buckets of one factory share connections."""


def quota_factory(
    url: str | QuotaUrl,
    *,
    capacity: float = 500,
    refill_rate: float = 0.0,
    on_empty: str = "fail",
    clock: Clock = SYSTEM_CLOCK,
    source: str = "code",
) -> QuotaFactory:
    """Return the factory that makes each scope's bucket in the place that a URL names.

    Connects to nothing yet.

    >>> quota_factory("memory://", capacity=28)("https://api.example.com:443")
    <TokenBucket 28 of 28>

    :param url: ``redis://``, ``rediss://``, ``unix://`` or ``memory://``; the query may hold settings.
    :param capacity: the most a bucket holds; the same in every process.
    :param refill_rate: tokens per second that come back whatever happens.
    :param on_empty: ``"wait"`` is for ``memory://`` alone: who waits on what other processes hold is not told of it.
    :param clock: tells the time.
    :param source: where the URL came from, for the error.
    :raises RetryConfigError: for a bad URL or setting, or where what it needs is missing; no secret is shown.
    """
    looked_at, why = None, ""
    try:
        looked_at = url if isinstance(url, QuotaUrl) else QuotaUrl(url)
        make = _factory(looked_at, capacity, refill_rate, on_empty, clock)
    except (Refused, ValueError, ImportError, OSError, RuntimeError) as error:
        why = str(error)
    if why:
        raise RetryConfigError("quota_url", url if looked_at is None else looked_at, source, why)
    return make


def _factory(url: QuotaUrl, capacity: float, refill_rate: float, on_empty: str, clock: Clock) -> QuotaFactory:
    if url.scheme != "memory" and on_empty != "fail":
        raise ValueError("a quota that processes share does not wait: on_empty='fail' is allowed")
    # Each module is imported only if its scheme is used.
    if url.scheme in REDIS_SCHEMES:
        from .redis import RedisTokenBucket, link_to

        handle = link_to(url, None, clock)
        return lambda scope: RedisTokenBucket(handle, scope, capacity=capacity, refill_rate=refill_rate)
    if url.settings:
        raise ValueError("memory:// has no settings")
    return lambda _: TokenBucket(capacity, refill_rate=refill_rate, on_empty=on_empty, clock=clock)
