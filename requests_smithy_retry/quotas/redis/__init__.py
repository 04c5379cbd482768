"""A retry quota on Redis (6 or later) or Valkey, shared by every process that names the same server and bucket.

Only a retry asks the server, within ``budget``; a first attempt never does. A first-try success gives its reward where
this process knows the bucket to be below its capacity, from the server's last answer to it; who retried knows, and who
did not retry has nothing to tell. While the server does not answer, a bucket of this process alone stands in.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...checks import Refused
from ...clock import SYSTEM_CLOCK, Clock
from ..bucket import TokenBucket, TokenBucketSnapshot, check_amount
from ..outage import LastTake
from ..settings import RedisSettings, names_of, settings_from
from ..url import REDIS_SCHEMES, QuotaUrl
from .client import check
from .link import Account, LinkHandle, RedisLink
from .script import key_of

NEEDS_REDIS = "a quota on Redis needs redis-py 5 or later: pip install 'requests-smithy-retry[redis]'"


class RedisTokenBucket:
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

    def __init__(
        self,
        url: str | QuotaUrl,
        name: str = "default",
        *,
        capacity: float = 500,
        refill_rate: float = 0.0,
        settings: RedisSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        looked_at = _looked_at(url)
        self._settle(link_to(looked_at, settings, clock), name, capacity, refill_rate)
        self._made_from: tuple[Any, ...] = (looked_at, name, capacity, refill_rate, settings, clock)

    @classmethod
    def on(cls, handle: LinkHandle, name: str, *, capacity: float, refill_rate: float) -> RedisTokenBucket:
        """A bucket that shares its connections with others.

        :param handle: see :func:`link_to`.
        """
        bucket = cls.__new__(cls)
        bucket._settle(handle, name, capacity, refill_rate)
        bucket._made_from = ()
        return bucket

    def _settle(self, handle: LinkHandle, name: str, capacity: float, refill_rate: float) -> None:
        self._handle = handle
        self._link = link = handle.link
        size = link.settings.local_bucket_size(capacity)
        TokenBucket(capacity, refill_rate=refill_rate)  # refuses numbers out of range
        self.name = name
        self._account = Account(key_of(link.settings.prefix, name), capacity, refill_rate)
        self._local = TokenBucket(size, refill_rate=min(refill_rate, size), clock=link.clock)
        self._last_take = LastTake()

    @property
    def capacity(self) -> float:
        """The most it holds."""
        return self._account.capacity

    @property
    def available(self) -> float:
        """The tokens that the answering bucket holds: as of the server's last answer, with those given back since."""
        if self._is_local:
            return self._local.available
        return min(self._account.capacity, self._account.level + self._account.pending)

    @property
    def source(self) -> str:
        """Which bucket answered this thread's last take: ``"redis"``, or ``"redis, fallen open"``."""
        return "redis, fallen open" if self._is_local else "redis"

    @property
    def _is_local(self) -> bool:
        return self._last_take.was_local or self._link.outage.fallen_open

    @property
    def failures(self) -> int:
        """Failures of the server, since the start."""
        return self._link.outage.failures

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:
        """Take ``amount`` tokens, or none and return False. Waits no longer than the budget.

        :param amount: from 0 on.
        :param deadline: or no longer than to this moment, on the clock.
        :raises ValueError: for a negative amount, or none at all.
        """
        check_amount(amount)
        granted = self._link.take(self._account, amount, deadline)
        self._last_take.was_local = granted is None
        return self._local.acquire(amount) if granted is None else granted

    def release(self, amount: float) -> None:
        """Give ``amount`` tokens back, without a round trip; what exceeds the capacity is dropped.

        :raises ValueError: for a negative amount, or none at all.
        """
        check_amount(amount)
        # The local bucket stands for what this process would have by itself, so it gets all of it too.
        room = 0.0
        if self._local.available < self._local.capacity:
            room = self._local.capacity - self._local.available
            self._local.release(amount)
        if self._is_local:
            amount -= room
        account = self._account
        if amount > 0 and account.level + account.pending < account.capacity:
            self._link.give_back(account, amount)

    def refresh(self) -> bool:
        """Ask the server what the bucket holds, within the budget. False: it does not answer."""
        is_answered = self._link.take(self._account, 0) is not None
        self._last_take.was_local = not is_answered
        return is_answered

    def flush(self) -> None:
        """Give back now what was gathered."""
        self._link.flush()

    def snapshot(self) -> TokenBucketSnapshot:
        """An immutable view, without asking the server."""
        return TokenBucketSnapshot(self.capacity, self.available, source=self.source)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy is another handle of the same bucket, with connections of its own.
        if not self._made_from:
            raise TypeError("this bucket belongs to a strategy: copy the strategy instead")
        return _bucket, self._made_from

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self._link.outage.place} ({self.source})>"


def _bucket(
    url: str | QuotaUrl, name: str, capacity: float, refill_rate: float, settings: RedisSettings | None, clock: Clock
) -> RedisTokenBucket:
    return RedisTokenBucket(url, name, capacity=capacity, refill_rate=refill_rate, settings=settings, clock=clock)


def link_to(url: str | QuotaUrl, settings: RedisSettings | None = None, clock: Clock = SYSTEM_CLOCK) -> LinkHandle:
    """A link for any number of buckets on one server. It connects when it is first needed; hold its handle.

    :param url: see :class:`RedisTokenBucket`.
    :raises ValueError: for a bad URL or setting; the URL is not shown.
    :raises ImportError: without redis-py.
    """
    looked_at = _looked_at(url)
    missing = False
    try:
        import_module("redis")
    except ImportError:
        missing = True
    if missing:
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
        why = (
            ""
            if found.scheme in REDIS_SCHEMES
            else "a redis://, rediss://, unix:// or redis+sentinel:// URL is allowed"
        )
    except Refused as refusal:
        why = str(refusal)
    if why:
        raise ValueError(f"url: {why}")
    return found
