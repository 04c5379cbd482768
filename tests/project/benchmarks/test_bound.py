"""The bound on retries in vain holds in a short search and in short games, and both see a broken bucket."""

from __future__ import annotations

import pytest

pytest.importorskip("greenlet")

from benchmarks import bound, bound_world

pytestmark = pytest.mark.once

SEARCHED = bound.Extent(2, 3, 1)


@pytest.mark.parametrize("kind", bound.KINDS)
def test_the_bound_holds(kind):
    """For every answer of the server and every interleaving, as far as the short search goes, and in some games."""
    rules = bound.rules_of(kind)
    found = [bound.search(rules, SEARCHED), bound.play(rules, range(80))]
    assert [None, None] == [each.broken_by for each in found]
    assert min(each.states for each in found) > 50


@pytest.mark.parametrize("kind", ["default", "standard 2.1", "redis, 2 processes"])
def test_the_games_reach_the_bound(kind):
    """The worst server that is known leaves nothing of it: no smaller one would hold."""
    assert bound.play(bound.rules_of(kind), range(200)).slack < 1


def test_a_success_that_gives_back_without_limit_is_found():
    """Operations of 37 attempts get back what 36 retries cost; the bound of three attempts does not allow that."""
    rules = bound.rules_of("default")
    found = bound.play(rules._replace(bounds=rules.bounds._replace(max_attempts=37)), range(3000))
    assert found.broken_by is not None
    world = bound.replayed(rules._replace(bounds=rules.bounds._replace(max_attempts=37)), 6, found.broken_by)
    assert found.slack == min(world.slack, world.slack_of_questions)


def test_a_lost_update_is_found(monkeypatch):
    """A bucket that reads its tokens in one step and writes them in another breaks the bound in the search alone."""

    class Forgetful(bound.Stepping):
        def acquire(self, amount, *, deadline=None):
            left = self.available - amount
            bound_world.rest("acquire")
            self._bucket._available = max(0, left)
            return left >= 0

    monkeypatch.setitem(bound.KINDS, "small", {"quota": 5, "retry_spec": "2.0"})
    monkeypatch.setitem(bound_world.IN_HAND, Forgetful.acquire.__code__, ("left",))

    def make(clock):
        quotas = bound.rules_of("small").make(clock)
        quotas[0].bucket = Forgetful(bound.inner(quotas[0].bucket))
        return quotas

    rules = bound.rules_of("small")._replace(make=make)
    assert bound.search(rules, bound.Extent(2, 4, 0)).broken_by is not None
    assert bound.search(rules, bound.Extent(1, 8, 0)).broken_by is None
