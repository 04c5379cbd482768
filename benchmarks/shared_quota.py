"""The cost and the use of a quota that processes share: memory and Redis side by side.

    python -m pip install -r benchmarks/requirements.txt     # and a redis-server on the PATH
    python benchmarks/shared_quota.py [--quick] [--json FILE]

Measured, against a redis-server of its own on loopback:

1. the latency of a take and of a give-back, one after the other in one thread, median and 99th of a hundred;
2. what a first-try success executes more than with a quota in memory (`counting.py` says what a count contains), while
   nothing is known to be spent, and for information while something is. Where the counts are the same there is no call
   more, so no system call either;
3. the retries of 8 processes that meet a dead service, with a private quota each and with a shared one;
4. 200 small clients and a service that is a black hole for 30 s, in virtual time (`simulation/`): recovery after its
   end, and the success of what was begun later than a second after it.

Not measured: other machines' networks, TLS, a server under load of others. Redis is written to no disk here.
"""

from __future__ import annotations

import argparse
import gc
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import command
import rounds
from counting import count
from loopback import LoopbackServer
from machine import forget_settings

from requests_smithy_retry import TokenBucket, mount, retry_history
from requests_smithy_retry.quotas.redis import RedisTokenBucket

PROCESSES, OPERATIONS = 8, 60
PATIENT = "?budget=5&connect_timeout=5"
"""Enough time on a busy machine, so that the counts do not depend on its speed."""


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = command.parser(__doc__, "fewer calls; some seconds")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    forget_settings()
    if options.worker:
        print(retries_of(*options.worker))
        return 0
    calls = 2_000 if options.quick else 20_000
    redis, redis_url = start_redis()
    try:
        urls = {"memory": "memory://", "redis": redis_url + PATIENT}
        buckets = {
            "memory": TokenBucket(),
            "redis": RedisTokenBucket(redis_url + PATIENT, "latency"),
        }
        result = {
            "latency": {name: latency(bucket, calls) for name, bucket in buckets.items()},
            "counts": added_counts(urls),
            "fleet": {"private": fleet("memory://"), "redis": fleet(urls["redis"])},
            "simulation": simulation(),
        }
        buckets.clear()
        gc.collect()  # each link gives back what it gathered
    finally:
        redis.kill()
        redis.wait()
    show(result)
    command.write(result, options.json)
    return 0


def start_redis() -> tuple[subprocess.Popen[bytes], str]:
    """A redis-server on a free loopback port, and its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, f"redis://127.0.0.1:{port}/0"
        time.sleep(0.05)
    process.kill()
    raise RuntimeError("redis-server did not start")


def latency(bucket: Any, calls: int) -> dict[str, float]:
    """Microseconds of a take and of a give-back: the median and the 99th of a hundred."""
    bucket.acquire(14)  # connects, and leaves room for what is given back
    taken, given = [], []
    for _ in range(calls):
        start = time.perf_counter_ns()
        bucket.acquire(14)
        middle = time.perf_counter_ns()
        bucket.release(14)
        taken.append(middle - start)
        given.append(time.perf_counter_ns() - middle)
    taken.sort()
    given.sort()
    best = min(timed_pairs(bucket, calls // 10) for _ in range(10))
    middle, late = calls // 2, calls * 99 // 100
    return {
        "take": taken[middle] / 1000,
        "take p99": taken[late] / 1000,
        "give back": given[middle] / 1000,
        "give back p99": given[late] / 1000,
        "take and give back": best,
    }


def timed_pairs(bucket: Any, calls: int) -> float:
    """Microseconds of a take and its give-back, without the cost of reading the clock between them."""
    acquire, release = bucket.acquire, bucket.release
    start = time.perf_counter_ns()
    for _ in range(calls):
        acquire(14)
        release(14)
    return (time.perf_counter_ns() - start) / calls / 1000


def added_counts(urls: dict[str, str]) -> dict[str, dict[str, list[int]]]:
    """Bytecodes, Python calls and C calls of a first-try success, less those with a quota in memory."""
    found: dict[str, dict[str, list[int]]] = {}
    with LoopbackServer() as server:
        for name, url in {"default": None, **urls}.items():
            with closing(mount_session(url)) as session:
                adapter = session.get_adapter(server.origin)
                for _ in range(12):
                    session.get(rounds.url(server.origin))
                nothing = counted(session.get, server.origin)
                adapter.strategy.bucket(server.origin).acquire(140)
                adapter.strategy.spent_scopes.add(server.origin)
                found[name] = {"nothing spent": nothing, "something spent": counted(session.get, server.origin)}
    plain = found["default"]
    return {
        name: {state: [mine - its for mine, its in zip(row[state], plain[state], strict=True)] for state in row}
        for name, row in found.items()
    }


def counted(get: Callable[[str], object], origin: str) -> list[int]:
    """The least of some counts: a connection's flush may fall into one of them."""
    counts = [count(get, lambda: (rounds.url(origin),)) for _ in range(5)]
    return list(map(min, zip(*counts, strict=True)))


