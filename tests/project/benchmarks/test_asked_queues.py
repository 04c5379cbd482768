"""The measures of task queues and of chains of services run, and find what they are to find."""

from __future__ import annotations

import pytest

from benchmarks.asked import chain, workers

pytestmark = [pytest.mark.once, pytest.mark.untraced]


def test_a_queue_is_worked_off_by_workers_that_do_not_sleep() -> None:
    """Every task is done; without ``max_wait`` workers sleep."""
    found = workers.run(150, max_wait=0.5)
    assert (150, True) == (found.done, found.asleep <= 0.01)
    assert workers.run(150).asleep > 0.01


@pytest.mark.real_time
def test_a_chain_does_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second without the last service: fewer requests there than with three tries in each layer."""
    monkeypatch.setattr(chain, "BEFORE", 0.3)
    monkeypatch.setattr(chain, "AFTER", 0.2)
    ours, _ = chain.run(chain.ours, 1)
    theirs, _ = chain.run(chain.three_tries, 1)
    assert ours < 4 < theirs
