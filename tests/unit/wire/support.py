"""Helpers for tests on real sockets: sessions that never sleep, and what a process holds open."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from requests_smithy_retry import RetryAdapter

LINUX = Path("/proc/self/fd").exists()


@contextlib.contextmanager
def session(**options: Any) -> Iterator[requests.Session]:
    """A session whose retries follow at once, blind to the environment."""
    options.setdefault("initial_backoff", 0)
    options.setdefault("throttling_backoff", 0)
    options.setdefault("quota", None)
    with requests.Session() as made:
        made.trust_env = False
        adapter = RetryAdapter(**options)
        made.mount("http://", adapter)
        made.mount("https://", adapter)
        yield made


def sockets() -> int:
    """How many sockets this process holds; 0 where there is no /proc."""
    if not LINUX:
        return 0
    count = 0
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            count += str(path.readlink()).startswith("socket:")
    return count


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Fail if more sockets or threads are there at the end than there were."""
    before = sockets(), threading.active_count()
    yield
    after = sockets(), threading.active_count()
    if after > before or after[1] > before[1]:
        pytest.fail(f"sockets and threads: {before} before, {after} after")
