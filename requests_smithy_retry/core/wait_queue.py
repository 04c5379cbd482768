"""The queue for a service that is down: which operations wait, and which of them goes, asks or gives up next. Pure.

Each scope has one queue. An operation waits in it only if it failed and the bucket is empty. Every success lets two
waiters go, fewer if it was slow, as in TCP's slow start; after a throttled answer without a hint, it lets one go. If
nothing was sent for a quarter of the outage's age, the next in the queue asks; a waiter whose patience is over leaves.
Every method takes the time and returns what to do: :mod:`.retry_budget` reads the clock, waits and takes the lock.

The numbers come from a simulation of outages (``benchmarks/outage_tables.py``, ``benchmarks/outage_fanout.py``):

- Two for each success: any number of waiters are gone some round trips after the first success. The fifth power of the
  part of the time-out that is left slows this down: if an answer takes an eighth of the time-out, one goes.
- Three usual gaps: random traffic leaves such a hole one time in twenty, so questions add one request in twenty. One
  gap, if the service throttles: it is up, a refusal costs it little, and if all threads of a client wait, nothing else
  asks.
"""

from __future__ import annotations

import sys
from bisect import insort_right
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from ..clock import Wait
from ..errors import StopReason
from .quota import Grant, Refused

if TYPE_CHECKING:
    from ..classifiers.actions import RetryReason

MOST_CREDIT = 2.0
"""The credit that a success adds, and the most there is. One credit lets one waiter go."""
DEBT = 1.0
"""The credit that is missing after a throttled answer without a hint: the next success lets one waiter go, not two."""
IDLE = 300.0
"""Seconds without an attempt after which a scope counts as new, because its record is out of date."""
LEAST_GAP = 0.5
"""The shortest silence in seconds after which the next in the queue asks."""
LATER = 0.25
"""The part of the outage's age after which the next in the queue asks: its end is noticed at most so much later."""
LONGEST_GAP = 8.0
"""The longest such silence, if the client's own usual gaps are shorter."""
SHARED = 4.0
"""A client with few requests asks once in this many patiences, divided by its waiters: many waiters ask sooner."""
LAST_CHANCE = 0.02
"""The last part of its patience in which the next in the queue asks, unless others have asked; a second at most."""
LATE = 0.6
"""The part of its patience after which an operation makes its last retry, if its client has few other operations."""
RECENT = 3.0
"""If the service answered successfully within these seconds before an operation began, a 500 for it is no outage."""
PAUSE = 30.0
"""Seconds without an attempt after which an outage counts as new: it is unknown how long it has lasted."""
ATTEMPTS = 3
"""The most attempts that count, where no ``max_attempts`` is given."""
UNLIMITED = sys.maxsize
"""The attempts of a urllib3 ``Retry`` that sets no limit. Only the quota and patience end its retries."""


class Bounds(NamedTuple):
    """The bounds that an operation sets; the same for all of its attempts.

    :param max_attempts: the most attempts that are sent; None: :data:`ATTEMPTS` that count, and any number of questions
        while no operation gets an answer.
    :param patience: it waits while the outage is younger than this, and in all at most for twice as long; seconds.
        With 0 it never waits.
    :param deadline: when it ends, on the clock; None: no deadline.
    """

    max_attempts: int | None = None
    patience: float = 5.0
    deadline: float | None = None

    @property
    def retries(self) -> int:
        """The most retries that it may pay for."""
        return (ATTEMPTS if self.max_attempts is None else self.max_attempts) - 1

    def in_all(self, began: float) -> float:
        """Return the moment after which an operation that began at ``began`` no longer waits."""
        leave = began + 2 * self.patience
        return leave if self.deadline is None else min(leave, self.deadline)

    def gives_up_at(self, began: float, down_since: float | None) -> float:
        """Return the moment at which an operation gives up, given when the service went down (None: it is up)."""
        leave = self.in_all(began)
        return leave if down_since is None else min(leave, down_since + self.patience)

    def asks_last_at(self, began: float, down_since: float | None) -> float:
        """Return the moment at which an operation asks once more: shortly before it gives up."""
        return self.gives_up_at(began, down_since) - min(1.0, LAST_CHANCE * self.patience)


