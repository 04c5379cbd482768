"""A connection without a network: it plays what a behaviour of the kit does. Its silences pass on a virtual clock."""

from __future__ import annotations

import errno
import io
import math
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn
from unittest import mock

from ..behaviour import Behaviour
from ..clock import RetryClock, waits_skipped_on
from ..recorded_request import RecordedRequest
from ..wire import HangUp, Wire


class RunEnded(BaseException):
    """Ends a run of a test, whatever the code under test catches.

    :param what: the finding of a reviewer.
    """

    def __init__(self, what: str, why: str) -> None:
        super().__init__(why)
        self.what = what


ENDLESS = "hang: the client waits for a silent server without a time-out"
NO_BOUND = "no bound: the client goes on for more than an hour, or with more than 50 requests"
STUCK = "hang: the test came to no end"


class VirtualTime(RetryClock):
    """The machine's clocks, ahead of them by all that was slept through; ``most`` virtual seconds end a run."""

    def __init__(self, most: float = math.inf) -> None:
        super().__init__()
        self._real = {name: getattr(time, name) for name in ("monotonic", "time", "perf_counter", "sleep")}
        self._bound = most
        self.ending: RunEnded | None = None
        """The exception that ended the run."""

    def end(self, what: str, why: str) -> NoReturn:
        """End the run with a finding."""
        self.ending = RunEnded(what, why)
        raise self.ending

    @property
    def passed(self) -> float:
        """The seconds that were slept through."""
        return self._now

    def now(self) -> float:
        return float(self._real["monotonic"]()) + self.passed

    def wall(self) -> float:
        return float(self._real["time"]()) + self.passed

    def advance(self, seconds: float) -> None:
        """Let time pass; end the run if more has passed than any client should take."""
        super().advance(seconds)
        if self.passed > self._bound:
            self.end(NO_BOUND, f"it went on for {self.passed:.0f} s")

    def _sleep(self, seconds: float) -> None:
        # A server of the suite in another thread would spin.
        if threading.current_thread() is threading.main_thread():
            self.sleep(seconds)
        else:
            self._real["sleep"](seconds)

    @contextmanager
    def in_force(self) -> Iterator[VirtualTime]:
        """Have :mod:`time`, and every clock of this library, follow this one inside the block."""
        stand_ins: dict[str, Any] = {
            "monotonic": self.now,
            "time": self.wall,
            "perf_counter": lambda: self._real["perf_counter"]() + self.passed,
            "sleep": self._sleep,
        }
        with waits_skipped_on(self), mock.patch.multiple(time, **stand_ins):
            yield self


class Tape(Wire):
    """Records what a behaviour does to its connection."""

    def __init__(self) -> None:
        self.is_open: bool = True
        self.events: deque[bytes | float | str] = deque()
        """Bytes, seconds of silence, and the end: ``"close"`` or ``"reset"``."""

    def send(self, data: bytes) -> None:
        self.events.append(data)

    def stall(self, seconds: float) -> None:
        if seconds > 0:
            self.events.append(seconds)
        if math.isinf(seconds):
            raise HangUp("nothing comes after it")

    def close(self) -> None:
        self.is_open = False
        self.events.append("close")

    def reset(self) -> None:
        self.is_open = False
        self.events.append("reset")


def taped(behaviour: Behaviour, method: str) -> deque[bytes | float | str]:
    """Return what a behaviour does with a request that asks to close the connection."""
    tape = Tape()
    try:
        behaviour.act(tape, RecordedRequest(method, "/", (("Connection", "close"),)))
    except HangUp:
        pass
    return tape.events


class VirtualSocket:
    """A connected socket as ``http.client`` and urllib3 use one. After the events of a tape the far end has closed."""

    _io_refs = 0

    def __init__(self, events: deque[bytes | float | str], clock: VirtualTime) -> None:
        self._events = events
        self._clock = clock
        self._timeout: float | None = None

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        return self._timeout

    def _ignore(self, *_: object) -> None:
        """Do nothing: what is sent is ignored, and there is no descriptor to close."""

    setsockopt: Callable[..., None] = _ignore
    sendall: Callable[..., None] = _ignore
    shutdown: Callable[..., None] = _ignore
    close: Callable[..., None] = _ignore
    _decref_socketios = _ignore

    def recv(self, size: int) -> bytes:
        room = bytearray(size)
        return bytes(room[: self.recv_into(room)])

    def recv_into(self, buffer: Any) -> int:
        """Play the next event; end the run at a silence that nothing ends."""
        while self._events and isinstance(self._events[0], float):
            self._fall_silent(self._events.popleft())  # type: ignore[arg-type]
        event = self._events[0] if self._events else "close"
        if event == "reset":
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        if not isinstance(event, bytes):
            return 0
        count = min(len(buffer), len(event))
        buffer[:count] = event[:count]
        self._events[0] = event[count:]
        if count == len(event):
            self._events.popleft()
        return count

    def _fall_silent(self, seconds: float) -> None:
        if self._timeout is None and math.isinf(seconds):
            self._clock.end(ENDLESS, "no time-out ends the wait for a silent server")
        wait = seconds if self._timeout is None else min(seconds, self._timeout)
        self._clock.advance(wait)
        if wait < seconds:
            self._events.appendleft(seconds - wait)
            raise TimeoutError("timed out")

    def makefile(self, *_: object, **__: object) -> io.BufferedReader:
        return io.BufferedReader(socket.SocketIO(self, "r"))  # type: ignore[arg-type]
