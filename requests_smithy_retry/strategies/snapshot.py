"""What can be seen of a strategy at one moment (contract 6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..quota import TokenBucketSnapshot
    from ..rate_limiter import RateLimiterSnapshot


@dataclass(frozen=True, slots=True)
class StrategySnapshot:
    """A strategy at one moment.

    :param buckets: the quota of each scope that has spent any; empty where there is no quota.
    :param limiters: the rate limiter of each scope; empty but in adaptive mode.
    """

    buckets: Mapping[str | None, TokenBucketSnapshot] = field(default_factory=lambda: MappingProxyType({}))
    limiters: Mapping[str | None, RateLimiterSnapshot] = field(default_factory=lambda: MappingProxyType({}))
