"""How often a client begins an operation: a decayed count over a decayed time. What :mod:`payoff_bucket` goes by. Pure.

Operations are counted many at once, without a line of Python for each; the result is as if each had been counted when
it began.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, repeat
from math import exp
from operator import sub, truediv

FAR = 600.0
"""Over more than so many times the memory, what is worked out at once would come to nothing divided by nothing."""


class TrafficRate:
    """The rate of operations, as of the last one.

    :param memory: seconds after which an operation counts 1/e.
    :param shortest: the rate is never taken over less than so many seconds.
    :param at: now, on the clock that tells when operations begin.
    """

    def __init__(self, memory: float, shortest: float, at: float) -> None:
        self.memory: float = float(memory)
        self.shortest: float = float(shortest)
        self.at: float = at
        self.rate: float = 0.0
        self._count = self._weight = 0.0

    def count(self, times: Iterable[float]) -> list[float]:
        """Count operations that began then.

        :param times: at least one, in any order. One before the last operation counts as much less as it is older.
        :returns: the rate after each of them, in the order of time.
        """
        times, memory = sorted(times), self.memory
        now = float(max(self.at, times[-1]))
        if now - self.at > FAR * memory and len(times) > 1:
            return [rate for time in times for rate in self.count((time,))]
        # Per operation, in units of what one counts that begins now: what it counts, then the time that it came at,
        # then the count so far, then the time that this is to be divided by.
        counts = list(map(exp, map((1.0 / memory).__mul__, map(now.__rsub__, times))))
        first = exp((self.at - now) / memory)
        scale = list(map(max, counts, repeat(first)))
        sums = list(accumulate(counts, initial=self._count * first))
        weights = map(sub, map(memory.__mul__, scale), repeat((memory - self._weight) * first))
        rates = list(map(truediv, sums[1:], map(max, weights, map(self.shortest.__mul__, scale))))
        self._count = sums[-1]
        self._weight = memory - (memory - self._weight) * first
        self.at = now
        self.rate = rates[-1]
        return rates
