"""The simulator itself: every operation ends, nothing depends on the machine, and it sees what it should."""

from __future__ import annotations

import json
import random

import pytest

from benchmarks.simulation.__main__ import main
from benchmarks.simulation.clients import simulate
from benchmarks.simulation.engine import Loop
from benchmarks.simulation.metrics import measure, per_second, recovery
from benchmarks.simulation.policies import POLICIES, GrpcThrottling, RatioBudget
from benchmarks.simulation.scenarios import BEGIN, END, SCENARIOS, STOP
from benchmarks.simulation.servers import NEVER, FailingServer, QueueServer, ThrottlingServer
from benchmarks.simulation.shared import SharedQuota

pytestmark = pytest.mark.once


def small(scenario: str, policy: str, seed: int = 1):
    """A run of four clients, which takes some milliseconds."""
    return simulate(SCENARIOS[scenario], POLICIES[policy], clients=4, load=8, capacity=12, seed=seed)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_operation_ends_once(scenario, policy):
    """As many operations end as begin, none before it began; the attempts of all are those that the server saw."""
    run = small(scenario, policy)
    assert len(run.operations) == run.begun > 0
    assert sum(done.attempts for done in run.operations) == len(run.attempts)
    assert all(done.began <= done.ended and done.attempts <= 3 for done in run.operations)
    assert all(done.attempts >= 1 for done in run.operations if done.ok)


@pytest.mark.parametrize("policy", ["standard 2.1", "adaptive", "ratio budget"])
def test_the_same_seed_gives_the_same_run_and_another_one_another(policy):
    """The run depends on its own seed, not on the state of the module-level generator."""
    random.seed(1)
    first = small("throttling", policy)
    random.seed(2)
    assert small("throttling", policy) == first
    assert small("throttling", policy, seed=2) != first


def test_all_policies_meet_the_same_arrivals():
    """Operations begin at the same moments, whatever becomes of them."""
    arrivals = [sorted(done.began for done in small("spike x3", policy).operations) for policy in POLICIES]
    assert all(each == arrivals[0] for each in arrivals)
    inside = [began for began in arrivals[0] if BEGIN <= began < END]
    assert len(inside) / (END - BEGIN) > 2 * (len(arrivals[0]) - len(inside)) / (STOP - END + BEGIN)


def test_without_trouble_inside_nothing_is_retried():
    """Amplification 1 for who never retries, and 3 for who always does where nothing answers."""
    hole = SCENARIOS["black hole"]
    assert measure(small("black hole", "no retry"), hole)["amplification"] == 1.0
    # Near the end of the hole some operations get through at the second or third attempt.
    assert 2.8 < measure(small("black hole", "urllib3 Retry"), hole)["amplification"] <= 3.0


def test_the_queue_is_worked_off_at_its_rate_and_turns_away_what_does_not_fit():
    """Ten a second: the third of three at once is done at 0.3 s; beyond two in line it is an error at once."""
    server = QueueServer(10, queue=2)
    answers = [server.answer(0.0, random.Random(1)) for _ in range(4)]
    assert [round(each.at, 3) for each in answers] == [0.12, 0.22, 0.32, 0.02]
    assert [each.kind for each in answers] == ["ok", "ok", "ok", "error"]


def test_a_throttling_server_lets_through_its_rate_and_burst():
    """Two at once, then one every tenth of a second."""
    server = ThrottlingServer(QueueServer(1000, 100), lambda _: 10.0, 2)
    kinds = [server.answer(at, random.Random(1)).kind for at in (0.0, 0.0, 0.0, 0.05, 0.1501, 0.16)]
    assert kinds == ["ok", "ok", "throttled", "throttled", "ok", "throttled"]


def test_a_failing_server_fails_in_its_own_way():
    """A hole never answers, a refusal comes at once."""
    inner = QueueServer(10, 5)
    assert FailingServer(inner, lambda _: 1.0, "hole").answer(1.0, random.Random(1)).at == NEVER
    assert FailingServer(inner, lambda _: 1.0, "refused").answer(1.0, random.Random(1)).kind == "refused"
    assert FailingServer(inner, lambda _: 0.0).answer(1.0, random.Random(1)).kind == "ok"


