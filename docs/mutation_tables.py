"""The blocks of the page on mutation testing, from what `python benchmarks/mutation` left in benchmarks/results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "mutation.json"
COLUMNS = ("mutants", "killed", "timed out", "survived")


def load() -> dict[str, dict[str, Any]]:
    """By module: what was counted, and what survived."""
    results: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def counts() -> str:
    """What was counted, module by module."""
    results = load()
    lines = ["| module | changes | killed | timed out | survived |", "| --- | ---: | ---: | ---: | ---: |"]
    for module, found in results.items():
        lines.append(f"| `{module}.py` | {' | '.join(str(found[column]) for column in COLUMNS)} |")
    sums = (f"**{sum(found[column] for found in results.values()):,}**" for column in COLUMNS)
    lines.append(f"| **{len(results)} modules** | {' | '.join(sums)} |")
    return "\n".join(lines)


def survivors() -> str:
    """Every change that no test noticed, by module, with the reason."""
    lines = []
    for module, found in load().items():
        reasons: dict[str, list[str]] = {}
        for survivor in found["survivors"]:
            why = survivor.get("why", "**Not explained yet.**")
            reasons.setdefault(why, []).append(f"  - {_code(survivor['was'])} → {_code(survivor['now'])}")
        if reasons:
            lines += [f"### `{module}.py`", ""]
            for why, changes in reasons.items():
                lines += [f"- {why}", *dict.fromkeys(changes)]
            lines.append("")
    return "\n".join(lines).rstrip("\n")


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if text else "nothing"


BLOCKS = {"mutation": counts, "mutation-survivors": survivors}
