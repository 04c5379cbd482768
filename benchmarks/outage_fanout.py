"""Programs that send each request once, from some threads at the same time, while a service restarts: in virtual time.

    python -m benchmarks.outage_fanout [--quick] [--table NAME] [--seeds N] [--json FILE]

Prints Markdown tables. A session had an answer to twenty requests; then the service is down, by 503, refused
connections or silence, and the threads send one request each, or 300 one after the other. The service answers in 20 ms
and can do 1,000 requests a second, or 50. The same seed gives the same figures on any machine; some seconds.

Fan-out: success in percent for each length of an outage, then the seconds after the service was back at which half of
the calls had ended, each the worst of the three kinds; and the most requests for each call. "Before" are the rules of
commit d96b504c, with which this script printed those cells.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator
from random import Random
from statistics import mean, median
from typing import Any, NamedTuple

from . import command
from .outage_tables import table
from .simulation.engine import Loop
from .simulation.policies import POLICIES, Doubling
from .simulation.servers import FailingServer, QueueServer
from .simulation.threads import Called, Threads

BEFORE = 20
"""Requests that the session got answered before."""
FAST, SLOW = 1000.0, 50.0
"""Requests that the service can do in a second."""
THREADS = (8, 30, 60, 300)
DOWN = (1.0, 2.0, 3.0, 4.0, 4.8)
KINDS = {"503": "error", "refused": "refused", "silence": "hole"}
CLIENTS = {**POLICIES, "urllib3": Doubling}
BEFORE_THAT = {
    "8": "100, 100, 100, 0, 0 %; 1.8, 2.8, 2.8, 1.8, 1.2 s; 2.5",
    "30": "100, 67, 57, 0, 0 %; 4.7, 6.4, 6.4, 5.4, 1.2 s; 2.1",
    "60": "100, 33, 28, 0, 0 %; 4.7, 8.0, 7.0, 6.0, 1.2 s; 2.0",
    "300": "100, 7, 6, 0, 0 %; 4.9, 8.0, 7.0, 6.0, 1.2 s; 2.0",
    "503 for 2 s": "7 %, 3 a second, last after 8.0 s",
    "503 for 4 s": "0 %",
    "refused for 2 s": "7 %, 3 a second, last after 8.0 s",
    "refused for 4 s": "0 %",
    "silence for 2 s": "63 %, 24 a second, last after 8.3 s",
    "silence for 4 s": "5 %, 3 a second, last after 6.0 s",
    "503": "100 %, 0.98 s late",
    "refused": "100 %, 0.98 s late",
    "silence": "100 %, 0.70 s late",
}
"""The cells of the same rows before the rules of today, by the row's name."""
SHOWN = {"default": "`mount(session)`", "urllib3": "urllib3's `Retry(5, backoff_factor=0.5)`"}


class Found(NamedTuple):
    """What came of one run.

    :param success: in percent.
    :param median: seconds after the service was back at which half of the calls had ended.
    :param last: the same for the last of them.
    :param sent: requests for each call.
    :param pace: successes for each second between the first and the last.
    """

    success: float
    median: float
    last: float
    sent: float
    pace: float


def run(
    client: str, kind: str, down: float, threads: int, *, each: int = 1, rate: float = FAST, seed: int = 1
) -> Found:
    """Let so many threads make their calls, which begin when the service goes down."""
    loop, random = Loop(), Random(f"{seed}/fan-out")
    begin = [math.inf]
    service = FailingServer(
        QueueServer(rate, int(2 * rate)), lambda now: float(begin[0] <= now < begin[0] + down), KINDS[kind]
    )
    policy = CLIENTS[client](loop.clock, random)
    made = Threads(loop, service, policy, random)
    made.start(1, each=BEFORE)
    loop.run()
    made.calls.clear()
    made.sent.clear()
    begin[0] = loop.clock.time
    made.start(threads, each=each)
    loop.run()
    return measure(made.calls, made.sent, begin[0] + down)


