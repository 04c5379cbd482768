"""Real clients in an outage: 400 threads, ten to an adapter, against a server that has trouble.

    python benchmarks/outage_loopback.py [--plot FILE] [--json FILE] [--only POLICY] [--threads 400] [--clients 40]

Per policy (no retry, urllib3's `Retry(2)`, standard, payoff) one run: 40 clients of ten threads, with 35 operations a
second together, against a service that can do 50, and a time-out of half a second. A black hole, a spike of three times
the load, throttling to 35 % of the service's rate and 10 % errors, of four seconds each, with five seconds between.
Everything is on loopback; one run takes about 37 seconds, the whole two and a half minutes. One process makes the whole
load, so that the figures are those of this machine; what is to be compared is the policies.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter

RATE, LOAD, TIMEOUT = 50.0, 35.0, 0.5
TROUBLES = {"black hole": "hole", "spike x3": "well", "throttling": "throttle 17.5", "errors 10 %": "errors 0.1"}
LASTS, BETWEEN = 4.0, 5.0
PERIOD = LASTS + BETWEEN
POLICIES: dict[str, Any] = {
    "no retry": lambda: HTTPAdapter(pool_connections=1, pool_maxsize=64),
    "urllib3": lambda: HTTPAdapter(
        max_retries=Retry(total=2, backoff_factor=0.1, status_forcelist=[429, 503], raise_on_status=False),
        pool_connections=1,
        pool_maxsize=64,
    ),
    "standard": lambda: RetryAdapter(pool_connections=1, pool_maxsize=64),
    "payoff": lambda: RetryAdapter(pool_connections=1, pool_maxsize=64, quota="payoff"),
}


def main() -> int:
    """Run each policy, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw (needs matplotlib)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every second's counts to FILE")
    parser.add_argument("--only", action="append", choices=POLICIES, help="repeatable")
    parser.add_argument("--threads", type=int, default=400)
    parser.add_argument("--clients", type=int, default=40, help="adapters that the threads share")
    options = parser.parse_args()
    logging.getLogger("requests_smithy_retry").setLevel(logging.ERROR)  # each giving up would be a line
    result = {name: run(POLICIES[name], options.threads, options.clients) for name in options.only or POLICIES}
    print(table(result))
    if options.json:
        options.json.write_text(json.dumps(result) + "\n")
    if options.plot:
        plot(result, options.plot)
    return 0


def run(make: Any, threads: int, clients: int) -> dict[str, Any]:
    """One policy through all troubles: requests that came, and operations begun and succeeded, per second."""
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("outage_server.py")), str(RATE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        origin = f"http://127.0.0.1:{server.stdout.readline().strip()}/"
        done: list[tuple[float, bool]] = []
        start = time.time() + 1.0
        end = start + len(TROUBLES) * PERIOD
        adapters = [make() for _ in range(clients)]
        workers = [
            threading.Thread(
                target=worker, args=(adapters[number % clients], origin, LOAD / threads, start, end, done, number)
            )
            for number in range(threads)
        ]
        for thread in workers:
            thread.start()
        for number, command in enumerate(TROUBLES.values()):
            for line, at in ((command, BETWEEN), ("well", PERIOD)):
                time.sleep(max(0.0, start + number * PERIOD + at - time.time()))
                server.stdin.write(line + "\n")
                server.stdin.flush()
        for thread in workers:
            thread.join()
        said, _ = server.communicate(timeout=5)
    finally:
        if server.poll() is None:
            server.kill()
            server.wait(5)
    seconds = int(end - start)
    return {
        "load": histogram([at - start for at in json.loads(said)], seconds),
        "begun": histogram([at - start for at, _ in done], seconds),
        "goodput": histogram([at - start for at, ok in done if ok], seconds),
    }


def worker(
    adapter: Any, origin: str, rate: float, start: float, end: float, done: list[tuple[float, bool]], number: int
) -> None:
    """Operations arrive as a Poisson process; one that comes while another is under way follows it at once."""
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", adapter)
    arrivals = random.Random(number)  # every policy meets the same arrivals
    at = start
    while True:
        at += arrivals.expovariate(3 * rate)
        if at >= end:
            break
        if arrivals.random() >= (1.0 if is_spike(at - start) else 1 / 3):
            continue
        time.sleep(max(0.0, at - time.time()))
        began = time.time()
        try:
            is_good = session.get(origin, timeout=TIMEOUT).status_code == 200
        except requests.RequestException:
            is_good = False
        done.append((began, is_good))


def is_spike(seconds: float) -> bool:
    """Whether three times the load comes at that moment."""
    number, into = divmod(seconds, PERIOD)
    return list(TROUBLES)[min(int(number), len(TROUBLES) - 1)] == "spike x3" and into >= BETWEEN


def histogram(times: list[float], seconds: int) -> list[int]:
    """How many fall into each second."""
    counts = [0] * seconds
    for at in times:
        if 0 <= at < seconds:
            counts[int(at)] += 1
    return counts


def table(result: dict[str, Any]) -> str:
    """Per trouble and policy: attempts per operation and success while it lasts, and in the five seconds after."""
    lines = ["attempts per operation, success % | success % in the five seconds after", ""]
    for number, name in enumerate(TROUBLES):
        begin = int(number * PERIOD + BETWEEN)
        inside, after = slice(begin, begin + int(LASTS)), slice(begin + int(LASTS), begin + int(PERIOD))
        for policy, counts in result.items():
            begun, load = sum(counts["begun"][inside]), sum(counts["load"][inside])
            good = sum(counts["goodput"][inside])
            later = sum(counts["begun"][after])
            tail = f"{100 * sum(counts['goodput'][after]) / later:.1f} %" if later else ""
            lines.append(f"{name:12} {policy:9} {load / begun:5.2f} {100 * good / begun:6.1f} % | {tail}")
    return "\n".join(lines)


def plot(result: dict[str, Any], file: Path) -> None:
    """Server load and goodput, per second."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 1, figsize=(11, 7), sharex=True)
    for axis, what, title in zip(
        axes, ("load", "goodput"), ("requests that reach the server", "operations that succeed"), strict=True
    ):
        for number, (policy, counts) in enumerate(result.items()):
            axis.plot(counts[what], label=policy, color=f"C{number}", linewidth=1.8)
        for number, name in enumerate(TROUBLES):
            begin = number * PERIOD + BETWEEN
            axis.axvspan(begin, begin + LASTS, color="0.92", zorder=0)
            axis.text(begin + LASTS / 2, axis.get_ylim()[1] * 0.97, name, ha="center", va="top", fontsize=9)
        axis.axhline(RATE, color="0.6", linewidth=0.7, linestyle=":")
        axis.set_title(f"{title}, per second")
        axis.set_ylim(bottom=0)
    axes[1].set_xlabel("seconds; the dotted line is what the service can do")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=4, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 0.96))
    figure.savefig(file, dpi=90)
    pyplot.close(figure)


if __name__ == "__main__":
    raise SystemExit(main())
