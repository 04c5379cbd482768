"""The cost of a first-try success over a plain `requests.adapters.HTTPAdapter`, ours beside its peers.

    python -m pip install -r benchmarks/requirements.txt
    python benchmarks/overhead.py [--quick] [--json FILE] [--only NAME]

Measured, in this one process and against a keep-alive server in another one on loopback, over the whole of
`session.get(url)` with its body read, so that work moved between session and adapter cancels out:

1. executed bytecodes, Python calls and C calls of the calling thread, counted (`counting.py` says what a
   count contains), as the difference to plain over URLs that never repeat, after a warm-up;
2. CPU time of the calling thread, for information: differences of a few microseconds drown in the socket's;
3. throughput of 1, 8, 32 and 128 threads that share one session (`rounds.py`).

Not measured: any failure or retry, memory, import time, other methods than GET, TLS, proxies. Nothing is
stubbed. The row `control` is a second plain adapter: its counts must be 0, its times show the noise.
What plain itself costs grows with the number of environment variables, which requests reads for proxies on
each call, so ratios of CPU time and throughput are those of this machine; the added counts are not touched.
The package measured is the one in this checkout. Exit status 1: a subject named with --only is not available.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import command
import report
import rounds
from loopback import LoopbackServer
from machine import describe, forget_settings
from subjects import ALWAYS, NAMES, Subject, build

THREADS = (1, 8, 32, 128)
COUNT_ROUNDS = 5
CPU_ROUNDS, CPU_CALLS = 80, 8
THROUGHPUT_ROUNDS = 5
MOST_SECONDS_EACH = 2.5  # of one subject with one number of threads, all rounds together
MOST_SECONDS = 150.0  # of all throughput together


def main() -> int:
    """Measure, print, and write what was asked for."""
    options = _options()
    forget_settings()
    began = time.monotonic()
    chosen = [name for name in NAMES if not options.only or name in ALWAYS or name in options.only]
    subjects = [build(name, max(THREADS)) for name in chosen]
    try:
        with LoopbackServer() as server:
            subjects = [rounds.warm_up(subject, server.origin) for subject in subjects]
            result = _measure(subjects, server.origin, options.quick)
    finally:
        for subject in subjects:
            subject.close()
    result["seconds"] = round(time.monotonic() - began, 1)
    _print(subjects, result)
    command.write(result, options.json)
    return int(any(name in result["unavailable"] for name in options.only or ()))


def _options() -> argparse.Namespace:
    parser = command.parser(__doc__, "only the counts, some seconds")
    parser.add_argument(
        "--only", action="append", choices=NAMES, metavar="NAME", help=f"repeatable: {', '.join(NAMES)}"
    )
    return parser.parse_args()


def _measure(subjects: list[Subject], origin: str, quick: bool) -> dict[str, Any]:
    able = [subject for subject in subjects if subject.get]
    result: dict[str, Any] = {
        "what": {subject.name: subject.what for subject in subjects},
        "unavailable": {subject.name: subject.reason for subject in subjects if subject.reason},
        "counts": report.added_counts(rounds.counts(able, origin, COUNT_ROUNDS)),
    }
    if quick:
        return result
    result["cpu"] = report.ratios(rounds.cpu(able, origin, CPU_ROUNDS, CPU_CALLS))
    each = min(MOST_SECONDS_EACH, MOST_SECONDS / (len(able) * len(THREADS))) / THROUGHPUT_ROUNDS
    result["throughput"] = {
        str(threads): report.ratios(rounds.throughput(able, origin, threads, THROUGHPUT_ROUNDS, each))
        for threads in THREADS
    }
    return result


def _print(subjects: list[Subject], result: dict[str, Any]) -> None:
    machine = describe()
    versions = ", ".join(f"{name} {version or 'absent'}" for name, version in machine["packages"].items())
    print(f"{machine['python']}, {machine['system']}, {machine['cores']} processors\n{versions}\n")
    plain = result["counts"]["plain"]
    print(report.counts_table(subjects, result["counts"]))
    print("plain itself: " + ", ".join(f"{plain[kind]['absolute']:g} {kind}" for kind in report.KINDS))
    if "cpu" in result:
        print("\n" + report.cpu_table(subjects, result["cpu"]))
        print("\n" + report.throughput_table(subjects, result["throughput"]))
    for name, reason in result["unavailable"].items():
        print(f"\nn/a {name}: {reason}")
    if any(result["counts"]["control"][kind]["median"] for kind in report.KINDS):
        print("\nThe control differs from plain: something disturbed these counts.")
    print(f"\n{result['seconds']} s")


if __name__ == "__main__":
    raise SystemExit(main())