def test_recovery_is_the_end_of_the_last_bad_second():
    """Failures until 97.5 s: recovered 8 s after the end of trouble at 90 s; none: at once."""
    from benchmarks.simulation.clients import Done

    good = [Done(second + 0.5, second + 0.6, True, 1) for second in range(int(STOP))]
    assert recovery(good) == 0.0
    bad = [done._replace(ok=False) if BEGIN <= done.began < 98 else done for done in good]
    assert recovery(bad) == 8.0
    assert per_second([0.5, 0.7, 3.0, STOP + 1])[:4] == [2, 0, 0, 1]


def test_a_warm_up_comes_before_the_scenarios_time():
    """Operations of the warm-up have negative times and do not count; the trouble begins at the same time."""
    options = {"clients": 4, "load": 8, "capacity": 12, "seed": 1}
    run = simulate(SCENARIOS["black hole"], POLICIES["no retry"], warm_up=100.0, **options)
    before = [done for done in run.operations if done.began < 0]
    assert len(run.operations) == run.begun
    assert -100 <= min(done.began for done in before) < -99
    assert 500 < len(before) < 1100
    assert all(done.ok for done in before)
    assert [BEGIN, END] == pytest.approx(
        [f([done.began for done in run.operations if not done.ok]) for f in (min, max)], abs=1.5
    )
    assert sum(per_second(run.attempts)) == sum(0 <= at < STOP for at in run.attempts)
    only = run._replace(operations=[done for done in run.operations if done.began >= 0])
    assert measure(only, SCENARIOS["black hole"]) == measure(run, SCENARIOS["black hole"])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_in_a_warm_up_everything_is_as_in_the_first_minute(scenario):
    """No service turns anything away that it would not later."""
    run = simulate(SCENARIOS[scenario], POLICIES["no retry"], clients=4, load=8, capacity=12, seed=1, warm_up=200.0)
    for first, last in ((-200, 0), (0, BEGIN)):
        inside = [done.ok for done in run.operations if first <= done.began < last]
        expected = {"errors 1 %": 0.99, "errors 10 %": 0.9, "errors 30 %": 0.7}.get(scenario, 1.0)
        assert pytest.approx(expected, abs=0.06) == sum(inside) / len(inside)


def test_time_moves_with_the_events_alone():
    """Events come in order of time, then of scheduling; a past time means now; sleeping raises."""
    loop, seen = Loop(), []
    loop.at(2.0, lambda: seen.append(("late", loop.clock.now())))
    loop.at(1.0, lambda: (seen.append(("early", loop.clock.now())), loop.at(0.5, seen.append, "past")))
    loop.run()
    assert seen == [("early", 1.0), "past", ("late", 2.0)]
    with pytest.raises(AssertionError, match="slept"):
        loop.clock.sleep(1)


def test_the_budgets_refuse_what_they_should():
    """The budget of gRPC refuses at half of its tokens, the ratio's when ten operations have not earned a retry."""
    loop = Loop()
    grpc = GrpcThrottling(loop.clock, random.Random(1))
    assert [grpc.failed([1], "error") is not None for _ in range(6)] == [True] * 4 + [False] * 2
    budget = RatioBudget(loop.clock, random.Random(1))
    states = [budget.begin() for _ in range(12)]
    assert [budget.failed(state, "error") is not None for state in states[:3]] == [True, True, False]


def test_one_command_prints_the_table_and_writes_json(tmp_path, capsys):
    """The command runs the policies and scenarios that were named."""
    file = tmp_path / "figures.json"
    arguments = ["--quick", "--clients", "2", "--scenario", "errors 1 %", "--policy", "no retry", "--json", str(file)]
    assert main(arguments) == 0
    assert "errors 1 %" in capsys.readouterr().out
    figures = json.loads(file.read_text())["scenarios"]["errors 1 %"]["no retry"]
    assert figures["amplification"] == 1.0
    assert figures["recovery"] is None


def test_a_quota_that_all_clients_share_is_spent_by_all_of_them():
    """The real bucket for Redis: one amount for the fleet stops its retries, where each one's own would not."""
    options = {"clients": 40, "load": 80, "capacity": 120, "seed": 1}
    hole = SCENARIOS["black hole"]
    runs = [simulate(hole, policy, **options) for policy in (SharedQuota, POLICIES["standard 2.1"])]
    shared, own = (measure(run, hole)["amplification"] for run in runs)
    assert shared < 1.1 < 1.4 < own
