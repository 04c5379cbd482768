"""Whose quota an operation spends (contract 6.4, 11.3): the name of a scope, and the table of what each has.

What was given up must be as good as new: eviction neither refills a spent bucket nor strands who waits on one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from .forksafe import renew_lock_after_fork

MAX_SCOPES = 1024
"""So many scopes are kept at most."""
MOST_LOOKS = 64
"""So many items are looked at for a newcomer to a full table, so that one costs the same however many are kept."""
UNSEEN = -1.0
"""When an item was used that nobody looked at yet; what passes through the table is looked at each time."""

NO_SCOPE = "default"
"""What None is called where an item's name is told to others."""
OVERFLOW = "overflow"
"""What the item of the newcomers is called there."""

DEFAULT_PORTS = {"http": 80, "https": 443}

T = TypeVar("T")


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


def without_secrets(scope: str) -> str:
    """A scope without userinfo, query and fragment, which a function of the user's may have left in (contract 12).

    >>> without_secrets("https://user:secret@api.example.com/v1?key=secret"), without_secrets("who?")
    ('https://api.example.com/v1', 'who?')
    """
    scheme, is_url, rest = scope.partition("://")
    if not is_url:
        return scope
    authority, slash, path = rest.partition("#")[0].partition("?")[0].partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def shown(scope: str) -> str:
    """A scope as people write it: without the port that its scheme has anyway, and without secrets.

    >>> shown("https://api.example.com:443"), shown("http://api.example.com:8080")
    ('https://api.example.com', 'http://api.example.com:8080')
    """
    scope = without_secrets(scope)
    scheme = scope.partition("://")[0]
    return scope.removesuffix(f":{DEFAULT_PORTS[scheme]}") if scheme in DEFAULT_PORTS else scope


class ScopeTable(Generic[T]):
    """One item (a bucket, a limiter) per scope, made when a scope first needs one; at most :data:`MAX_SCOPES` are kept.

    When a new scope finds the table full, the longest unused item that is spare goes, or one about as long unused: it
    is as good as a new one. Where none is found, the newcomers share one more item, so that touching many hosts never
    refills a spent one.

    :param make: makes an item.
    :param is_spare: whether a new item would do as well. Called with the table's lock held.
    :param limit: how many are kept.
    :param used_at: when an item was last used, where that does not always pass through the table.
    :param retire: told of an item that was given up.
    """

    def __init__(
        self,
        make: Callable[[], T],
        is_spare: Callable[[T], bool],
        limit: int = MAX_SCOPES,
        *,
        used_at: Callable[[T], float] | None = None,
        retire: Callable[[T], Any] = lambda _: None,
    ) -> None:
        self._make = make
        self._is_spare = is_spare
        self._limit = limit
        self._used_at = used_at
        self._retire = retire
        self._items: dict[str | None, T] = {}
        self._seen: dict[str | None, float] = {}
        self._overflow: T | None = None
        self.renew_lock()
        renew_lock_after_fork(self)

    def get(self, scope: str | None) -> T:
        """The item of a scope, to look at. It may be given up at any moment; to change it, :meth:`use` it."""
        with self._lock:
            return self._get(scope)

    @contextmanager
    def use(self, scope: str | None) -> Iterator[T]:
        """The item of a scope, which is not given up inside the block."""
        with self._lock:
            item = self._get(scope)
            self._pins[scope] = self._pins.get(scope, 0) + 1
        try:
            yield item
        finally:
            with self._lock:
                left = self._pins.pop(scope, 0) - 1
                if left > 0:
                    self._pins[scope] = left

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork; whoever used an item is not in the child."""
        self._lock = threading.Lock()
        self._pins: dict[str | None, int] = {}

    def __iter__(self) -> Iterator[tuple[str | None, T]]:
        with self._lock:
            return iter(tuple(self._items.items()))

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, scope: object) -> bool:
        return scope in self._items

    @property
    def overflow(self) -> T | None:
        """The item that newcomers share while there is no room; None: there was room so far."""
        return self._overflow

    def _get(self, scope: str | None) -> T:
        # Taken out and put in again: the dict's order is the order of use.
        item = self._items.pop(scope, None)
        if item is None:
            if len(self._items) >= self._limit and not self._evict_one():
                if self._overflow is None:
                    self._overflow = self._new(OVERFLOW)
                return self._overflow
            item = self._new(NO_SCOPE if scope is None else scope)
        self._items[scope] = item
        return item

    def _new(self, name: str) -> T:  # noqa: ARG002 - for items that have names
        return self._make()

    def _evict_one(self) -> bool:
        """Give up a spare item of those at the head of the line; what is looked at in vain goes to its end.

        An item that was used since it was last looked at stays, unless all that are looked at were.
        """
        used: dict[str | None, float] = {}
        for scope in tuple(islice(self._items, MOST_LOOKS)):
            item = self._items[scope] = self._items.pop(scope)
            if scope in self._pins or not self._is_spare(item):
                continue
            last = UNSEEN if self._used_at is None else self._used_at(item)
            if last == self._seen.get(scope, UNSEEN):
                return self._give_up(scope)
            used[scope] = self._seen[scope] = last
        return bool(used) and self._give_up(min(used, key=used.__getitem__))

    def _give_up(self, scope: str | None) -> bool:
        self._seen.pop(scope, None)
        self._retire(self._items.pop(scope))
        return True


class NamedScopeTable(ScopeTable[T]):
    """A table whose items are made by name, so that processes mean the same item by the same scope.

    :param make_named: makes an item, given its scope, or :data:`NO_SCOPE` or :data:`OVERFLOW`.
    :param is_spare: as of every table.
    :param limit: as of every table.
    """

    def __init__(self, make_named: Callable[[str], T], is_spare: Callable[[T], bool], limit: int = MAX_SCOPES) -> None:
        super().__init__(lambda: make_named(NO_SCOPE), is_spare, limit)
        self._make_named = make_named

    def _new(self, name: str) -> T:
        return self._make_named(name)
