"""The results in benchmarks/results where another client did better, for the page that must name them."""

from __future__ import annotations

from .benchmark_results import MISSING, OURS, OUTCOMES, late, result, worst


def not_best() -> str:
    """A line for each."""
    return "\n".join(f"- {line}" for line in (*_cheaper(), *_safer(), *_outlived())) or MISSING


def _cheaper() -> list[str]:
    counts = (result("overhead") or {}).get("counts", {})
    peers = [name for name in counts if name not in ("plain", "control", "subclass") and not name.startswith(OURS)]
    if OURS not in counts:
        return []
    ours = counts[OURS]["bytecodes"]["median"]
    less = [name for name in peers if counts[name]["bytecodes"]["median"] < ours]
    lines = [
        f"A first-try success executes {counts[name]['bytecodes']['median']:+g} bytecodes with {name}, {ours:+g} here."
        for name in less
    ]
    if "ours-deadline" in counts:
        costly = counts["ours-deadline"]["bytecodes"]["median"]
        lines.append(
            f"With `operation_timeout` it executes {costly:+,.0f}: the deadline is looked at before each read."
        )
    return lines


def _safer() -> list[str]:
    found = result("faults")
    lines = []
    for fault, row in (found["cells"] if found else {}).items():
        mine = OUTCOMES.index(worst(row[OURS]["outcomes"])) if OURS in row else 0
        better = [name for name, each in row.items() if OUTCOMES.index(worst(each["outcomes"])) < mine]
        if better:
            lines.append(f"{fault}: {OUTCOMES[mine]} with `RetryAdapter()`; better with {', '.join(better)}.")
    return lines


def _outlived() -> list[str]:
    """Rows of ours that another row beats by more than five points of success, or after which a service is late."""
    found = result("outages")
    lines = []
    for trouble, rows in (found["troubles"] if found else {}).items():
        ours = [row for row in rows if row.startswith(("AWS", "default", "patient"))]
        for key, words in (("success", "while it lasts"), ("success after", "after it")):
            middle = {row: each[key]["median"] for row, each in rows.items()}
            best = max((row for row in rows if row not in ours), key=lambda row: middle[row])
            behind = [f"{middle[row]:.0f} % with {row}" for row in ours if middle[row] < middle[best] - 5]
            if behind:
                lines.append(f"{trouble}: {middle[best]:.0f} % success {words} with {best}; {', '.join(behind)}.")
        slow = [f"{seconds} s with {row}" for row in ours if (seconds := late(found, trouble, row)) != "0"]
        if slow:
            lines.append(f"{trouble}: recovery later than without retries: {', '.join(slow)}.")
    lines += [
        f"{line['figures']['success after']:.0f} % success after the outage of the picture with {name}."
        for name, line in ((result("picture") or {}).get("lines", {})).items()
        if name.startswith(("AWS", "default")) and line["figures"]["success after"] < 95
    ]
    return lines