class Failure(NamedTuple):
    """The facts about a failed attempt that decide about the next one.

    :param delay: seconds to wait before a retry, while the queue is empty.
    :param hint: seconds that the server asked for: a waiter does not go sooner.
    :param throttled: the server asked for fewer requests.
    :param unresolved: the name of the service was not found.
    :param is_cut: the body of a response below 400 broke off or could not be decoded: the service is up.
    :param is_answer: a 500, or a rejected response below 400: the service may be up, and the request at fault.
    :param uncounted: seconds that do not count as patience: a service that is up asked for them.
    """

    delay: float = 0.0
    hint: float = 0.0
    throttled: bool = False
    unresolved: bool = False
    is_cut: bool = False
    is_answer: bool = False
    reason: RetryReason | None = None
    uncounted: float = 0.0

    def is_of_request(self, began: float, answered_at: float) -> bool:
        """Return True if the request or its answer is at fault, not the service, which answers other requests well.

        :param answered_at: when the service last answered any request successfully.
        """
        return self.is_cut or (self.is_answer and answered_at >= began - RECENT)


class Progress(NamedTuple):
    """The sum of an operation's attempts so far, which decides, with the last outcome, about the next one.

    It is kept in the token. The quota sets the fields from ``counted`` to ``waited``, the strategy the others.

    :param began: when its first attempt began.
    :param counted: attempts that count as one of :data:`ATTEMPTS`.
    :param failed_at: when its last attempt failed; None: none failed yet.
    :param spent: tokens that come back if it succeeds: those that its retries took from the bucket, together, but no
        more than ``max_attempts - 1`` of them cost.
    :param acquired: tokens that the last of them took.
    :param probes: the number of times that it asked on behalf of all waiters.
    :param waited: seconds that it spent in the queue, together.
    :param retries: attempts so far without the first, since it last made progress.
    :param polls: attempts so far that were polls after named seconds.
    :param free: attempts that count against no cap, because they brought a body further.
    :param backoff: the computed delay of the last retry, for decorrelated jitter; None before the first.
    :param failures: as a translated urllib3 ``Retry`` counts them; empty for any other policy.
    """

    began: float
    counted: int = 0
    failed_at: float | None = None
    spent: float = 0.0
    acquired: float = 0.0
    probes: int = 0
    waited: float = 0.0
    retries: int = 0
    polls: int = 0
    free: int = 0
    backoff: float | None = None
    failures: tuple[Any, ...] = ()


class Waiter:
    """One operation in the queue.

    :param earliest: the moment before which it does not go: see :meth:`WaitQueue.earliest`.
    :param uncounted: seconds that are not counted as patience.
    :param wake: wakes its thread, so that it looks again.
    """

    def __init__(
        self,
        progress: Progress,
        bounds: Bounds,
        joined: float,
        earliest: float,
        wake: Callable[[], object] = bool,
        uncounted: float = 0.0,
    ) -> None:
        self.progress: Progress = progress
        self.bounds: Bounds = bounds
        self.joined: float = joined
        self.earliest: float = earliest
        self.wake: Callable[[], object] = wake
        self.released: Grant | None = None
        self.uncounted: float = uncounted

    def leaves_at(self, down_since: float | None) -> float:
        """Return the moment at which it gives up, by what is known now."""
        since = None if down_since is None else down_since + self.uncounted
        return self.bounds.gives_up_at(self.progress.began + self.uncounted, since)

    def refusal_at(self, now: float) -> StopReason:
        """Return the reason for which it gives up at a moment."""
        is_over = self.bounds.deadline is not None and now >= self.bounds.deadline
        return StopReason.DEADLINE if is_over else StopReason.PATIENCE


