"""The figures of a benchmark that are kept in benchmarks/results: those that a page prints or a picture draws.

Each round's own figures, and spreads that no page prints, are of use only to the person who measures; the scripts write
them to the file that `--json` names.
"""

from __future__ import annotations

from typing import Any

EACH = "*"
"""In a table of what is kept: every key that is not named beside it."""
EXTREMES = dict.fromkeys(("median", "min", "max"))
QUARTILES = dict.fromkeys(("median", "q1", "q3"))
FIGURES = ("amplification", "bound", "success", "success after", "peak", "recovery", "held", "latency")
DRAWN = ("restart, 3 s", "hole, 10 s", "brownout", "load x3")
"""The troubles that are drawn."""
KEPT: dict[str, Any] = {
    "overhead": {
        "what": None,
        "counts": {EACH: {EACH: {**EXTREMES, "absolute": None}}},
        "cpu": {EACH: {"ratio": QUARTILES}},
        "throughput": {
            EACH: {EACH: {"ratio": EXTREMES}, "plain": {"ratio": EXTREMES, "absolute": {"median": None}}},
        },
    },
    "faults": {"setup": None, "best": None, "cells": {EACH: {EACH: {"outcomes": None}}}},
    "outages": {
        **dict.fromkeys(("setting", "rounds", "setup", "lasting")),
        "troubles": {EACH: {EACH: {**dict.fromkeys(FIGURES, EXTREMES), EACH: None}}},
        "series of the first round": dict.fromkeys(
            DRAWN,
            dict.fromkeys(
                ("no retry", "urllib3 Retry", "AWS 2.1", "default"),
                dict.fromkeys(("load", "goodput")),
            ),
        ),
    },
    "picture": {
        "setting": None,
        "setup": None,
        "lines": {EACH: dict.fromkeys(("load", "wanted", "successes", "figures", "valid"))},
    },
}
"""By part: which keys, and of what is below them which; None keeps all of it. A part that is not here is kept whole."""


def pruned(found: Any, kept: dict[str, Any] | None) -> Any:
    """Return a copy of what was found with only the keys that are kept."""
    if kept is None or not isinstance(found, dict):
        return found
    return {
        key: pruned(value, kept[key] if key in kept else kept[EACH])
        for key, value in found.items()
        if key in kept or EACH in kept
    }
