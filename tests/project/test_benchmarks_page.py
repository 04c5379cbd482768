"""The benchmarks page is made from the results, and says where others are better."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

from generators import benchmark_results, benchmark_tables
from generators.benchmark_not_best import not_best

pytestmark = pytest.mark.once

PAGE = Path(benchmark_tables.__file__).parents[1] / "explanation" / "benchmarks.md"
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
    """No block is missing on the page, and no block of the page is missing in the code."""
    assert sorted({*benchmark_tables.BLOCKS} - {*benchmark_tables.README}) == sorted(
        re.findall(r"<!-- generated: (.+) -->", PAGE.read_text())
    )


def test_every_picture_of_the_page_is_there_in_both_formats():
    """Every picture that the page shows or links exists."""
    named = re.findall(r"\(([a-z-]+\.(?:png|svg))\)", PAGE.read_text())
    assert named
    assert [] == [name for name in named if not (PAGE.parent / name).exists()]


def test_no_figure_of_the_page_is_written_by_hand():
    """Outside the blocks and what is quoted of code, there is no number with a decimal point or a per cent sign."""
    prose = re.sub(r"<!-- generated: .+? -->.*?<!-- end -->", "", PAGE.read_text(), flags=re.DOTALL)
    prose = re.sub(r"`[^`]*`", "", prose)
    assert [] == re.findall(r"\d+\.\d+|\d+ ?%", prose)


@pytest.mark.parametrize("make", benchmark_tables.BLOCKS.values())
def test_a_block_without_results_says_so(results, make):
    """A page can be made before everything has been measured."""
    assert benchmark_results.MISSING == make()


def test_the_readmes_sentences_have_the_figures_of_the_results():
    """The README's sentences have the figures of the committed results."""
    assert "`RetryAdapter()` 1." in benchmark_tables.outage_caption()
    (restart,) = re.findall(r"`RetryAdapter\(\)` brings (\d+) % of", benchmark_tables.outage_success())
    assert int(restart) >= 95
    (added,) = re.findall(r"A first-try success executes (\d+) bytecodes more", benchmark_tables.overhead_sentence())
    assert int(added) < 100


def test_the_machine_is_named_with_what_was_measured_on_it(results):
    """Packages that were not there are left out."""
    results("overhead", {})
    told = "Abacus, 2 cores, Linux, CPython 3.12; requests 3.0. Measured on 2030-01-02, in 2 minutes: "
    assert f"{told}`python overhead.py`." in benchmark_tables.machine().splitlines()


def test_the_fault_table_shows_harm_in_bold_and_the_worst_of_all_rounds(results):
    """A client that a fault cannot be asked of has a dash."""
    cells = {"f": {"a": {"outcomes": ["hang", "intact"]}, "ours": {"outcomes": ["error", "error"]}}}
    results("faults", {"cells": cells, "best": {"f": "intact"}, "setup": {"a": "`A|B`", "b": "`B`", "ours": "`C`"}})
    assert "| f | intact | **hang 1 of 2** | - | error |" in benchmark_tables.faults()
    assert "| a | `A\\|B` |" in benchmark_tables.fault_setups()


def test_a_fault_that_somebody_else_rides_out_is_listed(results):
    """A fault is listed if another client ends better; one that no other client rides out is not listed."""
    cells = {
        "x": {"a": {"outcomes": ["intact"]}, "ours": {"outcomes": ["error"]}},
        "y": {"a": {"outcomes": ["hang"]}, "ours": {"outcomes": ["error"]}},
    }
    results("faults", {"cells": cells})
    assert ["| x | intact with a | error |"] == lines_of(not_best())


def lines_of(text):
    """The lines of a table without its head."""
    return text.splitlines()[2:]


def test_a_client_that_loads_faster_is_listed(results):
    """Only the faster ones are named."""
    took = {
        f"{name}_ms": at(took) for name, took in (("mounted", 50), ("tenacity", 9), ("stamina", 60), ("backoff", 70))
    }
    results("footprint", {"import": took})
    assert ["| import, and here the first `mount`, ms | 9 with tenacity | 50 |"] == lines_of(not_best())


def test_more_right_downloads_are_listed_with_the_wrong_ones(results):
    """The wrong bytes stand beside the right ones, because the two have one cause."""
    rows = {"ours": {"downloads": 100, "right": 80, "error": 20}, "a": {"downloads": 10, "right": 9, "wrong bytes": 1}}
    results("downloads", {"sockets": rows})
    assert "| a 90 % (10 %) | 80 % (0 %) |" in not_best()


def test_a_rate_limit_that_another_client_uses_better_is_listed(results):
    """Our own other rows are not compared with."""
    rows = {
        name: {"fixed": {"used": used, "least share": 1.0}}
        for name, used in (("a", 1.0), ("ours", 0.9), ("ours, x", 2.0))
    }
    results("rate-limits", {"cells": {"8 x 16": rows}})
    assert ["| rate limits: let through | fixed 100 % with a | fixed 90 % |"] == lines_of(not_best())


