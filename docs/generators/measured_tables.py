"""Tables of figures, made from the files in benchmarks/results. Which command makes a file is said on its page."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable
from typing import Any

from .benchmark_results import MISSING, RESULTS, result
from .reference_tables import table

NAMES = {
    "urllib3 Retry": "urllib3 `Retry`",
    "shared 2.1": "standard 2.1, one quota for all",
    "gRPC throttling": "gRPC retry throttling",
    "ratio budget": "10 % ratio budget",
    "default": "default: the line",
}
"""The names of the simulation's policies in prose."""

SHOWN = (
    "no retry",
    "urllib3 Retry",
    "standard 2.0",
    "standard 2.1",
    "shared 2.1",
    "adaptive",
    "gRPC throttling",
    "ratio budget",
    "circuit breaker",
    "default",
)
"""The policies of the table, in its order."""

SIMULATED = 90
"""Seconds that are simulated after the end of the trouble."""


def _scenarios() -> dict[str, Any]:
    found: dict[str, Any] = result("simulation")["scenarios"]
    return found


def _recovery(seconds: float) -> str:
    return f"over {SIMULATED} s" if seconds >= SIMULATED else f"{seconds:.0f} s"


def collapse() -> str:
    """Tabulate the effect of retries on an outage and on a flood, for the page on why they are dangerous."""
    hole, spike, errors = (_scenarios()[name] for name in ("black hole", "spike x3", "errors 10 %"))
    rows = []
    for policy in ("no retry", "urllib3 Retry", "standard 2.1", "default"):
        each = [f"{row[policy]['amplification']:.2f}, {_recovery(row[policy]['recovery'])}" for row in (hole, spike)]
        rows.append((NAMES.get(policy, policy), *each, f"{errors[policy]['success']:.1f} %"))
    head = ("policy", "outage: attempts per operation, recovery", "load x3: the same", "10 % errors: success")
    return table(head, rows)


def policies() -> str:
    """Every policy through three kinds of trouble."""
    found = _scenarios()
    hole, throttling, errors = (found[name] for name in ("black hole", "throttling", "errors 10 %"))
    rows = []
    for policy in SHOWN:
        first = (f"{hole[policy]['amplification']:.2f}", _recovery(hole[policy]["recovery"]))
        second = (f"{throttling[policy]['success inside']:.1f} %", f"{throttling[policy]['p99']:.2g} s")
        rows.append((NAMES.get(policy, policy), *first, *second, f"{errors[policy]['success']:.1f} %"))
    head = ("policy", "outage: attempts per operation", "recovery", "throttled: success", "p99", "10 % errors: success")
    return table(head, rows)


def botocore_facts() -> str:
    """Return the table of what botocore and this library do with the same faults."""
    found = json.loads((RESULTS / "botocore-facts.json").read_text(encoding="utf-8"))
    rows = [(name, *(_fact(case[peer]) for peer in ("botocore", "ours"))) for name, case in found["cases"].items()]
    return table(("case", f"botocore {found['versions']['botocore']}", "here"), rows)


def _fact(row: dict[str, Any]) -> str:
    """One client's fate in words."""
    ended = "done" if row["ended"] == "done" else f"`{row['ended']}`"
    text = f"{row['attempts']} sent, {ended}"
    if row["longest wait"] >= 1:
        text += f", waited {row['longest wait']:g} s"
    if "bytes sent" in row:
        text += f", {' and '.join(map(str, row['bytes sent']))} bytes"
    return text


def _waiting(name: str) -> Callable[[], str]:
    """A table that the simulation of waiting made."""

    def make() -> str:
        found = result("waiting")
        if found is None:
            return MISSING
        head, *rows = found[name]
        return table(tuple(head), rows)

    return make


def harm_counts() -> str:
    """Tabulate how many cells of the map of harm each policy makes better and worse than no retry."""
    found = result("map")
    if found is None:
        return MISSING
    rows = []
    for name, counts in found["counts"].items():
        number = sum(counts.values())
        rows.append((f"`{found['policies'][name]}`", *(f"{counts[word]} of {number}" for word in COLOURS)))
    return table(("", *COLOURS), rows)


def harm_worse() -> str:
    """List the cells in which the default is worse than no retry, in words."""
    found = result("map")
    if found is None:
        return MISSING
    rows = [
        (trouble, "; ".join(f"{place} load: {words}" for place, words in places.items()))
        for trouble, places in found["worse"].items()
    ]
    return table(("trouble", "clients and load"), rows) if rows else "None."


def harm_beside() -> str:
    """Count by load the cells in which the default is worse than each other policy, and the other way round."""
    found = result("map")
    if found is None:
        return MISSING
    beside = found["beside"]
    others = list(next(iter(beside.values())))
    sums = {other: [sum(each) for each in zip(*(by[other] for by in beside.values()), strict=True)] for other in others}
    rows = [
        (f"{load} ({by[others[0]][2]} cells)", *("{} : {}".format(*by[other]) for other in others))
        for load, by in {**beside, "all": sums}.items()
    ]
    return table(("load", *others), rows)


def harm_loopback() -> str:
    """Tabulate the cells that were played with real clients, beside the same ones in virtual time."""
    found = result("map")
    if found is None or not found["loopback"]:
        return MISSING
    rows = [
        (
            trouble,
            *("{:.0f} %, {:.0f} s".format(*both[name]) for name in ("loopback", "simulated")),
            "yes" if both["valid"] else "no",
        )
        for trouble, both in found["loopback"].items()
    ]
    return table(("success in it, and seconds until all is well", "loopback", "simulated", "clients on time"), rows)


def seeded() -> str:
    """Say how many of the seeded bugs are found, and tabulate which check found each, and what it said."""
    found = result("seeded")
    if found is None:
        return MISSING
    counts = Counter(row["by"][0] for row in found if row["by"])
    by_check = ", ".join(f"{counts[check]} by `{check}`" for check in CHECKS if counts[check])
    nobody = {True: "**nobody**", False: "not tried yet"}
    rows = [
        (row["name"], row["by"][0] if row["by"] else nobody[bool(row["tried"])], _said(row["how"])) for row in found
    ]
    summary = f"{sum(counts.values())} of {len(found)} are found: {by_check}."
    return f"{summary}\n\n{table(('bug', 'found by', 'which says'), rows)}"


def _said(how: str) -> str:
    """Return the first words of what a check said; of a test, its name."""
    name = how.rpartition("::")[2] if how.startswith("tests/") else textwrap.shorten(how.partition(" (inter")[0], 90)
    return f"`{name}`" if name else ""


CHECKS = ("explore", "schedules", "bound", "tests")
"""The checks that look for seeded bugs, in the order in which they are tried."""
COLOURS = ("better", "same", "worse")
"""The verdicts on a cell of the map of harm."""

BLOCKS: dict[str, Callable[[], str]] = {
    "botocore-facts": botocore_facts,
    "collapse": collapse,
    "harm-counts": harm_counts,
    "harm-beside": harm_beside,
    "harm-worse": harm_worse,
    "harm-loopback": harm_loopback,
    "policies": policies,
    "seeded": seeded,
    "short-outages": _waiting("short"),
    "weak-corners": _waiting("weak"),
}
"""By name of the block."""
