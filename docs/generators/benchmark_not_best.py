"""The results in benchmarks/results where another client did better, for the page that must name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .benchmark_markdown import details, table
from .benchmark_results import MISSING, OURS, OUTCOMES, late, result, worst

MAIN = "default"
"""The row of `RetryAdapter()`, and the beginning of the names of its other rows."""
PRESETS = ("AWS", "patient")
OWN = (MAIN, *PRESETS, "standard", "adaptive", "shared", OURS)
"""The beginnings of the names of our own rows."""


class Line(NamedTuple):
    """A row: the thing measured, the better client's figure, and ours."""

    what: str
    better: str
    here: str


def not_best() -> str:
    """Tabulate them; those of the presets and of other options are one click away."""
    main = [*_cheaper(), *_loading(), *_safer(), *_fetched(), *_limited(), *_simulated(), *_outlived(MAIN)]
    presets = list(_outlived(*PRESETS))
    head = ("measured", "another client", "here")
    shown = table(head, main) if main else MISSING
    more = details("The same for the presets and other options", table(head, presets))
    return f"{shown}\n\n{more}" if presets else shown


def _cheaper() -> Iterator[Line]:
    counts = (result("overhead") or {}).get("counts", {})
    if OURS not in counts:
        return
    added = {name: each["bytecodes"]["median"] for name, each in counts.items()}
    peers = [name for name in added if name not in ("plain", "control", "subclass") and not name.startswith(OURS)]
    less = [f"{added[name]:+g} with {name}" for name in peers if added[name] < added[OURS]]
    if less:
        yield Line("bytecodes added to a first-try success", ", ".join(less), f"{added[OURS]:+g}")
    if "ours-deadline" in added:
        yield Line("the same with `operation_timeout`", "+0 without a deadline", f"{added['ours-deadline']:+g}")


def _loading() -> Iterator[Line]:
    """The start of a program, beside the libraries that load faster."""
    imported = (result("footprint") or {}).get("import", {})
    if "mounted_ms" not in imported:
        return
    took = {name: imported[f"{name}_ms"]["median"] for name in ("mounted", "tenacity", "stamina", "backoff")}
    less = [f"{each:.0f} with {name}" for name, each in took.items() if each < took["mounted"]]
    if less:
        yield Line("import, and here the first `mount`, ms", ", ".join(less), f"{took['mounted']:.0f}")


def _safer() -> Iterator[Line]:
    found = result("faults")
    for fault, row in (found["cells"] if found else {}).items():
        outcomes = {name: OUTCOMES.index(worst(each["outcomes"])) for name, each in row.items()}
        better = [name for name, each in outcomes.items() if each < outcomes.get(OURS, 0)]
        if better:
            best = OUTCOMES[min(outcomes.values())]
            yield Line(fault, f"{best} with {', '.join(better)}", OUTCOMES[outcomes[OURS]])


def _fetched() -> Iterator[Line]:
    """Clients of which more downloads end right, with the wrong bytes that they hand over."""
    rows = (result("downloads") or {}).get("sockets", {})

    def part(name: str, outcome: str) -> float:
        return 100 * rows[name].get(outcome, 0) / rows[name]["downloads"]

    def said(name: str) -> str:
        return f"{part(name, 'right'):.0f} % ({part(name, 'wrong bytes'):.0f} %)"

    better = [name for name in rows if part(name, "right") > part(OURS, "right")]
    if better:
        named = ", ".join(f"{name} {said(name)}" for name in better)
        yield Line("random downloads that end right (with wrong bytes)", named, said(OURS))


def _limited() -> Iterator[Line]:
    """The part of a rate limit that a crowd gets, and that of its worst-served process."""
    crowd = next(iter((result("rate-limits") or {}).get("cells", {}).values()), {})
    for key, words in (("used", "let through"), ("least share", "share of the worst-served process")):
        behind = [
            Line(kind, f"{kind} {line.better}", f"{kind} {line.here}")
            for kind in next(iter(crowd.values()), {})
            for line in _behind(kind, {name: 100 * row[kind][key] for name, row in crowd.items()}, OURS)
        ]
        if behind:
            better, here = ("; ".join(each) for each in list(zip(*behind, strict=True))[1:])
            yield Line(f"rate limits: {words}", better, here)


def _simulated() -> Iterator[Line]:
    for scenario, rows in ((result("simulation") or {}).get("scenarios", {})).items():
        success = {name: each["success inside"] for name, each in rows.items()}
        yield from _behind(f"simulated {scenario}: success while it lasts", success, MAIN)


def _behind(what: str, figures: Mapping[str, float], mine: str) -> Iterator[Line]:
    """Our figure and the best other one, in percent, where that is better by more than five points."""
    best = max((name for name in figures if not name.startswith(OWN)), key=figures.__getitem__)
    if figures[mine] < figures[best] - 5:
        yield Line(what, f"{figures[best]:.0f} % with {best}", f"{figures[mine]:.0f} %")


def _outlived(*rows: str) -> Iterator[Line]:
    """Rows of ours that another row beats by more than five points of success, or after which a service is late."""
    found = result("outages")
    for trouble, figures in (found["troubles"] if found else {}).items():
        ours = [row for row in figures if row.startswith(rows)]
        for key, words in (("success", "while it lasts"), ("success after", "after it")):
            middle = {row: each[key]["median"] for row, each in figures.items()}
            best = max((row for row in figures if not row.startswith(OWN)), key=middle.__getitem__)
            behind = [f"{middle[row]:.0f} % with {row}" for row in ours if middle[row] < middle[best] - 5]
            if behind:
                yield Line(f"{trouble}: success {words}", f"{middle[best]:.0f} % with {best}", ", ".join(behind))
        slow = [f"{seconds} s with {row}" for row in ours if (seconds := late(found, trouble, row)) != "0"]
        if slow:
            yield Line(f"{trouble}: recovery, later than without retries", "0 s without retries", ", ".join(slow))
    for name, line in ((result("picture") or {}).get("lines", {})).items():
        after = line["figures"]["success after"]
        if name.startswith(rows) and after < 95:
            yield Line("the outage of the picture: success after it", "100 %", f"{after:.0f} % with {name}")
