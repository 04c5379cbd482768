"""`python -m benchmarks`: what it keeps of each part, and what it says of one that fails."""

from __future__ import annotations

import json
import platform
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as runner
from benchmarks import command

pytestmark = [pytest.mark.once, pytest.mark.real_time]


@pytest.mark.parametrize(
    ("written", "status", "problem", "kept"),
    [
        ({"numbers": [1, 2.5]}, 0, "", True),
        ({"numbers": [1, 2.5]}, 1, "faults: ended with status 1, its figures are kept", True),
        (None, 3, "faults: ended with status 3", False),
    ],
)
def test_a_part_is_kept_with_its_machine_its_date_and_its_command(
    tmp_path, monkeypatch, capsys, written, status, problem, kept
):
    """A part that writes no figures, or fails, is named; figures that call themselves invalid are kept."""

    def run(words, **_):
        if written is not None:
            Path(words[-1]).write_text(json.dumps(written))
        return SimpleNamespace(returncode=status)

    monkeypatch.setattr(runner, "subprocess", SimpleNamespace(run=run, TimeoutExpired=TimeoutError))
    assert bool(problem) == runner.main(["--only", "faults", "--to", str(tmp_path)])
    assert problem in capsys.readouterr().out
    file = tmp_path / "faults.json"
    assert kept == file.exists()
    if kept:
        assert ["command", "date", "seconds", "machine", "result"] == list(json.loads(file.read_text()))
        assert '"numbers": [ 1, 2.5 ]' in file.read_text()


def test_every_part_is_a_module_with_figures_of_its_own(monkeypatch):
    """Each can be imported, and each result in the tree is that of a part, or said to be older."""
    for module, _ in runner.PARTS.values():
        __import__(f"benchmarks.{module.split()[0]}")
    kept = {file.stem for file in runner.RESULTS.glob("*.json")}
    assert {"sdks", "seeded", "vendors"} == kept - set(runner.PARTS)
    assert set(runner.PARTS) <= kept


def test_the_machine_is_described_without_its_name_or_a_path(monkeypatch):
    """The description has only the facts that figures depend on; no result in the tree has a path."""
    monkeypatch.setattr(platform, "node", lambda: "the-hosts-name")
    found = json.dumps(command.describe())
    assert [] == [word for word in ("the-hosts-name", str(Path.home()), sys.prefix) if word in found]
    files = runner.RESULTS.glob("*.json")
    assert [] == [file.name for file in files if re.search(r"/(home|tmp|root|Users|usr)/", file.read_text())]
