"""Tables, spreads and folds of the benchmarks page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def spread(figures: dict[str, float], form: str, low: str = "min", high: str = "max") -> str:
    """Return the median, and the extremes where they differ from it."""
    middle, least, most = (form.format(figures[key]) for key in ("median", low, high))
    return middle if least == most else f"{middle} ({least} to {most})"


def details(summary: str, *parts: str) -> str:
    """Return parts of a page that are one click away."""
    return "\n\n".join([f"<details>\n<summary>{summary}</summary>", *parts, "</details>"])
