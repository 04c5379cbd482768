"""Real clients in trouble: 400 threads on loopback, each policy in each kind of trouble, in interleaved rounds.

    python -m pip install -r benchmarks/requirements.txt
    python benchmarks/outage_loopback.py [--quick] [--json FILE] [--policy NAME] [--trouble NAME] [--rounds 3]

Each episode has new clients, a server of its own and a process of its own (`outage_client.py`): three seconds of
health, five of trouble, seven after. The service can do 100 requests a second; 70 operations a second are wanted, with
a time-out of half a second. Some episodes run at the same time, which is why each says how late it was itself; one that
was too late is played again by itself (twelve at most), and marked invalid if it is late again. In each round the order
is drawn anew, and all policies meet the same arrivals. About 11 minutes.
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

ROUNDS, AT_ONCE, SMALL, MOST_AGAIN = 3, 3, 40, 12
ROWS = {
    **{name: (name, 10) for name in POLICIES},
    **{f"{name}, {SMALL} clients": (name, SMALL) for name in ("standard", "payoff")},
}
"""By name: the policy, and how many adapters the threads share."""
SHOWN = ("amplification", "success", "success after")


def play(episodes: Sequence[Episode], at_once: int) -> list[dict[str, Any]]:
    """What came of each episode, each in a process of its own, some at a time."""
    client = str(Path(__file__).with_name("outage_client.py"))

    def one(episode: Episode) -> dict[str, Any]:
        command = [sys.executable, client, json.dumps(asdict(episode))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=episode.end + 60, check=False)
        if done.returncode:
            raise RuntimeError(f"{episode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, episodes))


def measure(rows: Sequence[str], troubles: Sequence[str], rounds: int, setting: Episode) -> dict[str, Any]:
    """Every row in every trouble: each figure's median and extremes over the rounds."""
    order = random.Random(1)
    jobs: list[tuple[str, Episode]] = []
    for number in range(rounds):
        episodes = [
            (row, replace(setting, policy=ROWS[row][0], clients=ROWS[row][1], trouble=trouble, seed=number + 1))
            for trouble in troubles
            for row in rows
        ]
        jobs += order.sample(episodes, len(episodes))
    played = play([episode for _, episode in jobs], AT_ONCE)
    again = [number for number, counts in enumerate(played) if counts["late"] > MOST_LATE][:MOST_AGAIN]
    for number, counts in zip(again, play([jobs[number][1] for number in again], 1), strict=True):
        played[number] = counts
    found: dict[str, dict[str, list[dict[str, float]]]] = {trouble: {row: [] for row in rows} for trouble in troubles}
    series: dict[str, dict[str, Any]] = {trouble: {} for trouble in troubles}
    for (row, episode), counts in zip(jobs, played, strict=True):
        found[episode.trouble][row].append(figures(episode, counts))
        series[episode.trouble].setdefault(row, {what: counts[what] for what in ("load", "goodput")})
    return {
        "setting": {**asdict(setting), "timeout": TIMEOUT, "small": SMALL},
        "rounds": rounds,
        "setup": {name: how for name, (how, _) in POLICIES.items()},
        "troubles": {
            trouble: {row: _summary(all_rounds) for row, all_rounds in each.items()} for trouble, each in found.items()
        },
        "series of the first round": series,
    }


def _summary(rounds: list[dict[str, float]]) -> dict[str, Any]:
    late = max(each["late"] for each in rounds)
    return {
        **{
            name: {key: round(value, 3) for key, value in spread(each[name] for each in rounds).items()}
            for name in SHOWN
        },
        "late": late,
        "no thread": max(each["no thread"] for each in rounds),
        "valid": late <= MOST_LATE,
    }


def text(result: dict[str, Any]) -> str:
    """Per trouble and row: medians with extremes."""
    rows = []
    for trouble, each in result["troubles"].items():
        for row, summary in each.items():
            cells = [f"{summary[n]['median']:.2f} ({summary[n]['min']:.2f}-{summary[n]['max']:.2f})" for n in SHOWN]
            validity = "" if summary["valid"] else "invalid: the load generator was late"
            rows.append([trouble, row, *cells, f"{summary['late']:.3f}", f"{summary['no thread']:.3f}", validity])
    return table(["", "", "attempts/operation", "success %", "success after %", "late s", "no thread", ""], rows)


def main() -> int:
    """Play, print, and write what was asked for. Exit status 1: an episode is invalid."""
    parser = command.parser(__doc__, "two rows, two troubles of a second: some seconds")
    parser.add_argument("--policy", action="append", choices=ROWS, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--trouble", action="append", choices=TROUBLES, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--rounds", type=int, help=f"how often each is played ({ROUNDS})")
    options = parser.parse_args()
    began = time.monotonic()
    setting = Episode("", "")
    rows, troubles, rounds = options.policy or list(ROWS), options.trouble or list(TROUBLES), options.rounds or ROUNDS
    if options.quick:
        setting = replace(setting, before=1.0, lasts=1.0, after=1.0, threads=100)
        rows, troubles, rounds = (
            options.policy or ["no retry", "standard"],
            options.trouble or ["reset", "throttled"],
            1,
        )
    result = measure(rows, troubles, rounds, setting)
    print(text(result))
    print(f"\n{time.monotonic() - began:.1f} s")
    command.write(result, options.json)
    return int(not all(summary["valid"] for each in result["troubles"].values() for summary in each.values()))


if __name__ == "__main__":
    raise SystemExit(main())
