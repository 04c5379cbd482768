"""The table of SDKs: how scripts are judged, what the kept figures hold, and one client with real sockets."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

from benchmarks.sdks.__main__ import REQUIREMENTS, RESULT, broken, child
from benchmarks.sdks.child import judge
from benchmarks.sdks.row import ROOMS, ROWS

pytestmark = pytest.mark.once

for room in ROOMS:
    importlib.import_module(f"benchmarks.sdks.{room}")

HEALTHY = {"told": 1, "error": "", "trace": [["GET", "/"], ["POST", "/"]], "acted": [["GET", "/"], ["POST", "/"]]}


@pytest.fixture(scope="module")
def rows():
    return json.loads(RESULT.read_text(encoding="utf-8"))["result"]


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ({}, "right"),
        ({"told": 2}, "wrong"),
        ({"told": None, "error": "ConnectionError"}, "error"),
        ({"told": None}, "hang"),
        ({"acted": [["GET", "/"], ["GET", "/"], ["POST", "/"]]}, "right"),
        ({"acted": [["GET", "/"], ["POST", "/"], ["POST", "/"]]}, "twice"),
        ({"told": None, "error": "X", "acted": [["POST", "/"], ["POST", "/"]]}, "twice"),
    ],
)
def test_a_script_is_judged_from_what_both_ends_say(found, outcome):
    """A POST that the service acted on more often than without trouble counts, whatever the client was told."""
    assert outcome == judge({**HEALTHY, **found}, HEALTHY)


@pytest.mark.parametrize(
    ("at", "plain", "ours", "is_broken"),
    [
        (0, "error", "right", False),
        (0, "right", "error", True),
        (0, "error", "wrong", True),
        (0, "error", "hang", True),
        (0, "error slowly", "hang", False),
        (1, "right", "error", False),  # a POST that the client repeats and ours does not
        (1, "error", "twice", True),
        (1, "error", "twice by itself", False),  # the client sent the POST again, after a time limit of ours
        (1, "twice", "twice", False),
    ],
)
def test_a_client_is_broken_by_an_outcome_that_is_worse_with_ours(at, plain, ours, is_broken):
    """A POST that is not sent again is no harm."""
    cells = {
        way: {
            "503": [["right", "", 1, 0.0, 0]] * at
            + [[outcome.split()[0], "", 1, 7.0 * ("slowly" in outcome), "itself" not in outcome]]
        }
        for way, outcome in (("plain", plain), ("run", ours))
    }
    assert is_broken == bool(broken(cells, {"plain": HEALTHY, "run": HEALTHY}))


def test_a_script_without_trouble_has_to_come_out_the_same():
    """Its result and its requests are compared."""
    assert ["run: without trouble, told differs"] == broken({}, {"plain": HEALTHY, "run": {**HEALTHY, "told": 2}})
    assert ["run: without trouble, trace differs"] == broken({}, {"plain": HEALTHY, "run": {**HEALTHY, "trace": []}})


def test_every_client_was_measured_with_the_pinned_version(rows):
    """Rows, requirements and figures go together."""
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", REQUIREMENTS.read_text(encoding="utf-8"), re.M))
    assert list(ROWS) == list(rows)
    assert {name: pinned[row.package] for name, row in ROWS.items()} == {
        name: row["version"] for name, row in rows.items()
    }


def test_no_client_is_broken(rows):
    """The kept figures name none."""
    assert len(rows) >= 40
    assert [] == [trouble for row in rows.values() for trouble in row["broken"]]


def test_a_client_that_run_does_not_reach_has_its_reason(rows):
    """Either the row says why, or there is nothing to say."""
    reached = {name for name, row in rows.items() if len(set(row["reached"]["run"])) == 1}
    assert [] == [name for name in rows if name not in reached and not ROWS[name].why]


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("way", "ours", "outcomes"),
    [("plain", 0, ["error", "error"]), ("run", 2, ["right", "error"]), ("mount", 2, ["right", "error"])],
)
def test_a_client_with_a_real_service(way, ours, outcomes):
    """The GET of hvac is ridden out, its POST is not sent again."""
    found = child(Path(sys.executable), "hvac", way, ["503"])
    assert (ours, outcomes) == (len(found["healthy"]["ours"]), [each[0] for each in found["cells"]["503"]])
