"""The classifier of errors that say themselves whether they may be retried (contract 3.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..checks import safe_repr
from .actions import NO_ACTION, ErrorKind, RetryAction, RetryReason
from .outcome import HasFault, Outcome, floor_of
from .protocol import RetryClassifierPriority

if TYPE_CHECKING:
    from requests import Response


class ModeledAsRetryableClassifier:
    """Judges by the modelled facts of an error: the one raised, or the one that a parser makes from a response.

    ``is_retry_safe`` True means transient or throttling, False means forbidden. None is no opinion, unless the error
    is the server's fault. The error's ``retry_after`` is a floor for the delay.

    :param error_parser: takes a response of 400 or above; returns an exception, or None if it does not know the error.
    """

    name = "ModeledAsRetryableClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.modeled_as_retryable_classifier()

    def __init__(self, error_parser: Callable[[Response], Exception | None] | None = None) -> None:
        self.error_parser = error_parser

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the attributes of the error."""
        return verdict_of(self._error_of(outcome))

    def _error_of(self, outcome: Outcome) -> BaseException | None:
        error, response = outcome.error, outcome.response
        if response is None or hasattr(error, "is_retry_safe") or isinstance(error, HasFault):
            return error
        if self.error_parser is None or outcome.is_success:
            return None
        parsed: object = self.error_parser(response)
        if parsed is not None and not isinstance(parsed, BaseException):
            raise TypeError(f"error_parser returned {safe_repr(parsed)}: an exception or None is allowed")
        return parsed


def verdict_of(error: BaseException | None) -> RetryAction:
    """Return the verdict that an error implies. A missing attribute of :class:`ErrorRetryInfo` has its default."""
    safe = getattr(error, "is_retry_safe", None)
    if error is not None and safe is False:
        return RetryAction.retry_forbidden(f"{type(error).__name__} says that a retry is not safe")
    if error is not None and safe is True:
        throttled = getattr(error, "is_throttling_error", False)
        return _indicated(ErrorKind.THROTTLING if throttled else ErrorKind.TRANSIENT, error, safe=True)
    if isinstance(error, HasFault) and error.fault == "server":
        return _indicated(ErrorKind.SERVER, error, safe=False)
    return NO_ACTION


def _indicated(kind: ErrorKind, error: BaseException, *, safe: bool) -> RetryAction:
    floor = floor_of(error)
    source = None if floor is None else "error"
    timeout = getattr(error, "is_timeout_error", False) is True
    return RetryAction.retry_indicated(RetryReason(kind, floor, source, not_applied=safe, timeout=timeout))
