"""A quota that all clients share, for the simulation: the real bucket for Redis, on a server that is a dictionary.

Every client has its own, as every process would: it knows the bucket by the server's last answer, and rewards first-try
successes only while it knows something to be missing. Only the wire and the thread are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from requests_smithy_retry import StandardRetryStrategy
from requests_smithy_retry.config.retry_config import PUBLISHED_CAPACITY
from requests_smithy_retry.quotas.redis import RedisQuota
from requests_smithy_retry.quotas.scope_quota import PricedQuota

from .policies import Smithy

if TYPE_CHECKING:
    from random import Random

    from requests_smithy_retry import Clock


class ModelQuota(RedisQuota):
    """A quota on a server that is a dictionary: the script in Python, which answers at once.

    :param levels: the tokens of each bucket.
    :param capacity: the most that each holds.
    """

    def __init__(self, levels: dict[str, float], capacity: float = PUBLISHED_CAPACITY) -> None:
        super().__init__("redis://model", capacity=capacity)
        self.levels = levels

    def run(
        self,
        scope: str,
        give: float,
        take: float,
        deadline: float | None = None,  # noqa: ARG002 - at once
    ) -> tuple[bool, float]:
        level = min(self.capacity, self.levels.get(scope, self.capacity) + give)
        granted = level >= take
        self.levels[scope] = level - take if granted else level
        return granted, self.levels[scope]


_servers: WeakKeyDictionary[Any, dict[str, float]] = WeakKeyDictionary()


class SharedQuota(Smithy):
    """The standard strategy on a bucket that all clients of a run share.

    :param clock: that of the run, by which its clients find each other.
    :param random: of this client alone.
    """

    def __init__(self, clock: Clock, random: Random, **options: Any) -> None:
        super().__init__(clock, random, StandardRetryStrategy, quota=PUBLISHED_CAPACITY, **options)
        model = ModelQuota(_servers.setdefault(clock, {}))
        self.strategy._quotas._make = lambda scope: PricedQuota(model(scope))
