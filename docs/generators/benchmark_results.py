"""Reads what `python -m benchmarks` left in benchmarks/results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
PARTS = (
    *("overhead", "footprint", "faults", "deadlines", "adaptive", "addresses", "rate-limits"),
    *("outages", "picture", "simulation", "downloads", "waiting"),
)
OUTCOMES = ("intact", "error", "applied twice", "wrong body", "hang")
"""Of the fault table, from the best to the worst."""
HARM = OUTCOMES[2:]
OURS = "ours"
MISSING = "Not measured yet."


def load(name: str) -> dict[str, Any] | None:
    """Return one part's document; None if the file does not exist."""
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def result(name: str) -> Any:
    """Return the result of one part; None if it has no document."""
    document = load(name)
    return None if document is None else document["result"]


def worst(outcomes: Sequence[str]) -> str:
    """The worst outcome of a cell's rounds."""
    return max(outcomes, key=OUTCOMES.index)


def late(found: dict[str, Any], trouble: str, row: str) -> str:
    """Return the seconds that a service takes to recover beyond those that it takes without retries."""
    own, usual = (found["troubles"][trouble][each]["recovery"]["median"] for each in (row, "no retry"))
    most = found["lasting"][trouble]["after"]
    return f"over {most - usual:g}" if own >= most > usual else f"{max(0.0, own - usual):.0f}"
