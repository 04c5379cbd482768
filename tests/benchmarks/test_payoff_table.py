"""The payoff quota in the simulation: its corners, its table, and the figures that the issue expects."""

from __future__ import annotations

import pytest

from benchmarks.payoff_table import ALL, one, table
from benchmarks.simulation.clients import simulate
from benchmarks.simulation.corners import CORNERS, HELD_OUT
from benchmarks.simulation.policies import POLICIES

PAYOFF = [name for name in POLICIES if name.startswith("payoff")]


@pytest.mark.parametrize("policy", ["no retry", *PAYOFF])
@pytest.mark.parametrize("scenario", [*CORNERS, *HELD_OUT])
def test_every_operation_ends_once(scenario, policy):
    """In the other scenarios as in those of the table."""
    run = simulate(ALL[scenario], POLICIES[policy], clients=4, load=8, capacity=12, seed=1)
    assert len(run.operations) == run.begun > 0
    assert sum(done.attempts for done in run.operations) == len(run.attempts)


def test_a_black_hole_is_neither_fed_nor_survived():
    """Ten clients: at most a tenth more attempts, and no second of failure after the end."""
    task, figures = one((10, "black hole", "payoff", 1, 0.0))
    assert (10, "black hole", "payoff", 1, 0.0) == task
    assert figures["amplification"] < 1.1
    assert 0.0 == figures["recovery"]


def test_random_errors_are_retried_as_if_there_were_no_quota():
    """10 % errors: within 0.1 points of the AWS quota, which is never spent there."""
    payoff, standard = (one((10, "errors 10 %", policy, 1, 0.0))[1] for policy in ("payoff", "standard 2.1"))
    assert payoff["success"] > standard["success"] - 0.1


def test_the_table_has_a_line_per_scenario_and_a_column_per_policy():
    """A recovery only where there is one."""
    row = {"amplification": 1.126, "success inside": 99.5, "recovery": 0.0}
    figures = {"hole": {"a": row, "b": row}, "errors": {"a": {**row, "recovery": None}}}
    lines = table(figures, ["a"]).splitlines()
    assert ["| | a |", "| --- | --- |", "| hole | 1.13, 99.50 %, 0 s |", "| errors | 1.13, 99.50 % |"] == lines
