"""Operations as tables of steps: the short form of ``python -m benchmarks.explore.steps``, and that it sees a bug."""

from __future__ import annotations

import pytest

from benchmarks.explore.steps import World, violations
from requests_smithy_retry.core.line import Waiter

pytestmark = [pytest.mark.once, pytest.mark.untraced]


def broken(seeds: range) -> list[str]:
    """The violations of some worlds."""
    found = []
    for seed in seeds:
        world = World(seed)
        world.play()
        found += violations(world)
    return found


def test_operations_keep_their_promises() -> None:
    """Caps, deadlines and patience hold, no POST is sent twice, and the scope is left as it should be."""
    assert [] == broken(range(20))


def test_a_line_that_nobody_leaves_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiters that never give up miss their deadlines, or never end."""
    monkeypatch.setattr(Waiter, "leaves_at", lambda waiter, down_since: 1e9)
    assert broken(range(2))
