"""The outages with real clients: arrivals, figures, and short episodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import outage_loopback, outage_picture
from benchmarks.outage_client import Episode, figures, histogram
from benchmarks.outage_policies import POLICIES

pytestmark = pytest.mark.once

CALM = Episode("no retry", "hole, 10 s")


def test_figures_are_those_of_the_trouble_and_of_the_time_after_it():
    """Attempts per operation that was begun, success in percent, and when no more than a tenth of a second's fail."""
    counts = {
        "sent": [9, 6, 4, 9, 9, 9],
        "load": [9, 5, 4, 40, 75, 9],
        "wanted": [9, 2, 3, 8, 10, 10],
        "begun": [9, 2, 2, 8, 10, 10],
        "successes": [9, 1, 0, 4, 8, 9],
        "late": 0.01,
        "no thread": 0.0,
    }
    expected = {"amplification": 2.5, "success": 20.0, "success after": 75.0, "peak": 1.5, "recovery": 2}
    found = figures(replace(CALM, before=1.0, lasts=2.0, after=3.0), counts)
    assert {**expected, "late": 0.01, "no thread": 0.0} == found
    assert [1, 2, 0] == histogram([-0.1, 0.5, 1.0, 1.9, 3.0], 3)


def test_rows_and_lines_are_of_policies_that_there_are():
    """Every row and every line of the picture names a policy, and each row shares its threads' adapters evenly."""
    rows = outage_loopback.ROWS
    assert set() == {*(policy for policy, _ in rows.values()), *outage_picture.LINES} - set(POLICIES)
    assert {0} == {CALM.threads % clients for _, clients in rows.values()}


@pytest.mark.real_time
def test_short_episodes():
    """Without retries each operation is sent once; health before, failures in the trouble."""
    troubles = ("restart, 3 s", "hole, 10 s")
    short = Episode(
        "no retry", troubles[0], before=1.0, lasts=3.0, after=0.5, threads=90, clients=2, load=60.0, rate=100
    )
    played = outage_loopback.play([replace(short, trouble=trouble) for trouble in troubles], 2)
    for trouble, counts in zip(troubles, played, strict=True):
        assert sum(counts["wanted"]) == pytest.approx(sum(counts["sent"]), abs=2)  # the last may come after the end
        # The third second of the trouble: on a busy machine the server hears late that it begins. How many succeed
        # goes by the machine; more of them do while the service is well.
        assert counts["successes"][0] / counts["wanted"][0] > counts["successes"][3] / counts["wanted"][3]
        # All of its requests reach a silent server, and none one that is being restarted, but for late ones.
        assert (counts["load"][3] < counts["wanted"][3] / 2) == (trouble == "restart, 3 s")


@pytest.mark.real_time
def test_a_short_run_of_the_picture(monkeypatch, tmp_path):
    """Some of the lines, played, judged and drawn."""
    pytest.importorskip("matplotlib")
    lines = {name: outage_picture.LINES[name] for name in ("no retry", "urllib3 Retry", "default")}
    monkeypatch.setattr(outage_picture, "LINES", lines)
    found = outage_picture.measure(outage_picture.QUICK)
    sent = {name: line["figures"]["amplification"] for name, line in found["lines"].items()}
    assert sent["urllib3 Retry"] > sent["no retry"]
    outage_picture.draw(found, tmp_path / "outage.png")
    assert b"\x89PNG" == (tmp_path / "outage.png").read_bytes()[:4]
