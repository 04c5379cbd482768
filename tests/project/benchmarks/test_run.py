"""`python -m benchmarks`: what it keeps of each part, and what it says of one that fails."""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import kept
import machine

pytestmark = pytest.mark.once

BENCHMARKS = Path(machine.__file__).parent
_spec = importlib.util.spec_from_file_location("benchmarks_main", BENCHMARKS / "__main__.py")
runner = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(runner)

PART = """
import json, sys, time
file = sys.argv[sys.argv.index("--json") + 1]
time.sleep({sleep})
{write}
sys.exit({status})
"""
WRITE = 'json.dump({"quick": "--quick" in sys.argv, "numbers": [1, 2.5]}, open(file, "w"))'


def part(write: str = WRITE, status: int = 0, sleep: float = 0, bound: float = 30) -> runner.Part:
    return runner.Part(("-c", PART.format(write=write, status=status, sleep=sleep)), bound)


@pytest.mark.real_time
@pytest.mark.parametrize("quick", [False, True])
def test_a_part_is_kept_with_its_machine_its_date_and_its_command(tmp_path, monkeypatch, quick):
    """The file holds command, date, seconds, machine and result; a result without a rule for it is unchanged."""
    monkeypatch.setitem(runner.PARTS, "fake", part())
    assert 0 == runner.main(["--only", "fake", "--to", str(tmp_path), *(["--quick"] if quick else [])])
    kept = json.loads((tmp_path / "fake.json").read_text())
    assert {"quick": quick, "numbers": [1, 2.5]} == kept["result"]
    assert ["command", "date", "seconds", "machine", "result"] == list(kept)
    assert '"numbers": [ 1, 2.5 ]' in (tmp_path / "fake.json").read_text()


@pytest.mark.real_time
def test_what_nobody_prints_is_not_kept(tmp_path, monkeypatch):
    """The table of what is kept goes for a part that has one."""
    monkeypatch.setitem(runner.PARTS, "fake", part())
    monkeypatch.setitem(kept.KEPT, "fake", {"quick": None})
    assert 0 == runner.main(["--only", "fake", "--to", str(tmp_path)])
    assert {"quick": False} == json.loads((tmp_path / "fake.json").read_text())["result"]


def test_keys_are_kept_by_name_or_by_place():
    """Named ones, or all at a place; those below them likewise."""
    found = {"a": {"x": {"median": 1, "q1": 0}, "y": 2}, "b": {"x": {"median": 3, "q1": 0}}, "c": [4]}
    only = {"a": {kept.EACH: {"median": None}}, "c": None}
    assert {"a": {"x": {"median": 1}, "y": 2}, "c": [4]} == kept.pruned(found, only)


@pytest.mark.parametrize("name", kept.KEPT)
def test_the_results_in_the_tree_hold_no_more_than_what_is_kept(name):
    """The kept results hold only the figures that the rules keep, even those measured before the rules."""
    found = json.loads((runner.RESULTS / f"{name}.json").read_text(encoding="utf-8"))["result"]
    assert kept.pruned(found, kept.KEPT[name]) == found


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("fake", "problem", "kept"),
    [
        (part(write="", status=3), "ended with status 3", False),
        (part(status=1), "ended with status 1, its figures are kept", True),
        (part(sleep=30, bound=0.2), "took more than 0.2 s", False),
    ],
)
def test_a_part_that_fails_is_named(tmp_path, monkeypatch, capsys, fake, problem, kept):
    """The exit status is 1, and figures that call themselves invalid are kept."""
    monkeypatch.setitem(runner.PARTS, "fake", fake)
    assert 1 == runner.main(["--only", "fake", "--to", str(tmp_path)])
    assert f"fake: {problem}" in capsys.readouterr().out
    assert kept is (tmp_path / "fake.json").exists()


def test_the_machine_is_described_without_its_name_or_a_path(monkeypatch):
    """The description has only the facts that figures depend on."""
    monkeypatch.setattr(platform, "node", lambda: "the-hosts-name")
    found = machine.describe()
    assert ["processor", "cores", "system", "python", "packages"] == list(found)
    assert "the-hosts-name" not in json.dumps(found)
    assert str(Path.home()) not in json.dumps(found)
    assert "requests" in found["packages"]


def test_the_results_name_no_path_of_a_machine():
    """The committed results contain no path of a machine."""
    files = list((BENCHMARKS / "results").glob("*.json"))
    assert [] == [file.name for file in files if re.search(r"/(home|tmp|root|Users|usr)/", file.read_text())]
