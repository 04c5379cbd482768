"""What pages print of the benchmarks is made from the results, and says where others are better."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

from generators import measured

pytestmark = pytest.mark.once

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A function that puts a part's result where the tables look for it."""
    monkeypatch.setattr(measured, "RESULTS", tmp_path)

    def put(name, result):
        machine = {"processor": "Abacus", "cores": 2, "system": "Linux", "python": "CPython 3.12"}
        machine["packages"] = {"requests": "3.0", "botocore": None}
        document = {"command": "python", "date": "2030-01-02", "seconds": 90, "machine": machine, "result": result}
        (tmp_path / f"{name}.json").write_text(json.dumps(document))

    return put


def test_every_block_is_on_a_page_and_every_result_is_read():
    """No figure is measured for nobody."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [] == [name for name in measured.BLOCKS if f"<!-- generated: {name} -->" not in text]
    source = Path(measured.__file__).read_text(encoding="utf-8") + (DOCS / "generators/sdk_tables.py").read_text()
    files = [file.stem for file in measured.RESULTS.glob("*.json")]
    assert [] == [name for name in files if f'result("{name}")' not in source]
    modules = {by for _, _, by in measured.ROWS}
    assert [] == [by for by in modules if not (DOCS.parent / "benchmarks" / f"{by}.py").exists()]


def test_no_figure_of_the_page_is_written_by_hand():
    """Outside the blocks and what is quoted of code, there is no number with a decimal point or a per cent sign."""
    page = (DOCS / "explanation" / "benchmarks.md").read_text(encoding="utf-8")
    prose = re.sub(r"<!-- generated: .+? -->.*?<!-- end -->", "", page, flags=re.DOTALL)
    assert [] == re.findall(r"\d+\.\d+|\d+ ?%", re.sub(r"`[^`]*`", "", prose))


def test_what_somebody_else_does_better_is_listed(results):
    """Faults that another client ends better, and troubles in which over five points more of its operations succeed."""
    outcomes = {"x": {"a": ["intact"], "ours": ["intact", "error"]}, "y": {"a": ["hang"], "ours": ["error"]}}
    results("faults", {"best": {"x": "intact", "y": "intact"}, "outcomes": outcomes})
    rows = {
        name: {"success": success, "success after": 100.0}
        for name, success in (("tenacity", 43.0), ("patient", 60.0), ("default", 11.0), ("default, 400 clients", 39.0))
    }
    results("outages", {"hole": rows})
    assert [
        "| x | intact with a | error |",
        "| hole: success while it lasts | 43 % with tenacity | 11 % |",
    ] == measured.not_best().splitlines()[2:]
