"""What strategies and adapters know of services, forgotten by all of them at once, as before each test."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Protocol


class Forgets(Protocol):
    """An object that learns of services."""

    def forget(self) -> None:
        """Know as little of them as a new object does."""
        ...


_alive: dict[int, weakref.ref[Forgets]] = {}
"""By identity: a subclass may be neither comparable nor hashable."""


def forgets_with_all(owner: Forgets) -> None:
    """Have :func:`forget_everything` reach an object, as long as it lives; keep no strong reference to it."""
    number = id(owner)
    # The callback runs no bytecode, so nothing can interrupt it; the reference is its second argument, a default.
    _alive[number] = weakref.ref(owner, partial(_alive.pop, number))


def forget_everything() -> None:
    """Have every strategy and adapter of the process begin anew, as if it had just been made.

    Quotas are full; no service is known to be down, no limit to be used up and no address to fail. Operations that wait
    for a service or for a permit go at once. Quotas on Redis stay as they are: they are other processes', too.
    """
    for reference in list(_alive.values()):
        owner = reference()
        if owner is not None:
            owner.forget()
