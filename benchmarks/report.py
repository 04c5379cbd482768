"""Turn raw rounds into medians with their spread, and those into a plain-text table or JSON.

Nothing is measured here. A count is the difference to the plain adapter's median for the same shape of URL; a
time or a throughput is the ratio to the plain adapter of the same round.
"""

from __future__ import annotations

from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from counting import Counts
    from subjects import Subject

KINDS = ("bytecodes", "python_calls", "c_calls")


def spread(values: Iterable[float]) -> dict[str, float]:
    """Median, quartiles and extremes."""
    ordered = sorted(values)
    low, _, high = quantiles(ordered, n=4) if len(ordered) > 1 else ordered * 3
    return {"median": median(ordered), "q1": low, "q3": high, "min": ordered[0], "max": ordered[-1]}


def added_counts(found: dict[str, list[list[Counts]]]) -> dict[str, dict[str, Any]]:
    """Return the counts that each subject adds to plain, per kind of count, over all shapes and rounds."""
    added: dict[str, dict[str, Any]] = {}
    for name, shapes in found.items():
        added[name] = {}
        for index, kind in enumerate(KINDS):
            base = [median(each[index] for each in shape) for shape in found["plain"]]
            raw = zip(base, shapes, strict=True)
            added[name][kind] = spread(each[index] - b for b, shape in raw for each in shape)
            added[name][kind]["absolute"] = median(each[index] for shape in shapes for each in shape)
    return added


def ratios(found: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Each round against plain in the same round."""
    plain = found["plain"]
    return {
        name: {
            "ratio": spread(value / base for value, base in zip(values, plain, strict=True)),
            "added": spread(value - base for value, base in zip(values, plain, strict=True)),
            "absolute": spread(values),
        }
        for name, values in found.items()
    }


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as they need; the first and those without a heading go left, others right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 or not head[column] else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def counts_table(subjects: Sequence[Subject], result: dict[str, Any]) -> str:
    """Added bytecodes and calls; extremes are shown where repetitions differ."""
    rows = []
    for subject in subjects:
        figures = result.get(subject.name)
        cells = [_counted(figures[kind]) for kind in KINDS] if figures else ["n/a"] * 3
        rows.append([subject.name, *cells, subject.what])
    head = ["added per first-try success", "bytecodes", "Python calls", "C calls", ""]
    return table(head, rows)


def _counted(figures: dict[str, float]) -> str:
    text = f"{figures['median']:+g}"
    if figures["min"] != figures["max"]:
        text += f" ({figures['min']:+g} to {figures['max']:+g})"
    return text


def cpu_table(subjects: Sequence[Subject], result: dict[str, Any]) -> str:
    """CPU time of the client's thread, median and quartiles."""
    rows = []
    for subject in subjects:
        figures = result.get(subject.name)
        if figures is None:
            rows.append([subject.name, "n/a", "n/a", "n/a"])
            continue
        added, ratio = figures["added"], figures["ratio"]
        rows.append(
            [
                subject.name,
                f"{figures['absolute']['median'] * 1e6:.0f}",
                f"{added['median'] * 1e6:+.1f} ({added['q1'] * 1e6:+.1f} to {added['q3'] * 1e6:+.1f})",
                f"{ratio['median']:.3f} ({ratio['q1']:.3f} to {ratio['q3']:.3f})",
            ]
        )
    return table(["CPU per call (quartiles)", "us", "us added", "ratio to plain"], rows)


def throughput_table(subjects: Sequence[Subject], result: dict[str, dict[str, Any]]) -> str:
    """Ratio of calls per second for each number of threads, median and extremes."""
    rows = []
    for subject in subjects:
        cells = []
        for figures in result.values():
            ratio = figures.get(subject.name, {}).get("ratio")
            text = f"{ratio['median']:.2f} ({ratio['min']:.2f}-{ratio['max']:.2f})" if ratio else "n/a"
            cells.append(text)
        rows.append([subject.name, *cells])
    base = [f"{figures['plain']['absolute']['median']:.0f}/s" for figures in result.values()]
    rows.append(["plain, calls per second", *base])
    head = ["throughput relative to plain", *(f"{threads} threads" for threads in result)]
    return table(head, rows)
