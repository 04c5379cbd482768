"""The benchmarks page is made from the results, and says where others are better."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))

import benchmark_results
import benchmark_tables
from benchmark_not_best import not_best

PAGE = Path(benchmark_tables.__file__).with_name("explanation") / "benchmarks.md"
SPREAD = {"median": 2.0, "min": 1.0, "max": 3.0, "q1": 1.5, "q3": 2.5}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A function that puts a part's result where the tables look for it."""
    monkeypatch.setattr(benchmark_results, "RESULTS", tmp_path)

    def put(name, result):
        document = {"command": f"python {name}.py", "date": "2030-01-02", "seconds": 90, "result": result}
        document["machine"] = {
            "processor": "Abacus",
            "cores": 2,
            "system": "Linux",
            "python": "CPython 3.12",
            "packages": {"requests": "3.0", "botocore": None},
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(document))

    return put


def test_every_block_is_on_the_page_and_every_block_of_the_page_is_made():
    """None is forgotten on either side."""
    assert sorted({*benchmark_tables.BLOCKS} - {*benchmark_tables.README}) == sorted(
        re.findall(r"<!-- generated: (.+) -->", PAGE.read_text())
    )


def test_every_picture_of_the_page_is_there_in_both_formats():
    """As the page shows and links them."""
    named = re.findall(r"\(([a-z-]+\.(?:png|svg))\)", PAGE.read_text())
    assert named
    assert [] == [name for name in named if not (PAGE.parent / name).exists()]


def test_no_figure_of_the_page_is_written_by_hand():
    """Outside the blocks, and beside what the set-up is, there is no number with a decimal point or a per cent sign."""
    prose = re.sub(r"<!-- generated: .+? -->.*?<!-- end -->", "", PAGE.read_text(), flags=re.DOTALL)
    assert ["0.05"] == re.findall(r"\d+\.\d+|\d+ ?%", prose)


@pytest.mark.parametrize("make", benchmark_tables.BLOCKS.values())
def test_a_block_without_results_says_so(results, make):
    """A page can be made before everything has been measured."""
    assert benchmark_results.MISSING == make()


def test_the_readmes_sentences_have_the_figures_of_the_results():
    """Those that are committed."""
    assert "`RetryAdapter()` 1." in benchmark_tables.outage_caption()
    assert "A first-try success executes 9" in benchmark_tables.overhead_sentence()


def test_the_machine_is_named_with_what_was_measured_on_it(results):
    """Packages that were not there are left out."""
    results("overhead", {})
    told = "Abacus, 2 cores, Linux, CPython 3.12; requests 3.0. Measured on 2030-01-02, in 2 minutes: "
    assert f"{told}`python overhead.py`." == benchmark_tables.machine()


def test_the_fault_table_shows_harm_in_bold_and_the_worst_of_all_rounds(results):
    """A client that a fault cannot be asked of has a dash."""
    cells = {"f": {"a": {"outcomes": ["hang", "intact"]}, "ours": {"outcomes": ["error", "error"]}}}
    results("faults", {"cells": cells, "best": {"f": "intact"}, "setup": {"a": "`A|B`", "b": "`B`", "ours": "`C`"}})
    assert "| f | intact | **hang 1 of 2** | - | error |" in benchmark_tables.faults()
    assert "| a | `A\\|B` |" in benchmark_tables.fault_setups()


def test_a_fault_that_somebody_else_rides_out_is_listed(results):
    """And one that nobody else does is not."""
    cells = {
        "x": {"a": {"outcomes": ["intact"]}, "ours": {"outcomes": ["error"]}},
        "y": {"a": {"outcomes": ["hang"]}, "ours": {"outcomes": ["error"]}},
    }
    results("faults", {"cells": cells})
    assert "- x: error with `RetryAdapter()`; better with a." == not_best()


def test_an_invalid_episode_is_named(results):
    """With how late it was."""
    row = {"amplification": SPREAD, "success": SPREAD, "success after": SPREAD, "late": 0.2, "valid": False}
    results("outages", {"troubles": {"reset": {"standard": row}}, "rounds": 3, "setting": {"after": 7.0}})
    shown = benchmark_tables.outages()
    assert "| standard | 2.00 (1.00 to 3.00) |" in shown
    assert "late by 200 ms at most" in shown
    assert "**Invalid, the load generator was late:** standard in reset." in shown


def test_an_outage_in_which_another_policy_succeeds_more_often_is_listed(results):
    """By more than five points of the median."""

    def row(success):
        return {
            "amplification": SPREAD,
            "success": {**SPREAD, "median": success},
            "success after": {**SPREAD, "median": 99.0},
        }

    results("outages", {"troubles": {"reset": {"standard": row(10.0), "payoff": row(96.0), "tenacity": row(100.0)}}})
    assert "- reset: 100 % success while it lasts with tenacity; 10 % with standard." == not_best()
