"""The workload: its operations with their faults and their bytes, and the server's behaviour for each request.

Both ends make the operations from the same two numbers, so that neither has to send the other the expected bytes.
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.faults import (
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

Upload = Literal["", "bytes", "generator", "file"]
"""The kind of an operation's body: none, bytes, a generator, or a file that is not at its start."""

_SMALLEST, _LARGEST = 2_000, 60_000


@dataclass(frozen=True)
class Fault:
    """One kind of fault."""

    name: str
    label: str
    first: Callable[[bytes], Sequence[Behaviour]] = lambda _: ()
    """Makes the behaviours before the good answer from the body of that answer."""
    method: str = "GET"
    upload: Upload = ""
    is_slow: bool = False
    """It takes long on purpose, so that a run has few of it."""


def _busy(_: bytes) -> Sequence[Behaviour]:
    return [Reply(503)]


OUTAGE = Fault("outage", "outage of 3 s, all reset", is_slow=True)
"""The only fault that lasts for a time, not for a number of requests."""
DAY = Fault("day", "503 with Retry-After: 86400", lambda _: [try_later(503, 86400)], is_slow=True)

FAULTS = (
    Fault("well", "nothing goes wrong"),
    Fault("503", "503, then fine", _busy),
    Fault("503-twice", "503 twice, then fine", lambda _: [Reply(503)] * 2),
    Fault("429", "429 with Retry-After: 1", lambda _: [try_later(429, 1)], is_slow=True),
    Fault("reset", "connection reset", lambda _: [ResetAfterRequest()]),
    Fault("close", "closed without a response", lambda _: [CloseAfterRequest()]),
    Fault("length-cut", "body ends early (length)", lambda body: [CutBody(Reply(body=body))]),
    Fault("chunk-cut", "body ends early (chunk)", lambda body: [CutBody(Reply(body=body, framing="chunked"))]),
    Fault("gzip-cut", "body ends early (gzip)", lambda body: [coded_reply("gzip", body, cut_to=len(body) // 2)]),
    Fault("stall", "silent, client waits 0.5 s", lambda _: [Stall()], is_slow=True),
    Fault("upload-503", "bytes upload, 503 first", _busy, "POST", "bytes"),
    Fault("file-503", "file upload, 503 first", _busy, "PUT", "file"),
    Fault("generator-503", "generator upload, 503 first", _busy, "PUT", "generator"),
    OUTAGE,
    DAY,
)
"""Every fault, in the order of the report."""

FEWEST = len(FAULTS)
"""The fewest operations of a run: one of each fault."""
MOST_SLOW = 3
"""The most operations of a slow fault."""


@dataclass(frozen=True)
class Operation:
    """One call of the session."""

    number: int
    fault: Fault
    seed: int

    @property
    def path(self) -> str:
        return f"/{self.number}/{self.fault.name}"

    def download(self) -> bytes:
        """Return the body of a whole answer: some thousand bytes, which do not compress."""
        return self._bytes("down")

    def upload(self) -> bytes:
        """Return the body of the request; empty for a request without a body."""
        return self._bytes("up") if self.fault.upload else b""

    def _bytes(self, way: str) -> bytes:
        source = random.Random(f"{self.seed} {self.number} {way}")
        return source.randbytes(source.randint(_SMALLEST, _LARGEST))


def make_plan(seed: int, count: int) -> list[Operation]:
    """Make a workload, the same for the same numbers: mixed, then the outage, and last the one told to wait a day."""
    share = min(MOST_SLOW, count // FEWEST)
    quick = [fault for fault in FAULTS if not fault.is_slow]
    mixed = [fault for fault in FAULTS if fault.is_slow and fault not in (OUTAGE, DAY)] * share
    left = count - 1 - share - len(mixed)
    mixed += [quick[turn % len(quick)] for turn in range(left)]
    random.Random(seed).shuffle(mixed)
    order = [*mixed, *[OUTAGE] * share, DAY]
    return [Operation(number, fault, seed) for number, fault in enumerate(order)]


def digest(body: bytes) -> str:
    """Return the hash by which both ends compare bodies."""
    return hashlib.sha256(body).hexdigest()


class FaultScript:
    """A script for one ``FaultServer`` and one client, and its record. Any number of threads may call it."""

    def __init__(self, plan: Sequence[Operation], outage: float, now: Callable[[], float] = time.monotonic) -> None:
        self._plan = plan
        self._outage = outage
        self._now = now
        self._lock = threading.Lock()
        self._outage_ends: float | None = None
        self.seen: Counter[int] = Counter()
        """The number of whole requests of each operation."""
        self.accepted: dict[int, list[str]] = {operation.number: [] for operation in plan}
        """The hashes of the accepted bodies of each operation, in order."""
        self.latest: float = -1.0
        """The moment of the last request, on the clock; below 0 before the first."""

    def __call__(self, request: RecordedRequest) -> Behaviour:
        operation = self._plan[int(request.path.split("/")[1])]
        with self._lock:
            self.latest = self._now()
            turn = self.seen[operation.number]
            self.seen[operation.number] += 1
            behaviour = self._fault(operation, turn)
            if behaviour is None:
                self.accepted[operation.number].append(digest(request.body))
        return behaviour or Reply(body=operation.download())

    def _fault(self, operation: Operation, turn: int) -> Behaviour | None:
        if operation.fault is OUTAGE:
            if self._outage_ends is None:
                self._outage_ends = self.latest + self._outage
            return ResetAfterRequest() if self.latest < self._outage_ends else None
        first = operation.fault.first(operation.download())
        return first[turn] if turn < len(first) else None
