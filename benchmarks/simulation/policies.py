"""What clients do when an attempt fails: nothing, the published bucket, no bound, or the default with its line.

There is one object per client. A policy never waits: it says for how long, and the simulation schedules. The bucket,
the line and the strategies are the real objects. All of them make at most three attempts, so that what differs is when
they do not.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

from requests_smithy_retry import Clock, RetryError, StandardRetryStrategy
from requests_smithy_retry.clock import Wait
from requests_smithy_retry.core.quota import Grant
from requests_smithy_retry.core.retry_budget import PlaceInQueue, RetryBudget
from requests_smithy_retry.core.wait_queue import Bounds, Failure, Progress
from requests_smithy_retry.quotas import ExponentialRetryBackoffStrategy

MOST_ATTEMPTS = 3
DOUBLED = (0.0, 1.0, 2.0, 4.0, 8.0)
CLIENT_TIMEOUT = 1.0
"""Seconds after which an attempt counts as failed, for every policy."""


class Parked:
    """One who waits for something else than the clock.

    :param look: sees what came of it: when to look again, a delay and a new state, or None for giving up.
    """

    def __init__(self, look: Callable[[], float | tuple[float, Any] | None]) -> None:
        self.look = look
        self.changed: Callable[[], None] = lambda: None
        self.is_over = False


class Policy:
    """No retries; and what the others are made of.

    :param clock: virtual.
    :param random: of this client alone.
    """

    def __init__(self, clock: Clock, random: Random) -> None:
        self.clock = clock
        self.random = random

    def begin(self) -> Any:
        """A new operation: its state, handed to every other method."""
        return None

    def failed(self, state: Any, kind: str) -> tuple[float, Any] | Parked | None:
        """After an ``error``, ``throttled``, ``refused`` or ``timeout``: the delay and the new state, or None."""
        return None

    def succeeded(self, state: Any, latency: float) -> None:
        """After a success, that many seconds after its attempt began."""


class Failed(Exception):
    """The error of a failed attempt, as code would raise it: without any HTTP."""

    is_retry_safe = True
    retry_after = None

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.is_throttling_error = kind == "throttled"
        self.is_timeout_error = kind == "timeout"


class Published(Policy):
    """The standard strategy, driven by hand.

    :param quota: the tokens of its bucket, or None.
    """

    def __init__(self, clock: Clock, random: Random, quota: int | None) -> None:
        super().__init__(clock, random)
        self.strategy = StandardRetryStrategy(clock=clock, max_attempts=MOST_ATTEMPTS, quota=quota)
        for backoff in (self.strategy.policy.transient, self.strategy.policy.throttling):
            backoff.random = random.random  # type: ignore[attr-defined]

    def begin(self) -> Any:
        return self.strategy.acquire_initial_retry_token(token_scope="service")

    def failed(self, state: Any, kind: str) -> tuple[float, Any] | None:
        try:
            token = self.strategy.refresh_retry_token_for_retry(token_to_renew=state, error=Failed(kind))
        except RetryError:
            return None
        return token.retry_delay, token

    def succeeded(self, state: Any, latency: float) -> None:
        self.strategy.record_success(token=state)


class Doubling(Policy):
    """What urllib3's ``Retry(5, backoff_factor=0.5)`` does: up to five retries, after 0, 1, 2, 4 and 8 seconds."""

    def begin(self) -> int:
        return 0

    def failed(self, state: int, kind: str) -> tuple[float, int] | None:
        return None if state == len(DOUBLED) else (DOUBLED[state], state + 1)


class AtOnce:
    """A failed attempt as the quota is shown it; whoever would wait by its clock gets the place instead."""

    def __init__(self, now: float) -> None:
        self.outcome = SimpleNamespace(ended=now)

    def wait_in(self, place: Any, what: str) -> Any:
        """Return the place: the loop of events looks there."""
        return place


class Patient(Policy):
    """The default: the bucket, and the line of those who find it empty.

    :param patience: how old an outage may become before its operations stop waiting.
    """

    def __init__(self, clock: Clock, random: Random, patience: float = Bounds().patience) -> None:
        super().__init__(clock, random)
        self.quota = RetryBudget(now=clock.now())
        self.bounds = Bounds(patience=patience)
        self.backoff = {
            kind: ExponentialRetryBackoffStrategy(backoff_scale_value=base, max_backoff=20, random=random.random)
            for kind, base in (("throttled", 1.0), ("error", 0.05))
        }

    def begin(self) -> tuple[Progress, int]:
        now = self.clock.now()
        self.quota.began(now)
        return Progress(now), 0

    def failed(self, state: tuple[Progress, int], kind: str) -> tuple[float, Any] | Parked | None:
        progress, retries = state
        throttled = kind == "throttled"
        delay = self.backoff["throttled" if throttled else "error"].compute_next_backoff_delay(retries + 1)
        failure = Failure(delay=delay, throttled=throttled, is_answer=kind == "500")
        seen = self.quota.acquire(progress, self.bounds, failure, AtOnce(self.clock.now()))
        return self._decided(seen, retries)

    def _decided(self, seen: Any, retries: int) -> tuple[float, Any] | Parked | None:
        """Return what the quota has decided, or who has to wait in its line."""
        if not isinstance(seen, PlaceInQueue):
            return (seen.delay, (seen.progress, retries + 1)) if isinstance(seen, Grant) else None
        place = seen

        def look() -> Any:
            with place.changed:
                found = place.look(self.clock.now())
            return found.until if isinstance(found, Wait) else self._decided(found, retries)

        parked = Parked(look)
        place._waiter.wake = lambda: parked.changed()
        return parked

    def succeeded(self, state: tuple[Progress, int], latency: float) -> None:
        progress, now = state[0], self.clock.now()
        if progress.failed_at is None:
            self.quota.first_try(now, latency, CLIENT_TIMEOUT)
        else:
            self.quota.succeeded(progress, now, latency, CLIENT_TIMEOUT)


Make = Callable[[Clock, Random], Policy]
POLICIES: dict[str, Make] = {
    "none": Policy,
    "unrestricted": lambda clock, random: Published(clock, random, None),
    "aws": lambda clock, random: Published(clock, random, 500),
    "default": Patient,
}


def patient(patience: float) -> Make:
    """The default with another patience."""
    return lambda clock, random: Patient(clock, random, patience)
