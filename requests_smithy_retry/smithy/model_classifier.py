"""The models' part in the retry layer: verdicts on errors, and facts about requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..classifiers.actions import NO_ACTION, NoActionIndicated, RetryAction
from .aws import code_of
from ..classifiers.outcome import Outcome
from ..classifiers.protocol import RetryClassifierPriority

if TYPE_CHECKING:
    from requests import PreparedRequest

    from .model import SmithyEndpoint


class ModelFacts(NamedTuple):
    """The models' facts about a request."""

    resendable: bool = False
    """The operation is readonly or idempotent, or its idempotency token is in the request."""
    long_poll: bool = False


NO_FACTS = ModelFacts()
"""The facts about a request that no model knows."""


def facts_of(models: Iterable[SmithyEndpoint], request: PreparedRequest) -> ModelFacts:
    """Return the facts from the first model that knows the request's operation."""
    method, url, headers = str(request.method).upper(), str(request.url), request.headers
    for endpoint in models:
        operation = endpoint.operation_for(method, url, headers, request.body)
        if operation is not None:
            return ModelFacts(operation.resendable_with(url, headers, request.body), operation.long_poll)
    return NO_FACTS


class SmithyModelClassifier:
    """Classifies ``@retryable`` errors as transient, or as throttling if the trait says so; no opinion on others.

    It runs just before :class:`ModeledAsRetryableClassifier`, so that an ``error_parser`` overrules the model.

    :param models: models with their endpoints; the first one with an opinion decides.
    """

    name = "SmithyModelClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_before(
        RetryClassifierPriority.modeled_as_retryable_classifier()
    )

    def __init__(self, models: Iterable[SmithyEndpoint]) -> None:
        self.models: tuple[SmithyEndpoint, ...] = tuple(models)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        """Judge by the error's code in the model."""
        code = code_of(outcome)
        if code is not None and outcome.request is not None:
            for endpoint in self.models:
                if endpoint.speaks_for(str(outcome.request.url)):
                    verdict = endpoint.model.verdict_for(code, outcome.status)
                    if not isinstance(verdict, NoActionIndicated):
                        return verdict
        return NO_ACTION
