"""The table of the page on SDKs: benchmarks/results/sdks.json has the lines, vendors.json what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from statistics import median
from typing import Any

from .measured import result
from .reference_tables import cell, table

RUN, ALL = "run", "install all"
WAYS = {"plain": "", "mount": "with the line", "run": "under `run`"}


def _is_reached(row: dict[str, Any], way: str) -> bool:
    ours, requests = row["reached"].get(way, (0, 1))
    return bool(ours == requests)


def _code(line: str) -> str:
    return "<br>".join(f"`{each}`" for each in line.split("\n")) if line else "-"


def clients() -> str:
    """Tabulate the clients by name: what ``run`` needs, and the line for one alone."""
    measured, rows = result("vendors"), []
    for name, row in sorted(result("sdks").items(), key=lambda item: item[0].lower()):
        found = measured.get(name, row)
        needs = "" if _is_reached(row, RUN) else ", `all`" if _is_reached(row, ALL) else ", *the line*"
        rows.append((f"{cell(name)}=={found['version']}{needs}", _code(row["line"])))
    return table(("client", "the line"), rows)


def totals() -> str:
    """Sum up what ``run`` reaches, and what became of the calls that met a fault."""
    rows, found = result("sdks").values(), result("vendors").values()
    reached = [sum(_is_reached(row, way) for row in rows) for way in (RUN, ALL)]
    requests = sum(row["requests"] for row in found)
    ended = {way: sum((Counter(row["verdicts"][way]) for row in found), Counter[str]()) for way in WAYS}
    right = " and ".join(f"{ended[way]['right']:,} {said}" for way, said in WAYS.items() if way != "plain")
    ratios = [row["cpu"][way] for row in found for way in WAYS if way != "plain"]
    return (
        f"Of {len(rows)} clients, `run` sends every request of {reached[0]}, and with `--mounted=all` of {reached[1]}; "
        f"a line does it for the others. Eleven faults for each of {requests} documented requests of {len(found)} "
        f"clients: {ended['plain']['right']:,} of {sum(ended['plain'].values()):,} calls come to the right end without "
        f"this library, {right}. Calls without a fault take {median(ratios):.2f} times the CPU time, in the median; "
        f"{max(ratios):.2f} at most."
    )


BLOCKS: dict[str, Callable[[], str]] = {"sdks-totals": totals, "sdks": clients}
"""By name of the block."""
