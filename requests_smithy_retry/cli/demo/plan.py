"""The workload as data: the operations with their faults and their bytes.

Both ends make it from the same two numbers, so that neither has to send the other the expected bytes.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import Literal

Upload = Literal["", "bytes", "generator", "file"]
"""The kind of an operation's body: none, bytes, a generator, or a file that is not at its start."""

_SMALLEST, _LARGEST = 2_000, 60_000


@dataclass(frozen=True)
class Fault:
    """One kind of fault.

    :param name: a word, for machines.
    :param label: a few words, for people.
    :param method: the request's method.
    :param upload: the kind of the request's body.
    :param is_slow: True if it takes long on purpose, so that a run has few of it.
    """

    name: str
    label: str
    method: str = "GET"
    upload: Upload = ""
    is_slow: bool = False


OUTAGE = Fault("outage", "outage of 3 s, all reset", is_slow=True)
DAY = Fault("day", "503 with Retry-After: 86400", is_slow=True)

FAULTS = (
    Fault("well", "nothing goes wrong"),
    Fault("503", "503, then fine"),
    Fault("503-twice", "503 twice, then fine"),
    Fault("429", "429 with Retry-After: 1", is_slow=True),
    Fault("reset", "connection reset"),
    Fault("close", "closed without a response"),
    Fault("length-cut", "body ends early (length)"),
    Fault("chunk-cut", "body ends early (chunk)"),
    Fault("gzip-cut", "body ends early (gzip)"),
    Fault("stall", "silent, client waits 0.5 s", is_slow=True),
    Fault("upload-503", "bytes upload, 503 first", "POST", "bytes"),
    Fault("file-503", "file upload, 503 first", "PUT", "file"),
    Fault("generator-503", "generator upload, 503 first", "PUT", "generator"),
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
    """One call of the session.

    :param number: the position in the plan, from 0.
    :param fault: the fault it meets.
    :param seed: the seed of the plan.
    """

    number: int
    fault: Fault
    seed: int

    @property
    def path(self) -> str:
        """The path on the server."""
        return f"/{self.number}/{self.fault.name}"

    def download(self) -> bytes:
        """Return the body of a whole answer: some thousand bytes, which do not compress."""
        return self._bytes("down")

    def upload(self) -> bytes:
        """Return the body of the request; empty if it has none."""
        return self._bytes("up") if self.fault.upload else b""

    def _bytes(self, way: str) -> bytes:
        source = random.Random(f"{self.seed} {self.number} {way}")
        return source.randbytes(source.randint(_SMALLEST, _LARGEST))


def make_plan(seed: int, count: int) -> list[Operation]:
    """Make a workload, the same one for the same numbers.

    The outage's operations follow one another near the end; the one that is told to come back in a day is the last.

    :param seed: determines the order and every body.
    :param count: the number of operations, at least :data:`FEWEST`.
    :raises ValueError: for fewer.
    """
    if count < FEWEST:
        raise ValueError(f"count={count!r}: a whole number of {FEWEST} or more is allowed, one for each fault")
    slow = [fault for fault in FAULTS if fault.is_slow and fault is not DAY]
    quick = [fault for fault in FAULTS if not fault.is_slow]
    share = min(MOST_SLOW, count // FEWEST)
    left = count - 1 - share * len(slow)
    mixed = [fault for fault in slow if fault is not OUTAGE] * share
    mixed += [quick[turn % len(quick)] for turn in range(left)]
    random.Random(seed).shuffle(mixed)
    order = [*mixed, *[OUTAGE] * share, DAY]
    return [Operation(number, fault, seed) for number, fault in enumerate(order)]


def digest(body: bytes) -> str:
    """Return the hash by which both ends compare bodies."""
    return hashlib.sha256(body).hexdigest()
