"""The outages with real clients: arrivals, figures, and a short episode."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import outage_loopback
import outage_picture
from outage_client import TROUBLES, Done, Episode, arrivals, bound, figures, held, histogram, latency
from outage_policies import POLICIES

pytestmark = pytest.mark.once

CALM = Episode("no retry", "hole, 10 s")


def test_every_policy_meets_the_same_arrivals():
    """The arrivals depend on the seed, the trouble and the load alone."""
    assert arrivals(CALM) == arrivals(replace(CALM, policy="default", clients=400))
    assert arrivals(CALM) != arrivals(replace(CALM, seed=2))


def test_a_trouble_says_what_an_episode_does_not():
    """A trouble is listed with its length and its share of the load that the service can bear."""
    assert (10.0, 15.0, 35.0) == (CALM.lasts, CALM.after, CALM.load)
    assert 85.0 == Episode("no retry", "hole, 10 s, load 85 %", rate=100.0).load
    assert (2.0, 15.0) == (replace(CALM, lasts=2.0).lasts, replace(CALM, lasts=2.0).after)


def test_a_spike_brings_three_times_the_load_while_it_lasts():
    """The load is three times as high during the spike, and the usual load before and after it."""
    long = replace(CALM, trouble="load x3", before=100.0, lasts=100.0, after=100.0, load=70.0)
    inside = sum(long.is_in_trouble(at) for at in arrivals(long))
    outside = len(arrivals(long)) - inside
    assert 210.0 == pytest.approx(inside / 100, rel=0.05)
    assert 70.0 == pytest.approx(outside / 200, rel=0.05)


def test_a_histogram_leaves_out_what_is_outside():
    """Per second."""
    assert [1, 2, 0] == histogram([-0.1, 0.5, 1.0, 1.9, 3.0], 3)


def test_figures_are_those_of_the_trouble_and_of_the_time_after_it():
    """Attempts per operation that was begun, success in percent, and when no more than a tenth of a second's fail."""
    episode = replace(CALM, before=1.0, lasts=2.0, after=3.0)
    own = {"bound": 2.5, "held": 3.0, "latency": 0.02, "late": 0.01, "no thread": 0.0}
    counts = {
        "sent": [9, 6, 4, 9, 9, 9],
        "load": [9, 5, 4, 40, 75, 9],
        "wanted": [9, 2, 3, 8, 10, 10],
        "begun": [9, 2, 2, 8, 10, 10],
        "successes": [9, 1, 0, 4, 8, 9],
        **own,
    }
    assert {
        "amplification": 2.5,
        "success": 20.0,
        "success after": 75.0,
        "peak": 1.5,
        "recovery": 2,
        **own,
    } == figures(episode, counts)


def test_threads_are_held_by_what_was_begun_and_is_not_done():
    """Only the part of an operation in the trouble counts; one that never ended is held to the end of the trouble."""
    episode = replace(CALM, before=1.0, lasts=2.0)
    begun = {0.5: (0.5, 0), 1.5: (2.0, 1), 2.5: (2.5, 2), 3.5: (3.5, 0)}
    done = [Done(0.5, 0.5, 2.0, True), Done(2.5, 2.5, 2.6, False), Done(3.5, 3.5, 9.0, False)]
    assert pytest.approx((1.0 + 1.0 + 0.1) / 2) == held(episode, begun, done)


def test_the_bound_is_two_retries_of_each_client_that_has_operations():
    """The bound counts the clients whose operations begin in the trouble."""
    begun = {0.5: (0.5, 9), 6.5: (6.5, 1), 7.0: (7.0, 1), 8.0: (8.0, 2), 9.0: (9.0, 1)}
    assert 2.0 == bound(CALM, begun)
    assert 1.0 == bound(CALM, {})


def test_latency_is_that_of_health():
    """The first operations open connections, and those in the trouble are no measure."""
    episode = replace(CALM, before=2.0, load=2.0)
    done = [Done(0.5, 0.5, 0.9, True), Done(1.1, 1.1, 1.2, True), Done(1.5, 1.5, 1.8, True), Done(2.5, 2.5, 9.0, True)]
    assert pytest.approx(0.2) == latency(episode, done)
    assert 0.0 == latency(episode, [])