def measure(calls: list[Called], sent: list[float], end: float) -> Found:
    """Measure the calls that were made in an outage."""
    ended = sorted(call.ended - end for call in calls)
    good = sorted(call.ended - end for call in calls if call.ok)
    between = good[-1] - good[0] if good else 0.0
    return Found(
        success=100 * len(good) / len(calls),
        median=median(ended),
        last=ended[-1],
        sent=len(sent) / len(calls),
        pace=(len(good) - 1) / between if between else math.nan,
    )


def over(seeds: int, *arguments: Any, **options: Any) -> Found:
    """The mean of each figure over the seeds."""
    runs = [run(*arguments, seed=seed, **options) for seed in range(1, seeds + 1)]
    return Found(*(mean(values) for values in zip(*runs, strict=True)))


def fan_out(seeds: int) -> Iterator[list[str]]:
    """Of each size: success and the median for each length of an outage, the worst of its three kinds."""
    yield ["threads, down for " + ", ".join(f"{down:g}" for down in DOWN) + " s", *SHOWN.values(), "before"]
    for threads in THREADS:
        row = [f"{threads}"]
        for client in SHOWN:
            cells = [[over(seeds, client, kind, down, threads) for kind in KINDS] for down in DOWN]
            success = ", ".join(f"{min(found.success for found in kinds):.0f}" for kinds in cells)
            medians = ", ".join(f"{max(found.median for found in kinds):.1f}" for kinds in cells)
            sent = max(found.sent for kinds in cells for found in kinds)
            row.append(f"{success} %; {medians} s; {sent:.1f}")
        yield [*row, BEFORE_THAT[row[0]]]


def slow_service(seeds: int) -> Iterator[list[str]]:
    """300 who wait for a service that can do 50 requests a second: how fast they are served."""
    yield ["300 threads, 50 requests a second", *SHOWN.values(), "before"]
    for kind, down in itertools.product(KINDS, (2.0, 4.0)):
        row = [f"{kind} for {down:g} s"]
        for client in SHOWN:
            found = over(seeds, client, kind, down, 300, rate=SLOW)
            row.append(f"{found.success:.0f} %, {found.pace:.0f} a second, last after {found.last:.1f} s")
        yield [*row, BEFORE_THAT[row[0]]]


def batch(seeds: int) -> Iterator[list[str]]:
    """Eight threads of 300 requests each: the seconds that they end after they would if nobody waited too long."""
    yield ["8 threads of 300 requests, down for 4 s", *SHOWN.values(), "before"]
    for kind in KINDS:
        row = [kind]
        for client in SHOWN:
            found = over(seeds, client, kind, 4.0, 8, each=300)
            ideal = run("none", kind, 0.0, 8, each=300).last
            row.append(f"{found.success:.0f} %, {found.last - ideal:.2f} s late")
        yield [*row, BEFORE_THAT[row[0]]]


TABLES: dict[str, Callable[[int], Iterator[list[str]]]] = {"fan-out": fan_out, "slow": slow_service, "batch": batch}


def main(arguments: list[str] | None = None) -> int:
    """Simulate, print, and write what was asked for."""
    options = _options(arguments)
    found = {}
    for name in options.table:
        found[name] = list(TABLES[name](options.seeds))
        print(f"\n{name}\n\n{table(found[name])}", flush=True)
    command.write(found, options.json)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = command.parser(__doc__, "one seed, one table: a second")
    parser.add_argument("--table", action="append", choices=TABLES, help="repeatable; default: all")
    parser.add_argument("--seeds", type=int, help="how many runs of each (5)")
    options = parser.parse_args(arguments)
    options.table = options.table or (["batch"] if options.quick else list(TABLES))
    options.seeds = options.seeds or (1 if options.quick else 5)
    return options


if __name__ == "__main__":
    raise SystemExit(main())