class WaitQueue:
    """The record of one scope."""

    def __init__(self, now: float, *, max_waiters: int) -> None:
        self.max_waiters = max_waiters
        self.waiters: list[Waiter] = []
        self.well_at: float = -inf
        """The latest beginning of an attempt that succeeded."""
        self.answered_at: float = -inf
        """The moment of the latest success; -inf: there was none."""
        self.down_since: float | None = None
        """The moment from which patience counts: the first failure after a success, or after a pause."""
        self.is_throttled: bool = False
        """The latest failure was a throttled answer without a hint."""
        self._prompt = self._delayed = 0
        self._credit = 0.0
        self._last: float = now
        self._touched: float = now
        self._begin_anew(now)

    def usual(self, now: float) -> float:
        """Seconds between two operations of this client.

        Those that retries delayed count only while the service throttles: after an outage, they all succeed at once.
        """
        number = self._prompt + (self._delayed if self.is_throttled else 0)
        return (now - self._born) / (number + 1)

    def is_as_good_as_new(self, now: float) -> bool:
        """True if no operation waits, and none has used this scope for :data:`IDLE` seconds."""
        return not self.waiters and now - max(self._touched, self._last) > IDLE

    def sent(self, now: float) -> None:
        """Record that an attempt is sent: a first one while others wait, or a retry."""
        self._last = max(self._last, now)

    def paid(self, progress: Progress, bounds: Bounds, price: float, at: float) -> Progress:
        """Record a retry that was paid for and is sent at a moment, and return its operation's progress."""
        self._last = max(self._last, at)
        # Otherwise one success would pay again and again for any number of retries in vain.
        spent = max(progress.spent, min(progress.spent + price, bounds.retries * price))
        return progress._replace(spent=spent, acquired=price)

    def failed(
        self,
        progress: Progress,
        bounds: Bounds,
        failure: Failure,
        now: float,
        price: float,
        renew: Callable[[], object],
    ) -> tuple[Progress, float | None] | Refused:
        """Count an attempt that failed.

        :param price: tokens that a retry costs while the queue is empty.
        :param renew: refills the bucket; called if the scope counts as new.
        :returns: its operation's progress now, and the seconds to wait before a retry that is paid for (None: it may
            only wait in the queue); or a refusal, if its attempts are used up.
        """
        if self.is_as_good_as_new(now):
            renew()
            self._begin_anew(now)
        is_first = progress.failed_at is None
        is_paused = is_first and not self.waiters and progress.began - max(self._touched, self._last) > PAUSE
        self._last, self._touched = max(self._last, progress.began) if is_first else self._last, now
        if not failure.is_of_request(progress.began, self.answered_at):
            self.down_since = now if self.down_since is None or is_paused else self.down_since
        self.is_throttled = failure.throttled and not failure.hint  # a hint states when to ask again
        if self.is_throttled:
            self._credit = -DEBT
        counted, retries = progress.counted + self._counts(progress, bounds, failure, now), bounds.retries
        if counted > retries:
            return Refused(StopReason.MAX_ATTEMPTS)
        progress = progress._replace(counted=counted, failed_at=now)
        delay = None if self.waiters else self._delay_of_payment(progress, bounds, failure, price, retries * price, now)
        return progress, delay

    def _counts(self, progress: Progress, bounds: Bounds, failure: Failure, now: float) -> bool:
        """Return True if a failed attempt counts as one of those that are allowed."""
        if progress.failed_at is None:
            return True
        if failure.throttled and now < bounds.in_all(progress.began):
            return False
        # An attempt that was under way when the service went down, and succeeds, does not show that it works.
        return self.well_at > progress.failed_at or failure.is_of_request(progress.began, self.answered_at)

    def _delay_of_payment(
        self, progress: Progress, bounds: Bounds, failure: Failure, price: float, most: float, now: float
    ) -> float | None:
        """Return the seconds before a retry that is paid for while the queue is empty; None: it may only wait.

        :param most: tokens that all retries of the operation cost.
        """
        delay = failure.delay
        is_last = bool(progress.spent) and progress.spent + price >= most
        if is_last and bounds.patience < self.usual(now) and not failure.throttled:
            # This client has no other operation during the wait, so the last retry alone has to ride out a restart.
            delay = max(delay, LATE * bounds.patience)
        if progress.spent >= most or bounds.max_attempts == UNLIMITED:
            # It has used up its own retries, or has no limit on them: past its patience there is none, whatever others
            # have earned.
            return None if bounds.gives_up_at(progress.began, self.down_since) <= now + delay else delay
        return max(failure.delay, min(delay, bounds.asks_last_at(progress.began, self.down_since) - now))

    def earliest(self, progress: Progress, bounds: Bounds, failure: Failure, now: float) -> float:
        """Return the moment before which an operation does not leave the queue.

        One that is throttled waits for its backoff, or its own limit would refuse it after each success of the others.
        """
        if not failure.throttled:
            return now + failure.hint
        last = bounds.asks_last_at(progress.began, self.down_since)
        return now + max(failure.hint, failure.delay if last <= now else min(failure.delay, last - now))

    def may_join(self, waiter: Waiter, now: float) -> StopReason | None:
        """Return the reason why an operation may not wait now, or None."""
        if now >= waiter.leaves_at(self.down_since):
            return waiter.refusal_at(now)
        return StopReason.LINE_FULL if len(self.waiters) >= self.max_waiters else None

    def join(self, waiter: Waiter, now: float) -> StopReason | None:
        """Put an operation into the queue, behind those that began earlier, or return the reason for refusing it."""
        refusal = self.may_join(waiter, now)
        if refusal is None:
            if not self.waiters:
                self._credit = 0.0
            insort_right(self.waiters, waiter, key=lambda each: each.progress.began)
            self._wake_next()  # with more waiters, the next question comes sooner
        return refusal

    def look(self, waiter: Waiter, now: float) -> Grant | Wait | Refused:
        """Decide about one waiter. One that goes or gives up is no longer in the queue."""
        self._release_waiters(now)
        if waiter.released is not None:
            return waiter.released
        leave = waiter.leaves_at(self.down_since)
        if now >= leave:
            return self._give_up(waiter, now)
        until = waiter.leaves_at(now) if self.down_since is None else leave  # an outage may begin at once
        is_next = self._next_to_ask() is waiter
        due = max(self._due_for(waiter) if is_next else self._due(), waiter.earliest)
        if is_next and now >= due:
            return self._ask(waiter, now)
        expected = min(until, due)
        if now < waiter.earliest and self._credit >= 1:
            until = min(until, waiter.earliest)
        return Wait(min(until, expected) if is_next else until, expected)

    def _give_up(self, waiter: Waiter, now: float) -> Refused:
        self.leave(waiter, now)
        refusal = waiter.refusal_at(now)
        is_over = self.answered_at > waiter.joined and self._age(now) < waiter.bounds.patience
        why = "{service} answers others, but it did not serve this request in time" if is_over else ""
        return Refused(refusal, now - waiter.joined, why if refusal is StopReason.PATIENCE else "")

    def leave(self, waiter: Waiter, now: float) -> None:
        """Remove a waiter that gave up or was interrupted; its credit passes to the next."""
        if waiter.released is not None:
            waiter.released = None
            self._credit = min(MOST_CREDIT, self._credit + 1)
            self._release_waiters(now)
        elif waiter in self.waiters:
            self.waiters.remove(waiter)
            self._wake_next()

    def succeeded(
        self, now: float, latency: float = 0.0, timeout: float | None = None, *, is_delayed: bool = False
    ) -> bool:
        """Record a success, and let waiters go for it.

        :param is_delayed: of an operation that retries delayed by more than :data:`LEAST_GAP`.
        :returns: True if the queue is empty, so what its operation spent goes back to the bucket.
        """
        self._prompt += not is_delayed
        self._delayed += is_delayed
        self.well_at = max(self.well_at, now - latency)
        self._touched = self.answered_at = now
        self.down_since = None
        if not self.waiters:
            return True
        worth = 1.0 if not timeout else (1 - min(1.0, max(0.0, latency / timeout))) ** 5
        self._credit = min(MOST_CREDIT, self._credit + worth * MOST_CREDIT)
        self._release_waiters(now, 2 * latency)
        self._wake_next()
        return False

    def _release_waiters(self, now: float, needs: float = 0.0) -> None:
        """Let waiters go from the front while there is credit; those that may not go, or have too little time, stay."""
        if self._credit < 1:
            return
        for waiter in tuple(self.waiters):
            deadline = waiter.bounds.deadline
            is_late = deadline is not None and deadline - now < needs
            # A success that was under way when it failed does not show that it may go.
            if is_late or now < waiter.earliest or waiter.joined > self.well_at:
                continue
            self._credit -= 1
            self._release_waiter(waiter, now, waiter.progress, "another request succeeded")
            if self._credit < 1:
                return

    def release_all_waiters(self, now: float) -> None:
        """Let every waiter go, because what was known is forgotten."""
        for waiter in tuple(self.waiters):
            self._release_waiter(waiter, now, waiter.progress, "what was known of the service was forgotten")

    def _ask(self, waiter: Waiter, now: float) -> Grant:
        asking = waiter.progress._replace(probes=waiter.progress.probes + 1)
        go = self._release_waiter(waiter, now, asking, "nobody had asked for a while")
        self._wake_next()
        return go

    def _release_waiter(self, waiter: Waiter, now: float, progress: Progress, why: str) -> Grant:
        waited = now - waiter.joined
        progress = progress._replace(waited=progress.waited + waited, acquired=0.0)
        go = waiter.released = Grant(progress, 0.0, waited, why)
        self.waiters.remove(waiter)
        self.sent(now)
        waiter.wake()
        return go

    def _next_to_ask(self) -> Waiter:
        """Return the next to ask: the one that asked least often, in the order of the queue; those with a hint come
        last.
        """
        due = self._due()
        for waiter in self.waiters:  # nearly always the first one
            if not waiter.progress.probes and waiter.earliest <= due:
                return waiter
        return min(self.waiters, key=lambda each: (max(due, each.earliest), each.progress.probes))

    def _wake_next(self) -> None:
        if self.waiters:
            self._next_to_ask().wake()

    def _due(self) -> float:
        """Return the moment at which the next in the queue asks, if no attempt is sent until then."""
        usual, patience = self.usual(self._last), self.waiters[0].bounds.patience
        # A client with few requests asks less often; each of many waiters adds a part of a question.
        gaps = 1 if self.is_throttled else 3
        rarely = min(max(usual, min(gaps * usual, 0.9 * patience)), SHARED * patience / len(self.waiters))
        return self._last + max(LEAST_GAP, rarely, min(LONGEST_GAP, LATER * self._age(self._last)))

    def _due_for(self, waiter: Waiter) -> float:
        """Return the moment at which the next in the queue asks: sooner if that would be too late for itself."""
        due, last = self._due(), waiter.bounds.asks_last_at(waiter.progress.began, self.down_since)
        # Others show that the service is back, unless the last request was of a waiter that retried or asked in vain.
        in_vain = [each.joined for each in self.waiters if each.progress.spent or each.progress.probes]
        is_told = self._last > max([waiter.joined, *in_vain])
        was_late = waiter.progress.spent >= waiter.bounds.retries and waiter.bounds.patience < self.usual(waiter.joined)
        return due if is_told or was_late or self._last >= last else min(due, last)

    def _age(self, now: float) -> float:
        """Return the seconds for which the service has been down; 0 if it is up."""
        return 0.0 if self.down_since is None else max(0.0, now - self.down_since)

    def _begin_anew(self, now: float) -> None:
        self._born = self._touched = now
        self._prompt = self._delayed = 0
        self.down_since = None
