"""The models' part in the retry layer: verdicts on errors, and facts about requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..classifiers.actions import NO_ACTION, ErrorKind, NoActionIndicated, RetryAction, RetryReason
from ..classifiers.aws import bare_error_code, code_of
from ..classifiers.outcome import Outcome
from ..classifiers.protocol import RetryClassifierPriority

if TYPE_CHECKING:
    from requests import PreparedRequest

    from .endpoint import SmithyEndpoint
    from .operations import ModeledError


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


_TRANSIENT = RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, not_applied=True))
_THROTTLING = RetryAction.retry_indicated(RetryReason(ErrorKind.THROTTLING, not_applied=True))


def verdict_for(
    errors: Mapping[str, tuple[ModeledError, ...]], error_code: str | None, status: int | None
) -> RetryAction:
    """Return a model's verdict on an error code.

    Without a code there is no opinion. If several errors share a code, those with another ``@httpError`` than the
    status are left out; if the rest disagree, there is no opinion.

    :param errors: by name or code, each with all errors that share it; for a loaded model use
        :meth:`.SmithyModel.verdict_for`.
    :param error_code: the code or shape name in the response, decorated or not, or None.
    :param status: the status of the response, or None.
    """
    if error_code is None:
        return NO_ACTION
    named = errors.get(bare_error_code(error_code), ())
    namesakes = tuple(error for error in named if error.http_status == status) or named
    opinions = {(error.retryable, error.throttling) for error in namesakes}
    if opinions == {(True, False)}:
        return _TRANSIENT
    if opinions == {(True, True)}:
        return _THROTTLING
    return NO_ACTION


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
