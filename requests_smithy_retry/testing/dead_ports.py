"""Loopback ports that accept no connections."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_SETTLE = 0.05
_MOST_FILLERS = 16


@contextmanager
def refusing_port(host: str = "127.0.0.1") -> Iterator[int]:
    """Yield a port that refuses connections and is reserved inside the block."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        sock.bind((host, 0))
        yield sock.getsockname()[1]


@contextmanager
def hanging_port(host: str = "127.0.0.1") -> Iterator[int]:
    """Yield a port whose backlog is full, so that a connection attempt is neither accepted nor refused.

    :raises RuntimeError: on a system that accepts beyond the backlog.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family))
        listener.bind((host, 0))
        listener.listen(0)
        for _ in range(_MOST_FILLERS):
            filler = stack.enter_context(socket.socket(family))
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
            if not select.select([], [filler], [], _SETTLE)[1]:
                break
        else:
            raise RuntimeError("this system accepts connections beyond a full backlog")
        yield listener.getsockname()[1]
