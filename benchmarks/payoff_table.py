"""The payoff quota beside every other policy of the simulation, for clients of four sizes.

    PYTHONPATH=. python benchmarks/payoff_table.py [--quick] [--clients N] [--seeds N] [--warm-up SECONDS]
                                                   [--plot FOLDER] [--json FILE [--update]]

Prints medians over the seeds: how many attempts an operation took while there was trouble, how many operations
succeeded, and how long the trouble outlived its cause. Everything is virtual time: the same figures on any machine.
The whole takes some twenty minutes of two processors, an hour's warm-up twenty times as long.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.simulation.clients import simulate
from benchmarks.simulation.corners import CORNERS, HELD_OUT
from benchmarks.simulation.metrics import measure, per_second
from benchmarks.simulation.policies import POLICIES
from benchmarks.simulation.scenarios import SCENARIOS

ALL = {**SCENARIOS, **CORNERS, **HELD_OUT}
LOAD, CAPACITY = 70.0, 100.0
CLIENTS = (1000, 200, 10, 1)
PICTURED = ["no retry", "urllib3 Retry", "standard 2.1", "ratio budget", "payoff"]
"""The policies of the picture, and of --quick."""
KEPT = ("amplification", "success inside", "success", "goodput", "recovery")
Task = tuple[int, str, str, int, float]


def main() -> int:
    """Simulate, print, and write what was asked for."""
    options = _options()
    tasks: list[Task] = [
        (clients, scenario, policy, seed, options.warm_up)
        for clients in options.clients
        for scenario in options.scenario
        for policy in options.policy
        for seed in range(1, options.seeds + 1)
    ]
    found: dict[Task, dict[str, float]] = {}
    with multiprocessing.Pool(2) as pool:
        found.update(pool.imap_unordered(one, tasks, chunksize=4))
    result: dict[str, Any] = json.loads(options.json.read_text()) if options.update else {}
    for clients in options.clients:
        for scenario in options.scenario:
            rows = result.setdefault(str(clients), {}).setdefault(scenario, {})
            for policy in options.policy:
                runs = [found[clients, scenario, policy, seed, options.warm_up] for seed in range(1, options.seeds + 1)]
                values = {name: median(run[name] for run in runs) for name in KEPT}
                rows[policy] = {name: None if math.isnan(value) else round(value, 4) for name, value in values.items()}
    for clients in options.clients:
        print(f"\n{clients} clients, together {LOAD:g} operations/s, medians of {options.seeds} seeds")
        print("attempts per operation | success while the trouble lasts, % | recovery, s\n")
        print(table({name: result[str(clients)][name] for name in options.scenario}, options.policy))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    if options.plot:
        plot(options.plot)
    return 0


def one(task: Task) -> tuple[Task, dict[str, float]]:
    """The figures of one run."""
    clients, scenario, policy, seed, warm_up = task
    make = POLICIES[policy]
    run = simulate(ALL[scenario], make, clients=clients, load=LOAD, capacity=CAPACITY, seed=seed, warm_up=warm_up)
    return task, measure(run, ALL[scenario])


def table(figures: dict[str, dict[str, Any]], policies: list[str]) -> str:
    """A Markdown table: a line per scenario, a column per policy."""
    lines = ["| | " + " | ".join(policies) + " |", "| --- " * (len(policies) + 1) + "|"]
    for scenario, rows in figures.items():
        lines.append(f"| {scenario} | " + " | ".join(cell(rows[policy]) for policy in policies) + " |")
    return "\n".join(lines)


def cell(row: dict[str, float | None]) -> str:
    """Attempts per operation, success, and where there is one the recovery."""
    both = f"{row['amplification']:.2f}, {row['success inside']:.2f} %"
    return both if row["recovery"] is None else f"{both}, {row['recovery']:.0f} s"


def plot(folder: Path) -> None:
    """One picture, as PNG and as SVG: load and goodput of 200 clients."""
    from benchmarks.simulation.plot import draw

    series: dict[str, Any] = {}
    for scenario in ("black hole", "spike x3", "throttling", "errors 10 %"):
        series[scenario] = {}
        for policy in PICTURED:
            run = simulate(ALL[scenario], POLICIES[policy], clients=200, load=LOAD, capacity=CAPACITY, seed=1)
            good = [done.ended for done in run.operations if done.ok]
            series[scenario][policy] = {"load": per_second(run.attempts), "goodput": per_second(good)}
    folder.mkdir(parents=True, exist_ok=True)
    for ending in ("png", "svg"):
        draw(series, folder / f"payoff-simulation.{ending}", CAPACITY)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="200 clients, one seed, five policies: some seconds")
    parser.add_argument("--clients", type=int, action="append", help="repeatable; default: 1000, 200, 10, 1")
    parser.add_argument("--seeds", type=int, help="how many runs of each (5)")
    parser.add_argument("--warm-up", type=float, default=0.0, metavar="SECONDS", help="health before the first minute")
    parser.add_argument("--scenario", action="append", choices=ALL, help="repeatable; default: all")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="repeatable; default: all")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw (needs matplotlib)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    parser.add_argument("--update", action="store_true", help="keep what FILE has of other policies and scenarios")
    options = parser.parse_args()
    options.clients = options.clients or ([200] if options.quick else list(CLIENTS))
    options.seeds = options.seeds or (1 if options.quick else 5)
    options.scenario = options.scenario or list(ALL)
    options.policy = options.policy or (PICTURED if options.quick else list(POLICIES))
    return options


if __name__ == "__main__":
    raise SystemExit(main())
