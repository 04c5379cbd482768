"""The table of the page on SDKs, from benchmarks/results/sdks.json."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .measured import result
from .reference_tables import cell, table

RUN, ALL, MOUNT = "run", "run --mounted=all", "mount"
RIGHT = "right"


def _rows() -> dict[str, dict[str, Any]]:
    return dict(result("sdks"))


def _is_reached(row: dict[str, Any], way: str) -> bool:
    ours, requests = row["reached"].get(way, (0, 1))
    return bool(ours == requests)


def _code(line: str) -> str:
    return "<br>".join(f"`{each}`" for each in line.split("\n")) if line else "-"


def clients() -> str:
    """Tabulate the clients by name: what ``run`` needs to reach all their requests, and the line for one alone."""
    rows = []
    for name, row in sorted(_rows().items(), key=lambda item: item[0].lower()):
        needs = "" if _is_reached(row, RUN) else "`all`" if _is_reached(row, "install all") else "the line"
        rows.append((f"{cell(name)}=={row['version']}", needs, _code(row["line"])))
    return table(("client", "`--mounted`", "the line"), rows)


def best_way(row: dict[str, Any]) -> str:
    """Return the way whose figures are shown beside the plain ones: the first that reaches all requests."""
    measured = [way for way in (RUN, ALL, MOUNT) if way in row["cells"]]
    return next((way for way in measured if _is_reached(row, way)), measured[-1])


def totals() -> str:
    """Sum the scripts up."""
    rows = _rows()
    right = dict.fromkeys(("plain", RUN, "best"), 0)
    scripts = 0
    for row in rows.values():
        for way in right:
            cells = row["cells"][best_way(row) if way == "best" else way]
            right[way] += sum(script == RIGHT for each in cells.values() for script in each)
        scripts += sum(len(each) for each in row["cells"]["plain"].values())
    reached = [sum(_is_reached(row, way) for row in rows.values()) for way in (RUN, "install all")]
    lost = sum(not any(_is_reached(row, way) for way in (RUN, "install all", MOUNT)) for row in rows.values())
    but = f" but {lost}" if lost else ""
    broken = sum(bool(row["broken"]) for row in rows.values())
    return (
        f"Of {len(rows)} clients, `run` sends every request of {reached[0]}, and with `--mounted=all` of {reached[1]}; "
        f"a line does it for the others{but}. Of {scripts:,} scripts that meet a trouble, {right['plain']:,} "
        f"come to the right end without this library, {right[RUN]:,} under `run`, and {right['best']:,} with what "
        f"this table says. Broken by it: {broken or 'none'}."
    )


BLOCKS: dict[str, Callable[[], str]] = {"sdks-totals": totals, "sdks": clients}
"""By name of the block."""
