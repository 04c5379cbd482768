"""The pool of an origin, found again by its key: requests would parse the URL and put some thirty fields into a key.

Only the key is remembered. The pool manager is asked with it each time, so eviction, ``close()`` and the order of use
are its own.
"""

from __future__ import annotations

import os
from typing import Any

from urllib3 import PoolManager

MOST_ORIGINS = 256
"""The most origins whose keys are remembered; with more, all are forgotten."""


class PoolKeys:
    """The keys that the pools of one adapter have, by the beginning of a URL and what certificates are checked by."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Any], tuple[Any, dict[str, Any], Any]] = {}

    def pool(self, manager: Any, origin: str, checks: Any) -> Any:
        """Return the pool that the manager has for an origin; None: it has none, or its key is not known.

        :param checks: from :func:`checks_by`.
        """
        known = self._known.get((origin, checks))
        if known is None or known[0] is not manager or known[1] != manager.connection_pool_kw:
            return None
        return manager.pools.get(known[2])

    def remember(self, manager: Any, origin: str, checks: Any, pool: Any) -> None:
        """Remember the key under which a manager of urllib3's own class keeps a pool."""
        if type(manager) is not PoolManager or "@" in origin:  # a password is not kept
            return
        pools = manager.pools
        with pools.lock:
            keys = [key for key, kept in getattr(pools, "_container", {}).items() if kept is pool]
        if keys:
            if len(self._known) >= MOST_ORIGINS:
                self._known.clear()
            self._known[origin, checks] = manager, dict(manager.connection_pool_kw), keys[0]


def checks_by(verify: Any) -> Any:
    """Return what certificates are checked by: True, False, or a path and whether that is a folder; None: by another.

    It is what the argument adds to the key of a pool.
    """
    if isinstance(verify, str):
        return verify, os.path.isdir(verify)
    return verify if isinstance(verify, bool) else None
