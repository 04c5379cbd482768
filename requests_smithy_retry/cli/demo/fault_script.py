"""The server side of the workload: its behaviour for each request, and its record."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence

from ...clock import SYSTEM_CLOCK, Clock
from ...testing import (
    Behaviour,
    CloseAfterRequest,
    CutBody,
    RecordedRequest,
    Reply,
    ResetAfterRequest,
    Stall,
    coded_reply,
    try_later,
)
from .plan import DAY, OUTAGE, Operation, digest

A_DAY = 86400
"""The wait that a confused server asks for, in seconds."""

FIRST: dict[str, Callable[[bytes], Sequence[Behaviour]]] = {
    "well": lambda _: (),
    "503": lambda _: (Reply(503),),
    "503-twice": lambda _: (Reply(503), Reply(503)),
    "429": lambda _: (try_later(429, 1),),
    "reset": lambda _: (ResetAfterRequest(),),
    "close": lambda _: (CloseAfterRequest(),),
    "length-cut": lambda body: (CutBody(Reply(body=body)),),
    "chunk-cut": lambda body: (CutBody(Reply(body=body, framing="chunked")),),
    "gzip-cut": lambda body: (coded_reply("gzip", body, cut_to=len(body) // 2),),
    "stall": lambda _: (Stall(),),
    "upload-503": lambda _: (Reply(503),),
    "file-503": lambda _: (Reply(503),),
    "generator-503": lambda _: (Reply(503),),
    DAY.name: lambda _: (try_later(503, A_DAY),),
}
"""The behaviours before the good answer, made from the body of that answer."""


class FaultScript:
    """A script for one :class:`FaultServer` and one client. Any number of threads may call it.

    :param plan: the workload.
    :param outage: the length of the outage in seconds, from its first request.
    :param clock: tells the time.
    """

    def __init__(self, plan: Sequence[Operation], outage: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._plan = plan
        self._outage = outage
        self._clock = clock
        self._lock = threading.Lock()
        self._outage_ends: float | None = None
        self._seen: Counter[int] = Counter()
        self._accepted: dict[int, list[str]] = {}
        self._latest = -1.0

    def __call__(self, request: RecordedRequest) -> Behaviour:
        """Return the behaviour for a request."""
        operation = self._plan[int(request.path.split("/")[1])]
        with self._lock:
            self._latest = self._clock.now()
            turn = self._seen[operation.number]
            self._seen[operation.number] += 1
            behaviour = self._behaviour(operation, turn)
            if behaviour is not None:
                return behaviour
            self._accepted.setdefault(operation.number, []).append(digest(request.body))
        return Reply(body=operation.download())

    def _behaviour(self, operation: Operation, turn: int) -> Behaviour | None:
        if operation.fault is OUTAGE:
            if self._outage_ends is None:
                self._outage_ends = self._latest + self._outage
            return ResetAfterRequest() if self._latest < self._outage_ends else None
        first = FIRST[operation.fault.name](operation.download())
        return first[turn] if turn < len(first) else None

    def requests_of(self, number: int) -> int:
        """Return the number of whole requests of an operation."""
        with self._lock:
            return self._seen[number]

    def accepted_of(self, number: int) -> list[str]:
        """Return the hashes of the accepted bodies of an operation, in order."""
        with self._lock:
            return list(self._accepted.get(number, ()))

    @property
    def latest(self) -> float:
        """The moment of the last request, on the clock; below 0 before the first."""
        with self._lock:
            return self._latest