def test_a_simulated_policy_that_succeeds_more_often_is_listed(results):
    """A difference of five points or less is not listed."""
    rows = {
        name: {"success inside": success} for name, success in (("breaker", 21.0), ("default", 3.0), ("adaptive", 90.0))
    }
    results("simulation", {"scenarios": {"spike": rows, "calm": {**rows, "default": {"success inside": 16.0}}}})
    assert ["| simulated spike: success while it lasts | 21 % with breaker | 3 % |"] == lines_of(not_best())


def outage_row(**changed):
    """Return one row in one trouble."""
    figures = ("amplification", "bound", "success", "success after", "peak", "recovery", "held", "latency")
    row = {**dict.fromkeys(figures, SPREAD), "late": 0.0, "no thread": 0.0, "valid": True}
    return {**row, **{name.replace("_", " "): value for name, value in changed.items()}}


def outages(rounds=3, **rows):
    """Return the part of the outage results that the page reads."""
    return {
        "troubles": {"hole": rows},
        "rounds": rounds,
        "setting": {"threads": 400},
        "lasting": {"hole": {"before": 6.0, "lasts": 10.0, "after": 15.0}},
    }


def at(median):
    """A figure that is the same in all rounds."""
    return dict.fromkeys(SPREAD, median)


def test_an_invalid_episode_is_named(results):
    """A late episode is named with its lateness, and so is one that ran out of threads."""
    results("outages", outages(default=outage_row(late=0.2, valid=False, no_thread=0.25), **{"no retry": outage_row()}))
    shown = benchmark_tables.outages()
    assert "| default | 2.00 (1.00 to 3.00); 2.00 |" in shown
    assert "late by 200 ms at most" in shown
    assert "**Invalid, the load generator was late:** default in hole." in shown
    assert "because all 400 threads waited: 25 % of default in hole." in shown


@pytest.mark.parametrize(
    ("own", "usual", "told"), [(2.0, 2.0, "0"), (5.0, 2.0, "3"), (0.0, 2.0, "0"), (15.0, 2.0, "over 13")]
)
def test_lateness_is_what_the_service_needs_beyond_what_it_needs_without_retries(results, own, usual, told):
    """Lateness is in seconds, or "over" the whole time that was observed."""
    rows = {"no retry": outage_row(recovery=at(usual)), "default": outage_row(recovery=at(own))}
    assert told == benchmark_results.late(outages(**rows), "hole", "default")


def test_a_row_that_was_not_played_in_a_trouble_has_a_dash(results):
    """The missing cell is a dash, and a single round is called "One round"."""
    found = outages(rounds=1, **{"no retry": outage_row(), "default": outage_row()})
    found["troubles"]["near"] = {"no retry": outage_row()}
    found["lasting"]["near"] = found["lasting"]["hole"]
    results("outages", found)
    assert "| default | 2 (1 to 3) | - |" in benchmark_tables.outages()
    assert "One round. " in benchmark_tables.outages()


def test_an_outage_in_which_another_policy_succeeds_more_often_is_listed(results):
    """A difference of more than five points of the median is listed."""

    def row(success):
        return outage_row(success=at(success), success_after=at(99.0))

    results("outages", outages(default=row(10.0), patient=row(96.0), tenacity=row(100.0), **{"no retry": row(0.0)}))
    assert ["| hole: success while it lasts | 100 % with tenacity | 10 % with default |"] == lines_of(not_best())


def test_an_outage_that_a_preset_does_not_ride_out_is_one_click_away(results):
    """The results of `RetryAdapter()` are shown; those of the presets are folded."""

    def row(success):
        return outage_row(success=at(success), success_after=at(99.0))

    results(
        "outages", outages(**{"default": row(10.0), "AWS 2.1": row(20.0), "tenacity": row(100.0), "no retry": row(0.0)})
    )
    shown, _, folded = not_best().partition("<details>")
    assert "10 % with default" in shown
    assert "20 % with AWS 2.1" in folded


def test_an_outage_that_a_row_of_ours_prolongs_is_listed(results):
    """The row is listed with the seconds by which it prolongs the recovery."""
    rows = {"no retry": outage_row(recovery=at(2.0)), "default": outage_row(recovery=at(5.0)), "patient": outage_row()}
    results("outages", outages(**rows))
    told = "| hole: recovery, later than without retries | 0 s without retries | 3 s with default |"
    assert [told] == lines_of(not_best())


def test_sick_addresses_are_compared_with_the_healthy_case(results):
    """Times are those beyond the same client's with as many well addresses; ours has its later ones, too."""

    def row(sick, success, first, later):
        cell = {"success": success, "first": first, "later": later, "hits": sick / 2}
        return {"method": "GET", "kind": "503" if sick else "healthy", "addresses": 2, "sick": sick, "ours": cell}

    found = {
        "rows": [row(0, 1.0, 0.01, 0.001), row(1, 0.5, 0.26, 0.003)],
        "clients": {"503": 0.9995},
        "new connection": {"1": SPREAD},
    }
    results("addresses", found)
    table = benchmark_tables.addresses()
    assert "| GET, 1 of 2 503 | 50% |" in table
    assert "| GET, 1 of 2 503 | +250 | +2 | 0.5 |" in table
    assert "| 503 | 99.95% |" in table
    assert "| 1 | 2.000 (1.500 to 2.500) |" in table
