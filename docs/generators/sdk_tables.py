"""The tables of the page on SDKs, from benchmarks/results/sdks.json."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .measured import result
from .reference_tables import cell, table

TROUBLES = {"503": "503", "reset": "reset", "429": "429", "cut": "cut body", "silence": "silence"}
RUN, ALL, MOUNT = "run", "run --mounted=all", "mount"
RIGHT = "right"


def _rows() -> dict[str, dict[str, Any]]:
    return dict(result("sdks"))


def _is_reached(row: dict[str, Any], way: str) -> bool:
    ours, requests = row["reached"].get(way, (0, 1))
    return bool(ours == requests)


def line_of(row: dict[str, Any]) -> str:
    """Return the thing to write for a client: an option of ``run``, or a statement."""
    if _is_reached(row, RUN):
        return "nothing"
    return "`--mounted=all`" if _is_reached(row, "install all") else _code(row["line"])


def _code(line: str) -> str:
    return "<br>".join(f"`{each}`" for each in line.split("\n")) if line else "there is no session to get at"


def _named(name: str, row: dict[str, Any]) -> str:
    return f"{name} {row['version']}"


def _part(row: dict[str, Any], way: str) -> str:
    ours, requests = row["reached"].get(way, (0, 0))
    return "all" if ours == requests else "none" if not ours else f"{ours} of {requests}"


def nothing_to_write() -> str:
    """Tabulate the clients all of whose requests are sent by ours under ``run``."""
    rows = [(name, row) for name, row in _rows().items() if _is_reached(row, RUN)]
    cells = [
        (cell(_named(name, row)), "" if _is_reached(row, "install none") else '`mounted="plain"`', _code(row["line"]))
        for name, row in rows
    ]
    return table(("client", "`install()` needs", "or without either"), cells)


def one_line() -> str:
    """Tabulate the clients that ``run`` does not reach as it is, with the reason."""
    rows = [(name, row) for name, row in _rows().items() if not _is_reached(row, RUN)]
    cells = [
        (cell(_named(name, row)), _part(row, RUN), _part(row, "install all"), _code(row["line"]), cell(row["why"]))
        for name, row in rows
    ]
    return table(("client", "`run`", "`run --mounted=all`", "or write", "why"), cells)


def _counts(row: dict[str, Any], trouble: str) -> Iterator[int]:
    for way in ("plain", best_way(row)):
        yield sum(script == RIGHT for script in row["cells"][way][trouble])


def best_way(row: dict[str, Any]) -> str:
    """Return the way whose figures are shown beside the plain ones: the first that reaches all requests."""
    measured = [way for way in (RUN, ALL, MOUNT) if way in row["cells"]]
    return next((way for way in measured if _is_reached(row, way)), measured[-1])


def troubles() -> str:
    """Tabulate the scripts that come to the right end in each trouble, plain and with ours."""
    rows = []
    for name, row in _rows().items():
        way = best_way(row)
        cells = []
        for trouble in TROUBLES:
            plain, ours = _counts(row, trouble)
            cells.append(f"{plain} → {ours} of {len(row['cells'][way][trouble])}")
        asked = row["requests_in_outage"]
        rows.append((cell(name), f"`{way}`", *cells, f"{asked['plain']} → {asked[way]}"))
    return table(("client", "with", *TROUBLES.values(), "requests in an outage"), rows)


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
        f"these tables say. Broken by it: {broken or 'none'}."
    )


BLOCKS: dict[str, Callable[[], str]] = {
    "sdks-totals": totals,
    "sdks-nothing": nothing_to_write,
    "sdks-line": one_line,
    "sdks-troubles": troubles,
}
