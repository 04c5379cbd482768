"""What the package takes up (issue 10.4): the parts of `benchmarks/footprint.py` that are the same on every machine."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def scope_cost(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that measures; its folder is no package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("scope_cost")


@pytest.mark.parametrize("retried", [False, True])
@pytest.mark.parametrize("successes", [1, 31])
def test_an_adaptive_scope_costs_at_most_two_kibibytes(scope_cost, successes, retried):
    """Limiter, bucket and mark, also while it has as many moments written down as it ever has."""
    assert scope_cost.scope_bytes(200, {"mode": "adaptive"}, successes, retried=retried) <= 2048


@pytest.mark.parametrize("retried", [False, True])
def test_a_payoff_scope_costs_at_most_two_kibibytes(scope_cost, retried):
    """Also while it has as many successes written down as it ever has."""
    successes = scope_cost.FILLINGS["payoff"]
    assert scope_cost.scope_bytes(200, {"quota": "payoff"}, successes, retried=retried) <= 2048


def test_a_standard_scope_costs_nothing_until_it_retries(scope_cost):
    """Then it has a bucket, below 1 KiB; what requests itself remembers of 300 URLs is in the first figure."""
    assert scope_cost.scope_bytes(300, {}, 5, retried=False) <= 400
    assert scope_cost.scope_bytes(300, {}, 5, retried=True) <= 1024


def test_in_standard_mode_all_origins_cost_the_same(scope_cost):
    """Known or new, with all slots taken or none: about the 99 bytecodes of any first-try success."""
    found = scope_cost.added_counts({})
    assert found["known"] == found["new"] == found["full"] == found["full_most"] <= 120


@pytest.mark.parametrize("options", [{"mode": "adaptive"}, {"quota": "payoff"}])
def test_a_newcomer_to_full_slots_costs_little_more_than_any_new_origin(scope_cost, options):
    """A tenth of a real send in the long run, a fifth at the worst: not a look at each of 1,024."""
    found = scope_cost.added_counts(options)
    assert found["full"] <= found["new"] + 700 <= 3100
    assert found["full_most"] <= 6200


def test_a_limit_that_does_not_hold_is_named(monkeypatch):
    """What is written beside the figures goes by it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    footprint = importlib.import_module("footprint")
    scope = {"limit_bytes": 2048, "origins": 10_000, "standard_bytes": 2048, "payoff_bytes": 2049}
    result = {"import": {"package_ms": {"median": 10.5}}, "scope": scope}
    assert ["importing the package takes 10.5 ms", "payoff_bytes is 2049"] == footprint.broken_limits(result)
