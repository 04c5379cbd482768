"""A retry quota that goes by whether retries pay: its size follows the client's traffic, only vain retries cost.

One token is one retry after a time-out. The state of a bucket is some numbers: the tokens, the capacity, and the rate
of operations (:mod:`payoff_rate`). Nothing runs in the background: everything is worked out when somebody asks.
Operations that succeed at the first try, which most are, are only written down and worked out together, soon.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable
from itertools import repeat
from math import exp
from operator import lt, mul, sub
from typing import Any

from .clock import SYSTEM_CLOCK, Clock
from .forksafe import renew_lock_after_fork
from .payoff_numbers import check_number, shared
from .payoff_quota import PayoffSnapshot, RetryCause
from .payoff_rate import TrafficRate
from .payoff_worth import worth_of, written

MAX_PENDING = 64
"""So many first-try successes are only written down, until they are worked out together. A scope stays below 2 KiB."""


class PayoffTokenBucket:
    """A bucket of retry tokens that is scaled to the client's own traffic, and charges only retries that did not pay.

    A retry that leads to a success gives back all that its operation spent, and a little more; what a failed operation
    spent stays spent. So in an outage a client makes very few retries, however small it is.

    >>> from requests_smithy_retry.payoff_bucket import PayoffTokenBucket, RetryCause
    >>> bucket = PayoffTokenBucket()
    >>> bucket.on_operation()
    >>> price = bucket.price_of(RetryCause.TIMEOUT)
    >>> bucket.acquire(price), bucket.acquire(price)
    (True, False)
    >>> bucket.on_success(retries=1, spent=price, latency=0.1, timeout=1.0)
    >>> round(bucket.available, 2)
    2.0

    :param least: the capacity of a client without traffic, and what a new bucket holds; from 0 on.
    :param seconds: the capacity grows by so many seconds' operations; from 0 on.
    :param most: no capacity is larger; from ``least`` on.
    :param earnings: so many tokens above the capacity can be earned by retries that pay; from 0 on.
    :param memory: seconds after which an operation counts 1/e in the rate; above 0.
    :param shortest: the rate is never taken over less than so many seconds; above 0.
    :param timeout_cost: the price of a retry after a time-out; from 0 on, as every price.
    :param connect_cost: after a connection that could not be made.
    :param error_cost: after any other transient failure and a server error.
    :param throttling_cost: after throttling.
    :param retry_reward: what a success after retries gives beyond what was spent, if it was instant; from 0 on.
    :param first_try_reward: what a first-try success gives, if it was instant, up to the capacity; from 0 on.
    :param settling: seconds, above 0, after which a bucket has forgotten all but 1/e of what it holds above the
        capacity, where its rate does not rise; what a rise of the capacity gave is not given again so soon either.
        With None nothing is forgotten: retries that pay now and then, and a rate that goes up and down, leave a
        healthy client with all of ``earnings`` after an hour or so.
    :param clock: tells the time; the same as the strategy's.
    :raises ValueError: for a number out of range.
    """

    def __init__(
        self,
        *,
        least: float = 1.5,
        seconds: float = 0.5,
        most: float = 36.0,
        earnings: float = 3.0,
        memory: float = 30.0,
        shortest: float = 10.0,
        timeout_cost: float = 1.0,
        connect_cost: float = 1.0,
        error_cost: float = 0.6,
        throttling_cost: float = 0.3,
        retry_reward: float = 0.5,
        first_try_reward: float = 0.4,
        settling: float | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        numbers = {name: value for name, value in locals().items() if name not in ("self", "clock")}
        for name, value in numbers.items():
            check_number(name, value, least)
        self._numbers = shared(**numbers)
        self._least, self._seconds, self._most = float(least), float(seconds), float(most)
        self._earnings = earnings
        self._retry_reward, self._first_try_reward, self._settling = retry_reward, first_try_reward, settling
        self.clock = clock
        self.retired: bool = False
        self._now = clock.now
        self._traffic = TrafficRate(memory, shortest, clock.now())
        # Up to the mark, which settles to the capacity, a rise gives nothing.
        self._tokens = self._capacity = self._mark = self._least
        self.wants_worth: bool = False
        """Whether it holds less than its capacity, so that a first-try success is worth something; or is retired."""
        self._pending = array("d")
        self.renew_lock()
        renew_lock_after_fork(self)

    @property
    def capacity(self) -> float:
        """What first-try successes fill it to."""
        return self.snapshot().capacity

    @property
    def available(self) -> float:
        """What it holds now: from 0 to ``earnings`` above the capacity."""
        return self.snapshot().available

    def on_operation(self) -> None:
        """Take note that an operation begins."""
        with self._lock:
            self._work_off()
            self._count_in((self._now(),))

    def price_of(self, cause: RetryCause) -> float:
        """What a retry costs that answers such a failure."""
        cost: float = self._numbers[f"{cause.name.lower()}_cost"]
        return cost

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:  # noqa: ARG002
        """Take ``amount`` tokens, or none and return False. It never waits.

        :param amount: from 0 on.
        """
        with self._lock:
            self._work_off()
            if self._tokens < amount:
                return False
            self._hold(self._tokens - amount)
            return True

    def release(self, amount: float) -> None:
        """Give back what was taken for a retry that was not made."""
        with self._lock:
            self._work_off()
            self._earn(amount)

    def on_success(self, *, retries: int, spent: float, latency: float | None, timeout: float | None) -> None:
        """Take note that an operation succeeded, as :meth:`PayoffQuota.on_success` says; unmeasured means instant."""
        worth = worth_of(latency, timeout)
        with self._lock:
            self._work_off()
            if retries:
                self._earn(spent + self._retry_reward * worth)
            else:
                self._reward(worth)

    def first_try(self, started: float, timeout: float | None) -> None:
        """Take note of a whole operation: it began at ``started`` and succeeded now, at the first try."""
        worth = worth_of(self._now() - started, timeout)
        with self._lock:
            self._work_off()
            self._count_in((started,))
            self._reward(worth)

    def count(self, started: float) -> None:
        """Take note of such an operation where there is no room for a reward."""
        # Appending is atomic, so this path takes no lock.
        pending = self._pending
        pending.append(started)
        if len(pending) >= MAX_PENDING:
            with self._lock:
                self._work_off()

    def refusal(self, cause: RetryCause, where: str) -> str:
        """Why a retry was refused that would have answered this; ``where`` is ``" on <scope>"`` or nothing."""
        now, cost = self.snapshot(), self.price_of(cause)
        return (
            f"retries are not paying{where}: {written(now.available, cost)} of {now.capacity:.3g} tokens, "
            f"{cause.value} costs {cost:g}"
        )

    def snapshot(self) -> PayoffSnapshot:
        """An immutable view of the bucket now."""
        with self._lock:
            self._work_off()
            return PayoffSnapshot(self._capacity, self._tokens, "memory", self._traffic.rate)

    def retire(self) -> None:
        """Take note that its scope was given up: whoever remembers it is to ask for the scope's new one."""
        self.retired = self.wants_worth = True

    def renew_lock(self) -> None:
        """Make the lock anew, after a fork."""
        self._lock = threading.Lock()

    def _work_off(self) -> None:
        """Work out what was only written down. Whoever calls holds the lock."""
        count = len(self._pending)
        if count:
            times = self._pending[:count]
            del self._pending[:count]
            self._count_in(times)

    def _count_in(self, times: Iterable[float]) -> None:
        """Count operations that began then, and have the capacity follow the rate."""
        is_whole = self._tokens >= self._capacity
        rate, since = self._traffic.rate, self._traffic.at
        rates = self._traffic.count(times)
        grown = map(self._least.__add__, map(self._seconds.__mul__, rates))
        capacities = list(map(min, grown, repeat(self._most)))
        if self._settling is None:
            given = sum(map(max, map(sub, capacities, [self._capacity, *capacities]), repeat(0.0)))
        else:
            # One that began before the last that was worked out came after no time.
            began = list(map(max, sorted(times), repeat(since)))
            waits = list(map(sub, began, [since, *began]))
            falling = sum(map(mul, waits, map(lt, rates, [rate, *rates])))
            self._settle(sum(waits) / self._settling, falling / self._settling)
            mark = max(self._mark, *capacities)
            given, self._mark = mark - self._mark, mark
        self._capacity = capacities[-1]
        # Between two operations that are worked out together more may have been cut off, but then it is now, too: what
        # reaches this limit goes up and down with it.
        tokens = min(self._tokens + given, self._capacity + self._earnings)
        # No operation makes a whole bucket less than whole: neither rounding nor the mark may.
        self._hold(max(tokens, self._capacity) if is_whole else tokens)

    def _settle(self, ages: float, falling: float) -> None:
        """Forget what is above the capacity: the mark by all the time that went by, tokens by that of a fall."""
        capacity = self._capacity
        self._mark = capacity + (self._mark - capacity) * exp(-ages)
        if self._tokens > capacity:
            self._tokens = capacity + (self._tokens - capacity) * exp(-falling)

    def _earn(self, amount: float) -> None:
        self._hold(min(self._capacity + self._earnings, self._tokens + amount))

    def _reward(self, worth: float) -> None:
        if self._tokens < self._capacity:
            self._hold(min(self._capacity, self._tokens + self._first_try_reward * worth))

    def _hold(self, tokens: float) -> None:
        self._tokens = tokens
        self.wants_worth = tokens < self._capacity or self.retired

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy keeps the numbers and starts anew, with a lock of its own (contract 11.1).
        return _bucket, (type(self), self._numbers, self.clock)

    def __repr__(self) -> str:
        now = self.snapshot()
        return f"<{type(self).__name__} {now.available:.3g} of {now.capacity:.3g}>"


def _bucket(cls: type[PayoffTokenBucket], numbers: dict[str, Any], clock: Clock) -> PayoffTokenBucket:
    return cls(**numbers, clock=clock)
