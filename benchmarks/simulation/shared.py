"""A quota that all clients share, for the simulation: the real bucket for Redis, on a server that is a dictionary.

Every client has its own handle, as every process would: it knows the bucket by the server's last answer, gathers what
it gives back, and rewards first-try successes only while it knows something to be missing. Only the wire is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from requests_smithy_retry import StandardRetryStrategy
from requests_smithy_retry.quotas.redis import RedisTokenBucket
from requests_smithy_retry.quotas.redis_link import LinkHandle, RedisLink
from requests_smithy_retry.quotas.redis_script import Reply
from requests_smithy_retry.quotas.settings import RedisSettings

from .policies import Smithy

if TYPE_CHECKING:
    from random import Random

    from requests_smithy_retry import Clock

SCOPE = "service"


class ModelServer:
    """What the script does, in Python; it answers at once. Also the pool, and the one connection in it."""

    served = True
    posted_at = float("-inf")

    def __init__(self) -> None:
        self.levels: dict[str, float] = {}
        self.exchanges = 0

    def call(self, _until: float, key: str, arguments: tuple[str, ...]) -> Reply:
        """One run of the script."""
        self.exchanges += 1
        capacity, _, give, take = map(float, arguments[:4])
        level = min(capacity, self.levels.get(key, capacity) + give)
        granted = level >= take
        self.levels[key] = level - take if granted else level
        return Reply(granted, self.levels[key])

    def post(self, _patience: float, commands: list[Any]) -> None:
        """The answers come at once."""
        for key, arguments, on_reply in commands:
            on_reply(self.call(0.0, key, arguments))

    def settle(self, _until: float) -> None:
        """Nothing is owed."""

    def take(self, _until: float, **_: Any) -> ModelServer:
        """The connection."""
        return self

    def take_idle(self) -> ModelServer:
        """The connection."""
        return self

    def put(self, _connection: ModelServer) -> None:
        """It is always there."""

    def close_idle(self) -> None:
        """Nothing to close."""


_servers: WeakKeyDictionary[Any, ModelServer] = WeakKeyDictionary()


class SharedQuota(Smithy):
    """The standard strategy on a bucket that all clients of a run share.

    :param clock: that of the run, by which its clients find each other.
    :param random: of this client alone.
    """

    def __init__(self, clock: Clock, random: Random, **options: Any) -> None:
        super().__init__(clock, random, StandardRetryStrategy, quota_url="memory://", **options)
        link = RedisLink("", "model", RedisSettings(), clock)
        link._pool = _servers.setdefault(clock, ModelServer())  # type: ignore[assignment]
        handle = LinkHandle(link)
        quota = self.strategy.config.quota
        # What quota_url=redis://... would have made.
        self.strategy._scopes._make_named = lambda scope: RedisTokenBucket.on(
            handle, scope, capacity=quota, refill_rate=self.strategy.config.refill_rate
        )

    def succeeded(self, state: Any, latency: float) -> None:
        """As the adapter does: a first-try success is recorded only while something is known to be spent."""
        if state.retry_count or self.strategy.spent_scopes:
            super().succeeded(state, latency)
