"""Requests sent for each operation in an outage, against the number of processes that share nothing.

    python -m benchmarks.curve [--quick] [--real 64] [--json FILE]

A service answers 503 for a minute, in virtual time. Either all processes together make seventy operations a second,
or each makes one a second. Shown are the requests for each operation begun in that minute, while it lasts. `--real N`
runs so many processes on loopback beside that, each with an operation a second, for twenty seconds.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import requests

from requests_smithy_retry import RetryAdapter
from requests_smithy_retry.testing import FaultServer, Reply

from . import command
from .simulation.clients import simulate
from .simulation.policies import POLICIES
from .simulation.scenarios import outage

PROCESSES = (1, 8, 64, 1000, 10_000)
SHOWN = {"unrestricted": "three attempts", "aws": "AWS, 500 tokens", "default": "default"}
TOGETHER, EACH, MOST = 70.0, 1.0, 64
"""Operations a second of all processes; of each; and the most processes of the latter kind: they do not meet."""
SECONDS = 60.0
REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


def simulated(quick: bool) -> Iterator[dict[str, Any]]:
    """Simulate each number of processes."""
    for processes in PROCESSES[: 3 if quick else None]:
        for what, load in (("together", TOGETHER), ("each", EACH * processes)):
            if what == "each" and processes > MOST:
                continue
            for policy in SHOWN:
                scenario = outage("503", SECONDS)
                scenario = scenario._replace(stop=scenario.end)
                done = simulate(scenario, POLICIES[policy], clients=processes, load=load, capacity=2 * load, seed=1)
                sent = sum(scenario.begin <= moment < scenario.end for moment in done.attempts)
                begun = sum(each.began >= scenario.begin for each in done.operations)
                yield {"processes": processes, "load": what, "policy": policy, "sent": round(sent / begun, 2)}


def program(url: str, seconds: float, told: Any) -> None:
    """One process: an operation a second, each in a thread of its own."""
    session = command.session_of(RetryAdapter())

    def get() -> None:
        with suppress(requests.RequestException):
            session.get(url)

    threads = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        threads.append(threading.Thread(target=get, daemon=True))
        threads[-1].start()
        time.sleep(EACH)
    told.put(len(threads))
    for thread in threads:
        thread.join(30)


def real(processes: int, seconds: float) -> float:
    """Run processes on loopback against a service that answers 503; return the requests for each operation."""
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    with FaultServer(lambda _: Reply(503)) as server:
        running = [context.Process(target=program, args=(server.url, seconds, told)) for _ in range(processes)]
        for process in running:
            process.start()
        operations = sum(told.get(timeout=300) for _ in running)
        sent = len(server.requests)
        for process in running:
            process.join(60)
    return sent / operations


def main() -> int:
    """Run, print, and write what was asked for."""
    parser = command.parser(__doc__, "no more than 64 processes")
    parser.add_argument("--real", type=int, default=0, metavar="N", help="so many processes on loopback as well")
    options = parser.parse_args()
    rows = list(simulated(options.quick))
    cells: dict[tuple[int, str], dict[str, float]] = {}
    for row in rows:
        cells.setdefault((row["processes"], row["load"]), {})[row["policy"]] = row["sent"]
    lines = [[f"{key[0]} {key[1]}", *(f"{by[policy]:.2f}" for policy in SHOWN)] for key, by in cells.items()]
    print(command.table(("processes", *SHOWN.values()), lines))
    result: dict[str, Any] = {"rows": rows}
    if options.real:
        result["real"] = {"processes": options.real, "sent": round(real(options.real, 20), 2)}
        print(f"{options.real} real processes: {result['real']['sent']:.2f}")
    command.write(result, options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
