"""The scenes with many clients at once: a server in trouble, its load, and the results of the operations."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from requests_smithy_retry.testing import Behaviour, RecordedRequest, Reply, ResetAfterRequest

LONGEST_QUEUE = 2.0
"""A request that would wait for longer than this gets a 503 at once, in seconds."""


@dataclass(frozen=True)
class Scene:
    """A server, its trouble, and the operations that meet it. Times are seconds after the first request."""

    name: str
    label: str
    remains: float
    """The requests a second that it can do while in trouble; 0: it resets every connection."""
    begins: float = 1.0
    ends: float = 4.0
    seconds: float = 7.0
    """For so long operations begin; they may go on for the grace."""
    grace: float = 5.0
    rate: float = 24.0
    """Operations a second, whatever comes of them."""
    users: int = 10
    capacity: float = 40.0
    """The requests a second that the server can do."""

    @property
    def count(self) -> int:
        return round(self.rate * self.seconds)


RESTART = Scene("restart", "A server restarts: it resets every connection for 3 s", remains=0.0)
OVERLOAD = Scene("overload", "A server is overloaded: it can do a quarter of its work for 3 s", remains=10.0)
SCENES = (RESTART, OVERLOAD)


class SceneScript:
    """A script for one :class:`FaultServer`: one queue, served in order, whether the client hung up or not."""

    def __init__(self, scene: Scene, now: Callable[[], float] = time.monotonic) -> None:
        self._scene = scene
        self._now = now
        self._lock = threading.Lock()
        self._free_at = 0.0
        self.began: float | None = None
        """The moment of the first request, on the clock; None before it."""
        self.arrivals: list[float] = []
        """The moments of all requests so far."""

    def __call__(self, request: RecordedRequest) -> Behaviour:
        scene = self._scene
        with self._lock:
            now = self._now()
            self.began = now if self.began is None else self.began
            now -= self.began
            self.arrivals.append(now)
            if not scene.remains and scene.begins <= now < scene.ends:
                return ResetAfterRequest()
            done = self._done(max(now, self._free_at))
            if done - now > LONGEST_QUEUE:
                return Reply(503)
            self._free_at = done
        return Reply(body=b"done", delay=done - now)

    def _done(self, start: float) -> float:
        """Return the end of one request that is begun then."""
        scene, left = self._scene, 1.0
        phases = ((scene.begins, scene.capacity), (scene.ends, scene.remains))
        for until, rate in phases:
            if start < until:
                done = (until - start) * rate
                if left <= done:
                    return start + left / rate
                start, left = until, left - done
        return start + left / scene.capacity


def turnout_of(
    client: str, scene: Scene, calls: Sequence[tuple[int, bool, float]], arrivals: Sequence[float]
) -> dict[str, Any]:
    """Count the ends of one client's operations, and their load on the server, as plain values for JSON.

    :param calls: the number, the success and the seconds of each operation that ended.
    """
    begins = [number / scene.rate for number in range(scene.count)]
    trouble = {number for number, at in enumerate(begins) if scene.begins <= at < scene.ends}
    done = {number for number, is_done, _ in calls if is_done}
    late = [begins[number] - scene.ends for number in set(range(scene.count)) - done]
    a_second = Counter(math.floor(at) for at in arrivals if at >= math.floor(scene.begins))
    return {
        "client": client,
        "in_trouble": len(trouble),
        "in_trouble_done": len(trouble & done),
        "otherwise": scene.count - len(trouble),
        "otherwise_done": len(done - trouble),
        "requests_per_operation": round(len(arrivals) / scene.count, 3),
        "peak": max(a_second.values(), default=0),  # the most requests in one second, from the begin of the trouble on
        "well_after": round(max([0.0, *late]), 3),  # from the end of the trouble to the begin of the last failure
        "slowest": round(max((seconds for _, _, seconds in calls), default=0.0), 3),
    }
