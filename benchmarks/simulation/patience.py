"""The default quota and its line as policies, and what else waits for a service that is down.

The bucket and the line are the real objects. They decide, and the simulation schedules what they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from requests_smithy_retry import ExponentialRetryBackoffStrategy
from requests_smithy_retry.pacing.gate import AT_ONCE
from requests_smithy_retry.pacing.pace import Pace
from requests_smithy_retry.quotas.line import Failure, Go, Refused, Terms, Wait, Waiter
from requests_smithy_retry.quotas.payoff import PatientQuota

from .policies import CLIENT_TIMEOUT, MOST_ATTEMPTS, Parked, Policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from requests_smithy_retry import Clock
    from requests_smithy_retry.quotas.line import Standing


class Patient(Policy):
    """The default: the bucket, and the line of those who find it empty.

    :param patience: of a session without deadlines.
    :param deadline: seconds that each operation may take; None: it has no deadline.
    :param timeout: seconds that its attempts are allowed, by which it sees how fast the service answers.
    :param paced: sends wait for a hint of the server; False: only the retry of the operation that got it does.
    """

    def __init__(
        self,
        clock: Clock,
        random: Random,
        *,
        patience: float = 5.0,
        deadline: float | None = None,
        timeout: float = CLIENT_TIMEOUT,
        paced: bool = True,
        quota: Callable[..., PatientQuota] = PatientQuota,
    ) -> None:
        super().__init__(clock, random)
        self.quota = quota(clock=clock)
        self.terms = Terms(MOST_ATTEMPTS, patience)
        self.deadline = deadline
        self.timeout = timeout
        self.paced = paced
        self.pace: Pace | None = None
        self.held = 0
        self.backoff = {
            kind: ExponentialRetryBackoffStrategy(backoff_scale_value=base, max_backoff=20, random=random.random)
            for kind, base in (("throttled", 1.0), ("error", 0.05))
        }

    def begin(self) -> tuple[Standing, int]:
        return self.quota.begin(), 0

    def permit(self, state: tuple[Standing, int], waited: float) -> float | None:  # noqa: ARG002
        """Hold it back while the server has said that it would refuse, as the gate does."""
        if self.pace is None:
            return 0.0
        now = self.clock.now()
        due = self.pace.due(now, self.held)
        if due - now < AT_ONCE:
            self.held = max(0, self.held - bool(waited))
            self.pace.sent(now, due)
            return 0.0
        self.held += not waited
        return due - now

    def allowed(self, state: tuple[Standing, int], timeout: float) -> float:
        deadline = self._terms(state[0]).deadline
        return timeout if deadline is None else min(timeout, deadline - self.clock.now())

    def failed(self, state: tuple[Standing, int], kind: str) -> tuple[float, Any] | Parked | None:
        standing, retries = state
        throttled = kind == "throttled"
        if throttled and self.hint and self.paced:
            self.pace = self.pace or Pace(self.clock.now())
            self.pace.throttled(self.hint, self.clock.now(), "Retry-After")
        delay = self.backoff["throttled" if throttled else "error"].compute_next_backoff_delay(retries + 1)
        delay = max(delay, self.hint)
        terms = self._terms(standing)
        if terms.deadline is not None and self.clock.now() + delay >= terms.deadline:
            return None
        parked = Parked(lambda: self._seen(self.quota._look(waiter), retries))
        waiter: Any = self.quota.judge(
            standing, terms, Failure(delay=delay, hint=self.hint, throttled=throttled), wake=lambda: parked.changed()
        )
        if isinstance(waiter, Waiter):
            entered = self.quota._enter(waiter)
            if isinstance(entered, Wait):
                return parked
            waiter = entered
        seen = self._seen(waiter, retries)
        assert not isinstance(seen, float)
        return seen

    def succeeded(self, state: tuple[Standing, int], latency: float) -> None:
        standing, _ = state
        if self.pace is not None:
            self.pace.hear((), self.clock.now())
        if standing.successes is None:
            self.quota.first_try((self.clock.now() - latency, self.timeout))
        else:
            self.quota.succeeded(standing, self._terms(standing), latency=latency, timeout=self.timeout)

    def _terms(self, standing: Standing) -> Terms:
        return self.terms if self.deadline is None else self.terms._replace(deadline=standing.began + self.deadline)

    def _seen(self, seen: Go | Wait | Refused, retries: int) -> float | tuple[float, Any] | None:
        if isinstance(seen, Wait):
            return seen.until
        return (seen.delay, (seen.standing, retries + 1)) if isinstance(seen, Go) else None


def patient(**options: Any) -> Callable[[Clock, Random], Policy]:
    """A policy from the numbers of :class:`Patient`."""
    return lambda clock, random: Patient(clock, random, **options)


class Persistent(Policy):
    """Retries on time alone, with a formula of its own, until the operation has taken ``seconds``.

    :param seconds: that an operation may take.
    """

    MOST: float = float("inf")

    def __init__(self, clock: Clock, random: Random, seconds: float) -> None:
        super().__init__(clock, random)
        self.seconds = seconds

    def begin(self) -> tuple[float, int]:
        return self.clock.now(), 1

    def failed(self, state: tuple[float, int], kind: str) -> tuple[float, Any] | None:  # noqa: ARG002
        began, attempts = state
        delay = self.delay(attempts)
        if attempts >= self.MOST or self.clock.now() + delay - began >= self.seconds:
            return None
        return delay, (began, attempts + 1)

    def delay(self, attempts: int) -> float:
        """Return the seconds to wait after this number of attempts."""
        raise NotImplementedError


class Tenacity(Persistent):
    """``wait_random_exponential(max=60)`` and ``stop_before_delay``, as tenacity computes them."""

    def delay(self, attempts: int) -> float:
        return self.random.random() * min(60.0, 2.0 ** (attempts - 1))


class Stamina(Persistent):
    """Stamina's defaults: ten attempts, from 0.1 s doubling up to 5 s, and up to one second of jitter."""

    MOST = 10

    def delay(self, attempts: int) -> float:
        return min(5.0, 0.1 * 2.0 ** (attempts - 1) + self.random.random())
