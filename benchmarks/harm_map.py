"""The map of harm: where retries make it worse than none, for every load, number of clients and kind of trouble.

    python -m benchmarks.harm_map [--quick] [--trouble NAME] [--policy NAME] [--processes 1] [--loopback] [--json FILE]

In virtual time, with the real quota, line and back-off: a service that can do 100 operations a second is in one of
twelve troubles (`simulation/troubles.py`) for 30 s, after 20 s of health and before 60 s. The time-out is a second. A
cell is *worse* than no retry if the service is well again more than a second later, or if more than half a percent
fewer of the operations begun in the trouble or after it succeed. Every policy meets the same three series of
arrivals in each cell, and the medians count. Twenty minutes of one processor; `--loopback` plays one cell of each
trouble again with real clients and a real server, for six seconds: five minutes. Exit status 1: the load generator of
one was late, so its figures do not hold.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import command
from outage_client import MOST_LATE, Episode, figures
from outage_loopback import play_well
from urllib3.util.retry import Retry

from benchmarks.simulation.clients import simulate
from benchmarks.simulation.metrics import measure
from benchmarks.simulation.patience import Stamina, Tenacity, patient
from benchmarks.simulation.policies import POLICIES, Urllib3
from benchmarks.simulation.troubles import AFTER, BEFORE, LASTS, TROUBLES, troubles

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

CAPACITY = 100.0
CLIENTS, LOADS = (1, 20, 200, 2000), (10, 40, 70, 85, 95)
"""The loads are the operations a second of all together, which are percents of what the service can do."""
OURS, PLAIN = "default", "no retry"
LATER, LESS, SEEDS = 1.0, 0.5, (1, 2, 3)
"""The seconds later, or the percents less successful, that count as worse; better is ten times as much success."""


class Urllib3Three(Urllib3):
    """Three retries."""

    NEW = Retry(3, backoff_factor=0.5, status_forcelist=[429, 500, 502, 503, 504])


CONTENDERS: dict[str, tuple[str, Callable[..., Any]]] = {
    PLAIN: ("none", POLICIES["no retry"]),
    "default": ("RetryAdapter()", patient()),
    "pacing off": ('RetryAdapter(pacing="off")', patient(paced=False)),
    "AWS 2.1": ('RetryAdapter(retry_spec="2.1", pacing="off")', POLICIES["standard 2.1"]),
    "urllib3": ("Retry(3, backoff_factor=0.5, status_forcelist=[429, 500, 502, 503, 504])", Urllib3Three),
    "tenacity": (
        "retry(stop=stop_before_delay(30), wait=wait_random_exponential(max=60))",
        lambda clock, random: Tenacity(clock, random, 30.0),
    ),
    "stamina": ("retry(on=requests.RequestException)", lambda clock, random: Stamina(clock, random, 45.0)),
}
"""By name: as one would write it, and the policy."""


class Cell(NamedTuple):
    """One run."""

    trouble: str
    clients: int
    load: int
    policy: str
    seed: int = 1


class Figures(NamedTuple):
    """The figures of a run.

    :param inside: percent of the operations begun in the trouble that succeed.
    :param success: percent of those begun in it or after it.
    :param late: seconds until the service is well again, after the trouble.
    :param sent: attempts for each operation begun in it.
    """

    inside: float
    success: float
    late: float
    sent: float


def run(cell: Cell) -> tuple[Cell, Figures]:
    """Simulate and measure."""
    scenario = TROUBLES[cell.trouble]
    make = CONTENDERS[cell.policy][1]
    done = simulate(scenario, make, clients=cell.clients, load=cell.load, capacity=CAPACITY, seed=cell.seed)
    found = measure(done, scenario)
    since = [each.ok for each in done.operations if each.began >= scenario.begin]
    success = 100 * sum(since) / max(1, len(since))
    numbers = (found["success inside"], success, found["recovery"], found["amplification"])
    return cell, Figures(*(round(value, 2) for value in numbers))


def verdict(with_it: Figures, plain: Figures) -> str:
    """Return "worse", "better" or "same", beside no retry."""
    if with_it.late > plain.late + LATER or with_it.success < plain.success - LESS:
        return "worse"
    is_better = with_it.late < plain.late - LATER or with_it.inside > plain.inside + 10 * LESS
    return "better" if is_better else "same"


def why_worse(with_it: Figures, plain: Figures) -> str:
    """Say by how much."""
    parts = []
    if with_it.late > plain.late + LATER:
        most = "at least " if with_it.late >= AFTER else ""
        parts.append(f"{most}{with_it.late - plain.late:.0f} s later")
    if with_it.success < plain.success - LESS:
        parts.append(f"{plain.success - with_it.success:.1f} % less")
    return ", ".join(parts)


def medians(found: Iterable[Figures]) -> Figures:
    """Each figure's median."""
    return Figures(*(median(values) for values in zip(*found, strict=True)))


def measure_all(
    names: Iterable[str], policies: Collection[str], places: Collection[tuple[int, int]], pool: Any
) -> dict[str, Any]:
    """Every cell, by trouble, by clients and load, by policy: its figures.

    :param places: clients and loads.
    """
    cells = [Cell(name, *place, policy) for name in names for place in places for policy in (PLAIN, *policies)]
    found: dict[Cell, Figures] = {}
    jobs = [cell._replace(seed=seed) for cell in cells for seed in SEEDS]
    for number, (job, numbers) in enumerate(pool.imap_unordered(run, jobs), 1):
        found[job] = numbers
        if not number % 100:
            print(f"{number} of {len(jobs)} runs", flush=True)
    result: dict[str, Any] = {}
    for cell in cells:
        place = result.setdefault(cell.trouble, {}).setdefault(place_of(cell.clients, cell.load), {})
        place[cell.policy] = medians(found[cell._replace(seed=seed)] for seed in SEEDS)
    return result


