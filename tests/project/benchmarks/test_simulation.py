"""The simulation of outages in virtual time: it is deterministic, its services do what they say, and the goals hold."""

from __future__ import annotations

import random

import pytest

from benchmarks.outage_tables import Task, run
from benchmarks.simulation.clients import simulate
from benchmarks.simulation.policies import POLICIES, patient
from benchmarks.simulation.scenarios import KINDS, SCENARIOS, outage
from benchmarks.simulation.servers import NEVER, FailingServer, QueueServer, ThrottlingServer

pytestmark = pytest.mark.once
MAKERS = {**POLICIES, "patient": patient(patience=20.0)}
FEW = {"clients": 4, "load": 8, "capacity": 12}


@pytest.mark.parametrize("policy", MAKERS)
@pytest.mark.parametrize("scenario", [*SCENARIOS, *KINDS])
def test_every_operation_ends_once(scenario, policy):
    """As many operations end as begin, none before it began; the attempts of all are those that the server saw."""
    done = simulate(SCENARIOS.get(scenario) or outage(scenario, 8.0), MAKERS[policy], **FEW, seed=1)
    assert len(done.operations) == done.begun > 0
    assert sum(each.attempts for each in done.operations) == len(done.attempts)
    assert all(each.began <= each.ended and each.attempts for each in done.operations)


def test_the_same_seed_gives_the_same_run_and_another_one_another():
    """The run depends on its own seed, not on the state of the module-level generator."""
    runs = []
    for state, seed in ((1, 1), (2, 1), (1, 2)):
        random.seed(state)
        runs.append(simulate(SCENARIOS["throttling"], POLICIES["aws"], **FEW, seed=seed))
    assert (True, False) == (runs[0] == runs[1], runs[0] == runs[2])


def test_a_service_does_what_it_says():
    """Its queue has a rate and an end, its limit a burst, a hole never answers, and a refusal comes at once."""
    draw = random.Random(1)
    answers = [server.answer(0.0, draw) for server in [QueueServer(10, queue=2)] for _ in range(4)]
    assert [("ok", 0.12), ("ok", 0.22), ("ok", 0.32), ("error", 0.02)] == [
        (each.kind, round(each.at, 3)) for each in answers
    ]
    limit = ThrottlingServer(QueueServer(1000, 100), lambda _: 10.0, 2)
    kinds = [limit.answer(at, draw).kind for at in (0.0, 0.0, 0.0, 0.05, 0.1501, 0.16)]
    assert ["ok", "ok", "throttled", "throttled", "ok", "throttled"] == kinds
    failing = {kind: FailingServer(QueueServer(10, 5), lambda _: 1.0, kind) for kind in ("hole", "refused")}
    assert (NEVER, "refused") == (failing["hole"].answer(1.0, draw).at, failing["refused"].answer(1.0, draw).kind)


def figures(**task) -> dict[str, float]:
    return run(Task(**{"clients": 10, "seconds": 0.0, "policy": "default", "patience": 0.0, "seed": 1, **task}))[1]


@pytest.mark.parametrize(
    ("task", "name", "least"),
    [
        ({"scenario": "refused", "seconds": 3.0}, "success", 99),
        ({"scenario": "hole", "seconds": 3.0}, "success", 99),
        ({"scenario": "refused", "seconds": 1.0, "clients": 200}, "success", 90),
        ({"scenario": "refused", "seconds": 10.0, "policy": "patient", "patience": 30.0}, "of_ceiling", 99),
        ({"scenario": "errors 10 %"}, "success", 99.9),
        ({"scenario": "errors 30 %"}, "success", 99.0),
        ({"scenario": "bad 1 of 4"}, "success", 97.5),
    ],
)
def test_a_goal_of_success_is_reached(task, name, least):
    """A plain session bridges a short outage, patience a long one, and errors are retried as without a quota."""
    assert figures(**task)[name] > least


@pytest.mark.parametrize("clients", [10, 200])
@pytest.mark.parametrize("policy", ["default", "patient"])
def test_waiting_adds_no_load_and_no_lateness(clients, policy):
    """A black hole of ten seconds: attempts within a tenth of the bound, recovery as without retries."""
    found = figures(clients=clients, scenario="hole", seconds=10.0, policy=policy, patience=30.0)
    assert (True, 0.0) == (found["sent"] < found["bound"] + 0.1, found["late"])
