"""The send loop in a simulated world: short forms of the explorations. They run in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest

from benchmarks.explore.plans import Op, Plan, Try, draw
from benchmarks.explore.replay import ROOT, replay

pytestmark = [pytest.mark.once, pytest.mark.real_time]


@pytest.mark.parametrize(
    ("command", "counted"),
    [
        ("benchmarks.explore --operations 3000 --seed ci", "operations in"),  # faults of all kinds
        ("benchmarks.explore --sweep 15", "operations in"),  # at each fifteenth byte and statement
        ("benchmarks.explore.schedules --bound 1 --seconds 0.4", "schedules in"),  # most are searched whole within it
    ],
)
def test_nothing_is_violated(command: str, counted: str) -> None:
    """Random runs, answers that break and interrupts, and threads leave nothing behind and send nothing twice."""
    words = [sys.executable, "-m", *command.split()]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False)
    assert (0, True) == (ran.returncode, counted in ran.stdout), ran.stdout + ran.stderr


def test_a_plan_is_run_in_another_process() -> None:
    """A plan that is printed is the plan that is read."""
    plan = draw(Random("printed"))
    assert plan == eval(repr(plan), {"Plan": Plan, "Op": Op, "Try": Try})
    assert [] == replay(Plan(ops=(Op(tries=(Try(status=503),)),)))


def test_an_interrupted_race_to_connect_leaves_no_socket() -> None:
    """The winner may not be anybody's yet; every statement is one that the sweep interrupts, too."""
    race = {"addresses": (4, 1, 1), "dead": ((0, 0), (0, 1)), "refusing": ((0, 2),)}
    assert [] == replay(*(Plan(ops=(Op(interrupt=(step, "stop")),), **race) for step in range(1, 400)))


def test_one_that_waits_for_tokens_keeps_no_connection_from_the_one_that_has_them() -> None:
    """Without a deadline both would wait for ever."""
    ops = (Op(tries=(Try(status=503),)), Op(tries=(Try(status=503),)))
    options = (("pool_block", True), ("pool_maxsize", 1), ("quota", "waiting"))
    assert [] == replay(*(Plan(seed=seed, ops=ops, options=options) for seed in range(3)))


def test_who_is_interrupted_while_it_joins_the_line_for_tokens_leaves_it() -> None:
    """An interrupted thread does not stay in a line, where the next one would wait behind it."""
    first, tries, waiting = Op(tries=(Try(status=503),)), (Try(status=503),), (("quota", "waiting"),)
    plans = (
        Plan(ops=(*ahead, Op(start=0.003, tries=tries, interrupt=(step, "stop"))), options=waiting)
        for ahead in ((), (first,))
        for step in range(300, 700)
    )
    assert [] == replay(*plans)


USED_UP = (("RateLimit-Limit", "10"), ("RateLimit-Remaining", "0"), ("RateLimit-Reset", "2"))
LIMITED = (("X-RateLimit-Limit", "10"), ("X-RateLimit-Remaining", "3"), ("X-RateLimit-Reset", "4"))
STALLED = Try(status=503, size=70_000, fault="stall", at=60_295)
CUT = Try(framing="chunked", fault="end", at=198)


@pytest.mark.parametrize(
    "plan",
    [
        Plan(ops=(Op(body="changing", timeout=0.25, tries=(Try(fault="end"),)),)),
        Plan(ops=(Op(stream="close", tries=(STALLED,)),), options=(("operation_timeout", 0.3),)),
        Plan(ops=(Op(tries=(Try(framing="close", version=1, fault="reset", at=175),)),)),
        Plan(ops=(Op(tries=(Try(headers=LIMITED),)), Op(tries=(CUT,)))),
        Plan(
            seed=3065213821,
            ops=(
                Op(tries=(Try(status=429, headers=USED_UP),)),
                Op(timeout=0.25, deadline=0.5, tries=(Try(status=429, size=70_000),)),
            ),
            options=(("mode", "adaptive"),),
        ),
        Plan(ops=(Op(stream="close", interrupt=(234, "stop")),), options=(("operation_timeout", 0.3),)),
    ],
    ids=["changed body", "late look at a body", "rest of a body", "rate limit of a rest", "no permit", "interrupted"],
)
def test_what_was_found_stays_mended(plan) -> None:
    """A body that changed is told as requests does, a look keeps the deadline, a rest is recorded and lets go."""
    assert [] == replay(plan)
