"""Errors by their AWS error code (contract 3.5), and the wait that ``x-amz-retry-after`` asks for."""

from __future__ import annotations

import dataclasses

from ..actions import ErrorKind, RetryAction, RetryIndicated, RetryReason
from ..aws_error_codes import THROTTLING_CODES, TRANSIENT_CODES, error_code
from ..outcome import Outcome
from ..priority import RetryClassifierPriority
from ..server_hints import AMZ_HEADER, parse_integer


class AwsErrorCodeClassifier:
    """A known AWS error code is throttling or a transient error; no opinion on any other.

    Only responses of 400 and above are looked at, and of a body no more than 64 KiB, and nothing of it where the
    caller wants it unread. ``x-amz-retry-after`` becomes the floor of the delay, also where the retry was indicated by
    a classifier that ran before; by itself it indicates nothing (contract 3.6).
    """

    name = "AwsErrorCodeClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.aws_error_code_classifier()

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the code in a header or in the body."""
        response = outcome.response
        if response is None or response.status_code < 400:
            return RetryAction.no_action_indicated()
        floor = _floor(response.headers.get(AMZ_HEADER))
        source = None if floor is None else AMZ_HEADER
        code = code_of(outcome)
        if code in THROTTLING_CODES:
            return RetryAction.retry_indicated(RetryReason(ErrorKind.THROTTLING, floor, source, not_applied=True))
        if code in TRANSIENT_CODES:
            return RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, floor, source))
        if floor is not None and isinstance(previous, RetryIndicated):
            return RetryIndicated(dataclasses.replace(previous.reason, retry_after=floor, retry_after_source=source))
        return RetryAction.no_action_indicated()


def code_of(outcome: Outcome) -> str | None:
    """The error code of a failed response, or None where it has none that may be looked at."""
    response = outcome.response
    if response is None or response.status_code < 400:
        return None
    return error_code(response.headers, outcome.body_prefix)


def _floor(value: object) -> float | None:
    milliseconds = parse_integer(value) if isinstance(value, str) else None
    return None if milliseconds is None else milliseconds / 1000
