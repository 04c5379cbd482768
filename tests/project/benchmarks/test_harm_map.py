"""The map of harm: its troubles, its verdicts, and a run of two cells."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import itertools

import harm_map
import outage_server
from harm_map import Cell, Figures
from outage_client import MAPPED, POLICIES

from benchmarks.simulation.clients import simulate
from benchmarks.simulation.patience import patient
from benchmarks.simulation.troubles import HINT, TROUBLES, goes_to_endpoint, troubles

pytestmark = pytest.mark.once

PLAIN = Figures(inside=10.0, success=60.0, late=5.0, sent=1.0)


@pytest.mark.parametrize(
    ("changed", "expected", "words"),
    [
        ({}, "same", ""),
        ({"late": 6.0}, "same", ""),
        ({"late": 7.0}, "worse", "2 s later"),
        ({"late": 60.0, "success": 30.0}, "worse", "at least 55 s later, 30.0 % less"),
        ({"success": 59.6}, "same", ""),
        ({"success": 59.4, "inside": 99.0}, "worse", "0.6 % less"),
        ({"inside": 15.0}, "same", ""),
        ({"inside": 16.0}, "better", ""),
        ({"late": 3.0}, "better", ""),
    ],
)
def test_a_cell_is_judged_beside_no_retry(changed, expected, words):
    """Later by more than a second or less successful is worse; chance makes no difference."""
    figures = PLAIN._replace(**changed)
    assert (expected, words) == (harm_map.verdict(figures, PLAIN), harm_map.why_worse(figures, PLAIN))


@pytest.mark.parametrize("trouble", TROUBLES)
def test_each_trouble_fails_operations_while_it_lasts_and_not_before_or_after(trouble):
    """Without retries, some of the operations begun in it fail, and none of those begun well before or after."""
    scenario = troubles(5.0, 6.0, 6.0)[trouble]
    done = simulate(scenario, harm_map.CONTENDERS["no retry"][1], clients=3, load=60, capacity=100, seed=1).operations
    assert any(not each.ok for each in done if scenario.begin <= each.began < scenario.end)
    assert [] == [each for each in done if not each.ok and not scenario.begin - 1 <= each.began < scenario.end + 3]


def test_the_same_troubles_are_played_on_loopback():
    """A real server knows each kind by the same name, and each policy is played there or is a real object here."""
    assert list(TROUBLES) == list(MAPPED)
    assert harm_map.OURS in POLICIES


def test_a_trouble_that_comes_and_goes_is_told_to_the_server_each_time():
    """The commands are in order of time, and the last one ends it."""
    flapping = MAPPED["flapping"].commands(10.0)
    assert ((10.0, "hole"), (11.0, "well"), (12.0, "hole"), (13.0, "well"), (14.0, "hole"), (15.0, "well")) == flapping
    assert ((10.0, "refuse"), (16.0, "well")) == MAPPED["refused"].commands(10.0)


def test_a_weak_server_queues_as_many_requests_as_a_well_one(monkeypatch):
    """Sixteen of a server that does eight a second; when it is well, what is left is done at the whole rate."""
    now = [100.0]
    monkeypatch.setattr(outage_server.time, "monotonic", lambda: now[0])
    server = outage_server.Server(8.0)
    server.hear(["weak", "0.5"])
    for _ in range(17):
        server.answer(None)
    assert pytest.approx(104.25) == server.free_at
    server.answer(None)
    assert 1 == sum(answer == outage_server.ERROR for *_, answer in server.due)
    now[0] = 102.25
    server.hear(["well"])
    assert pytest.approx(103.25) == server.free_at


def test_a_part_of_the_operations_goes_to_the_broken_endpoint():
    """The part is the one that was asked for, and each operation always goes to the same place."""
    draw = Random(1)
    times = [100 * draw.random() for _ in range(10_000)]
    assert pytest.approx(0.2, abs=0.02) == sum(map(goes_to_endpoint, times)) / len(times)


def test_a_hint_holds_back_the_first_attempts_of_its_client():
    """While the server says that it would refuse, nothing is sent: fewer attempts than operations are throttled."""
    scenario = troubles(5.0, 10.0, 10.0)["throttled, with a hint"]
    run = simulate(scenario, patient(), clients=1, load=60, capacity=100, seed=1)
    inside = sorted(at for at in run.attempts if scenario.begin + 1 <= at < scenario.end)
    assert max(later - earlier for earlier, later in itertools.pairwise(inside)) > HINT / 2
    assert len(run.operations) == run.begun


class _Pool:
    """Runs a cell as it is asked for, and makes up its figures."""

    def __init__(self, made_up):
        self.made_up = made_up

    def imap_unordered(self, _, jobs):
        return [(job, self.made_up(job)) for job in reversed(jobs)]


def test_every_cell_is_run_three_times():
    """The medians of three seeds count, for each policy and for no retry."""
    late = {1: 9.0, 2: 5.0, 3: 8.0}
    pool = _Pool(lambda job: PLAIN._replace(late=late[job.seed]) if job.policy == "default" else PLAIN)
    found = harm_map.measure_all(["refused"], ["default"], [(1, 10)], pool)
    assert {"refused": {"1 client, 10 %": {"no retry": PLAIN, "default": PLAIN._replace(late=8.0)}}} == found
    assert {"refused": {"1 client, 10 %": "3 s later"}} == harm_map.worse(found)


def test_every_policy_is_run_in_every_place():
    """Two places, two troubles: each has all policies, and no retry beside them."""
    policies = ["default", "stamina"]
    found = harm_map.measure_all(["refused", "slow"], policies, [(1, 10), (20, 95)], _Pool(lambda _: PLAIN))
    rows = dict.fromkeys(("no retry", *policies), PLAIN)
    places = {"1 client, 10 %": rows, "20 clients, 95 %": rows}
    assert {"refused": places, "slow": places} == found


def test_the_default_is_judged_beside_the_others_in_both_directions():
    """One cell may count for both: the other recovers sooner, and fewer of its operations succeed."""
    other = PLAIN._replace(late=2.0, success=50.0)
    places = {
        "1 client, 10 %": {"no retry": PLAIN, "default": PLAIN, "AWS 2.1": other},
        "1 client, 40 %": {"no retry": PLAIN, "default": PLAIN._replace(late=9.0), "AWS 2.1": PLAIN},
    }
    found = harm_map.summed_up({"refused": places}, ["default", "AWS 2.1"], {})
    by_load = {
        "10 %": {"no retry": [0, 0, 1], "AWS 2.1": [1, 1, 1]},
        "40 %": {"no retry": [1, 0, 1], "AWS 2.1": [1, 0, 1]},
    }
    assert by_load == found["beside"]
    assert {"better": 0, "same": 1, "worse": 1} == found["counts"]["default"] == found["counts"]["AWS 2.1"]


def test_a_cell_is_simulated_and_measured():
    """Refused for half a minute: nothing succeeds without retries, and everything does before and after."""
    _, figures = harm_map.run(Cell("refused", 20, 10, "no retry"))
    assert (0.0, 0.0, 1.0) == (figures.inside, figures.late, figures.sent)
    assert pytest.approx(100 * 2 / 3, abs=5) == figures.success


def test_the_command_prints_and_writes(tmp_path, capsys, monkeypatch):
    """The number of cells of each colour; played cells beside simulated ones."""
    both = {"loopback": [50.0, 1], "simulated": [48.0, 0.0], "late": 0.3, "valid": False}
    monkeypatch.setattr(harm_map, "play_again", lambda names: dict.fromkeys(names, both))
    file = tmp_path / "map.json"
    arguments = ["--quick", "--trouble", "refused", "--policy", "default", "--loopback", "--json", str(file)]
    assert 1 == harm_map.main(arguments)
    told = capsys.readouterr().out
    assert "default    0 better, 2 same, 0 worse" in told
    assert "loopback 50 %, 1 s, simulated 48 %, 0 s   invalid: the load generator was 0.3 s late" in told
    assert both == json.loads(file.read_text())["loopback"]["refused"]
