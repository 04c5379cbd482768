"""The measures that are read off a run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .scenarios import SCENARIOS, STOP

if TYPE_CHECKING:
    from .clients import Done, Run
    from .scenarios import Scenario

WARM = 10.0


def measure(run: Run, scenario: Scenario) -> dict[str, float]:
    """The figures of the table.

    Of a scenario with a time of trouble, load, goodput and tail are those of the operations begun in it; success is
    that of the whole run without its warm-up. Recovery is the time from the end of trouble to the end of the last
    second in which more operations begun fail than ten in a hundred above the usual.
    """
    first, last = (WARM, scenario.stop) if scenario.lasts else (scenario.begin, scenario.end)
    inside = [done for done in run.operations if first <= done.began < last]
    counted = [done for done in run.operations if done.began >= 0]
    all_ok = sum(done.ok for done in counted)
    times = sorted(done.ended - done.began for done in inside)
    return {
        "amplification": sum(done.attempts for done in inside) / max(1, len(inside)),
        "success": 100 * all_ok / max(1, len(counted)),
        "success inside": 100 * sum(done.ok for done in inside) / max(1, len(inside)),
        "goodput": sum(done.ok and first <= done.ended < last for done in run.operations) / (last - first),
        "p99": times[math.ceil(0.99 * len(times)) - 1] if times else 0.0,
        "recovery": math.nan if scenario.lasts else recovery(counted, scenario),
    }


def recovery(operations: list[Done], scenario: Scenario = SCENARIOS["black hole"]) -> float:
    """Seconds from the end of trouble until it is over for good."""
    begin, end, stop = scenario.begin, scenario.end, scenario.stop
    total, failed = [0] * math.ceil(stop), [0] * math.ceil(stop)
    for done in operations:
        total[int(done.began)] += 1
        failed[int(done.began)] += not done.ok
    usual = sum(failed[int(WARM) : int(begin)]) / max(1, sum(total[int(WARM) : int(begin)]))
    after = range(math.ceil(end), math.ceil(stop))
    bad = [second for second in after if failed[second] > (usual + 0.1) * total[second]]
    return bad[-1] + 1 - end if bad else 0.0


def per_second(times: list[float]) -> list[int]:
    """Count the times that fall into each second from 0 to STOP."""
    counts = [0] * int(STOP)
    for time in times:
        if 0 <= time < STOP:
            counts[int(time)] += 1
    return counts
