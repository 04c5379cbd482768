"""Retries the chosen statuses (contract 3.4); which ones by default, and what each says, is in :mod:`statuses`."""

from __future__ import annotations

from collections.abc import Collection

from ..actions import RetryAction
from ..options import parse_option
from ..outcome import Outcome
from ..priority import RetryClassifierPriority
from ..statuses import RETRY_STATUS_CODES, verdict_on_status


class HttpStatusCodeClassifier:
    """429 is throttling, the other chosen statuses are transient errors; no opinion on any other status.

    :param codes: the statuses to retry.
    :raises RetryConfigError: for something that is no collection of statuses.
    """

    name = "HttpStatusCodeClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.http_status_code_classifier()

    def __init__(self, codes: Collection[int] = RETRY_STATUS_CODES) -> None:
        self.codes: frozenset[int] = parse_option("retry_status_codes", codes, "HttpStatusCodeClassifier")
        self.sees_successes: bool = any(code < 400 for code in self.codes)

    @classmethod
    def new_from_codes(cls, codes: Collection[int]) -> HttpStatusCodeClassifier:
        """A classifier of these statuses; the name is the RFC's."""
        return cls(codes)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        """Judge by the status alone."""
        status = outcome.status
        if status is None or status not in self.codes:
            return RetryAction.no_action_indicated()
        return verdict_on_status(status)
