"""What makes a failing run readable: the smallest plan that still violates the same rule, as a test."""

from __future__ import annotations

import time
from collections.abc import Callable

from .plans import Plan, smaller

MOST_TRIES = 600
"""The most runs of one shrinking."""
MOST_SECONDS = 120.0
"""The longest shrinking, in seconds of the processor: runs that wait for days take seconds each."""


def kind(violation: str) -> str:
    """Return the rule that was violated."""
    return violation.partition(":")[0]


def shrunk(plan: Plan, run: Callable[[Plan], list[str]]) -> tuple[Plan, list[str]]:
    """Return a smaller plan that violates a rule that the plan violates, and what it violates.

    :param run: runs a plan, and returns what it violates.
    """
    found = run(plan)
    kinds = {kind(violation) for violation in found}
    tries, is_smaller, until = 0, True, time.process_time() + MOST_SECONDS
    while is_smaller and tries < MOST_TRIES and time.process_time() < until:
        is_smaller = False
        for candidate in smaller(plan):
            tries += 1
            now = run(candidate)
            if kinds & {kind(violation) for violation in now}:
                plan, found, is_smaller = candidate, now, True
                kinds &= {kind(violation) for violation in now}
                break
            if tries >= MOST_TRIES or time.process_time() > until:
                break
    return plan, found


def as_test(plan: Plan, found: list[str], origin: str) -> str:
    """Return a test that fails as the plan does."""
    name = kind(found[0]).replace(" ", "_")
    return (
        "from benchmarks.explore.plans import Op, Plan, Try\n"
        "from benchmarks.explore.replay import replay\n\n\n"
        f"def test_{name}() -> None:\n"
        f'    """Found by {origin}: {found[0][:80]}."""\n'
        f"    assert [] == replay({plan!r})\n"
    )
