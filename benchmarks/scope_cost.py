"""The cost of an origin to the adapter: its bytes, and the bytecodes of a send, however many origins there are.

The transport is a fake without sockets, so that what is added shows.
"""

from __future__ import annotations

import gc
import io
import itertools
import sys
import time
import tracemalloc
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import requests
from counting import count
from import_cost import spread
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from requests_smithy_retry import RetryAdapter
from requests_smithy_retry.quotas.scopes import MAX_SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT_BYTES = 2560
ORIGINS = 10_000
MODES: dict[str, dict[str, Any]] = {"standard": {}, "adaptive": {"mode": "adaptive"}}
FILLINGS = {"standard": 1, "adaptive": 31}
"""The successes that leave as much written down as there ever is; with one more it is worked off."""


class FakeTransport(HTTPAdapter):
    """Answers at once, with no body; `failures` times with a 503 before."""

    failures = 0

    def send(self, request: requests.PreparedRequest, **_options: Any) -> requests.Response:
        """Make a response."""
        status = 503 if self.failures else 200
        self.failures -= self.failures > 0
        return self.build_response(request, HTTPResponse(io.BytesIO(b""), status=status, preload_content=False))


class StandingClock:
    """A clock that stands still: in adaptive mode a send costs more as time goes by. Read as `time.monotonic` is."""

    now = wall = (1000.0).conjugate

    def sleep(self, seconds: float) -> None:
        """Do not sleep."""


class Ours(RetryAdapter, FakeTransport):
    """The adapter over the fake transport."""


def request_to(number: int) -> requests.PreparedRequest:
    """A request to one of many origins."""
    return requests.Request("GET", f"http://host-{number:06d}.example/items").prepare()


def session_with(adapter: HTTPAdapter) -> requests.Session:
    """A session that sends by an adapter."""
    session = requests.Session()
    session.mount("http://", adapter)
    return session


def scope_bytes(origins: int, options: dict[str, Any], successes: int, *, retried: bool) -> float:
    """Return the bytes that each of ``origins`` origins costs.

    :param successes: the number of requests to each origin that succeed, one after the other.
    :param retried: True: the first of them comes after a 503.
    """

    def play(adapter: Ours, first: int) -> None:
        for number in range(first, first + origins):
            request = request_to(number)
            adapter.failures = int(retried)
            for _ in range(successes):
                adapter.send(request)

    play(Ours(initial_backoff=0, **options), ORIGINS)  # the caches of other modules are full from now on
    adapter = Ours(initial_backoff=0, **options)
    adapter.send(request_to(ORIGINS))
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        play(adapter, 0)
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / origins
    finally:
        tracemalloc.stop()


def scope_memory(origins: int) -> dict[str, Any]:
    """The most bytes that a scope costs, by mode."""
    result: dict[str, Any] = {"limit_bytes": LIMIT_BYTES, "origins": origins}
    for name, options in MODES.items():
        for retried in (False, True):
            cost = scope_bytes(origins, options, FILLINGS[name], retried=retried)
            result[f"{name}_{'retried_' if retried else ''}bytes"] = round(cost)
    return result


def added_counts(options: dict[str, Any]) -> dict[str, int]:
    """Count what a send adds to a plain adapter: to a known origin, a new one, and new ones with all slots taken."""
    ours = session_with(Ours(initial_backoff=0, clock=StandingClock(), **options))
    plain = session_with(FakeTransport())
    numbers = itertools.count()

    def new() -> tuple[requests.PreparedRequest]:
        return (request_to(next(numbers)),)

    for session in (plain, ours):
        count(session.send, new)
    base = median(count(plain.send, new).bytecodes for _ in range(5))
    base_c = count(plain.send, new).c_calls
    known = new()
    ours.send(*known)
    result = {"known": count(ours.send, lambda: known).bytecodes - base, "new": count(ours.send, new).bytecodes - base}
    while next(numbers) < 2 * MAX_SCOPES:
        ours.send(*new())
    newcomers = [count(ours.send, new) for _ in range(80)]
    result["full"] = median(each.bytecodes for each in newcomers) - base
    result["full_most"] = max(each.bytecodes for each in newcomers) - base
    result["full_c_calls"] = max(each.c_calls for each in newcomers) - base_c
    return {name: round(value) for name, value in result.items()}


def retry_counts() -> dict[str, int]:
    """Bytecodes of a send with one retry to a new origin: with room, and while every slot holds a spent bucket."""
    adapter = Ours(initial_backoff=0, max_attempts=2)
    session = session_with(adapter)
    numbers = itertools.count()

    def once() -> tuple[requests.PreparedRequest]:
        adapter.failures = 1
        return (request_to(next(numbers)),)

    count(session.send, once)
    room = count(session.send, once).bytecodes
    while len(adapter.strategy.snapshot().buckets) < MAX_SCOPES:
        adapter.failures = 2  # which are final, so that nothing is given back
        session.send(request_to(next(numbers)))
    return {"retry_new": room, "retry_full_most": max(count(session.send, once).bytecodes for _ in range(80))}


def cpu_ratios(rounds: int) -> Iterator[tuple[str, list[float]]]:
    """CPU time of one send to each of many origins, as a ratio to the plain adapter of the same round."""
    made: dict[str, Callable[[], HTTPAdapter]] = {"plain": FakeTransport, "control": FakeTransport}
    made |= {name: lambda options=options: Ours(**options) for name, options in MODES.items()}
    found: dict[str, list[float]] = {name: [] for name in made}
    sent = [request_to(number) for number in range(ORIGINS)]
    for turn in range(rounds):
        order = list(made)[turn % len(made) :] + list(made)[: turn % len(made)]
        for name in order:
            session = session_with(made[name]())
            began = time.thread_time()
            for request in sent:
                session.send(request)
            found[name].append(time.thread_time() - began)
    for name in list(made)[1:]:
        yield name, [each / plain for each, plain in zip(found[name], found["plain"], strict=True)]


def origins(rounds: int) -> dict[str, Any]:
    """Return the counts for many origins and, if there are rounds, the ratios of CPU time and the counts of retries."""
    result: dict[str, Any] = {"origins": ORIGINS, "slots": MAX_SCOPES}
    for name, options in MODES.items():
        result |= {f"{name}_{kind}_bytecodes": value for kind, value in added_counts(options).items()}
    if rounds:
        result |= {f"{name}_bytecodes": value for name, value in retry_counts().items()}
        result |= {f"{name}_cpu_ratio": spread(ratios) for name, ratios in cpu_ratios(rounds)}
    return {name.replace("c_calls_bytecodes", "c_calls"): value for name, value in result.items()}
