"""The outages with real clients: arrivals, figures, and a short episode."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import outage_loopback
import outage_picture
from outage_client import TROUBLES, Episode, arrivals, figures, histogram
from outage_policies import POLICIES

CALM = Episode("no retry", "reset")


def test_every_policy_meets_the_same_arrivals():
    """They depend on the seed and on the trouble alone."""
    assert arrivals(CALM) == arrivals(replace(CALM, policy="payoff", clients=400))
    assert arrivals(CALM) != arrivals(replace(CALM, seed=2))


def test_a_spike_brings_three_times_the_load_while_it_lasts():
    """And the usual load before and after it."""
    long = replace(CALM, trouble="load x3", before=100.0, lasts=100.0, after=100.0)
    inside = sum(long.is_in_trouble(at) for at in arrivals(long))
    outside = len(arrivals(long)) - inside
    assert 210.0 == pytest.approx(inside / 100, rel=0.05)
    assert 70.0 == pytest.approx(outside / 200, rel=0.05)


def test_a_histogram_leaves_out_what_is_outside():
    """Per second."""
    assert [1, 2, 0] == histogram([-0.1, 0.5, 1.0, 1.9, 3.0], 3)


def test_figures_are_those_of_the_trouble_and_of_the_time_after_it():
    """Attempts per operation, and success in percent."""
    episode = replace(CALM, before=1.0, lasts=2.0, after=1.0)
    counts = {"load": [9, 6, 4, 9], "wanted": [9, 2, 3, 8], "successes": [9, 1, 0, 4], "late": 0.01, "no thread": 0.0}
    found = figures(episode, counts)
    assert {"amplification": 2.0, "success": 20.0, "success after": 50.0, "late": 0.01, "no thread": 0.0} == found


@pytest.mark.parametrize(("late", "valid"), [(0.1, True), (0.11, False)])
def test_an_episode_whose_load_generator_was_late_is_invalid(late, valid):
    """One late round is enough."""
    early = {"amplification": 1.0, "success": 1.0, "success after": 1.0, "late": 0.0, "no thread": 0.0}
    assert valid is outage_loopback._summary([early, {**early, "late": late}])["valid"]


def test_rows_and_lines_are_of_policies_that_there_are():
    """And every row shares its threads' adapters evenly."""
    named = [*outage_loopback.ROWS.values(), *outage_picture.LINES.values()]
    assert set() == {policy for policy, _ in named} - set(POLICIES)
    assert {0} == {CALM.threads % clients for _, clients in named}


@pytest.mark.real_time
@pytest.mark.parametrize("trouble", ["reset", "throttled"])
def test_a_short_episode(trouble):
    """Without retries the server sees each operation once; healthy before, failures in the trouble."""
    assert trouble in TROUBLES
    episode = Episode("no retry", trouble, before=1.0, lasts=1.0, after=0.0, threads=40, clients=2, load=60.0)
    (counts,) = outage_loopback.play([episode], 1)
    assert sum(counts["wanted"]) == sum(counts["load"])
    assert counts["successes"][0] > 0.8 * counts["wanted"][0]
    assert counts["successes"][1] < 0.8 * counts["wanted"][1]


@pytest.mark.real_time
def test_an_episode_that_cannot_be_played_says_why():
    """The child's own words."""
    with pytest.raises(RuntimeError, match="KeyError: 'nobody'"):
        outage_loopback.play([replace(CALM, policy="nobody")], 1)


@pytest.mark.real_time
def test_a_short_run_of_the_picture():
    """Every line, played and judged."""
    found = outage_picture.measure(replace(outage_picture.QUICK, after=0.0, threads=400, load=40.0))
    assert list(outage_picture.LINES) == list(found["lines"])
    assert {"no retry": 2, "payoff": 2} == {name: len(found["lines"][name]["load"]) for name in ("no retry", "payoff")}
    assert (
        found["lines"]["urllib3 Retry"]["figures"]["amplification"]
        > found["lines"]["no retry"]["figures"]["amplification"]
    )


def test_an_episode_travels_as_json():
    """As the child process gets it."""
    assert Episode(**json.loads(json.dumps(asdict(CALM)))) == CALM
