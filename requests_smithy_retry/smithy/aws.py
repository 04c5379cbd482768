"""AWS error codes (contract 3.5): the known ones, and their meaning."""

from __future__ import annotations

from dataclasses import replace

from ..classifiers.actions import NO_ACTION, ErrorKind, RetryAction, RetryIndicated, RetryReason
from ..classifiers.outcome import Outcome
from ..classifiers.protocol import RetryClassifier, RetryClassifierPriority
from ..clock import Clock
from ..config.retry_config import RetryConfig
from ..core.port import Feature
from ..core.server_hints import AMZ_HEADER, parse_integer
from .error_code import error_code

THROTTLING_CODES = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottledException",
        "RequestThrottled",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "TransactionInProgressException",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "SlowDown",
        "PriorRequestNotComplete",
        "EC2ThrottledException",
    }
)
"""The codes of throttling, ``PriorRequestNotComplete`` included, which some lists call transient."""

TRANSIENT_CODES = frozenset({"RequestTimeout", "RequestTimeoutException"})
"""The codes of a server that did not receive the rest of the request in time."""


class AwsErrorCodeClassifier:
    """Classifies known AWS error codes as throttling or transient errors; no opinion on any other.

    Only responses of 400 and above are parsed, at most 64 KiB of the body, and no body with ``stream``.
    ``x-amz-retry-after`` becomes the floor of the delay, also where an earlier classifier indicated the retry; by
    itself it indicates nothing (contract 3.6).
    """

    name = "AwsErrorCodeClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.aws_error_code_classifier()

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the code in the header or in the body."""
        response = outcome.response
        if response is None or response.status_code < 400:
            return NO_ACTION
        text = response.headers.get(AMZ_HEADER)
        milliseconds = parse_integer(text) if isinstance(text, str) else None
        floor, source = (None, None) if milliseconds is None else (milliseconds / 1000, AMZ_HEADER)
        code = error_code(response.headers, outcome.body_prefix)
        if code in THROTTLING_CODES:
            return RetryAction.retry_indicated(RetryReason(ErrorKind.THROTTLING, floor, source, not_applied=True))
        if code in TRANSIENT_CODES:
            return RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, floor, source))
        if floor is not None and isinstance(previous, RetryIndicated):
            return RetryIndicated(replace(previous.reason, retry_after=floor, retry_after_source=source))
        return NO_ACTION


class AwsErrorCodes(Feature):
    """The classifier of AWS error codes, as one of the default ones."""

    def classifiers(self, config: RetryConfig) -> tuple[RetryClassifier, ...]:
        """Return it."""
        return (AwsErrorCodeClassifier(),)


def feature(config: RetryConfig, clock: Clock) -> AwsErrorCodes:
    """Return the feature for a configuration."""
    return AwsErrorCodes()
