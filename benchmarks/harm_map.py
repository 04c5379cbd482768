"""The map of harm: where retries make it worse than none, for every load, number of clients and kind of trouble.

    python -m benchmarks.harm_map [--quick] [--trouble NAME] [--policy NAME] [--processes 1] [--loopback] [--json FILE]

In virtual time, with the real quota, line and back-off: a service that can do 100 operations a second is in one of
twelve troubles (`simulation/troubles.py`) for 30 s, after 20 s of health and before 60 s. The time-out is a second. A
cell is *worse* than no retry if the service is well again more than a second later, or if more than half a percent
fewer of the operations begun in the trouble or after it succeed. A cell in which the default is worse in the first
run is run twice more, and the medians of the three count. 2,000 clients are run at three loads only, the other
policies with 20 and 2,000 clients at 70 %. Ten minutes of one processor; `--loopback` plays one cell of each
trouble again with real clients and a real server, for six seconds: two minutes. Exit status 1: the load generator of
one was late, so its figures do not hold.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import command
from outage_client import MAPPED, MOST_LATE, Episode, figures
from outage_loopback import play_well
from urllib3.util.retry import Retry

from benchmarks.simulation.clients import simulate
from benchmarks.simulation.metrics import measure
from benchmarks.simulation.patience import Stamina, Tenacity, patient
from benchmarks.simulation.policies import POLICIES, Urllib3
from benchmarks.simulation.troubles import AFTER, BEFORE, LASTS, TROUBLES, troubles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CAPACITY = 100.0
Places = dict[int, tuple[int, ...]]
"""By number of clients, the operations a second of all together, which are percents of what the service can do."""
PLACES: Places = {1: (10, 40, 70, 85, 95), 20: (10, 40, 70, 85, 95), 200: (10, 40, 70, 85, 95), 2000: (40, 70, 95)}
OTHERS: Places = {20: (70,), 2000: (70,)}
"""Those of the other policies, which take most of the time."""
OURS, AT_ONCE = "default", 3
BESIDE = "default, where others were run"
LATER, LESS, SEEDS = 1.0, 0.5, (1, 2, 3)
"""The seconds later, or the percents less successful, that count as worse; better is ten times as much success."""


class Urllib3Three(Urllib3):
    """Three retries."""

    NEW = Retry(3, backoff_factor=0.5, status_forcelist=[429, 500, 502, 503, 504])


CONTENDERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "no retry": ("none", POLICIES["no retry"]),
    "default": ("RetryAdapter()", patient()),
    "AWS 2.1": ('RetryAdapter(retry_spec="2.1")', POLICIES["standard 2.1"]),
    "urllib3": ("Retry(3, backoff_factor=0.5, status_forcelist=[429, 500, 502, 503, 504])", Urllib3Three),
    "tenacity": (
        "retry(stop=stop_after_delay(30), wait=wait_random_exponential(max=60))",
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


def measure_all(names: Iterable[str], places: dict[str, Places], pool: Any) -> Any:
    """Every cell, by trouble, by clients and load, by policy: its figures, and those without retries beside them.

    :param places: by policy.
    """
    cells = [
        Cell(trouble, clients, load, policy)
        for trouble in names
        for policy in places
        for clients, loads in places[policy].items()
        for load in loads
    ]
    found: dict[Cell, Figures] = {}
    for number, (cell, numbers) in enumerate(
        pool.imap_unordered(run, dict.fromkeys([*cells, *map(without, cells)])), 1
    ):
        found[cell] = numbers
        if not number % 100:
            print(f"{number} runs", flush=True)
    ours = (cell for cell in cells if cell.policy == OURS)
    red = {cell for cell in ours if verdict(found[cell], found[without(cell)]) == "worse"}
    again = [cell._replace(seed=seed) for cell in red for seed in SEEDS[1:]]
    found.update(pool.imap_unordered(run, dict.fromkeys([*again, *map(without, again)])))
    result: dict[str, Any] = {}
    for cell in cells:
        seeds = SEEDS if cell in red else SEEDS[:1]
        runs = [cell._replace(seed=seed) for seed in seeds]
        place = result.setdefault(cell.trouble, {}).setdefault(place_of(cell.clients, cell.load), {})
        place[cell.policy] = [
            *medians(found[each] for each in runs),
            *medians(found[without(each)] for each in runs),
        ]
    return result


def place_of(clients: int, load: int) -> str:
    """The name of a place on the map."""
    return f"{clients:,} client{'s' * (clients > 1)}, {load} %"


def without(cell: Cell) -> Cell:
    """Return the same cell without retries."""
    return cell._replace(policy="no retry")


def pair(numbers: list[float]) -> tuple[Figures, Figures]:
    """A cell's figures, and those without retries."""
    return Figures(*numbers[:4]), Figures(*numbers[4:])


