"""First-try successes (contract 6.2, 9) and their hooks. Most operations are one, so their cost is measured."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from ..quotas.scope_quota import DO_NOTHING, FirstTry
from ..quotas.scopes import MAX_SCOPES

ORIGIN = re.compile(r"[^/]*(?://[^/]*)?").match
"""Matches any URL: its scheme, host and port, as they are written there."""


class FirstTryHook(Protocol):
    """A listener to the first-try successes in a scope."""

    @property
    def first_try(self) -> FirstTry:
        """Called on each, with when it began and its time-out."""
        ...

    @property
    def retired(self) -> bool:
        """True once the scope was given up, so that its next hook must be looked up."""
        ...


class NothingToTell:
    """The hook of a scope without a quota."""

    first_try: FirstTry = DO_NOTHING
    retired = False


NOTHING_TO_TELL = NothingToTell()


@dataclass(eq=False, slots=True)
class BusyBesides:
    """True while a live set has more in it than another one, all of whose members are in the first."""

    busy: Collection[object]
    others: Collection[object]

    def __bool__(self) -> bool:
        return len(self.busy) > len(self.others)


def remember(hooks: dict[str, FirstTryHook], url: str, hook: FirstTryHook) -> None:
    """Remember a hook by the origin of a URL, as it is written there, until its scope is given up."""
    if len(hooks) >= MAX_SCOPES:
        hooks.clear()
    hooks[ORIGIN(url)[0]] = hook  # type: ignore[index]
    # Looked at once more: it may have been given up in between, and its scope's next one must not be passed over.
    if hook.retired:
        hooks.clear()
