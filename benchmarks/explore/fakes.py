"""What stands in for ``threading``, ``time``, ``socket`` and ``selectors`` in the package under test."""

from __future__ import annotations

import socket as real_socket
import threading as real_threading
from types import SimpleNamespace
from typing import Any

from . import network
from .tasks import Condition, Event, Lock, RLock, Thread, get_ident, tasks


class Local(real_threading.local):
    """A ``threading.local`` of which each task sees its own attributes."""

    def __new__(cls, *args: Any, **named: Any) -> Any:
        made = super().__new__(cls, *args, **named)
        tasks.locals.append(made)
        return made


threading = SimpleNamespace(
    Lock=Lock,
    RLock=RLock,
    Condition=Condition,
    Event=Event,
    Thread=Thread,
    local=Local,
    get_ident=get_ident,
    TIMEOUT_MAX=real_threading.TIMEOUT_MAX,
)
WALL = 1_700_000_000.0


def monotonic() -> float:
    return tasks.now


time = SimpleNamespace(monotonic=monotonic, time=lambda: WALL + tasks.now, sleep=tasks.wait)
network.FakeSocket.__module__ = "socket"  # as the package asks whether sockets were replaced by somebody
network.FakeSelector.__module__ = "selectors"
socket = SimpleNamespace(
    **{
        **vars(real_socket),
        "socket": network.FakeSocket,
        "getaddrinfo": lambda *where: network.net.resolve(*where),
        "getdefaulttimeout": lambda: None,
    }
)
selectors = SimpleNamespace(DefaultSelector=network.FakeSelector, EVENT_WRITE=2, EVENT_READ=1, BaseSelector=object)
