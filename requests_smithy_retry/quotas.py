"""Retry budgets, backoff and the client rate limiter, for programs that build their own (contract 6, 7, 9)."""

from .core.backoff import ExponentialRetryBackoffStrategy, Jitter, RetryBackoffStrategy
from .core.quota import RetryQuota, TokenBucketSnapshot
from .core.retry_budget import PayoffTokenBucket
from .smithy.buckets import TokenBucket
from .smithy.rate_limiter import ClientRateLimiter, PermitWait, RateLimiterSettings, RateLimiterSnapshot

__all__ = [
    "ClientRateLimiter",
    "ExponentialRetryBackoffStrategy",
    "Jitter",
    "PayoffTokenBucket",
    "PermitWait",
    "RateLimiterSettings",
    "RateLimiterSnapshot",
    "RetryBackoffStrategy",
    "RetryQuota",
    "TokenBucket",
    "TokenBucketSnapshot",
]
