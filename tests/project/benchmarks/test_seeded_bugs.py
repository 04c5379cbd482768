"""The list of seeded bugs (benchmarks/seeded_bugs.toml): each still applies to the source."""

import ast
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import seeded_bugs

pytestmark = pytest.mark.real_time  # subprocess sleeps while it waits

CHECK = """
from requests_smithy_retry.pacing import server_hints
LATER, SENT = "Wed, 01 Jan 2025 00:00:09 GMT", "Wed, 01 Jan 2025 00:00:00 GMT"
assert server_hints.parse_retry_after(LATER, date=SENT, wall=0.0) == 9
"""


def bugs() -> list[dict[str, Any]]:
    pytest.importorskip("tomllib", reason="Python 3.11")
    return seeded_bugs.bugs()


def test_the_list_is_spread_over_what_can_go_wrong() -> None:
    """There are forty, at least ten in each large area and five in each small one."""
    assert Counter(bug["kind"] for bug in bugs()) == {
        "concurrency": 10,
        "wire": 10,
        "accounts": 10,
        "shared memory": 5,
        "time": 5,
    }
    assert len({bug["name"] for bug in bugs()}) == 40


def test_each_bug_still_applies_to_the_source() -> None:
    """The old text of each is in its file exactly once, and the file parses with the new text in its place."""
    counts = {}
    for bug in bugs():
        source = (seeded_bugs.ROOT / "requests_smithy_retry" / bug["file"]).read_text("utf-8")
        counts[bug["name"]] = source.count(bug["old"])
        ast.parse(source.replace(bug["old"], bug["new"]))
    assert counts == dict.fromkeys(counts, 1)


def test_a_bug_is_found_by_a_check_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """The command runs in a copy that has one bug at a time; a check that looks elsewhere misses it."""
    pytest.importorskip("tomllib", reason="Python 3.11")
    one = ("--only", "date compared with the own clock", "--", sys.executable, "-c")
    assert 0 == seeded_bugs.main([*one, CHECK])
    assert 1 == seeded_bugs.main([*one, "import requests_smithy_retry"])
    told = capsys.readouterr().out.splitlines()
    assert ["found", "1 of 1 found", "missed", "0 of 1 found"] == [line.partition(" |")[0].strip() for line in told]
    with pytest.raises(SystemExit, match="without a bug the command fails"):
        seeded_bugs.main([*one, "raise SystemExit(1)"])


def test_a_check_that_comes_to_no_end_has_found_something(tmp_path: Path) -> None:
    """A hang is noticed by its time."""
    assert "timed out" == seeded_bugs.ending_of(
        [sys.executable, "-c", "import threading; threading.Event().wait()"], "pacing", tmp_path, 0.0
    )
