"""The tables of the outage policy: the real bucket and line in virtual time, and the figures that they are to keep."""

from __future__ import annotations

import itertools
import json

import pytest

from benchmarks.outage_tables import CLIENTS, TABLES, Results, Task, everything, main, run, table, weak_corners
from benchmarks.simulation.clients import simulate
from benchmarks.simulation.outages import KINDS, figures, outage
from benchmarks.simulation.patience import Stamina, Tenacity, patient
from benchmarks.simulation.policies import POLICIES

pytestmark = pytest.mark.once
MANY = {
    "default": patient(),
    "patient": patient(deadline=20.0),
    "refusing": patient(patience=0.0),
    "tenacity": lambda clock, random: Tenacity(clock, random, 20.0),
    "stamina": lambda clock, random: Stamina(clock, random, 20.0),
}


def figure(name: str, **task) -> float:
    usual = {"clients": 10, "seconds": 0.0, "policy": "default", "patience": 0.0, "seed": 1}
    return run(Task(**{**usual, **task}))[1][name]


@pytest.mark.parametrize("policy", MANY)
@pytest.mark.parametrize("kind", KINDS)
def test_every_operation_ends_once(kind, policy):
    """As many operations end as begin; the attempts of all are those that the server saw."""
    done = simulate(outage(kind, 8.0), MANY[policy], clients=4, load=8, capacity=12, seed=1)
    assert len(done.operations) == done.begun > 0
    assert sum(each.attempts for each in done.operations) == len(done.attempts)


@pytest.mark.parametrize(
    ("clients", "kind", "seconds", "least"),
    [(10, "refused", 3.0, 99), (10, "hole", 3.0, 99), (200, "refused", 1.0, 90)],
)
def test_a_plain_session_bridges_a_short_outage(clients, kind, seconds, least):
    """Most operations succeed in an outage of 1 or 3 s; with the AWS quota 0 to 8 % of refused ones do."""
    assert figure("success", clients=clients, scenario=kind, seconds=seconds) > least


@pytest.mark.parametrize("clients", [10, 200])
@pytest.mark.parametrize("policy", ["default", "patient"])
def test_waiting_adds_no_load_and_no_lateness(clients, policy):
    """A black hole of ten seconds: attempts within a tenth of the bound, recovery as without retries."""
    task = {"clients": clients, "scenario": "hole", "seconds": 10.0, "policy": policy, "patience": 30.0}
    done = run(Task(**task, seed=1))[1]
    assert done["sent"] < done["bound"] + 0.1
    assert 0.0 == done["late"]


def test_patience_of_three_outages_loses_nothing():
    """Ten clients, refused for ten seconds, 30 s a piece."""
    assert figure("of_ceiling", scenario="refused", seconds=10.0, policy="patient", patience=30.0) > 99


@pytest.mark.parametrize(("scenario", "least"), [("errors 10 %", 99.9), ("errors 30 %", 99.0), ("bad 1 of 4", 97.5)])
def test_errors_are_retried_as_without_a_quota_or_better(scenario, least):
    """Attempts that fail while no operation succeeds do not count, so bad luck does not end an operation."""
    assert figure("success inside", scenario=scenario) > least


def test_an_hour_of_health_changes_nothing():
    """After a long time of health, a client sends as much in an outage as after none."""
    sent = [
        figure("amplification", scenario="refused", clients=50, load=20.0, warm_up=warm_up) for warm_up in (0.0, 300.0)
    ]
    assert pytest.approx(sent[0], abs=0.05) == sent[1]


def test_the_ceiling_is_what_could_live_beyond_the_end():
    """The ceiling counts operations that could end after the outage; without retries no operation does."""
    scenario = outage("refused", 3.0)
    done = simulate(scenario, POLICIES["no retry"], clients=4, load=8, capacity=12, seed=1)
    found = figures(done, scenario, clients=4, load=8, capacity=12, patience=1.0)
    assert (0.0, 0.0, 1.0, 0.0) == (found.success, found.of_ceiling, found.sent, found.late)
    assert pytest.approx(1.0, abs=0.4) == found.peak


def test_each_table_can_be_made_of_its_runs():
    """Nothing that a table reads was not simulated."""
    every = everything((10,), quick=True)
    for name, tasks in every.items():
        results = Results(1)
        row = dict.fromkeys(
            ("amplification", "success inside", "recovery", "success", "of_ceiling", "sent", "bound", "late", "peak"),
            1.0,
        )
        results.found = {Task(seed=1, **task): row for task in tasks}
        rows = TABLES[name](results, tasks)
        assert len({len(cells) for cells in rows}) == 1
        assert table(rows).startswith("| ")


def test_the_command_prints_and_writes(tmp_path, capsys, monkeypatch):
    """The command prints a table and writes it as JSON."""
    task = {"clients": 2, "scenario": "refused", "seconds": 1.0, "policy": "default", "patience": 0.0, "load": 2.0}
    monkeypatch.setattr("benchmarks.outage_tables.everything", lambda *_, **__: {"short": [task]})
    file = tmp_path / "tables.json"
    assert 0 == main(["--table", "short", "--seeds", "1", "--processes", "1", "--json", str(file)])
    rows = [["outage of 1 s, %", "default"], ["refused, 2", "100"]]
    assert f"\nshort\n\n{table(rows)}\n" == capsys.readouterr().out
    assert {"short": rows} == json.loads(file.read_text())


def test_operations_of_a_client_without_a_free_thread_wait_for_one():
    """Operations count from the moment they were wanted, and every one is counted."""
    scenario = outage("hole", 3.0)
    load = {"clients": 1, "load": 8, "capacity": 12, "seed": 1}
    one, many = (simulate(scenario, POLICIES["no retry"], **load, threads=threads) for threads in (1, 99))
    assert one.begun == many.begun == len(one.operations)
    assert sorted(done.began for done in one.operations) == sorted(done.began for done in many.operations)
    ends = sorted(done.ended for done in one.operations if 61.5 <= done.ended <= 63)
    assert all(later - earlier > 0.99 for earlier, later in itertools.pairwise(ends))


class Constant:
    """Results of which each figure is 1."""

    def get(self, name: str, **task: object) -> float:
        return 1.0


def test_every_corner_has_one_cell_for_each_policy():
    """Every row has a cell for each policy, even for a corner that differs from another one in its threads only."""
    rows = weak_corners(Constant(), everything(CLIENTS, quick=False)["weak"])
    assert {len(row) for row in rows} == {5}
