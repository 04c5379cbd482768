"""Operations on a service that fails in spells: the short form of ``benchmarks.explore.spells``, and its bugs."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("greenlet")

from benchmarks.explore import spells
from requests_smithy_retry.core.call import Call
from requests_smithy_retry.core.wait_queue import Waiter
from requests_smithy_retry.observing.history import ScheduledRetry

pytestmark = [pytest.mark.once, pytest.mark.untraced]


def broken(seeds: range) -> list[str]:
    """The violations of some worlds."""
    return [each for seed in seeds for each in spells.found_in(seed)]


def test_operations_keep_their_promises() -> None:
    """Caps, deadlines, patience, ``max_wait`` and ``cancel`` hold, no POST is sent twice, and all forms are alike."""
    assert [] == broken(range(12))


def test_the_worlds_have_what_is_looked_for() -> None:
    """Operations wait in the line, and some end for each of the reasons."""
    histories = [run.history for seed in range(12) for run in spells.World(seed).play().runs]
    rows = [row for history in histories if history is not None for row in history.attempts]
    reasons = {history.stop_reason.name for history in histories if history is not None}
    assert sum(row.line_wait for row in rows) > 10
    assert {
        "SUCCESS",
        "PATIENCE",
        "DEADLINE",
        "MAX_ATTEMPTS",
        "NOT_RESENDABLE",
        "CANCELLED",
        "WAIT_TOO_LONG",
    } <= reasons


def test_a_line_that_nobody_leaves_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiters that never give up miss their deadlines, or never end."""
    monkeypatch.setattr(Waiter, "leaves_at", lambda waiter, down_since: 1e9)
    assert broken(range(12))


def test_a_strategy_that_is_known_by_its_class_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that takes longer with what is no class of ours goes otherwise with a wrapper."""
    usual: Any = Call.retry

    def slower_with_others(call: Call, retry: ScheduledRetry) -> None:
        usual(call, retry)
        call.clock.sleep(0.1 * isinstance(call.strategy, spells.Wrapper))

    monkeypatch.setattr(Call, "retry", slower_with_others)
    assert any(found.startswith("wrapper: operation") for found in broken(range(2, 4)))
