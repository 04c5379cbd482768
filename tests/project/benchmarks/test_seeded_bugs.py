"""The list of seeded bugs (benchmarks/seeded_bugs.toml): each still applies to the source."""

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[3]


def bugs() -> list[dict[str, Any]]:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11")
    found: list[dict[str, Any]] = tomllib.loads((ROOT / "benchmarks/seeded_bugs.toml").read_text("utf-8"))["bug"]
    return found


def test_the_list_is_spread_over_what_can_go_wrong() -> None:
    """There are at least five in each area, and each has a name of its own."""
    kinds = Counter(bug["kind"] for bug in bugs())
    assert {"concurrency", "wire", "accounts", "time"} == {kind for kind, number in kinds.items() if number >= 5}
    assert kinds.total() == len({bug["name"] for bug in bugs()})


def test_each_bug_still_applies_to_the_source() -> None:
    """The old text of each is in its file exactly once, and the file parses with the new text in its place."""
    counts = {}
    for bug in bugs():
        source = (ROOT / "requests_smithy_retry" / bug["file"]).read_text("utf-8")
        counts[bug["name"]] = source.count(bug["old"])
        ast.parse(source.replace(bug["old"], bug["new"]))
    assert counts == dict.fromkeys(counts, 1)
