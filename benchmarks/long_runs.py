"""The remains of an hour, beside those of plain requests: memory, threads, descriptors, lag.

    python -m benchmarks.long_runs [web|crawler|cron ...] [--minutes 60] [--json FILE]

`web`: forty threads that call a service of which one answer in a hundred is a 503. `crawler`: sixteen threads over
10,000 hosts, of which a tenth refuses connections. `cron`: one thread that calls every second. Each client is a
process of its own, plain and ours at the same time, against one server on loopback. Lag: what 99 of 100 calls that
ended well took at most, in the second fifth of the time and in the last one.

Exit status 1: ours holds 8 MiB, two threads or eight descriptors more than plain at the end, or has grown by as much
more than plain since a fifth of the time, or has doubled its lag.
"""

from __future__ import annotations

import gc
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from . import command
from .loopback import ANSWER, END_OF_HEAD, pieces, send, start_server

FAILED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
PROGRAMS = {"web": (40, 0.5, 1), "crawler": (16, 0.2, 10_000), "cron": (1, 1.0, 1)}
"""By program: threads, the pause of each between two calls in seconds, and hosts."""
DEAD = 10
"""One host in so many is dead."""
ERRORS = 0.01
MOST = {"memory": 8.0, "threads": 2.0, "descriptors": 8.0}
"""The most by which ours may exceed plain: MiB, threads, descriptors."""


def serve() -> None:
    """Answer until standard input closes; one answer in a hundred is a 503."""
    draw, partial = random.Random(1), dict[Any, bytes]()
    for connection, data in pieces():
        if not data:
            partial.pop(connection, None)
            continue
        *heads, partial[connection] = (partial.get(connection, b"") + data).split(END_OF_HEAD)
        for _ in heads:
            send(connection, FAILED if draw.random() < ERRORS else ANSWER)


def held() -> dict[str, float]:
    """Return what this process holds now: MiB, threads, descriptors."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    memory = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return {"memory": memory, "threads": threading.active_count(), "descriptors": len(os.listdir("/proc/self/fd"))}


def resolve_on_loopback(port: int, closed: int) -> None:
    """Have every name mean this machine; one of so many names, a port at which nobody listens."""

    def getaddrinfo(host: str, *_: Any, **__: Any) -> list[Any]:
        number = "".join(filter(str.isdigit, host.partition(".")[0]))
        target = closed if number and int(number) % DEAD == 0 else port
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", target))]

    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]


def client(program: str, whose: str, port: int, closed: int, seconds: float) -> None:
    """Call until the time is over, then print what is held, and what the calls took."""
    from requests_smithy_retry import RetryAdapter

    threads, pause, hosts = PROGRAMS[program]
    resolve_on_loopback(port, closed)
    pool = {"pool_connections": 20, "pool_maxsize": threads}
    session = command.session_of(HTTPAdapter(**pool) if whose == "plain" else RetryAdapter(**pool))
    began, took, ends = time.monotonic(), [], {"well": 0, "badly": 0}

    def work(seed: int) -> None:
        draw = random.Random(seed)
        while (start := time.monotonic()) < began + seconds:
            url = f"http://h{draw.randrange(1, hosts + 1)}.test:{port}/" if hosts > 1 else f"http://h1.test:{port}/"
            try:
                is_well = session.get(url, timeout=10).ok
            except requests.RequestException:
                is_well = False
            ends["well" if is_well else "badly"] += 1
            if is_well:
                took.append((start - began, time.monotonic() - start))
            time.sleep(pause * draw.uniform(0.5, 1.5))

    working = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(threads)]
    for thread in working:
        thread.start()
    time.sleep(seconds / 5)
    early = held()
    for thread in working:
        thread.join()
    print(json.dumps({"early": early, "late": held(), "ends": ends, "took": took}))


def lag(took: list[tuple[float, float]], since: float, until: float) -> float:
    """Return what 99 of 100 calls between two moments took at most, in milliseconds."""
    part = sorted(seconds for start, seconds in took if since <= start < until)
    return 1000 * part[int(0.99 * (len(part) - 1))]


def run(program: str, seconds: float) -> dict[str, dict[str, Any]]:
    """Run plain and ours beside each other."""
    server, origin = start_server("long_runs", "serve")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        closed = probe.getsockname()[1]
    arguments = [origin.rpartition(":")[2], str(closed), str(seconds)]
    begun = {
        whose: subprocess.Popen(
            [sys.executable, "-m", "benchmarks.long_runs", "client", program, whose, *arguments], stdout=subprocess.PIPE
        )
        for whose in ("plain", "ours")
    }
    figures = {}
    for whose, child in begun.items():
        told = json.loads(child.communicate()[0])
        took = told.pop("took")
        told["lag"] = [lag(took, seconds / 5, 2 * seconds / 5), lag(took, 4 * seconds / 5, seconds)]
        figures[whose] = told
    server.communicate(timeout=30)
    return figures


def misses(figures: dict[str, dict[str, Any]]) -> list[str]:
    """Return what ours holds too much of, or does too late."""
    plain, ours = figures["plain"], figures["ours"]
    more = [
        f"{what}: {ours['late'][what]:.1f}"
        for what, most in MOST.items()
        if ours["late"][what] > plain["late"][what] + most
        or ours["late"][what] - ours["early"][what] > plain["late"][what] - plain["early"][what] + most
    ]
    return [*more, *(["lag"] if ours["lag"][1] > 2 * max(ours["lag"][0], plain["lag"][1]) else [])]


def main() -> int:
    """Run, print, and write what was asked for."""
    parser = command.parser(__doc__, "one minute each")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--minutes", type=float, default=60.0, help="of each program")
    options = parser.parse_args()
    minutes = 1.0 if options.quick else options.minutes
    result, is_fine = {}, True
    for program in options.programs or PROGRAMS:
        figures = result[program] = run(program, 60 * minutes)
        print(f"{program}, {minutes:g} minutes")
        for whose, told in figures.items():
            late = ", ".join(f"{what} {told['early'][what]:.1f} -> {value:.1f}" for what, value in told["late"].items())
            print(f"  {whose}: {late}; lag {told['lag'][0]:.1f} -> {told['lag'][1]:.1f} ms; {told['ends']}")
        missed = misses(figures)
        is_fine &= not missed
        print(f"  {'MISSED: ' + ', '.join(missed) if missed else 'fine'}", flush=True)
    command.write({"minutes": minutes, "programs": result}, options.json)
    return int(not is_fine)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve()
    elif sys.argv[1:2] == ["client"]:
        client(sys.argv[2], sys.argv[3], *map(int, sys.argv[4:6]), float(sys.argv[6]))
    else:
        raise SystemExit(main())
