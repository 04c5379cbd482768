"""Real clients in trouble: 400 threads on loopback, each policy in each kind of trouble.

    python -m pip install -r benchmarks/requirements.txt
    python benchmarks/outage_loopback.py [--quick] [--json FILE] [--policy NAME] [--trouble NAME] [--rounds 1]
        [--at-once 6]

Each episode has new clients, a server of its own and a process of its own (`outage_client.py`): six seconds of
health, the trouble, and some seconds after it. Ten clients of 40 threads want 35 operations a second of a service that
can do 50; 400 clients of one thread want 70 of one that can do 100; the time-out is a second. Some episodes run at
the same time, which is why each says how late it was itself; one that was too late is played again (four at most), and
marked invalid if it is late again. All policies meet the same arrivals. One round is played unless told otherwise:
three are the same within a few points. Seven minutes.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import command
from outage_client import MOST_LATE, POLICIES, TIMEOUT, TROUBLES, Episode, figures
from report import spread, table

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDS, AT_ONCE, MANY, MOST_AGAIN = 1, 6, 400, 4
ROWS = {
    **{name: (name, 10) for name in POLICIES},
    **{f"{name}, {MANY} clients": (name, MANY) for name in ("urllib3 Retry", "AWS 2.1", "default")},
}
"""By name: the policy, and how many adapters the threads share."""
NEAR_FULL = ("no retry", "AWS 2.1", "default", "patient")
"""The rows that are played at 85 % load as well."""
SHOWN = ("amplification", "bound", "success", "success after", "peak", "recovery", "held", "latency")


def play(episodes: Sequence[Episode], at_once: int) -> list[dict[str, Any]]:
    """Play each episode in a process of its own, some at a time, and return their figures."""
    client = str(Path(__file__).with_name("outage_client.py"))

    def one(episode: Episode) -> dict[str, Any]:
        command = [sys.executable, client, json.dumps(asdict(episode))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=episode.end + 60, check=False)
        if done.returncode:
            raise RuntimeError(f"{episode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

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
    rows: Sequence[str], troubles: Sequence[str], rounds: int, at_once: int, changed: dict[str, float]
) -> dict[str, Any]:
    """Every row in every trouble: each figure's median and extremes over the rounds.

    :param at_once: the number of episodes that run at the same time.
    :param changed: the fields of an episode that differ from their defaults, by name.
    """
    jobs = [
        (row, replace(_episode(row, trouble, number + 1), **changed))
        for number in range(rounds)
        for trouble in troubles
        for row in rows
        if is_played(row, trouble)
    ]
    # In any order, but long ones rather early, so that none of them runs on alone at the end.
    draw = random.Random(1)
    jobs.sort(key=lambda job: draw.random() / job[1].end)
    played = play_well([episode for _, episode in jobs], at_once)
    found: dict[str, dict[str, list[dict[str, float]]]] = {
        trouble: {row: [] for row in rows if is_played(row, trouble)} for trouble in troubles
    }
    series: dict[str, dict[str, Any]] = {trouble: {} for trouble in troubles}
    for (row, episode), counts in zip(jobs, played, strict=True):
        found[episode.trouble][row].append(figures(episode, counts))
        if episode.seed == 1:
            series[episode.trouble][row] = {what: counts[what] for what in ("load", "goodput")}
    lasting = {
        episode.trouble: {"before": episode.before, "lasts": episode.lasts, "after": episode.after}
        for _, episode in jobs
    }
    return {
        "setting": {"threads": jobs[0][1].threads, "many": MANY, "timeout": TIMEOUT},
        "rounds": rounds,
        "setup": {name: how for name, (how, _) in POLICIES.items()},
        "lasting": {trouble: lasting[trouble] for trouble in troubles},
        "troubles": {
            trouble: {row: _summary(all_rounds) for row, all_rounds in each.items()} for trouble, each in found.items()
        },
        "series of the first round": series,
    }


def is_played(row: str, trouble: str) -> bool:
    """Near its full load, a service is met by some rows only."""
    return row in NEAR_FULL or not trouble.endswith("85 %")


def _episode(row: str, trouble: str, seed: int) -> Episode:
    policy, clients = ROWS[row]
    return Episode(policy, trouble, clients=clients, rate=100.0 if clients == MANY else 50.0, seed=seed)


def _summary(rounds: list[dict[str, float]]) -> dict[str, Any]:
    late = max(each["late"] for each in rounds)
    return {
        **{
            name: {key: round(value, 4) for key, value in spread(each[name] for each in rounds).items()}
            for name in SHOWN
        },
        "late": late,
        "no thread": max(each["no thread"] for each in rounds),
        "valid": late <= MOST_LATE,
    }


def text(result: dict[str, Any]) -> str:
    """Per trouble and row: medians."""
    rows = []
    for trouble, each in result["troubles"].items():
        for row, summary in each.items():
            cells = [f"{summary[name]['median']:.2f}" for name in SHOWN]
            validity = "" if summary["valid"] else "invalid: the load generator was late"
            rows.append([trouble, row, *cells, f"{summary['late']:.3f}", f"{summary['no thread']:.3f}", validity])
    head = ["attempts", "bound", "success %", "after %", "peak", "recovery s", "held", "latency s"]
    return table(["", "", *head, "late s", "no thread", ""], rows)


def main() -> int:
    """Play, print, and write what was asked for. Exit status 1: an episode is invalid."""
    parser = command.parser(__doc__, "two rows, two troubles of a second: some seconds")
    parser.add_argument("--policy", action="append", choices=ROWS, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--trouble", action="append", choices=TROUBLES, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often each is played ({ROUNDS})")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help=f"episodes at the same time ({AT_ONCE})")
    options = parser.parse_args()
    began = time.monotonic()
    rows, troubles = options.policy or list(ROWS), options.trouble or list(TROUBLES)
    changed: dict[str, float] = {}
    if options.quick:
        changed = {"before": 1.0, "lasts": 1.0, "after": 1.0}
        rows, troubles = options.policy or ["no retry", "default"], options.trouble or ["restart, 3 s", "brownout"]
    result = measure(rows, troubles, options.rounds, options.at_once, changed)
    print(text(result))
    print(f"\n{time.monotonic() - began:.1f} s")
    command.write(result, options.json)
    return int(not all(summary["valid"] for each in result["troubles"].values() for summary in each.values()))


if __name__ == "__main__":
    raise SystemExit(main())
