"""The figures that are read off a run: what came of operations, and what they cost the service."""

from __future__ import annotations

import math

from .clients import Done, Run
from .scenarios import Scenario

WARM = 10.0


def measure(run: Run, scenario: Scenario, *, clients: int, load: float, patience: float) -> dict[str, float]:
    """Measure one run: percentages, attempts, seconds.

    - ``success``, ``amplification``: of the operations begun in the trouble, the part that succeed, and their attempts
      on average. Where a trouble lasts all the time, that is the whole run.
    - ``of_ceiling``: the success of those that could live beyond the trouble's end.
    - ``sent``: the attempts of an operation begun in it, while it lasts; ``bound`` is ``1 + 2 (1 - e^-n) / n`` of
      clients with n operations in it.
    - ``late``: seconds from the end of trouble to that of the last second in which more operations begun fail than ten
      in a hundred above the usual.

    :param patience: the seconds that an operation may live, which make the ceiling.
    """
    begin, end = (WARM, scenario.stop) if scenario.lasts else (scenario.begin, scenario.end)
    inside = [done for done in run.operations if begin <= done.began < end]
    able = [done for done in inside if done.began + patience > end]
    n = load * scenario.load(begin) * (end - begin) / clients
    most = max(1, len(inside))
    return {
        "success": 100 * sum(done.ok for done in inside) / most,
        "amplification": sum(done.attempts for done in inside) / most,
        "of_ceiling": 100 * sum(done.ok for done in able) / len(able) if able else math.nan,
        "sent": sum(begin <= sent < end for sent in run.attempts) / most,
        "bound": 1 + 2 * (1 - math.exp(-n)) / n,
        "late": math.nan if scenario.lasts else recovery(run.operations, scenario),
    }


def recovery(operations: list[Done], scenario: Scenario) -> float:
    """Seconds from the end of trouble until it is over for good."""
    begin, end, stop = scenario.begin, scenario.end, scenario.stop
    total, failed = [0] * math.ceil(stop), [0] * math.ceil(stop)
    for done in operations:
        if done.began >= 0:
            total[int(done.began)] += 1
            failed[int(done.began)] += not done.ok
    usual = sum(failed[int(WARM) : int(begin)]) / max(1, sum(total[int(WARM) : int(begin)]))
    after = range(math.ceil(end), math.ceil(stop))
    bad = [second for second in after if failed[second] > (usual + 0.1) * total[second]]
    return bad[-1] + 1 - end if bad else 0.0
