"""The common half of every bucket that processes share: its outages, and the bucket of this process that stands in."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, ClassVar

from ..clock import Clock
from .bucket import TokenBucket, TokenBucketSnapshot, check_amount
from .settings import SharedQuotaSettings

logger: logging.Logger = logging.getLogger("requests_smithy_retry")

FAILURES_IN_A_ROW = 3
"""The number of failures without an answer between them that make an outage; fewer cost the calls that met them."""
SLICES = 20
"""The number of parts into which a wait of one budget is divided."""


class Outage:
    """The state of one shared place. The caller tells the time; races of threads cost at most one more question."""

    def __init__(self, place: str, settings: SharedQuotaSettings) -> None:
        self.place = place
        self.settings = settings
        self.fallen_open: bool = False
        self.failures: int = 0
        """Failures of the shared place, since the start."""
        self._in_a_row = 0
        self._ask_at = 0.0
        self._log_at = float("-inf")

    def may_ask(self, now: float) -> bool:
        """Return True if the shared bucket is to be asked now. While it is out, one caller at a time may."""
        if self.fallen_open:
            if now < self._ask_at:
                return False
            self._ask_at = now + self.settings.retry_interval
        return True

    def note_failure(self, now: float, why: str) -> None:
        """Take note that the place did not answer, and why, without secrets; fall open after several in a row."""
        self.failures += 1
        self._in_a_row += 1
        if self._in_a_row >= FAILURES_IN_A_ROW:
            self.fallen_open = True
            self._ask_at = now + self.settings.retry_interval
        if now >= self._log_at:
            self._log_at = now + self.settings.log_interval
            logger.warning(
                "the shared retry quota at %s does not answer (%s, failure %d): a bucket of this process stands in",
                self.place,
                why,
                self.failures,
            )

    def note_answer(self) -> None:
        """Take note that the place answered, and end the outage."""
        self._in_a_row = 0
        if self.fallen_open:
            self.fallen_open = False
            logger.info("the shared retry quota at %s answers again", self.place)


class _LastTake(threading.local):
    """The bucket that answered this thread's last take."""

    was_local: bool = False


class SharedTokenBucket:
    """A bucket that processes share. A take, and a give-back to a bucket that is not full, ask the shared one."""

    kind: ClassVar[str]

    def __init__(
        self, capacity: float, refill_rate: float, outage: Outage, clock: Clock, made_from: Callable[[], Any] | None
    ) -> None:
        size = outage.settings.local_bucket_size(capacity)
        TokenBucket(capacity, refill_rate=refill_rate)  # refuses numbers out of range
        self.capacity: float = capacity
        """The most it holds."""
        self._outage = outage
        self._local = TokenBucket(size, refill_rate=min(refill_rate, size), clock=clock)
        self._last_take = _LastTake()
        self._made_from = made_from

    @property
    def available(self) -> float:
        """The tokens that the answering bucket holds, as far as this process knows, without asking."""
        return self._local.available if self._is_local else min(self.capacity, self._level())

    @property
    def source(self) -> str:
        """The bucket that answered this thread's last take: ``"redis"``, or ``"redis, fallen open"``, and the like."""
        return f"{self.kind}, fallen open" if self._is_local else self.kind

    @property
    def _is_local(self) -> bool:
        return self._last_take.was_local or self._outage.fallen_open

    @property
    def failures(self) -> int:
        """The number of times that the shared bucket did not answer in time, since the start."""
        return self._outage.failures

    def acquire(self, amount: float, *, deadline: float | None = None) -> bool:
        """Take ``amount`` tokens and return True, or take nothing and return False. Waits no longer than the budget.

        :param amount: 0 or more.
        :param deadline: or no longer than to this moment, on the clock.
        :raises ValueError: for anything but a finite number of 0 or more.
        """
        check_amount(amount)
        granted = self._take(amount, deadline)
        self._last_take.was_local = granted is None
        return self._local.acquire(amount) if granted is None else granted

    def release(self, amount: float) -> None:
        """Give ``amount`` tokens back, without waiting for an answer; what exceeds the capacity is dropped.

        :raises ValueError: for a negative amount, or none at all.
        """
        check_amount(amount)
        # The local bucket stands for what this process would have by itself, so it gets all of it too.
        room = self._local.capacity - self._local.available
        if room > 0:
            self._local.release(amount)
            if self._is_local:
                amount -= room
        if amount > 0 and self._level() < self.capacity:
            self._give(amount)

    def snapshot(self) -> TokenBucketSnapshot:
        """An immutable view, without asking."""
        return TokenBucketSnapshot(self.capacity, self.available, source=self.source)

    def _level(self) -> float:
        raise NotImplementedError  # pragma: no cover - each kind has it

    def _take(self, amount: float, deadline: float | None) -> bool | None:
        """Ask the shared bucket; None: it did not answer in time."""
        raise NotImplementedError  # pragma: no cover - each kind has it

    def _give(self, amount: float) -> None:
        raise NotImplementedError  # pragma: no cover - each kind has it

    def __reduce__(self) -> tuple[Any, ...]:
        if self._made_from is None:
            raise TypeError("this bucket belongs to a strategy: copy the strategy instead")
        return self._made_from, ()
