"""The scope that an operation spends from (contract 6.4, 11.3), and the table with an item for each.

What was given up must be as good as new: eviction neither refills a spent bucket nor strands who waits on one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Generic, TypeVar

from ..clock import SYSTEM_CLOCK, Clock
from ..forksafe import renew_lock_after_fork

MAX_SCOPES = 1024
"""The most scopes that are kept."""
FORGET_AFTER = 600.0
"""Seconds without use after which an item is replaced by a new one, whatever it holds."""
MOST_LOOKS = 64
"""The most items that are examined for a newcomer to a full table: it costs the same however many are kept."""
UNSEEN = -1.0
"""The moment of last use of an item that was never examined; items that pass through the table are examined."""

NO_SCOPE = "default"
"""The name for None, where items have names."""
OVERFLOW = "overflow"
"""The name of the item that newcomers share."""

T = TypeVar("T")


class ScopeTable(Generic[T]):
    """One item (a bucket, a limiter) per scope, made when a scope first needs one; at most :data:`MAX_SCOPES` are kept.

    When a new scope finds the table full, the longest unused item that is spare goes, or one about as long unused: it
    is as good as a new one. So is one that nobody touched for :data:`FORGET_AFTER` seconds: hosts that are gone leave
    no item for those that are there otherwise. Where none is found, the newcomers share one more item, so that touching
    many hosts does not refill a spent one.

    :param make: makes an item by name, so that processes mean the same item by the same scope.
    :param is_spare: returns True if a new item would do as well. Called with the table's lock held.
    :param used_at: when an item was last used, on that clock, where that does not always pass through the table.
    """

    def __init__(
        self,
        make: Callable[[str], T],
        is_spare: Callable[[T], bool],
        limit: int = MAX_SCOPES,
        *,
        clock: Clock = SYSTEM_CLOCK,
        used_at: Callable[[T], float] | None = None,
        retire: Callable[[T], Any] = lambda _: None,
    ) -> None:
        self._make = make
        self._is_spare = is_spare
        self._limit = limit
        self._clock = clock
        self._used_at = used_at
        self._retire = retire
        self._items: dict[str | None, T] = {}
        self._touched: dict[str | None, float] = {}
        self._seen: dict[str | None, float] = {}
        self.overflow: T | None = None
        """The item that newcomers share while there is no room; None: there was room so far."""
        self._overflow_touched = 0.0
        self.renew_lock()
        renew_lock_after_fork(self)

    def get(self, scope: str | None) -> T:
        """Return the item of a scope, to read. It may be given up at any moment; to change it, :meth:`use` it."""
        with self._lock:
            return self._get(scope)

    def known(self, scope: str | None) -> T | None:
        """Return the item of a scope if there is one already, or that of the newcomers."""
        return self._items.get(scope, self.overflow)

    @contextmanager
    def use(self, scope: str | None) -> Iterator[T]:
        """The item of a scope, which is not given up inside the block."""
        is_pinned = False
        try:
            with self._lock:
                item = self._get(scope)
                # One step: a signal's handler may raise between two.
                is_pinned, self._pins[scope] = True, self._pins.get(scope, 0) + 1
            yield item
        finally:
            if is_pinned:
                with self._lock:
                    left = self._pins.pop(scope, 0) - 1
                    if left > 0:
                        self._pins[scope] = left

    def forget(self) -> list[T]:
        """Give up every item, as if none had been made; return them."""
        with self._lock:
            given_up = list(self._items.values())
            for scope in tuple(self._items):
                self._give_up(scope)
            if self.overflow is not None:
                given_up.append(self.overflow)
                self._retire(self.overflow)
                self.overflow = None
        return given_up

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork: no thread that uses an item is in the child."""
        self._lock = threading.Lock()
        self._pins: dict[str | None, int] = {}

    def __iter__(self) -> Iterator[tuple[str | None, T]]:
        with self._lock:
            return iter(tuple(self._items.items()))

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, scope: object) -> bool:
        return scope in self._items

    def _get(self, scope: str | None) -> T:
        now = self._clock.now()
        if scope in self._items:
            # Taken out and put in again, in one step: the dict's order is the order of use.
            item = self._items[scope] = self._items.pop(scope)
        else:
            self._forget_overflow(now)
            if len(self._items) >= self._limit and not self._evict_one(now):
                self._overflow_touched = now
                if self.overflow is None:
                    self.overflow = self._make(OVERFLOW)
                return self.overflow
            # Before the item: an interruption may come between, and an item is never without it.
            self._touched[scope] = now
            item = self._items[scope] = self._make(NO_SCOPE if scope is None else scope)
        self._touched[scope] = now
        return item

    def _evict_one(self, now: float) -> bool:
        """Give up a spare item of those at the head of the line; items that are not spare go to its end.

        An item that was used since it was last looked at stays, unless all that are looked at were.
        """
        used: dict[str | None, float] = {}
        for scope in tuple(islice(self._items, MOST_LOOKS)):
            item = self._items[scope] = self._items.pop(scope)
            last = self._last_use(item)
            if scope in self._pins or not (
                self._is_spare(item) or now - max(self._touched[scope], last) >= FORGET_AFTER
            ):
                continue
            if last == self._seen.get(scope, UNSEEN):
                return self._give_up(scope)
            used[scope] = self._seen[scope] = last
        return bool(used) and self._give_up(min(used, key=used.__getitem__))

    def _give_up(self, scope: str | None) -> bool:
        item = self._items.pop(scope)
        self._touched.pop(scope, None)
        self._seen.pop(scope, None)
        self._retire(item)
        return True

    def _forget_overflow(self, now: float) -> None:
        """Give up the newcomers' item, if it was not used for long and is not in use."""
        item = self.overflow
        if item is None or now - max(self._overflow_touched, self._last_use(item)) < FORGET_AFTER:
            return
        if self._pins.keys() <= self._items.keys():
            self.overflow = None
            self._retire(item)

    def _last_use(self, item: T) -> float:
        return UNSEEN if self._used_at is None else self._used_at(item)
