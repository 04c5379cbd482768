"""The client of redis-py for a URL: of one server, of a cluster, or of the master that sentinels name.

Nothing is connected here. What redis-py says of a URL is kept back, since it may quote it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlsplit

from ..settings import RedisSettings
from ..url import SENTINEL_SCHEMES, sentinels_of

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
    """Check that redis-py can use a URL, without connecting.

    :raises ValueError: if it cannot; its own words, which may quote the URL, are kept back.
    """
    problem = ""
    try:
        client: Any = single_client(url, settings)
        client.connection_pool.make_connection()
    except Exception as error:
        problem = type(error).__name__
    if problem:
        raise ValueError(f"url: redis-py refuses its query or its path ({problem})")