def place_of(clients: int, load: int) -> str:
    """The name of a place on the map."""
    return f"{clients:,} client{'s' * (clients > 1)}, {load} %"


def judged(rows: dict[str, Any], policy: str, other: str = PLAIN) -> str:
    """The verdict on a policy beside another one, of a place on the map."""
    return verdict(Figures(*rows[policy]), Figures(*rows[other]))


def worse(cells: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The cells in which the default is worse, by trouble and place, in words."""
    found: dict[str, dict[str, str]] = {}
    for trouble, places in cells.items():
        for place, rows in places.items():
            if judged(rows, OURS) == "worse":
                words = why_worse(Figures(*rows[OURS]), Figures(*rows[PLAIN]))
                found.setdefault(trouble, {})[place] = words
    return found


def beside(cells: dict[str, Any], policies: Collection[str]) -> dict[str, dict[str, list[int]]]:
    """By load and other policy: in how many cells the default is worse than it, it worse than the default, and all."""
    found: dict[str, dict[str, list[int]]] = {}
    for places in cells.values():
        for place, rows in places.items():
            counts = found.setdefault(place.rpartition(", ")[2], {})
            for other in (PLAIN, *policies):
                if other != OURS:
                    one = judged(rows, OURS, other) == "worse", judged(rows, other, OURS) == "worse", True
                    counts[other] = [sum(pair) for pair in zip(counts.get(other, (0, 0, 0)), one, strict=True)]
    return found


def play_again(names: Iterable[str]) -> dict[str, Any]:
    """One cell of each trouble with real clients and a real server, for six seconds, and the same simulated."""
    episodes = [Episode(OURS, name) for name in names]
    result = {}
    for episode, counts in zip(episodes, play_well(episodes, 1), strict=True):
        played = figures(episode, counts)
        scenario = troubles(episode.before, episode.lasts, episode.after)[episode.trouble]
        runs = []
        for seed in SEEDS:
            how = {"clients": episode.clients, "load": episode.load, "capacity": episode.rate, "seed": seed}
            found = measure(simulate(scenario, CONTENDERS[OURS][1], **how), scenario)
            runs.append((found["success inside"], found["recovery"]))
        simulated = [round(median(values), 1) for values in zip(*runs, strict=True)]
        result[episode.trouble] = {
            "loopback": [round(played["success"], 1), played["recovery"]],
            "simulated": simulated,
            "late": played["late"],
            "valid": played["late"] <= MOST_LATE,
        }
    return result


def summed_up(cells: dict[str, Any], policies: Collection[str], played: dict[str, Any]) -> dict[str, Any]:
    """Return the cells, how many there are of each colour, and the red ones of the default in words."""
    counts = {name: dict.fromkeys(("better", "same", "worse"), 0) for name in policies}
    for places in cells.values():
        for rows in places.values():
            for name in policies:
                counts[name][judged(rows, name)] += 1
    has_ours = OURS in policies
    return {
        "setting": {"capacity": CAPACITY, "before": BEFORE, "lasts": LASTS, "after": AFTER},
        "policies": {name: CONTENDERS[name][0] for name in policies},
        "cells": cells,
        "counts": counts,
        "worse": worse(cells) if has_ours else {},
        "beside": beside(cells, policies) if has_ours else {},
        "loopback": played,
    }


def text(result: dict[str, Any]) -> str:
    """For each policy the number of cells of each colour, and the red ones of the default in words."""
    lines = []
    for trouble, both in result["loopback"].items():
        validity = "" if both["valid"] else f"   invalid: the load generator was {both['late']} s late"
        told = ", ".join("{} {:.0f} %, {:.0f} s".format(name, *both[name]) for name in ("loopback", "simulated"))
        lines.append(f"{trouble:26} {told}{validity}")
    for policy, counts in result["counts"].items():
        lines.append(f"{policy:10} " + ", ".join(f"{number} {name}" for name, number in counts.items()))
    for trouble, places in result["worse"].items():
        lines += [f"{trouble}, {place}: {words}" for place, words in places.items()]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Simulate, play, print, and write what was asked for."""
    options = _options(arguments)
    began = time.monotonic()
    places = [(20, 40), (20, 95)] if options.quick else list(itertools.product(CLIENTS, LOADS))
    with multiprocessing.Pool(options.processes) as pool:
        cells = measure_all(options.trouble, options.policy, places, pool)
    result = summed_up(cells, options.policy, play_again(options.trouble) if options.loopback else {})
    print(text(result))
    print(f"\n{time.monotonic() - began:.0f} s")
    command.write(result, options.json)
    return int(not all(both["valid"] for both in result["loopback"].values()))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = command.parser(__doc__, "20 clients, two loads, two troubles: some seconds")
    retrying = [name for name in CONTENDERS if name != PLAIN]
    parser.add_argument("--trouble", action="append", choices=TROUBLES, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--policy", action="append", choices=retrying, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--processes", type=int, default=1, help="how many processors are used (1)")
    parser.add_argument("--loopback", action="store_true", help="play a cell of each again with real clients")
    options = parser.parse_args(arguments)
    options.trouble = options.trouble or (["503 at once", "one endpoint broken"] if options.quick else list(TROUBLES))
    options.policy = options.policy or retrying
    return options


if __name__ == "__main__":
    raise SystemExit(main())
