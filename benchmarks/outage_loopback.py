"""The proof that outages are ridden out and not prolonged: real clients in nine kinds of trouble.

    python -m benchmarks.outage_loopback [--quick] [--json FILE] [--policy NAME] [--trouble NAME] [--at-once 6]

Each episode has new clients, a server of its own and a process of its own (`outage_client.py`): six seconds of
health, the trouble, and some seconds after it. Ten clients of 40 threads want 35 operations a second of a service that
can do 50; 400 clients of one thread want 70 of one that can do 100; the time-out is a second. Some episodes run at
the same time, which is why each says how late it was itself; one that was too late is played again (four at most), and
marked invalid if it is late again. All policies meet the same arrivals. Seven minutes.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any

from . import command
from .outage_client import MOST_LATE, POLICIES, TROUBLES, Episode, figures

AT_ONCE, MANY, MOST_AGAIN = 6, 400, 4
ROWS = {
    **{name: (name, 10) for name in POLICIES},
    **{f"{name}, {MANY} clients": (name, MANY) for name in ("urllib3 Retry", "AWS 2.1", "default")},
}
"""By name: the policy, and how many adapters the threads share."""
NEAR_FULL = ("no retry", "AWS 2.1", "default", "patient")
"""The rows that are played at 85 % load as well."""
SHOWN = ("amplification", "success", "success after", "peak", "recovery", "late", "no thread")


def play(episodes: Sequence[Episode], at_once: int) -> list[dict[str, Any]]:
    """Play each episode in a process of its own, some at a time, and return their counts."""

    def one(episode: Episode) -> dict[str, Any]:
        words = [sys.executable, "-m", "benchmarks.outage_client", json.dumps(asdict(episode))]
        done = subprocess.run(words, capture_output=True, text=True, timeout=episode.end + 60, check=False)
        if done.returncode:
            raise RuntimeError(f"{episode}: {done.stderr.strip()}")
        counts: dict[str, Any] = json.loads(done.stdout)
        return counts

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, episodes))


def play_well(episodes: Sequence[Episode], at_once: int) -> list[dict[str, Any]]:
    """Play the episodes; play some of those whose load generator was late once more, fewer at a time."""
    played = play(episodes, at_once)
    again = [number for number, counts in enumerate(played) if counts["late"] > MOST_LATE][:MOST_AGAIN]
    for number, counts in zip(again, play([episodes[number] for number in again], min(at_once, 2)), strict=True):
        played[number] = counts
    return played


def measure(
    rows: Sequence[str], troubles: Sequence[str], at_once: int, changed: dict[str, float]
) -> dict[str, dict[str, Any]]:
    """Every row in every trouble: its figures.

    :param at_once: the number of episodes that run at the same time.
    :param changed: the fields of an episode that differ from their defaults, by name.
    """
    jobs = [
        (row, replace(_episode(row, trouble), **changed))
        for trouble in troubles
        for row in rows
        if row in NEAR_FULL or not trouble.endswith("85 %")
    ]
    # In any order, but long ones rather early, so that none of them runs on alone at the end.
    draw = random.Random(1)
    jobs.sort(key=lambda job: draw.random() / job[1].end)
    found: dict[str, dict[str, Any]] = {trouble: {} for trouble in troubles}
    for (row, episode), counts in zip(jobs, play_well([episode for _, episode in jobs], at_once), strict=True):
        told = figures(episode, counts)
        found[episode.trouble][row] = {name: round(told[name], 4) for name in SHOWN}
    return {trouble: {row: found[trouble][row] for row in rows if row in found[trouble]} for trouble in troubles}


def _episode(row: str, trouble: str) -> Episode:
    policy, clients = ROWS[row]
    return Episode(policy, trouble, clients=clients, rate=100.0 if clients == MANY else 50.0)


def main() -> int:
    """Play, print, and write what was asked for. Exit status 1: an episode is invalid."""
    parser = command.parser(__doc__, "two rows, two troubles of a second: some seconds")
    parser.add_argument("--policy", action="append", choices=ROWS, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--trouble", action="append", choices=TROUBLES, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help=f"episodes at the same time ({AT_ONCE})")
    options = parser.parse_args()
    began = time.monotonic()
    rows, troubles = options.policy or list(ROWS), options.trouble or list(TROUBLES)
    changed: dict[str, float] = {}
    if options.quick:
        changed = {"before": 1.0, "lasts": 1.0, "after": 1.0}
        rows, troubles = options.policy or ["no retry", "default"], options.trouble or ["restart, 3 s", "brownout"]
    found = measure(rows, troubles, options.at_once, changed)
    cells = [
        [f"{trouble}: {row}", *(f"{told[name]:.2f}" for name in SHOWN)]
        for trouble, each in found.items()
        for row, told in each.items()
    ]
    print(command.table(["", "attempts", "success %", "after %", *SHOWN[3:]], cells))
    late = [f"{trouble}: {row}" for trouble, each in found.items() for row in each if each[row]["late"] > MOST_LATE]
    print(f"\ninvalid, as the load generator was late: {', '.join(late) or 'none'}; {time.monotonic() - began:.0f} s")
    command.write(found, options.json)
    return int(bool(late))


if __name__ == "__main__":
    raise SystemExit(main())
