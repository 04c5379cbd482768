"""A 200 that is not an answer (contract 3.8): the program's own function judges responses that look like successes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..checks import BadValue, is_finite, safe_repr
from ..classifiers.actions import NO_ACTION, ErrorKind, RetryAction, RetryReason
from ..classifiers.outcome import Outcome
from ..classifiers.protocol import RetryClassifier, RetryClassifierPriority
from ..config.retry_options import current_options
from ..core.port import Feature
from ..core.server_hints import read_hint

if TYPE_CHECKING:
    from requests import Response

    from ..clock import Clock
    from ..config.retry_config import RetryConfig

ACCEPTED = 202


@dataclass(frozen=True)
class Validate(Feature):
    """A function as a classifier, and the feature of the option. Only the innermost block's function is asked."""

    function: Callable[[Response], bool | float]
    is_optional = True
    name = "validate"
    sees_successes = True
    priority: ClassVar[RetryClassifierPriority] = RetryClassifierPriority.run_after(RetryClassifierPriority.default())

    def classifiers(self, config: RetryConfig) -> tuple[RetryClassifier, ...]:
        return (self,)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Ask the function about a 2xx: seconds say that it is not ready, and so does False for a 202 with a hint.

        False for anything else counts as a failure of the server.
        """
        innermost: object = current_options.get().validate
        response = outcome.response
        is_overruled = innermost is not None and innermost is not self
        if response is None or outcome.error is not None or response.status_code >= 300 or is_overruled:
            return NO_ACTION
        found: object = self.function(response)
        if found is True:
            return NO_ACTION
        if found is False:
            hint = read_hint(response.headers, wall=outcome.wall) if response.status_code == ACCEPTED else None
            if hint is None:
                return RetryAction.server_error()
            return RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, hint.seconds, hint.source))
        if is_finite(found) and found >= 0:
            return RetryAction.retryable_error_with_explicit_delay(ErrorKind.TRANSIENT, found)
        raise TypeError(f"validate: True, False or seconds (0 or more) is allowed, not {safe_repr(found)}")

    def __repr__(self) -> str:
        return safe_repr(self.function)


def parse(value: Any) -> Validate | None:
    if value is None or isinstance(value, Validate):
        return value
    if not callable(value) or isinstance(value, type):
        raise BadValue("a function of a response, or None is allowed")
    return Validate(value)


def feature(config: RetryConfig, clock: Clock) -> Feature:
    made: Any = config.validate
    return made  # type: ignore[no-any-return]