def mount_session(quota_url: str | None) -> Any:
    """A session as a program has it."""
    import requests

    return mount(requests.Session(), quota_url=quota_url, initial_backoff=0)


def retries_of(quota_url: str, service: str) -> int:
    """Return the number of retries that one process makes in ``OPERATIONS`` operations against a dead service."""
    import requests

    session, retries = mount_session(quota_url), 0
    for _ in range(OPERATIONS):
        try:
            session.get(service)
        except requests.ConnectionError as error:  # noqa: PERF203 - it is what is measured
            retries += len(retry_history(error).attempts) - 1
    return retries


def fleet(quota_url: str) -> list[int]:
    """The retries of each of 8 processes."""
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))  # and nobody listens
        service = f"http://127.0.0.1:{dead.getsockname()[1]}/"
        workers = [
            subprocess.Popen(
                [sys.executable, __file__, "--worker", quota_url, service],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for _ in range(PROCESSES)
        ]
        return [int(worker.communicate()[0]) for worker in workers]


def simulation() -> dict[str, dict[str, float]]:
    """200 clients, 70 operations per second together, on a service that can do 100 and is away for 30 s."""
    from benchmarks.simulation.clients import simulate
    from benchmarks.simulation.metrics import recovery
    from benchmarks.simulation.policies import POLICIES
    from benchmarks.simulation.scenarios import END, SCENARIOS
    from benchmarks.simulation.shared import SharedQuota

    found = {}
    for name, policy in (("private", POLICIES["standard 2.1"]), ("shared", SharedQuota)):
        run = simulate(SCENARIOS["black hole"], policy, clients=200, load=70.0, capacity=100.0, seed=1)
        after = [done.ok for done in run.operations if done.began >= END + 1]
        found[name] = {"recovery s": recovery(run.operations), "success after %": 100 * sum(after) / len(after)}
    return found


def show(result: dict[str, Any]) -> None:
    """Print the tables."""
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors\n\nlatency, microseconds")
    columns = list(next(iter(result["latency"].values())))
    print(f"{'':16}" + "".join(f"{column:>20}" for column in columns))
    for name, row in result["latency"].items():
        print(f"{name:16}" + "".join(f"{row[column]:20.1f}" for column in columns))
    print("\na first-try success, over the default: bytecodes, Python calls, C calls")
    for name, row in result["counts"].items():
        print(f"{name:16}" + "".join(f"  {state}: {', '.join(f'{n:+d}' for n in row[state]):16}" for state in row))
    print(f"\nretries of {PROCESSES} processes against a dead service (a quota of 500 pays {500 // 14})")
    for name, row in result["fleet"].items():
        print(f"{name:16}{sum(row):6}   {row}")
    print("\n200 small clients after a black hole of 30 s")
    for name, row in result["simulation"].items():
        print(f"{name:16}" + "".join(f"  {column}: {value:.1f}" for column, value in row.items()))


if __name__ == "__main__":
    raise SystemExit(main())
