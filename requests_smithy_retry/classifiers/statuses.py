"""The classifiers that judge by the status (contract 3.4)."""

from __future__ import annotations

import re
from collections.abc import Collection

from ..checks import BadValue, status_codes
from ..core.server_hints import AMZ_HEADER, read_hint
from ..errors import RetryConfigError
from .actions import NO_ACTION, ErrorKind, RetryAction, RetryIndicated, RetryReason
from .outcome import Outcome
from .protocol import RetryClassifierPriority

RETRY_STATUS_CODES = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""The default of the option ``retry_status_codes``. 525 to 527 are faults of TLS between a proxy and its origin."""

THROTTLING_STATUSES = frozenset({429, 529})

TRANSIENT, THROTTLED = RetryAction.transient_error(), RetryAction.throttling_error()
ELSEWHERE = RetryAction.client_error()
"""The service works: only this connection is not for the request's host."""

TOO_MANY_REQUESTS = 429
FORBIDDEN = 403
CONTENT_TOO_LARGE = 413
MISDIRECTED = 421
MOST_MISDIRECTED = 2
"""The last attempt whose 421 is sent again: a server that always answers 421 gets three requests."""

RATE_LIMIT_WORDS = rb"(?i)secondary rate limit|abuse detection|rate ?limit ?exceeded|rate ?limited"
"""The words by which the body of a 403 says that it is a rate limit: GitHub's, and those of Google's APIs."""
SECONDARY_LIMIT = b"secondary rate limit"
SECONDARY = RetryIndicated(RetryReason(ErrorKind.THROTTLING, 60.0, SECONDARY_LIMIT.decode()))
"""After GitHub's secondary limit without a hint, the wait is at least a minute, as GitHub asks."""


def verdict_on_status(status: int) -> RetryAction:
    """Return the verdict on a status that is to be retried.

    >>> verdict_on_status(503), verdict_on_status(429), verdict_on_status(529)
    (RetryIndicated(kind=transient), RetryIndicated(kind=throttling), RetryIndicated(kind=throttling))
    """
    return THROTTLED if status in THROTTLING_STATUSES else TRANSIENT


class HttpStatusCodeClassifier:
    """Classifies 429 and 529 as throttling and the other chosen statuses as transient errors.

    If 429 is among them, a 403 with a ``Retry-After``, or with a body that names a rate limit, is throttling, too. A
    413 with a ``Retry-After`` is transient. ``Retry-After: 0`` does not count, because some servers always send it. A
    421 is sent again over a fresh connection, at most twice (RFC 9110 15.5.20). It has no opinion on other statuses.

    :param codes: the statuses to retry, from 100 to 599.
    :param by_status_alone: True: headers and bodies do not count.
    :raises RetryConfigError: for anything but a collection of statuses.
    """

    name = "HttpStatusCodeClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.http_status_code_classifier()

    def __init__(self, codes: Collection[int] = RETRY_STATUS_CODES, *, by_status_alone: bool = False) -> None:
        self.by_status_alone = by_status_alone
        try:
            self.codes: frozenset[int] = status_codes(codes)
        except BadValue as refusal:
            raise RetryConfigError("retry_status_codes", codes, "HttpStatusCodeClassifier", str(refusal)) from None
        self.sees_successes: bool = any(code < 400 for code in self.codes)

    @classmethod
    def new_from_codes(cls, codes: Collection[int]) -> HttpStatusCodeClassifier:
        """Return a classifier of these statuses; the name is the RFC's."""
        return cls(codes)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the status, by the head and body of a 403 or a 413, and by how often a 421 came."""
        status, heeds_limits = outcome.status, TOO_MANY_REQUESTS in self.codes
        if status in self.codes:
            verdict = verdict_on_status(status)
            is_refined = status == TOO_MANY_REQUESTS and not self.by_status_alone
            return _verdict_on_refusal(outcome, verdict) if is_refined else verdict
        if self.by_status_alone:
            return NO_ACTION
        if status == MISDIRECTED:
            return ELSEWHERE if outcome.attempt <= MOST_MISDIRECTED else NO_ACTION
        if status == FORBIDDEN and heeds_limits:
            return _verdict_on_refusal(outcome, NO_ACTION)
        return TRANSIENT if status == CONTENT_TOO_LARGE and heeds_limits and _asks_to_wait(outcome) else NO_ACTION


def _asks_to_wait(outcome: Outcome) -> bool:
    hint = None if outcome.response is None else read_hint(outcome.response.headers, wall=0.0)
    return hint is not None and hint.seconds > 0 and hint.source != AMZ_HEADER


def _verdict_on_refusal(outcome: Outcome, otherwise: RetryAction) -> RetryAction:
    if _asks_to_wait(outcome):
        return THROTTLED
    words = re.search(RATE_LIMIT_WORDS, outcome.read_prefix)
    if words is None:
        return otherwise
    return SECONDARY if words[0].lower() == SECONDARY_LIMIT else THROTTLED


STILL_RUNNING = 409
AGAIN_SOON = RetryAction.retry_indicated(RetryReason(ErrorKind.CLIENT, 0.5, "the first request"))
"""The pause is that of Stripe's libraries. A conflict of one request is no outage of the service."""
OTHER_PAYLOAD = 422


class IdempotencyKeyClassifier:
    """For requests with an idempotency key, indicates a retry of a 409, after half a second, and forbids one of a 422.

    409 means that the first request is still running, and 422 that the key was used with another payload.
    """

    name = "IdempotencyKeyClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_after(
        RetryClassifierPriority.http_status_code_classifier()
    )

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the status, if the request had a key."""
        if outcome.resend is not None and outcome.resend.keyed:
            if outcome.status == STILL_RUNNING:
                return AGAIN_SOON
            if outcome.status == OTHER_PAYLOAD:
                return RetryAction.retry_forbidden("the idempotency key was used with another payload")
        return NO_ACTION
