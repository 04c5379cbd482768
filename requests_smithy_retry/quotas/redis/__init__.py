"""A retry quota on Redis (6 or later) or Valkey, shared by every process that names the same server and bucket.

Only a retry asks the server, within ``budget``; a first attempt never does. A first-try success gives its reward where
this process knows the bucket to be below its capacity, from the server's last answer to it; who retried knows, and who
did not retry has nothing to tell. While the server does not answer, a bucket of this process alone stands in.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec
from typing import Any

from ...checks import Refused
from ...clock import SYSTEM_CLOCK, Clock
from ..places import REDIS_SCHEMES, QuotaUrl
from ..settings import RedisSettings, names_of, settings_from
from ..shared import SharedTokenBucket
from .link import Account, LinkHandle, RedisLink
from .server import check, key_of

NEEDS_REDIS = "a quota on Redis needs redis-py 5 or later: pip install 'requests-smithy-retry[redis]'"


class RedisTokenBucket(SharedTokenBucket):
    """A bucket that lives on a Redis server. It connects when a retry first asks.

    >>> bucket = RedisTokenBucket("redis://app:secret@127.0.0.1:6379/0", "payments", capacity=500)
    >>> bucket.capacity, bucket.source
    (500, 'redis')

    :param url: ``redis://``, ``rediss://`` or ``unix://``, as redis-py takes it, of a server or of a cluster's node; or
        ``redis+sentinel://HOST:26379,HOST:26379/MASTER``. The query may hold settings, such as
        ``?budget=0.05&local_capacity=100``.
    :param name: processes that use the same name (and server and prefix) share the bucket.
    :param capacity: the most it holds; the same in every process.
    :param refill_rate: tokens per second that come back whatever happens, by the server's clock.
    :param settings: bounds and intervals, in place of the URL's.
    :param clock: tells the time.
    :raises ValueError: for a bad URL or number; the URL is not shown.
    :raises ImportError: without redis-py.
    """

    kind = "redis"

    def __init__(
        self,
        url: str | QuotaUrl | LinkHandle,
        name: str = "default",
        *,
        capacity: float = 500,
        refill_rate: float = 0.0,
        settings: RedisSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        made_from = None
        if isinstance(url, LinkHandle):
            self._handle = url
        else:
            looked_at = _looked_at(url)
            self._handle = link_to(looked_at, settings, clock)
            options: dict[str, Any] = {"capacity": capacity, "refill_rate": refill_rate, "settings": settings}
            made_from = functools.partial(type(self), looked_at, name, clock=clock, **options)
        self.name = name
        self._link = link = self._handle.link
        super().__init__(capacity, refill_rate, link.outage, link.clock, made_from)
        self._account = Account(key_of(link.settings.prefix, name), capacity, refill_rate)

    def _level(self) -> float:
        # As of the server's last answer, with what is given back since.
        return self._account.level + self._account.pending

    def _take(self, amount: float, deadline: float | None) -> bool | None:
        return self._link.take(self._account, amount, deadline)

    def _give(self, amount: float) -> None:
        self._link.give_back(self._account, amount)

    def refresh(self) -> bool:
        """Ask the server for the bucket's level, within the budget. False: it does not answer."""
        is_answered = self._link.take(self._account, 0) is not None
        self._last_take.was_local = not is_answered
        return is_answered

    def flush(self) -> None:
        """Send the gathered returns now."""
        self._link.flush()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self._link.outage.place} ({self.source})>"


def link_to(url: str | QuotaUrl, settings: RedisSettings | None = None, clock: Clock = SYSTEM_CLOCK) -> LinkHandle:
    """Return a link for any number of buckets on one server. It connects when it is first needed; hold its handle."""
    looked_at = _looked_at(url)
    if find_spec("redis") is None:
        raise ImportError(NEEDS_REDIS)
    # The rest of the query is redis-py's.
    ours = names_of(RedisSettings)
    own = settings_from(RedisSettings, {name: text for name, text in looked_at.settings.items() if name in ours})
    secret = looked_at.without(ours)
    settings = own if settings is None else settings
    check(secret, settings)
    return LinkHandle(RedisLink(secret, looked_at.place, settings, clock))


def _looked_at(url: str | QuotaUrl) -> QuotaUrl:
    try:
        found = url if isinstance(url, QuotaUrl) else QuotaUrl(url)
        if found.scheme in REDIS_SCHEMES:
            return found
        why = "a redis://, rediss://, unix:// or redis+sentinel:// URL is allowed"
    except Refused as refusal:
        why = str(refusal)
    raise ValueError(f"url: {why}")
