"""The goals of the default quota and its line, held against every outage in virtual time.

    python -m benchmarks.outage_tables [--quick] [--table NAME] [--clients N] [--seeds N] [--json FILE]

Prints Markdown tables, medians over the seeds: the goals (trouble of every kind), short outages, and weak corners. The
same seed gives the same figures on any machine. The tables of the documentation (``--table short --table weak --seeds
3``) take some minutes.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

from . import command
from .simulation.clients import simulate
from .simulation.metrics import measure
from .simulation.policies import POLICIES, patient
from .simulation.scenarios import SCENARIOS, Scenario, outage

LOAD, CAPACITY = 70.0, 100.0
CLIENTS = (1000, 200, 10, 1)


class Task(NamedTuple):
    """One run. ``patience`` is how old an outage is waited out, in seconds; 0: the default."""

    clients: int
    scenario: str
    seconds: float
    policy: str
    patience: float
    seed: int
    load: float = LOAD
    threads: float = math.inf


def run(task: Task) -> tuple[Task, dict[str, float]]:
    """Simulate and measure."""
    scenario: Scenario = outage(task.scenario, task.seconds) if task.seconds else SCENARIOS[task.scenario]
    done = simulate(
        scenario,
        patient(patience=task.patience) if task.policy == "patient" else POLICIES[task.policy],
        clients=task.clients,
        load=task.load,
        capacity=CAPACITY,
        seed=task.seed,
        threads=task.threads,
    )
    patience = task.patience or 5.0
    return task, measure(done, scenario, clients=task.clients, load=task.load, patience=patience)


class Results:
    """The simulated figures, by task."""

    def __init__(self, seeds: int) -> None:
        self.seeds = seeds
        self.found: dict[Task, dict[str, float]] = {}

    def get(self, name: str, **task: Any) -> float:
        """The median of one figure over the seeds."""
        values = [self.found[Task(seed=seed, **task)][name] for seed in range(1, self.seeds + 1)]
        return median(values) if not any(map(math.isnan, values)) else math.nan


def everything(sizes: tuple[int, ...], quick: bool) -> dict[str, list[dict[str, Any]]]:
    """The runs of each table, without their seeds."""
    usual: dict[str, Any] = {"seconds": 0.0, "patience": 0.0}
    goals = [
        {"clients": size, "scenario": scenario, "policy": policy, **usual}
        for size in sizes
        for scenario in (SCENARIOS if not quick else ("black hole", "errors 10 %", "errors 30 %", "bad 1 of 4"))
        for policy in ("none", "aws", "unrestricted", "default")
    ]
    short = [
        {"clients": size, "scenario": kind, "seconds": seconds, "policy": policy, "patience": 0.0}
        for kind in ("refused", "hole")
        for size in sizes
        for policy in ("aws", "default")
        for seconds in (1.0, 2.0, 3.0, 5.0, 10.0)
    ]
    weak = [
        {"policy": policy, "patience": 30.0 if policy == "patient" else 0.0, **corner}
        for corner in (CORNERS_OF_POLICY if not quick else CORNERS_OF_POLICY[-1:])
        for policy in ("none", "aws", "default", "patient")
    ]
    return {"goals": goals, "short": short, "weak": weak}


CORNERS_OF_POLICY: tuple[dict[str, Any], ...] = (
    {"clients": 200, "scenario": "hole", "seconds": 10.0, "load": 85.0},
    {"clients": 200, "scenario": "hole", "seconds": 10.0, "load": 90.0},
    {"clients": 200, "scenario": "503", "seconds": 4.0, "load": 90.0},
    {"clients": 200, "scenario": "503", "seconds": 4.0, "load": 95.0},
    {"clients": 1000, "scenario": "spike", "seconds": 10.0, "load": LOAD},
    {"clients": 1000, "scenario": "hole", "seconds": 10.0, "load": LOAD},
    {"clients": 200, "scenario": "hole", "seconds": 10.0, "load": LOAD, "threads": 1},
    {"clients": 1000, "scenario": "hole", "seconds": 10.0, "load": LOAD, "threads": 1},
)
"""Where waiting is known to be weak."""


def by_policy(results: Results, tasks: list[dict[str, Any]]) -> list[list[str]]:
    """A line per scenario and size, a column per policy: sent, success, recovery."""
    policies = list(dict.fromkeys(task["policy"] for task in tasks))
    rows = [["clients, scenario", *policies]]
    for size, scenario in dict.fromkeys((task["clients"], task["scenario"]) for task in tasks):
        row = [f"{size}, {scenario}"]
        for task in tasks:
            if (task["clients"], task["scenario"]) == (size, scenario):
                sent, success = results.get("amplification", **task), results.get("success", **task)
                late = results.get("late", **task)
                row.append(f"{sent:.2f}, {success:.2f} %" + ("" if math.isnan(late) else f", {late:.0f} s"))
        rows.append(row)
    return rows


def short_outages(results: Results, tasks: list[dict[str, Any]]) -> list[list[str]]:
    """List the share of operations begun in an outage that succeed, for each of its lengths."""
    lengths = list(dict.fromkeys(task["seconds"] for task in tasks))
    policies = list(dict.fromkeys(task["policy"] for task in tasks))
    rows = [["outage of " + ", ".join(f"{length:g}" for length in lengths) + " s, %", *policies]]
    for kind, size in dict.fromkeys((task["scenario"], task["clients"]) for task in tasks):
        row = [f"{kind}, {size}"]
        for policy in policies:
            same = [
                task for task in tasks if (task["scenario"], task["clients"], task["policy"]) == (kind, size, policy)
            ]
            row.append(", ".join(f"{results.get('success', **task):.0f}" for task in same))
        rows.append(row)
    return rows


def weak_corners(results: Results, tasks: list[dict[str, Any]]) -> list[list[str]]:
    """A line per corner, a column per policy: success in it, and seconds late against no retries."""
    names = {"none": "no retries", "aws": "published bucket", "default": "default", "patient": "patience of 30 s"}
    policies = list(dict.fromkeys(task["policy"] for task in tasks))
    rows = [["success in it, and seconds late", *(names[policy] for policy in policies)]]
    for corner in CORNERS_OF_POLICY:
        same = [task for task in tasks if {**task, **corner} == task and task.keys() - corner == {"policy", "patience"}]
        if not same:
            continue
        usual = results.get("late", **next(task for task in same if task["policy"] == "none"))
        row = [_corner(**corner)]
        for task in same:
            late = max(0.0, results.get("late", **task) - usual)
            row.append(f"{results.get('success', **task):.0f} %, {late:.0f} s")
        rows.append(row)
    return rows


def _corner(clients: int, scenario: str, seconds: float, load: float, threads: float = math.inf) -> str:
    one = " of one thread with a queue" if threads == 1 else ""
    return f"{clients:,} clients{one}, {scenario} for {seconds:g} s, {100 * load / CAPACITY:.0f} % load"


TABLES: dict[str, Callable[[Results, list[dict[str, Any]]], list[list[str]]]] = {
    "goals": by_policy,
    "short": short_outages,
    "weak": weak_corners,
}


def main(arguments: list[str] | None = None) -> int:
    """Simulate, print, and write what was asked for."""
    options = _options(arguments)
    results, found = Results(options.seeds), {}
    every = everything(tuple(options.clients), options.quick)
    with multiprocessing.Pool(options.processes) as pool:
        for name in options.table:
            tasks = [Task(seed=seed, **task) for task in every[name] for seed in range(1, options.seeds + 1)]
            new = [task for task in dict.fromkeys(tasks) if task not in results.found]
            results.found.update(pool.imap_unordered(run, new, chunksize=2))
            found[name] = TABLES[name](results, every[name])
            print(f"\n{name}\n\n{table(found[name])}", flush=True)
    command.write(found, options.json)
    return 0


def table(rows: list[list[str]]) -> str:
    """Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = command.parser(__doc__, "10 clients, one seed, two tables: some seconds")
    parser.add_argument("--table", action="append", choices=TABLES, help="repeatable; default: all")
    parser.add_argument("--clients", type=int, action="append", help="repeatable; default: 1000, 200, 10, 1")
    parser.add_argument("--seeds", type=int, help="how many runs of each (5)")
    parser.add_argument("--processes", type=int, default=2, help="how many processors are used (2)")
    options = parser.parse_args(arguments)
    options.table = options.table or (["goals", "short"] if options.quick else list(TABLES))
    options.clients = options.clients or ([10] if options.quick else list(CLIENTS))
    options.seeds = options.seeds or (1 if options.quick else 5)
    return options


if __name__ == "__main__":
    raise SystemExit(main())
