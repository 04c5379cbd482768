"""The rules of a configuration (contract 2.6): which classifiers are asked, and how long a retry waits. Made once."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from ..checks import safe_repr
from ..classifiers.actions import ErrorKind, RetryIndicated, RetryReason
from ..classifiers.fold import Classification
from ..classifiers.outcome import Outcome
from ..classifiers.protocol import Only, RetryClassifier, Vouches, in_order, sees_successes
from ..config.retry_options import OperationOptions
from ..interruptions import ask_within_strategy
from .backoff import ExponentialRetryBackoffStrategy, RetryBackoffStrategy
from .port import Feature, overrides
from .rules import named_wait
from .server_hints import ASKED_BY_SERVERS, Hint, delay_for, is_too_long, read_hint
from .wait_queue import Bounds

if TYPE_CHECKING:
    from ..config.retry_config import RetryConfig
    from .backoff import Backoff


FIRST_TIME = 1e-6
"""Seconds that must be left for a first attempt: a deadline that was over when it was set leaves none."""
LEAST_TIME = 0.002
"""No retry begins in the last seconds before a deadline: it would hardly be answered, and its failure would replace the
last answer."""


def leaves_time(moment: float, deadline: float | None, *, is_first: bool = False) -> bool:
    """Return True if an attempt that begins at a moment has time before the deadline.

    :param is_first: there is no earlier answer to return, so a microsecond will do.
    """
    return deadline is None or deadline - moment > (FIRST_TIME if is_first else LEAST_TIME)


class Delay(NamedTuple):
    """The wait before a retry.

    :param backoff: the computed part, for decorrelated jitter.
    :param longest: seconds after the beginning of the operation by which a requested wait must be over.
    """

    seconds: float
    source: str
    backoff: float
    asked: Hint | None = None
    longest: float = math.inf


class TooLong(NamedTuple):
    """A hint that asks for a longer wait than allowed, and the reason as a phrase."""

    hint: Hint
    why: str


HintReader = Callable[[Outcome], Hint | None]
"""Reads the wait that a throttling response asks for without ``Retry-After``."""


class Policy:
    """The rules of a strategy; they do not change.

    :param hints: readers of further hints, which count if a response has none of the well-known ones.
    :param counts: for a urllib3 ``Retry``: given the outcomes so far, returns the phrase for a count that is used up.
    """

    def __init__(
        self,
        config: RetryConfig,
        classifiers: tuple[RetryClassifier, ...],
        hints: tuple[HintReader, ...] = (),
        counts: Callable[[tuple[Any, ...], Outcome], tuple[tuple[Any, ...], str | None]] | None = None,
    ) -> None:
        self.config = config
        self.classifiers = classifiers
        backoffs = config.backoffs
        self.transient: Backoff = backoffs[0]
        self.throttling: Backoff = backoffs[1]
        self.hints = hints
        self.counts = counts
        self.sees_successes: bool = any(map(sees_successes, classifiers))
        """True if a classifier is asked about responses below 400."""
        self.vouching: tuple[Vouches, ...] = tuple(item for item in classifiers if isinstance(item, Vouches))
        """The classifiers that may recognize a request."""
        self.heeds_hints: bool = config.heeds_hints
        self.most_attempts: int | None = config.most_attempts
        self._take_previous: tuple[bool, ...] = tuple(map(takes_previous_delay, backoffs))

    @classmethod
    def of(cls, config: RetryConfig, features: tuple[Feature, ...] = ()) -> Policy:
        """Make it from a config."""
        counts = None if config.rules is None else config.rules.counted
        hints = tuple(feature.hint for feature in features if overrides(feature, "hint"))
        return cls(config, classifiers_of(config, features), hints, counts)

    def bounds(self, options: OperationOptions, deadline: float | None) -> Bounds:
        """Return the limits of one operation."""
        most = self.most_attempts if options.max_attempts is None else options.max_attempts
        patience = self.config.patience if options.patience is None else options.patience
        return Bounds(most, patience, deadline)

    def delay(
        self, reason: RetryReason, outcome: Outcome, options: OperationOptions, retry: int, previous: float | None
    ) -> Delay | TooLong:
        """Return the wait before a retry.

        :param retry: its number, from 1.
        :param previous: the computed backoff before, or None.
        """
        backoff = self._backoff(reason.kind, outcome, retry, previous)
        named, said = self._hints(reason, outcome)
        hints, longest = [hint for hint in (named, said) if hint is not None], math.inf
        patience = self.config.patience_for_hints(options.patience)
        for hint in hints:
            if is_too_long(hint, self.config.max_retry_after):
                return TooLong(hint, f"max_retry_after is {self.config.max_retry_after:g} s")
        found = max(hints, key=lambda hint: delay_for(backoff, hint), default=None)
        if found is None:
            return Delay(backoff, "backoff", backoff)
        seconds = delay_for(backoff, found)
        is_own = found != said and found.source not in ASKED_BY_SERVERS
        if patience is not None and found.seconds and not is_own:
            if min(found.seconds, seconds) > patience:  # x-amz-retry-after is shortened to the latter
                return TooLong(found, f"patience is {patience:g} s")
            longest = 2 * patience
        return Delay(seconds, found.source if seconds != backoff else "backoff", backoff, found, longest)

    def _backoff(self, kind: ErrorKind, outcome: Outcome, retry: int, previous: float | None) -> float:
        is_throttling = kind is ErrorKind.THROTTLING
        backoff = self.throttling if is_throttling else self.transient
        if not isinstance(backoff, RetryBackoffStrategy):
            asked: tuple[Any, ...] = backoff, retry, outcome
        elif self._take_previous[is_throttling]:
            asked = backoff.compute_next_backoff_delay, retry, previous
        else:
            asked = backoff.compute_next_backoff_delay, retry
        delay = ask_within_strategy("the function of backoff", *asked)
        if not is_seconds(delay) or delay < 0:
            allowed = "a finite number of seconds, 0 or more, is allowed"
            raise TypeError(f"{self.config.shown('backoff')} returned {safe_repr(delay)}: {allowed}")
        return delay

    def _hints(self, reason: RetryReason, outcome: Outcome) -> tuple[Hint | None, Hint | None]:
        """Return the classifier's floor for the delay, and what the response asks for."""
        named = named_wait(reason, heeds_hints=self.heeds_hints)
        return named, self._response_hint(reason, outcome) if self.heeds_hints else None

    def _response_hint(self, reason: RetryReason, outcome: Outcome) -> Hint | None:
        """Return the wait that the response asks for; its head is enough."""
        response = outcome.response
        headers = outcome.head if response is None else response.headers
        hint = None if headers is None else read_hint(headers, wall=outcome.wall)
        if hint is None and response is not None and reason.kind is ErrorKind.THROTTLING:
            hint = next(filter(None, (read(outcome) for read in self.hints)), None)
        return hint

    def asked(self, outcome: Outcome, verdict: Classification | None) -> float | None:
        """Return the wait in seconds that was asked for after the last attempt, or None."""
        action = None if verdict is None else verdict.action
        reason = action.reason if isinstance(action, RetryIndicated) else RetryReason(ErrorKind.SERVER)
        return max((hint.seconds for hint in self._hints(reason, outcome) if hint is not None), default=None)


