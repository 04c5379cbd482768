"""Adaptive mode against a server that throttles, beside botocore's limiter doing the same work in the same run.

    python -m pip install -r benchmarks/requirements.txt
    python benchmarks/adaptive_loopback.py [--quick] [--seconds 30] [--json FILE]

Two servers on loopback let through 50 requests a second with a burst of 5 each, and answer 429 beyond. Against one go
32 threads that share a session with `RetryAdapter(mode="adaptive")`, against the other 32 threads of plain sessions
around botocore's own `ClientRateLimiter`, with the same three attempts and the same backoff. Both at the same time,
in one process, so that what disturbs one disturbs the other. Figures are the servers', from the tenth second on.
Exit status 1: ours was throttled in 10 % of its attempts or more, or used less than 85 % of what it was allowed.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import command
import requests
from requests.adapters import HTTPAdapter
from throttling_loopback import ThrottlingServer

if TYPE_CHECKING:
    from collections.abc import Callable

RATE, BURST, THREADS, WARM_UP = 50.0, 5.0, 32, 10.0
MOST_THROTTLED, LEAST_USED = 0.10, 0.85


def ours(origin: str) -> Callable[[], None]:
    """One operation through the adapter."""
    from requests_smithy_retry import RetryAdapter

    session = requests.Session()
    session.mount("http://", RetryAdapter(mode="adaptive", pool_maxsize=THREADS))

    def work() -> None:
        session.get(origin + "/ours")

    return work


class _Told:
    """botocore's throttling detector, told instead of parsing."""

    def is_throttling_error(self, *, throttled: bool) -> bool:
        return throttled


def botocores(origin: str) -> Callable[[], None]:
    """One operation with botocore's limiter around plain sends: three attempts, full jitter from 1 s."""
    from botocore.retries import adaptive, bucket, throttling

    clock = bucket.Clock()
    limiter = adaptive.ClientRateLimiter(
        rate_adjustor=throttling.CubicCalculator(starting_max_rate=0, start_time=clock.current_time()),
        rate_clocker=adaptive.RateClocker(clock),
        token_bucket=bucket.TokenBucket(max_rate=1, clock=clock),
        throttling_detector=_Told(),
        clock=clock,
    )
    session = requests.Session()
    session.mount("http://", HTTPAdapter(pool_maxsize=THREADS))

    def work() -> None:
        for attempt in range(3):
            limiter.on_sending_request(None)
            throttled = session.get(origin + "/botocore").status_code == 429
            limiter.on_receiving_response(throttled=throttled)
            if not throttled:
                return
            if attempt < 2:
                time.sleep(random.random() * 2**attempt)

    return work


def main() -> int:
    """Run, print, and write what was asked for."""
    options = _options()
    servers = {"ours": ThrottlingServer(RATE, BURST), "botocore": ThrottlingServer(RATE, BURST)}
    with servers["ours"], servers["botocore"]:
        works = {"ours": ours(servers["ours"].origin), "botocore": botocores(servers["botocore"].origin)}
        _run(list(works.values()), options.seconds)
    result = {name: figures(server.seen, options.seconds) for name, server in servers.items()}
    print(
        f"allowed {RATE:g}/s, burst {BURST:g}; {THREADS} threads each; from second {WARM_UP:g} to {options.seconds:g}"
    )
    for name, row in result.items():
        print(
            f"{name:<9} throttled {row['throttled']:6.1%}   used {row['used']:6.1%} of the allowed rate   "
            f"{row['attempts']} attempts; before: {row['throttled before']:.1%}, {row['used before']:.1%}"
        )
    command.write(result, options.json)
    mine = result["ours"]
    return int(mine["throttled"] >= MOST_THROTTLED or mine["used"] < LEAST_USED)


def _options() -> argparse.Namespace:
    parser = command.parser(__doc__, "12 seconds: too few for figures")
    parser.add_argument("--seconds", type=float, help="how long, above 10 (30)")
    options = parser.parse_args()
    options.seconds = options.seconds or (12.0 if options.quick else 30.0)
    if options.seconds <= WARM_UP:
        parser.error(f"--seconds: more than {WARM_UP:g}")
    return options


def _run(works: list[Callable[[], None]], seconds: float) -> None:
    end = time.monotonic() + seconds + 0.5

    def repeat(work: Callable[[], None]) -> None:
        while time.monotonic() < end:
            work()

    threads = [threading.Thread(target=repeat, args=(work,), daemon=True) for work in works for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 30)


def figures(seen: list[tuple[float, bool]], seconds: float) -> dict[str, Any]:
    """The part of attempts that was throttled, and of the allowed rate that was used."""
    late = [ok for when, ok in seen if WARM_UP <= when < seconds]
    early = [ok for when, ok in seen if when < WARM_UP]
    return {
        "attempts": len(late),
        "throttled": late.count(False) / max(1, len(late)),
        "used": late.count(True) / (RATE * (seconds - WARM_UP)),
        "throttled before": early.count(False) / max(1, len(early)),
        "used before": early.count(True) / (RATE * WARM_UP + BURST),
    }


if __name__ == "__main__":
    raise SystemExit(main())
