"""Whose quota an operation spends (contract 6.4, 11.3): the name of a scope, and the table of what each has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from .forksafe import renew_lock_after_fork
from .quota import RetryQuota

MAX_SCOPES = 1024
"""So many scopes are kept at most."""

DEFAULT_PORTS = {"http": 80, "https": 443}

T = TypeVar("T", bound=RetryQuota)


def scope_of(url: str) -> str:
    """``scheme://host:port`` of a URL, without userinfo; never raises.

    >>> scope_of("https://user:secret@API.example.com/v1?key=1")
    'https://api.example.com:443'
    >>> scope_of("http://[::1]:8080/"), scope_of("http+unix://%2Frun%2Fapp.sock/v1")
    ('http://[::1]:8080', 'http+unix://%2Frun%2Fapp.sock')
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "invalid URL"
    scheme = parts.scheme.lower()
    host = parts.netloc.rpartition("@")[2]
    if port is not None:
        host = host.rpartition(":")[0]
    else:
        host = host.removesuffix(":")
        port = DEFAULT_PORTS.get(scheme)
    # An http+unix host is a quoted path, in which case matters.
    host = host if "%2f" in host.lower() else host.lower()
    return f"{scheme}://{host}" if port is None else f"{scheme}://{host}:{port}"


class ScopeTable(Generic[T]):
    """One bucket per scope, made when a scope first needs one; at most :data:`MAX_SCOPES` are kept.

    When a new scope finds the table full, the one longest unused bucket that is full goes: a full bucket is as good
    as a new one. Where no bucket is full, the newcomers share one more bucket, so that touching many hosts never
    refills a spent one.

    :param make: makes a bucket.
    :param limit: how many are kept.
    """

    def __init__(self, make: Callable[[], T], limit: int = MAX_SCOPES) -> None:
        self._make = make
        self._limit = limit
        self._buckets: dict[str | None, T] = {}
        self._overflow: T | None = None
        self.renew_lock()
        renew_lock_after_fork(self)

    def get(self, scope: str | None) -> T:
        """The bucket of a scope."""
        with self._lock:
            # Taken out and put in again: the dict's order is the order of use.
            bucket = self._buckets.pop(scope, None)
            if bucket is None:
                if len(self._buckets) >= self._limit and not self._evict_one():
                    if self._overflow is None:
                        self._overflow = self._make()
                    return self._overflow
                bucket = self._make()
            self._buckets[scope] = bucket
            return bucket

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork."""
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[tuple[str | None, T]]:
        return iter(tuple(self._buckets.items()))

    def __len__(self) -> int:
        return len(self._buckets)

    def _evict_one(self) -> bool:
        for scope, bucket in self._buckets.items():
            if bucket.available >= bucket.capacity:
                del self._buckets[scope]
                return True
        return False
