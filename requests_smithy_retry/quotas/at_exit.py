"""Returning, when a process ends, the tokens that it still owes. No thread waits for that."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Protocol


class Flushes(Protocol):
    """An object with something to do at exit."""

    def flush(self) -> None: ...


_watched: weakref.WeakSet[Flushes] = weakref.WeakSet()
_multiprocessing_knows: set[int] = set()


def flush_at_exit(owner: Flushes) -> None:
    """Have ``owner`` flushed when this process ends. Holds no strong reference."""
    _watched.add(owner)
    # A child of multiprocessing ends without atexit, but with its own list.
    util = sys.modules.get("multiprocessing.util")
    if util is not None and os.getpid() not in _multiprocessing_knows:
        _multiprocessing_knows.add(os.getpid())
        util.Finalize(None, flush_all, exitpriority=0)


@atexit.register
def flush_all() -> None:
    for owner in tuple(_watched):
        owner.flush()
