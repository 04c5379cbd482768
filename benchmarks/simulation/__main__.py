"""Retry policies side by side, in virtual time.

    PYTHONPATH=. python -m benchmarks.simulation [--quick] [--clients N] [--seeds N] [--plot FILE] [--json FILE]

Prints one table per scenario, medians over the seeds. The strategies of this package are the real objects, driven by a
virtual clock; nothing sleeps, and the same seed gives the same figures on any machine.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from statistics import median
from typing import Any

from .clients import simulate
from .metrics import measure, per_second
from .patience import patient
from .policies import POLICIES
from .scenarios import SCENARIOS
from .shared import SharedQuota

POLICIES = {**POLICIES, "shared 2.1": SharedQuota, "default": patient()}
LOAD, CAPACITY = 70.0, 100.0
COLUMNS = {
    "amplification": ("attempts/op", "{:.2f}"),
    "success inside": ("success then %", "{:.2f}"),
    "success": ("success all %", "{:.2f}"),
    "goodput": ("goodput 1/s", "{:.1f}"),
    "p99": ("p99 s", "{:.2f}"),
    "recovery": ("recovery s", "{:.0f}"),
}


def main(arguments: list[str] | None = None) -> int:
    """Simulate, print, and write what was asked for."""
    options = _options(arguments)
    began = time.monotonic()
    result: dict[str, Any] = {"clients": options.clients, "load": LOAD, "capacity": CAPACITY, "scenarios": {}}
    series: dict[str, Any] = {}
    print(f"{options.clients} clients, together {LOAD:g} operations/s; the service can do {CAPACITY:g}/s; medians of")
    print(f"{options.seeds} seed(s); 'then' is while the trouble lasts, attempts/op, goodput and p99 are of that time")
    for name in options.scenario or SCENARIOS:
        figures, series[name] = _one(name, options)
        result["scenarios"][name] = figures
        print(f"\n{name}\n{_table(figures)}", flush=True)
    if options.plot:
        from .plot import draw

        draw(series, options.plot, CAPACITY)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2, allow_nan=False) + "\n")
    print(f"\n{time.monotonic() - began:.1f} s")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 clients, one seed, three scenarios: some seconds")
    parser.add_argument("--clients", type=int, help="how many share the load (200)")
    parser.add_argument("--seeds", type=int, help="how many runs of each (1)")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="repeatable; default: all")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="repeatable; default: all")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw load and goodput (needs matplotlib)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    options = parser.parse_args(arguments)
    if options.quick and options.scenario is None:
        options.scenario = ["black hole", "throttling", "errors 10 %"]
    options.clients = options.clients or (20 if options.quick else 200)
    options.seeds = options.seeds or 1
    return options


def _one(name: str, options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures and the series of one scenario, for every policy."""
    figures, series = {}, {}
    for policy in options.policy or POLICIES:
        found = []
        for seed in range(1, options.seeds + 1):
            run = simulate(
                SCENARIOS[name],
                POLICIES[policy],
                clients=options.clients,
                load=LOAD,
                capacity=CAPACITY,
                seed=seed,
            )
            found.append(measure(run, SCENARIOS[name]))
        medians = {key: median(each[key] for each in found) for key in COLUMNS}
        figures[policy] = {key: None if math.isnan(value) else round(value, 4) for key, value in medians.items()}
        good = [done.ended for done in run.operations if done.ok]
        series[policy] = {"load": per_second(run.attempts), "goodput": per_second(good)}
    return figures, series


def _table(figures: dict[str, dict[str, float | None]]) -> str:
    head = [""] + [title for title, _ in COLUMNS.values()]
    rows = [
        [policy] + ["" if row[key] is None else form.format(row[key]) for key, (_, form) in COLUMNS.items()]
        for policy, row in figures.items()
    ]
    widths = [max(len(line[column]) for line in [head, *rows]) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in [head, *rows]
    )


if __name__ == "__main__":
    raise SystemExit(main())
