"""The rules of a urllib3 ``Retry`` that no option can express (contract 4.2), as a value; :mod:`.translation` makes it.

The counts of an operation travel in its token.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...classifiers.actions import NO_ACTION, RetryAction
from ...classifiers.protocol import RetryClassifier, RetryClassifierPriority
from ...classifiers.statuses import HttpStatusCodeClassifier, verdict_on_status
from ...core.backoff import ExponentialRetryBackoffStrategy

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...classifiers.outcome import Outcome


class FailureKind(enum.Enum):
    """The kinds of failure that urllib3 tells apart, each with a count of its own."""

    CONNECT = "connect"
    """No connection was made."""
    READ = "read"
    """The request was sent, in part at least, and no whole answer came."""
    STATUS = "status"
    """An answer came, and its status is to be retried."""
    OTHER = "other"
    """Anything else."""


@dataclass(frozen=True, slots=True)
class Urllib3Rules:
    """The rules of a translated ``Retry``."""

    limits: tuple[tuple[FailureKind, int], ...] = ()
    """The most retries after failures of one kind; a kind that is not named has no limit of its own."""
    respect_retry_after: bool = True
    backoff_jitter: float = 0.0
    """The most seconds that are added to each delay, within ``max_backoff``."""
    hinted_status_codes: frozenset[int] = frozenset()
    """Statuses that are retried where the response has a ``Retry-After``."""

    @property
    def heeds_hints(self) -> bool:
        """True if the waits that servers ask for are made."""
        return self.respect_retry_after

    def classifiers(self, codes: Collection[int]) -> tuple[RetryClassifier, ...]:
        """Return the classifiers of statuses: they go by the status alone, as urllib3 does.

        :param codes: the statuses that are retried.
        """
        own = HttpStatusCodeClassifier(codes, by_status_alone=True)
        return (HintedStatusClassifier(self.hinted_status_codes), own) if self.hinted_status_codes else (own,)

    def backoff(self, inner: ExponentialRetryBackoffStrategy) -> ExponentialRetryBackoffStrategy | JitteredBackoff:
        """Return a backoff with the jitter of the ``Retry``."""
        return JitteredBackoff(inner, self.backoff_jitter) if self.backoff_jitter else inner

    def counted(
        self, failures: tuple[FailureKind, ...], outcome: Outcome
    ) -> tuple[tuple[FailureKind, ...], str | None]:
        """Count a failure, and return all of them, with the sentence for a limit that one more retry would exceed."""
        failures = (*failures, kind_of(outcome))
        return failures, self.exceeded(failures)

    def exceeded(self, kinds: tuple[FailureKind, ...]) -> str | None:
        """Return the sentence for the limit that one more retry would exceed, or None."""
        kind = kinds[-1]
        for limited, most in self.limits:
            if limited is kind and kinds.count(kind) > most:
                return f"{most} retries after {kind.value} failures are allowed by the urllib3 Retry"
        return None


def kind_of(outcome: Outcome) -> FailureKind:
    """Return the kind of failure that urllib3 would count an outcome as."""
    if outcome.error is None:
        return FailureKind.STATUS
    # Imported here: the strategy layer knows no HTTP library, and only a translated Retry asks.
    import urllib3.exceptions as uex

    from ...interruptions import causes

    for cause in causes(outcome.error):
        if isinstance(cause, uex.ConnectTimeoutError):  # a refused connection and a failed look-up are such, too
            return FailureKind.CONNECT
        if isinstance(cause, (uex.ReadTimeoutError, uex.ProtocolError)):
            return FailureKind.READ
    return FailureKind.OTHER


@dataclass(eq=False)
class JitteredBackoff:
    """Another backoff with a random amount on top, as urllib3's ``backoff_jitter`` asks, within its longest delay."""

    inner: ExponentialRetryBackoffStrategy
    jitter: float

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        if retry_attempt <= 0:
            return 0.0
        delay = self.inner.compute_next_backoff_delay(retry_attempt)
        return min(delay + self.inner.random() * self.jitter, self.inner.max_backoff)

    def longest_delay(self, retry_attempt: int) -> float:
        return min(self.inner.longest_delay(retry_attempt) + self.jitter, self.inner.max_backoff)


class HintedStatusClassifier:
    """Indicates a retry of the chosen statuses if the response has a ``Retry-After``; no opinion otherwise.

    :param codes: the statuses.
    """

    name = "HintedStatusClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_before(HttpStatusCodeClassifier.priority)

    def __init__(self, codes: Collection[int]) -> None:
        self.codes: frozenset[int] = frozenset(codes)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the status and the presence of the header."""
        response = outcome.response
        if response is None or response.status_code not in self.codes or "Retry-After" not in response.headers:
            return NO_ACTION
        return verdict_on_status(response.status_code)
