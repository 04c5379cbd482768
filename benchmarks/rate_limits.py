"""The proof that announced limits are kept and used: clients that share one key, beside others.

    python -m benchmarks.rate_limits [--quick] [--seconds 4] [--json FILE] [--only POLICY]

Against each kind of limit of `rate_limit_server.py`, 100 requests in a window of one second, go 8 processes of 16
threads, and then one process of one thread. Each thread asks again as soon as it has its answer. Figures: the part of
all requests that was refused; the part of what is allowed that was let through; the 99th percentile of an operation, in
windows; the part of the operations that ended with a refusal; and what the worst-served process got, as a part of its
fair share. The first window is left out: nobody knows of a limit before its first answer. Five minutes.

Exit status 1: ours was refused more than 1 % of the time with one thread against a window or a bucket.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from . import command
from .loopback import start_server
from .rate_limit_server import KINDS, WINDOW

LIMIT = 100
SIZES = {"8 x 16": (8, 16), "1 x 1": (1, 1)}
MOST_REFUSED = 0.01
REFUSED = frozenset({403, 429})


def _session(adapter: Any) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", adapter)
    return session


def plain(threads: int, processes: int) -> Callable[[str], int]:  # noqa: ARG001
    """No retry."""
    session = _session(HTTPAdapter(pool_maxsize=threads))
    return lambda url: session.get(url).status_code


def urllib3(threads: int, processes: int) -> Callable[[str], int]:  # noqa: ARG001
    """urllib3's own retries, which heed `Retry-After`."""
    retry = Retry(5, status_forcelist=[403, 429], backoff_factor=0.1, raise_on_status=False)
    session = _session(HTTPAdapter(pool_maxsize=threads, max_retries=retry))
    return lambda url: session.get(url).status_code


def tenacity(threads: int, processes: int) -> Callable[[str], int]:  # noqa: ARG001
    """Exponential backoff with full jitter, five times."""
    import tenacity as library

    session = _session(HTTPAdapter(pool_maxsize=threads))

    @library.retry(
        stop=library.stop_after_attempt(6),
        wait=library.wait_random_exponential(multiplier=0.1, max=2),
        retry=library.retry_if_result(lambda status: status in REFUSED),
        retry_error_callback=lambda state: state.outcome.result(),
    )
    def get(url: str) -> int:
        return session.get(url).status_code

    return get


def limited(threads: int, processes: int) -> Callable[[str], int]:
    """A limiter that was set right by hand, for each process its part."""
    from requests_ratelimiter import LimiterAdapter

    session = _session(LimiterAdapter(per_second=max(1, round(LIMIT / processes)), pool_maxsize=threads))
    return lambda url: session.get(url).status_code


def ours(threads: int, processes: int) -> Callable[[str], int]:  # noqa: ARG001
    """No option."""
    from requests_smithy_retry import RetryAdapter

    session = _session(RetryAdapter(pool_maxsize=threads))
    return lambda url: session.get(url).status_code


POLICIES: dict[str, Callable[[int, int], Callable[[str], int]]] = {
    "plain": plain,
    "urllib3": urllib3,
    "tenacity": tenacity,
    "ratelimiter, set right": limited,
    "ours": ours,
}


def _client(
    name: str, number: int, size: tuple[int, int], origin: str, seconds: float, together: Any, queue: Any
) -> None:
    """One process: its threads ask until the time is over; then it tells how long each operation took."""
    get = POLICIES[name](size[1], size[0])
    url = f"{origin}/p{number}"
    took: list[tuple[float, bool]] = []
    together.wait(60)
    until = time.monotonic() + seconds + 0.1

    def work() -> None:
        while (began := time.monotonic()) < until:
            try:
                refused = get(url) in REFUSED
            except requests.RequestException:
                refused = True
            took.append((time.monotonic() - began, refused))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(size[1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(until - time.monotonic() + 10)
    queue.put(took)


def measure(name: str, kind: str, size: tuple[int, int], seconds: float) -> dict[str, float]:
    """One policy against one kind of limit."""
    POLICIES[name](1, 1)  # so that what it imports is there before the processes begin
    child, origin = start_server("rate_limit_server", kind, str(LIMIT))
    context = multiprocessing.get_context("fork")
    queue, together = context.Queue(), context.Barrier(size[0])
    clients = [
        context.Process(target=_client, args=(name, number, size, origin, seconds, together, queue), daemon=True)
        for number in range(size[0])
    ]
    try:
        for client in clients:
            client.start()
        took = [one for _ in clients for one in queue.get(timeout=seconds + 60)]
        for client in clients:
            client.join(10)
    finally:
        try:
            said, _ = child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(5)
            raise
    return figures(json.loads(said), took, size[0], seconds)


def figures(
    seen: list[tuple[float, bool, str]], took: list[tuple[float, bool]], processes: int, seconds: float
) -> dict[str, float]:
    """Return the figures of the server from its second window on, and the durations of operations."""
    first = seen[0][0]
    late = [(ok, client) for when, ok, client in seen if WINDOW <= when - first < seconds]
    passed = Counter(client for ok, client in late if ok)
    through = sum(passed.values())
    waits = sorted(wait for wait, _ in took)
    return {
        "requests": len(late),
        "refused": sum(not ok for ok, _ in late) / max(1, len(late)),
        "used": through / (LIMIT * (seconds - WINDOW) / WINDOW),
        "p99": waits[int(0.99 * (len(waits) - 1))] / WINDOW,
        "handed over": sum(refused for _, refused in took) / len(took),
        "least share": min(passed.get(f"/p{number}", 0) for number in range(processes)) * processes / max(1, through),
    }


def main() -> int:
    """Run, print, and write what was asked for."""
    parser = command.parser(__doc__, "2 seconds each, of ours and plain requests, and one kind: no figures")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each runs (4)")
    parser.add_argument("--only", action="append", choices=sorted(POLICIES), help="these policies alone")
    options = parser.parse_args()
    names, kinds = options.only or list(POLICIES), list(KINDS)
    if options.quick:
        names, kinds, options.seconds = options.only or ["plain", "ours"], kinds[:1], 2.2
    cells: dict[str, Any] = {size: {name: {} for name in names} for size in SIZES}
    for name in names:
        for kind in kinds:
            for size, numbers in SIZES.items():
                row = cells[size][name][kind] = measure(name, kind, numbers, options.seconds)
                print(
                    f"{name:<24} {kind:<15} {size:<7} refused {row['refused']:6.1%}  used {row['used']:6.1%}  "
                    f"p99 {row['p99']:5.2f}  handed over {row['handed over']:6.1%}  least {row['least share']:5.1%}",
                    flush=True,
                )
    command.write({"limit": LIMIT, "seconds": options.seconds, "cells": cells}, options.json)
    alone = cells["1 x 1"].get("ours", {})
    return int(any(row["refused"] > MOST_REFUSED for kind, row in alone.items() if kind != "at a time"))


if __name__ == "__main__":
    raise SystemExit(main())
