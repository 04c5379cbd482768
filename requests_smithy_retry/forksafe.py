"""State that starts over (contract 11.1): locks in a forked child, the runtime state of a copy or a pickle; and, for
tests, what was learnt about services.
"""

from __future__ import annotations

import os
import weakref
from functools import partial
from typing import Any, ClassVar, Protocol


class HoldsLock(Protocol):
    """An object that owns a lock."""

    def renew_lock(self) -> None:
        """Replace the lock; called in the child, which has no other thread."""


_holders: weakref.WeakSet[HoldsLock] = weakref.WeakSet()


def renew_lock_after_fork(holder: HoldsLock) -> None:
    """Renew the lock of ``holder`` in every child forked from now on; keep no strong reference to it."""
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
    """The attributes that a copy does not take over."""

    def _begin(self) -> None:
        """Set the attributes named in ``_past``."""
        raise NotImplementedError  # pragma: no cover - each subclass has it

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._past}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()


class Forgets(Protocol):
    """An object that learns about services."""

    def forget(self) -> None:
        """Forget what was learnt."""


_alive: dict[int, weakref.ref[Forgets]] = {}
"""By identity: a subclass may be neither comparable nor hashable."""


def forgets_with_all(owner: Forgets) -> None:
    """Let :func:`forget_everything` reach an object while it lives; keep no strong reference to it."""
    number = id(owner)
    # The callback runs no bytecode, so nothing can interrupt it; the reference is its second argument, a default.
    _alive[number] = weakref.ref(owner, partial(_alive.pop, number))


def forget_everything() -> None:
    """Reset every strategy and adapter of the process, as if it had just been made.

    Quotas are full; no service is known to be down, no limit to be used up and no address to fail. Operations that wait
    for a service or a permit proceed at once. Quotas on Redis, which other processes share, stay as they are.
    """
    for reference in list(_alive.values()):
        owner = reference()
        if owner is not None:
            owner.forget()
