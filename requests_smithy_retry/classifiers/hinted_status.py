"""Statuses that a translated urllib3 ``Retry`` retries where the response has a ``Retry-After`` (contract 4.2).

This is urllib3's rule, held for those who bring its ``Retry``. Elsewhere a hint makes nothing retryable (contract 3.6).
"""

from __future__ import annotations

from collections.abc import Collection

from ..actions import RetryAction
from ..config import RetryConfig
from ..outcome import Outcome
from ..priority import RetryClassifierPriority
from ..statuses import verdict_on_status
from .http_status import HttpStatusCodeClassifier


class HintedStatusClassifier:
    """The chosen statuses are retried if the response says ``Retry-After``; no opinion otherwise.

    :param codes: the statuses.
    """

    name = "HintedStatusClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_before(HttpStatusCodeClassifier.priority)

    def __init__(self, codes: Collection[int]) -> None:
        self.codes: frozenset[int] = frozenset(codes)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        """Judge by the status and the header's presence."""
        response = outcome.response
        if response is None or response.status_code not in self.codes or "Retry-After" not in response.headers:
            return RetryAction.no_action_indicated()
        return verdict_on_status(response.status_code)


def hinted_status_classifiers(config: RetryConfig) -> tuple[HintedStatusClassifier, ...]:
    """The classifier, where the config is a translated ``Retry`` that has such statuses."""
    rules = config.urllib3_rules
    return (
        () if rules is None or not rules.hinted_status_codes else (HintedStatusClassifier(rules.hinted_status_codes),)
    )
