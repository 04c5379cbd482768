"""Connections across ``fork`` (contract 11.1): a child sends nothing over its parent's connections.

A connection that was kept alive before the fork is one socket in two processes: each would read the other's responses.
In the child, pool managers begin with no pools. The parent's connections are neither used nor closed.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

from urllib3._collections import RecentlyUsedContainer

_managers: weakref.WeakSet[Any] = weakref.WeakSet()
_left_alone: list[Any] = []
"""Pools of the parent, never released: finalizing one takes its lock, which another thread may have held."""


def leave_to_parent(manager: Any) -> None:
    """Have a pool manager begin without pools in every child forked from now on; keep no strong reference to it.

    A manager of another kind, which keeps its pools in another way, is left alone.
    """
    if isinstance(getattr(manager, "pools", None), RecentlyUsedContainer):
        _managers.add(manager)


def begin_without_pools(manager: Any) -> None:
    """Give the manager an empty container of pools, configured like the old one."""
    pools = manager.pools
    _left_alone.append(pools)
    manager.pools = RecentlyUsedContainer(pools._maxsize, pools.dispose_func)


def _in_child() -> None:  # pragma: no cover - runs in the child, whose end by os._exit leaves no measurement
    for manager in tuple(_managers):
        begin_without_pools(manager)


if hasattr(os, "register_at_fork"):  # pragma: no branch - absent only where there is no fork
    os.register_at_fork(after_in_child=_in_child)
