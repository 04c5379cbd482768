"""The tables of the payoff quota's pages, from the files in ``benchmarks/results`` that its command writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import exp
from pathlib import Path
from typing import Any

OPERATIONS = 70.0 * 30.0  # of all clients together in thirty seconds of trouble
RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
SIZES = {"1000": "1,000 clients", "200": "200", "10": "10", "1": "1"}
MAIN = ["black hole", "spike x3", "throttling", "errors 10 %", "errors 30 %"]
WEAK = ["time-outs 10 %", "quick 503s", "bad 1 of 4", "flapping", "errors 30 % near saturation"]
OLD_HELD_OUT = ["brownout", "blips", "throttled, 5 % errors"]
NEW_HELD_OUT = ["two holes", "rising errors", "hole in a wave"]
COMPARED = ["no retry", "urllib3 Retry", "standard 2.1", "gRPC throttling", "ratio budget", "circuit breaker", "payoff"]
Figures = dict[str, dict[str, dict[str, Any]]]


def _read(file: str = "payoff_table.json") -> dict[str, Figures]:
    figures: dict[str, Figures] = json.loads((RESULTS / file).read_text(encoding="utf-8"))
    return figures


def _cell(row: dict[str, float | None]) -> str:
    both = f"{row['amplification']:.2f}, {row['success inside']:.2f} %"
    return both if row["recovery"] is None else f"{both}, {row['recovery']:.0f} s"


def _table(scenarios: list[str], columns: dict[str, Callable[[str], dict[str, float | None]]]) -> str:
    lines = ["| | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(_cell(of(name)) for of in columns.values()) + " |" for name in scenarios]
    return "\n".join(lines)


def _by_policy(clients: str, scenarios: list[str], policies: list[str], file: str = "payoff_table.json") -> str:
    figures = _read(file)[clients]
    return _table(scenarios, {policy: lambda name, policy=policy: figures[name][policy] for policy in policies})


def _by_size(scenarios: list[str], policy: str) -> str:
    figures = _read()
    return _table(scenarios, {title: lambda name, n=n: figures[n][name][policy] for n, title in SIZES.items()})


def payoff_by_size() -> str:
    """The payoff quota for clients of each size."""
    return _by_size(MAIN + WEAK, "payoff")


def compared() -> str:
    """The payoff quota beside the others."""
    return _by_policy("200", MAIN, COMPARED)


def bounds() -> str:
    """What no client can do better, beside what this one does."""
    figures = _read()
    lines = ["| clients | n | bound | measured, black hole | measured, quick 503s |", "| --- | --- | --- | --- | --- |"]
    for clients in list(SIZES)[:3]:
        n = OPERATIONS / int(clients)
        part = (1 - exp(-n)) / n
        measured = (figures[clients][name]["payoff"]["amplification"] for name in ("black hole", "quick 503s"))
        cells = (
            f"{int(clients):,}",
            f"{n:g}",
            f"{1 + part:.3f} to {1 + 2 * part:.3f}",
            *(f"{each:.2f}" for each in measured),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def held_out() -> str:
    """The scenarios that nothing was tuned on."""
    policies = ["no retry", "unrestricted", "standard 2.1", "payoff", "payoff, settling"]
    return _by_policy("200", OLD_HELD_OUT + NEW_HELD_OUT, policies)


def settling() -> str:
    """The quota that settles beside the one that does not, after a minute."""
    figures = _read()
    columns = {
        f"{policy}, {n}": lambda name, n=n, policy=policy: figures[n][name][policy]
        for n in ("1000", "200")
        for policy in ("payoff", "payoff, settling")
    }
    return _table(MAIN + WEAK, columns)


def after_an_hour() -> str:
    """The same after an hour's warm-up."""
    figures = _read("payoff_table_hour.json")
    columns = {
        f"{policy}, {n}": lambda name, n=n, policy=policy: figures[n][name][policy]
        for n in ("1000", "200")
        for policy in ("payoff", "payoff, settling")
    }
    return _table(list(figures["200"]), columns)


def everything(clients: str) -> Callable[[], str]:
    """Every scenario and policy, for clients of one size; policies are lines here, there are so many of them."""

    def make() -> str:
        figures = _read()[clients]
        parts = []
        for name, rows in figures.items():
            parts.append(
                f"| {name} | attempts per operation | success, % | success of the whole run, % | recovery, s |"
            )
            parts.append("| --- " * 5 + "|")
            for policy, row in rows.items():
                recovery = "" if row["recovery"] is None else f"{row['recovery']:.0f}"
                figured = f"{row['amplification']:.2f} | {row['success inside']:.2f} | {row['success']:.2f}"
                parts.append(f"| {policy} | {figured} | {recovery} |")
            parts.append("")
        return "\n".join(parts).rstrip()

    return make


BLOCKS: dict[str, Callable[[], str]] = {
    "payoff-by-size": payoff_by_size,
    "compared": compared,
    "settling": settling,
    "after-an-hour": after_an_hour,
    "bounds": bounds,
    "held-out": held_out,
    **{f"clients-{clients}": everything(clients) for clients in SIZES},
}
"""By name of the block."""
