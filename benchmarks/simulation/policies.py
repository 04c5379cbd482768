"""Retry policies. To add one, subclass :class:`Policy`, and name it in :data:`POLICIES`.

There is one object per client. A policy never waits: it says for how long, and the simulation schedules. All of them
make at most three attempts, so that what differs is when they do not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from urllib3 import HTTPResponse
from urllib3.exceptions import MaxRetryError, ReadTimeoutError
from urllib3.util.retry import Retry

from requests_smithy_retry import AdaptiveRetryStrategy, RetryError, StandardRetryStrategy

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from requests_smithy_retry import Clock

MOST_ATTEMPTS = 3
CLIENT_TIMEOUT = 1.0
"""Seconds after which an attempt counts as failed, for every policy."""


class Failure(Exception):
    """The error of a failed attempt, as code would raise it: without any HTTP."""

    is_retry_safe = True
    retry_after: float | None = None

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.is_throttling_error = kind == "throttled"
        self.is_timeout_error = kind == "timeout"


class Refused(Failure, ConnectionRefusedError):
    """A failure with a refused connection."""


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

    hint = 0.0
    """Seconds that the server asked for in the answer that is judged."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self.clock = clock
        self.random = random

    def begin(self) -> Any:
        """A new operation: its state, handed to every other method."""
        return [1]

    def permit(self, state: Any, waited: float) -> float | None:  # noqa: ARG002
        """Before each attempt: 0 to send, seconds after which to ask again, or None to fail without sending."""
        return 0.0

    def allowed(self, state: Any, timeout: float) -> float:  # noqa: ARG002
        """Return the seconds that its next attempt may take."""
        return timeout

    def failed(self, state: Any, kind: str) -> tuple[float, Any] | Parked | None:  # noqa: ARG002
        """After an ``error``, ``throttled``, ``refused`` or ``timeout``: the delay and the new state, or None."""
        return None

    def succeeded(self, state: Any, latency: float) -> None:
        """After a success, that many seconds after its attempt began."""


class Urllib3(Policy):
    """The real ``Retry`` object, with the settings that many programs use."""

    NEW = Retry(total=MOST_ATTEMPTS - 1, backoff_factor=0.1, status_forcelist=[429, 500, 502, 503, 504])
    THROTTLED, ERROR = HTTPResponse(status=429), HTTPResponse(status=503)

    def begin(self) -> Retry:
        return self.NEW

    def failed(self, state: Retry, kind: str) -> tuple[float, Any] | None:
        try:
            if kind == "timeout":
                state = state.increment("GET", "/", error=ReadTimeoutError(None, "/", "timed out"))
            elif kind == "refused":
                state = state.increment("GET", "/", error=ConnectionError(kind))
            else:
                state = state.increment("GET", "/", response=self.THROTTLED if kind == "throttled" else self.ERROR)
        except MaxRetryError:
            return None
        return self.hint or state.get_backoff_time(), state


class Smithy(Policy):
    """A real strategy of this package."""

    def __init__(self, clock: Clock, random: Random, make: Callable[..., Any], **options: Any) -> None:
        super().__init__(clock, random)
        self.strategy = make(clock=clock, max_attempts=MOST_ATTEMPTS, **options)
        for backoff in (self.strategy.backoff_strategy, self.strategy.throttling_backoff_strategy):
            backoff.random = random.random
        self._ask = getattr(self.strategy, "send_permit", None)

    def begin(self) -> Any:
        return self.strategy.acquire_initial_retry_token(token_scope="service")

    def permit(self, state: Any, waited: float) -> float | None:
        if self._ask is None:
            return 0.0
        try:
            wait = self._ask(token=state, waited=waited)
        except RetryError:
            return None
        return 0.0 if wait is None else wait.seconds

    def failed(self, state: Any, kind: str) -> tuple[float, Any] | None:
        try:
            error = Refused(kind) if kind == "refused" else Failure(kind)
            error.retry_after = self.hint or None
            token = self.strategy.refresh_retry_token_for_retry(token_to_renew=state, error=error)
        except RetryError:
            return None
        return token.retry_delay, token

    def succeeded(self, state: Any, latency: float) -> None:
        self.strategy.record_success(token=replace(state, latency=latency, timeout=CLIENT_TIMEOUT))