def classifiers_of(config: RetryConfig, features: tuple[Feature, ...]) -> tuple[RetryClassifier, ...]:
    """Return the classifiers that a config asks for, in order."""
    if isinstance(config.classifiers, Only):
        return in_order(config.classifiers)
    # Imported here: the strategies need no HTTP library, only their default classifiers do.
    from ..classifiers.defaults import default_classifiers

    return in_order((*default_classifiers(config, features), *config.classifiers))


def classifiers_beside(config: RetryConfig, features: tuple[Feature, ...]) -> tuple[RetryClassifier, ...]:
    """Return the classifiers that an adapter's options add to those of a custom strategy."""
    if isinstance(config.classifiers, Only):
        return config.classifiers
    of_options = (item for feature in features if feature.is_optional for item in feature.classifiers(config))
    return (*config.classifiers, *of_options)


def is_seconds(value: Any) -> TypeGuard[float]:
    """Return True for a finite real number of any type, including numpy's, but not for a bool."""
    number_of_any_type = isinstance(value, Real) and not isinstance(value, bool)
    return number_of_any_type and bool(abs(value) <= sys.float_info.max)


def takes_previous_delay(backoff: Backoff) -> bool:
    """Return True if a backoff strategy takes the previous delay as well."""
    compute: Any = getattr(backoff, "compute_next_backoff_delay", None)  # a function has none
    if getattr(compute, "__func__", None) is ExponentialRetryBackoffStrategy.compute_next_backoff_delay:
        return True
    import inspect  # slow to import, and seldom needed

    try:
        parameters = inspect.signature(compute).parameters
    except (TypeError, ValueError):  # a callable written in C may have no signature
        return False
    return "previous_delay" in parameters
