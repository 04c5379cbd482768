"""Locks across ``fork`` (contract 11.1): a child never inherits a lock that another thread held."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class HoldsLock(Protocol):
    """An object that owns a lock."""

    def renew_lock(self) -> None:
        """Replace the lock; called in the child, which has no other thread."""
        ...


_holders: weakref.WeakSet[HoldsLock] = weakref.WeakSet()


def renew_lock_after_fork(holder: HoldsLock) -> None:
    """Have ``holder`` renew its lock in every child forked from now on; keep no strong reference to it."""
    _holders.add(holder)


def _renew_all() -> None:  # pragma: no cover - runs in the child, whose end by os._exit leaves no measurement
    for holder in tuple(_holders):
        holder.renew_lock()


if hasattr(os, "register_at_fork"):  # pragma: no branch - absent only where there is no fork
    os.register_at_fork(after_in_child=_renew_all)
