"""Forks, copies and pickles (contract 11.1).

A forked child never inherits a lock that another thread held. Copies keep the configuration, not the runtime state.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, ClassVar, Protocol


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


class FreshCopies:
    """A class whose copies and pickles keep all attributes but those that hold runtime state.

    A copy is made without the constructor, so a subclass may have a constructor of its own.
    """

    _past: ClassVar[frozenset[str]]
    """The attributes that a copy begins anew."""

    def _begin(self) -> None:
        """Set the attributes named in ``_past``."""
        raise NotImplementedError  # pragma: no cover - each subclass has it

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._past}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()
