"""Errors that a Smithy model knows (contract 3.4, issue 3): matched by their code, at the model's endpoint alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..actions import NoActionIndicated, RetryAction
from ..outcome import Outcome
from ..priority import RetryClassifierPriority
from .aws_error_code import code_of

if TYPE_CHECKING:
    from ..smithy import SmithyEndpoint


class SmithyModelClassifier:
    """``@retryable`` is a transient error, ``@retryable(throttling: true)`` throttling; no opinion on other errors.

    It runs just before :class:`ModeledAsRetryableClassifier`, so that an ``error_parser`` overrules the model.

    :param models: models, each with the endpoint it speaks for; the first one with an opinion is heard.
    """

    name = "SmithyModelClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_before(
        RetryClassifierPriority.modeled_as_retryable_classifier()
    )

    def __init__(self, models: Iterable[SmithyEndpoint]) -> None:
        self.models: tuple[SmithyEndpoint, ...] = tuple(models)

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:  # noqa: ARG002
        """Judge by what the model says of the error's code."""
        code = code_of(outcome)
        if code is not None and outcome.request is not None:
            for endpoint in self.models:
                if endpoint.speaks_for(str(outcome.request.url)):
                    verdict = endpoint.model.verdict_for(code, outcome.status)
                    if not isinstance(verdict, NoActionIndicated):
                        return verdict
        return RetryAction.no_action_indicated()
