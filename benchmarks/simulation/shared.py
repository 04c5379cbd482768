"""A quota that all clients share, for the simulation: the real bucket for Redis, on a server that is a dictionary.

Every client has its own handle, as every process would: it knows the bucket by the server's last answer, gathers what
it gives back, and rewards first-try successes only while it knows something to be missing. Only the wire is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from requests_smithy_retry import StandardRetryStrategy
from requests_smithy_retry.config.retry_config import PUBLISHED_CAPACITY
from requests_smithy_retry.quotas.redis import RedisTokenBucket
from requests_smithy_retry.quotas.redis.link import Account, LinkHandle, RedisLink
from requests_smithy_retry.quotas.scope_quota import PricedQuota
from requests_smithy_retry.quotas.settings import RedisSettings

from .policies import Smithy

if TYPE_CHECKING:
    from random import Random

    from requests_smithy_retry import Clock

SCOPE = "service"


class ModelServer:
    """The script of the quota on Redis, in Python; it answers at once."""

    def __init__(self) -> None:
        self.levels: dict[str, float] = {}
        self.exchanges = 0

    def run(self, account: Account, give: float, take: float) -> bool:
        """One run of the script; the account is told the level."""
        self.exchanges += 1
        level = min(account.capacity, self.levels.get(account.key, account.capacity) + give)
        granted = level >= take
        account.level = self.levels[account.key] = level - take if granted else level
        return granted


class ModelLink(RedisLink):
    """A link that talks to a model, in the model's time: no thread, and nobody waits.

    :param server: the model.
    :param clock: that of the run.
    """

    def __init__(self, server: ModelServer, clock: Clock) -> None:
        super().__init__("", "model", RedisSettings(), clock)
        self.server = server
        self._send_at = 0.0

    def take(self, account: Account, amount: float, deadline: float | None = None) -> bool:  # noqa: ARG002 - at once
        """Give back what is pending, and take."""
        self._send_at = self.clock.now() + self.settings.flush_interval
        give, account.pending = account.pending, 0.0
        return self.server.run(account, give, amount)

    def give_back(self, account: Account, amount: float) -> None:
        """Gather, and send once per interval."""
        account.pending = min(account.capacity, account.pending + amount)
        if self.clock.now() >= self._send_at:
            self.take(account, 0)


_servers: WeakKeyDictionary[Any, ModelServer] = WeakKeyDictionary()


class SharedQuota(Smithy):
    """The standard strategy on a bucket that all clients of a run share.

    :param clock: that of the run, by which its clients find each other.
    :param random: of this client alone.
    """

    def __init__(self, clock: Clock, random: Random, **options: Any) -> None:
        super().__init__(clock, random, StandardRetryStrategy, quota=PUBLISHED_CAPACITY, **options)
        handle = LinkHandle(ModelLink(_servers.setdefault(clock, ModelServer()), clock))
        config = self.strategy.config
        # The bucket that quota_url=redis://... would make.
        self.strategy._quotas._make = lambda scope: PricedQuota(
            RedisTokenBucket(handle, scope, capacity=PUBLISHED_CAPACITY, refill_rate=config.refill_rate),
            reward=config.success_reward,
        )