def worse(cells: dict[str, Any], policy: str) -> dict[str, dict[str, str]]:
    """The cells in which a policy is worse, by trouble and place, in words."""
    found: dict[str, dict[str, str]] = {}
    for trouble, places in cells.items():
        for place, rows in places.items():
            both = pair(rows[policy]) if policy in rows else None
            if both is not None and verdict(*both) == "worse":
                found.setdefault(trouble, {})[place] = why_worse(*both)
    return found


def play_again(at_once: int) -> dict[str, Any]:
    """One cell of each trouble with real clients and a real server, for six seconds, and the same simulated.

    :param at_once: the number of episodes that run at the same time.
    """
    episodes = [Episode(OURS, trouble) for trouble in MAPPED]
    result = {}
    for episode, counts in zip(episodes, play_well(episodes, at_once), strict=True):
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
            "valid": played["late"] <= MOST_LATE,
        }
    return result


def summed_up(cells: dict[str, Any], policies: Iterable[str], played: dict[str, Any]) -> dict[str, Any]:
    """Return the cells, how many there are of each colour, and the red ones of the default in words."""
    counts = {name: dict.fromkeys(("better", "same", "worse"), 0) for name in (*policies, BESIDE)}
    for places in cells.values():
        for rows in places.values():
            words = {name: verdict(*pair(figures)) for name, figures in rows.items()}
            if OURS in rows and len(rows) > 1:
                words[BESIDE] = words[OURS]
            for name, word in words.items():
                counts[name][word] += 1
    return {
        "setting": {"capacity": CAPACITY, "before": BEFORE, "lasts": LASTS, "after": AFTER},
        "policies": {name: CONTENDERS[name][0] for name in policies},
        "cells": cells,
        "counts": counts,
        "worse": worse(cells, OURS),
        "loopback": played,
    }


def text(result: dict[str, Any]) -> str:
    """For each policy the number of cells of each colour, and the red ones of the default in words."""
    lines = []
    for trouble, both in result["loopback"].items():
        validity = "" if both["valid"] else "   invalid: the load generator was late"
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
    places = {name: PLACES if name == OURS else OTHERS for name in options.policy}
    if options.quick:
        places = {name: {20: (40, 95)} for name in places}
    with multiprocessing.Pool(options.processes) as pool:
        cells = measure_all(options.trouble, places, pool)
    result = summed_up(cells, options.policy, play_again(AT_ONCE) if options.loopback else {})
    print(text(result))
    print(f"\n{time.monotonic() - began:.0f} s")
    command.write(result, options.json)
    return int(not all(both["valid"] for both in result["loopback"].values()))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = command.parser(__doc__, "20 clients, two loads, two troubles: some seconds")
    retrying = [name for name in CONTENDERS if name != "no retry"]
    parser.add_argument("--trouble", action="append", choices=TROUBLES, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--policy", action="append", choices=retrying, metavar="NAME", help="repeatable; default: all")
    parser.add_argument("--processes", type=int, default=1, help="how many processors are used (1)")
    parser.add_argument("--loopback", action="store_true", help="play twelve cells again with real clients")
    options = parser.parse_args(arguments)
    options.trouble = options.trouble or (["503 at once", "one endpoint broken"] if options.quick else list(TROUBLES))
    options.policy = options.policy or retrying
    return options


if __name__ == "__main__":
    raise SystemExit(main())
