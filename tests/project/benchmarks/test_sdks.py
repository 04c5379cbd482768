"""The table of SDKs: how scripts are judged, and one client with real sockets."""

from __future__ import annotations

import sys

import pytest

from benchmarks.sdks.__main__ import broken, child
from benchmarks.sdks.child import judge

pytestmark = pytest.mark.once

HEALTHY = {"told": 1, "error": "", "trace": [["GET", "/"], ["POST", "/"]], "acted": [["GET", "/"], ["POST", "/"]]}


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


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("way", "ours", "outcomes"),
    [("plain", 0, ["error", "error"]), ("run", 2, ["right", "error"]), ("mount", 2, ["right", "error"])],
)
def test_a_client_with_a_real_service(way, ours, outcomes):
    """The GET of hvac is ridden out, its POST is not sent again."""
    found = child(sys.executable, "hvac", way, ["503"], SDK_TIMEOUT="60")
    assert (ours, outcomes) == (len(found["healthy"]["ours"]), [each[0] for each in found["cells"]["503"]])
