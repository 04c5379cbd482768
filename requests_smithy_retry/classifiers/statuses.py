"""The classifiers that judge by the status (contract 3.4)."""

from __future__ import annotations

from collections.abc import Collection

from ..checks import Refused, status_codes
from ..errors import RetryConfigError
from .actions import RetryAction
from .outcome import Outcome
from .protocol import RetryClassifierPriority

RETRY_STATUS_CODES = frozenset({408, 425, 429, 500, 502, 503, 504})
"""The default of the option ``retry_status_codes``."""

THROTTLING_STATUSES = frozenset({429})


def verdict_on_status(status: int) -> RetryAction:
    """Return the verdict on a status that is to be retried.

    >>> verdict_on_status(503), verdict_on_status(429)
    (RetryIndicated(kind=transient), RetryIndicated(kind=throttling))
    """
    return RetryAction.throttling_error() if status in THROTTLING_STATUSES else RetryAction.transient_error()


class HttpStatusCodeClassifier:
    """Classifies 429 as throttling and the other chosen statuses as transient errors; no opinion on the rest.

    :param codes: the statuses to retry, from 100 to 599.
    :raises RetryConfigError: for anything but a collection of statuses.
    """

    name = "HttpStatusCodeClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.http_status_code_classifier()

    def __init__(self, codes: Collection[int] = RETRY_STATUS_CODES) -> None:
        try:
            self.codes: frozenset[int] = status_codes(codes)
        except Refused as refusal:
            raise RetryConfigError("retry_status_codes", codes, "HttpStatusCodeClassifier", str(refusal)) from None
        self.sees_successes: bool = any(code < 400 for code in self.codes)

    @classmethod
    def new_from_codes(cls, codes: Collection[int]) -> HttpStatusCodeClassifier:
        """Return a classifier of these statuses; the name is the RFC's."""
        return cls(codes)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        """Judge by the status alone."""
        status = outcome.status
        if status is None or status not in self.codes:
            return RetryAction.no_action_indicated()
        return verdict_on_status(status)


class HintedStatusClassifier:
    """Indicates a retry of the chosen statuses if the response has a ``Retry-After``; no opinion otherwise.

    :param codes: the statuses.
    """

    name = "HintedStatusClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_before(HttpStatusCodeClassifier.priority)

    def __init__(self, codes: Collection[int]) -> None:
        self.codes: frozenset[int] = frozenset(codes)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        """Judge by the status and the presence of the header."""
        response = outcome.response
        if response is None or response.status_code not in self.codes or "Retry-After" not in response.headers:
            return RetryAction.no_action_indicated()
        return verdict_on_status(response.status_code)


STILL_RUNNING = 409
OTHER_PAYLOAD = 422


class IdempotencyKeyClassifier:
    """For requests with an idempotency key, indicates a retry of a 409 and forbids one of a 422.

    409 means that the first request is still running, and 422 that the key was used with another payload.
    """

    name = "IdempotencyKeyClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_after(
        RetryClassifierPriority.http_status_code_classifier()
    )

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        """Judge by the status, if the request had a key."""
        if outcome.resend is not None and outcome.resend.keyed:
            if outcome.status == STILL_RUNNING:
                return RetryAction.transient_error()
            if outcome.status == OTHER_PAYLOAD:
                return RetryAction.retry_forbidden("the idempotency key was used with another payload")
        return RetryAction.no_action_indicated()