@pytest.mark.parametrize(("late", "valid"), [(0.1, True), (0.11, False)])
def test_an_episode_whose_load_generator_was_late_is_invalid(late, valid):
    """One round with a late load generator makes the result invalid."""
    early = {**dict.fromkeys(outage_loopback.SHOWN, 1.0), "late": 0.0, "no thread": 0.0}
    assert valid is outage_loopback._summary([early, {**early, "late": late}])["valid"]


def test_what_was_late_is_played_again_and_takes_the_place(monkeypatch):
    """Some of them."""
    answers = [[{"late": 0.0}, {"late": 0.2}], [{"late": 0.01}]]
    monkeypatch.setattr(outage_loopback, "play", lambda episodes, at_once: answers.pop(0))
    assert [{"late": 0.0}, {"late": 0.01}] == outage_loopback.play_well([CALM, CALM], 2)


def test_rows_and_lines_are_of_policies_that_there_are():
    """Every row and every line of the picture names a policy, and each row shares its threads' adapters evenly."""
    rows = outage_loopback.ROWS
    assert set() == {policy for policy, _ in rows.values()} - set(POLICIES)
    assert set() == {*outage_picture.LINES} - set(POLICIES)
    assert {0} == {CALM.threads % clients for _, clients in rows.values()}
    assert [*outage_loopback.NEAR_FULL] == [row for row in rows if outage_loopback.is_played(row, "hole, load 85 %")]


@pytest.mark.real_time
@pytest.mark.parametrize("trouble", ["restart, 3 s", "hole, 10 s"])
def test_a_short_episode(trouble):
    """Without retries each operation is sent once; health before, failures in the trouble."""
    assert trouble in TROUBLES
    episode = Episode("no retry", trouble, before=1.0, lasts=3.0, after=1.0, threads=90, clients=2, load=60.0, rate=100)
    (counts,) = outage_loopback.play([episode], 1)
    assert sum(counts["wanted"]) == pytest.approx(sum(counts["sent"]), abs=2)  # the last may come after the end
    # The third second of the trouble: on a busy machine the server hears late that it begins. How many succeed goes by
    # the machine; more of them do while the service is well.
    assert counts["successes"][0] / counts["wanted"][0] > counts["successes"][3] / counts["wanted"][3]
    # All of its requests reach a server that is silent, and none a server that is being restarted, but for late ones.
    assert (counts["load"][3] < counts["wanted"][3] / 2) == (trouble == "restart, 3 s")


@pytest.mark.real_time
def test_the_default_brings_a_short_restart_through():
    """The operations of a second in which connections are refused, of clients that have others."""
    episode = Episode("default", "restart, 3 s", before=1.0, lasts=1.0, after=1.0, threads=100, clients=2)
    (counts,) = outage_loopback.play([episode], 1)
    # All of them on a quiet machine; on a busy one it is the machine that is out of time. Without retries, none.
    assert counts["successes"][1] > 0.2 * counts["wanted"][1] > 0


@pytest.mark.real_time
def test_an_episode_that_cannot_be_played_says_why():
    """The child's own words."""
    with pytest.raises(RuntimeError, match="KeyError: 'nobody'"):
        outage_loopback.play([replace(CALM, policy="nobody")], 1)


@pytest.mark.real_time
def test_a_short_run_of_the_picture(monkeypatch):
    """Half of the lines, played and judged."""
    monkeypatch.setattr(outage_picture, "LINES", ("no retry", "urllib3 Retry", "default"))
    found = outage_picture.measure(outage_picture.QUICK)
    assert list(outage_picture.LINES) == list(found["lines"])
    assert {"no retry": 4, "default": 4} == {
        name: len(found["lines"][name]["load"]) for name in ("no retry", "default")
    }
    assert (
        found["lines"]["urllib3 Retry"]["figures"]["amplification"]
        > found["lines"]["no retry"]["figures"]["amplification"]
    )


def test_an_episode_travels_as_json():
    """An episode can be sent to the child process as JSON."""
    assert Episode(**json.loads(json.dumps(asdict(CALM)))) == CALM
