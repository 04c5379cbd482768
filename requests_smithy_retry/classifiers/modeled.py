"""Errors that say themselves whether they may be retried (contract 3.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..actions import ErrorKind, RetryAction, RetryReason
from ..error_info import HasFault
from ..outcome import Outcome
from ..priority import RetryClassifierPriority

if TYPE_CHECKING:
    from requests import Response

LONGEST = 1e15
"""A floor of more seconds is past any limit, and its number may be too large to be reckoned with."""


class ModeledAsRetryableClassifier:
    """Asks the error itself: the one that was raised, or the one that ``error_parser`` makes from a response.

    ``is_retry_safe`` True means transient or throttling, False means forbidden. None is no opinion, unless the error
    is the server's fault. The error's ``retry_after`` is a floor for the delay.

    :param error_parser: makes an exception from a response of 400 or above, or None where it knows nothing.
    """

    name = "ModeledAsRetryableClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.modeled_as_retryable_classifier()

    def __init__(self, error_parser: Callable[[Response], Exception | None] | None = None) -> None:
        self.error_parser = error_parser

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        """Judge by what the error says of itself."""
        return verdict_of(self._error_of(outcome))

    def _error_of(self, outcome: Outcome) -> BaseException | None:
        error, response = outcome.error, outcome.response
        if response is None or hasattr(error, "is_retry_safe") or isinstance(error, HasFault):
            return error
        if self.error_parser is None or outcome.is_success:
            return None
        return self.error_parser(response)


def verdict_of(error: BaseException | None) -> RetryAction:
    """The verdict that an error gives on itself.

    What it does not say of :class:`ErrorRetryInfo` has the protocol's default: older designs have no
    ``is_timeout_error``.
    """
    safe = getattr(error, "is_retry_safe", None)
    if error is not None and safe is False:
        return RetryAction.retry_forbidden(f"{type(error).__name__} says that a retry is not safe")
    if error is not None and safe is True:
        throttled = getattr(error, "is_throttling_error", False)
        return _indicated(ErrorKind.THROTTLING if throttled else ErrorKind.TRANSIENT, error, safe=True)
    if isinstance(error, HasFault) and error.fault == "server":
        return _indicated(ErrorKind.SERVER, error, safe=False)
    return RetryAction.no_action_indicated()


def _indicated(kind: ErrorKind, error: BaseException, *, safe: bool) -> RetryAction:
    # An error made from a response may carry whatever the server wrote; only a sensible number is a floor.
    after = getattr(error, "retry_after", None)
    floor = float(min(after, LONGEST)) if isinstance(after, (int, float)) and 0 <= after < float("inf") else None
    source = None if floor is None else "error"
    timeout = getattr(error, "is_timeout_error", False) is True
    return RetryAction.retry_indicated(RetryReason(kind, floor, source, not_applied=safe, timeout=timeout))
