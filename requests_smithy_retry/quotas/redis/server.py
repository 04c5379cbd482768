"""The script and the commands for a server, and the choice of redis-py's client (no I/O here).

A bucket is a hash with a level and, where it refills, the server's time at which that was. A missing bucket is a full
one, so a full one is not kept. What redis-py says of a URL is kept back, since it may quote it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from ..places import SENTINEL_SCHEMES, sentinels_of
from ..settings import RedisSettings

SCRIPT = """
local capacity, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local give, ttl = tonumber(ARGV[3]), tonumber(ARGV[4])
local kept = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = tonumber(kept[1] or '') or capacity
local now = 0
if rate > 0 then
    local time = redis.call('TIME')
    now = tonumber(time[1]) + tonumber(time[2]) / 1000000
    level = level + math.max(0, now - (tonumber(kept[2] or '') or now)) * rate
end
level = math.min(capacity, math.max(0, level) + give)
local answer = {''}
for position = 5, #ARGV do
    local take = tonumber(ARGV[position])
    local granted = level >= take
    if granted then
        level = level - take
    end
    answer[position - 3] = granted and 1 or 0
end
if level >= capacity then
    redis.call('DEL', KEYS[1])
else
    redis.call('HSET', KEYS[1], 'level', string.format('%.17g', level), 'at', string.format('%.17g', now))
    redis.call('PEXPIRE', KEYS[1], ttl)
end
answer[1] = string.format('%.17g', level)
return answer
"""
"""Gives back first, then takes one amount after the other; each take is granted whole or refused."""


class NonsenseError(ValueError):
    """The server's answer is not one that the script can give."""


class Reply(NamedTuple):
    """The server's answer."""

    level: float
    granted: tuple[bool, ...] = ()


def key_of(prefix: str, name: str) -> str:
    """The bucket's key. The braces make a cluster go by the scope alone, so that each script has one slot."""
    return f"{prefix}:{{{name}}}"


def arguments(
    capacity: float, refill_rate: float, give: float, ttl: float, takes: Iterable[float] = ()
) -> tuple[str, ...]:
    """The script's arguments; the time to live, here in seconds, goes as whole milliseconds."""
    capacity_, rate, give_, *taken = (repr(float(value)) for value in (capacity, refill_rate, give, *takes))
    return (capacity_, rate, give_, str(math.ceil(ttl * 1000)), *taken)


def reply_of(answer: Any, takes: int) -> Reply | Exception:
    """The script's answer as a value; an error that came in its place as it is."""
    if isinstance(answer, Exception):
        return answer
    try:
        text, *granted = answer
        level = float(text)
    except (TypeError, ValueError, OverflowError):
        return NonsenseError("not the script's answer")
    if not 0 <= level < math.inf or len(granted) != takes or any(each not in (0, 1) for each in granted):
        return NonsenseError("not the script's answer")
    return Reply(level, tuple(each == 1 for each in granted))


PATIENCE = 10
"""The number of budgets to wait for an answer before the connection is given up; the callers have left long before."""


class RedisClient(Protocol):
    """The part of redis-py's clients that is used."""

    def pipeline(self, transaction: bool) -> Any: ...

    def close(self) -> None: ...


def redis_error(name: str) -> type[Exception]:
    """Return one of redis-py's exceptions; redis-py is imported only by code that uses it."""
    error: type[Exception] = getattr(import_module("redis").exceptions, name)
    return error


def single_client(url: str, settings: RedisSettings) -> RedisClient:
    """Return a client of the one server that a URL names, or of the master of its sentinels."""
    redis = import_module("redis")
    # One more try, on a new connection: a server may close one that was idle for long.
    retry = redis.retry.Retry(redis.backoff.NoBackoff(), 1, (redis.exceptions.ConnectionError,))
    options = {"retry": retry, **_timeouts(settings)}
    if urlsplit(url).scheme in SENTINEL_SCHEMES:
        return _master(redis, url, options)
    return redis.Redis.from_url(url, **options)  # type: ignore[no-any-return]


def _master(redis: Any, url: str, options: dict[str, Any]) -> RedisClient:
    parts = urlsplit(url)
    service, _, database = parts.path.strip("/").partition("/")
    # redis-py has no URL for sentinels: theirs is one of the server, but for the hosts and the service's name.
    login = parts.netloc.rpartition("@")[0]
    scheme = parts.scheme.partition("+")[0]
    said = redis.connection.parse_url(f"{scheme}://{login}@localhost/{database or 0}?{parts.query}")
    del said["host"]
    tls = {name: value for name, value in said.items() if name.startswith("ssl")}
    if said.pop("connection_class", None) is not None:
        tls["ssl"] = said["ssl"] = True
    own = {name: said.pop(f"sentinel_{name}") for name in ("username", "password") if f"sentinel_{name}" in said}
    manager = redis.sentinel.Sentinel(sentinels_of(parts), sentinel_kwargs={**options, **tls, **own})
    return manager.master_for(service, **{**options, **said})  # type: ignore[no-any-return]


def cluster_client(url: str, settings: RedisSettings) -> RedisClient:
    """Return a client of the cluster that a node at this URL belongs to. Asks the node for the others."""
    redis = import_module("redis")
    retry = redis.retry.Retry(redis.backoff.NoBackoff(), 1)
    return redis.RedisCluster.from_url(url, retry=retry, **_timeouts(settings))  # type: ignore[no-any-return]


def _timeouts(settings: RedisSettings) -> dict[str, float]:
    # RESP2 is understood everywhere, and takes no greeting.
    return {
        "socket_connect_timeout": settings.connect_timeout,
        "socket_timeout": settings.budget * PATIENCE,
        "protocol": 2,
    }


def is_late(error: BaseException) -> bool:
    """Tell whether the answer may still come, so that the command will be, or was, executed."""
    return isinstance(error, (TimeoutError, redis_error("TimeoutError")))


def is_moved(answer: object) -> bool:
    """Tell whether a server answered that another one of its cluster has the key."""
    if not isinstance(answer, redis_error("ResponseError")):
        return False
    # Before redis-py 6 it is any error that the server answers, with the server's own words.
    return isinstance(answer, redis_error("AskError")) or str(answer).startswith(("MOVED ", "ASK "))


def check(url: str, settings: RedisSettings) -> None:
    """Check that redis-py can use a URL, without connecting. Its own words, which may quote the URL, are kept back."""
    problem = ""
    try:
        client: Any = single_client(url, settings)
        client.connection_pool.make_connection()
    except Exception as error:
        problem = type(error).__name__
    if problem:
        raise ValueError(f"url: redis-py refuses its query or its path ({problem})")