class Counting(Policy):
    """Counts attempts, and backs off as the standard strategy does for transient failures (for throttling: 1 s)."""

    def failed(self, state: list[int], kind: str) -> tuple[float, Any] | None:
        if state[0] >= MOST_ATTEMPTS or not self.may_retry():
            return None
        base = 1.0 if kind == "throttled" else 0.05
        return self.random.random() * base * 2 ** (state[0] - 1), [state[0] + 1]

    def may_retry(self) -> bool:
        """True if the budget has room; if so, it is used."""
        return True


class GrpcThrottling(Counting):
    """gRPC's retry throttling (proposal A6): maxTokens 10, tokenRatio 0.1; no retries at half or below."""

    MOST, RATIO = 10.0, 0.1
    tokens = MOST

    def failed(self, state: list[int], kind: str) -> tuple[float, Any] | None:
        self.tokens = max(0.0, self.tokens - 1)
        return super().failed(state, kind)

    def may_retry(self) -> bool:
        return self.tokens > self.MOST / 2

    def succeeded(self, state: Any, latency: float) -> None:  # noqa: ARG002
        self.tokens = min(self.MOST, self.tokens + self.RATIO)


class RatioBudget(Counting):
    """Retries up to a part of the operations of the last ten seconds, decayed rather than windowed; SRE's 10 %."""

    RATIO, SECONDS = 0.1, 10.0
    balance, at = 1.0, 0.0

    def begin(self) -> Any:
        self._decay()
        self.balance += self.RATIO
        return [1]

    def may_retry(self) -> bool:
        self._decay()
        if self.balance < 1:
            return False
        self.balance -= 1
        return True

    def _decay(self) -> None:
        now = self.clock.now()
        # More than one retry's worth is forgotten; a slow client could never retry otherwise.
        self.balance = max(min(self.balance, 1.0), self.balance * 0.5 ** ((now - self.at) / self.SECONDS))
        self.at = now


class CircuitBreaker(Counting):
    """Opens after five failures in a row, for five seconds; then lets one attempt through."""

    FAILURES, OPEN_SECONDS = 5, 5.0
    in_a_row, open_until = 0, 0.0

    def permit(self, state: Any, waited: float) -> float | None:  # noqa: ARG002
        now = self.clock.now()
        if self.in_a_row < self.FAILURES:
            return 0.0
        if now < self.open_until:
            return None
        self.open_until = now + self.OPEN_SECONDS  # this one is the trial
        return 0.0

    def failed(self, state: list[int], kind: str) -> tuple[float, Any] | None:
        self.in_a_row += 1
        if self.in_a_row >= self.FAILURES:
            self.open_until = self.clock.now() + self.OPEN_SECONDS
        return super().failed(state, kind)

    def succeeded(self, state: Any, latency: float) -> None:  # noqa: ARG002
        self.in_a_row = 0


def smithy(make: Callable[..., Any], **options: Any) -> Callable[[Clock, Random], Policy]:
    """A policy from a strategy class and its options."""
    return lambda clock, random: Smithy(clock, random, make, **options)


POLICIES: dict[str, Callable[[Clock, Random], Policy]] = {
    "no retry": Policy,
    "unrestricted": smithy(StandardRetryStrategy, quota=None),
    "urllib3 Retry": Urllib3,
    "standard 2.0": smithy(StandardRetryStrategy, retry_spec="2.0"),
    "standard 2.1": smithy(StandardRetryStrategy, quota=500),
    "adaptive": smithy(AdaptiveRetryStrategy, quota=500),
    "gRPC throttling": GrpcThrottling,
    "ratio budget": RatioBudget,
    "circuit breaker": CircuitBreaker,
}
"""By name, in the order of the table."""
