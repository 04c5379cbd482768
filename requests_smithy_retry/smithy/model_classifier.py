"""The models' part in the retry layer: verdicts on errors, and facts about requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..checks import safe_repr
from ..classifiers.actions import NO_ACTION, NoActionIndicated, RetryAction
from ..classifiers.outcome import Outcome
from ..classifiers.protocol import RetryClassifierPriority, Vouched
from .error_code import code_of
from .model import SmithyEndpoint

if TYPE_CHECKING:
    from requests import PreparedRequest


class SmithyModelClassifier:
    """Classifies ``@retryable`` errors as transient, or as throttling if the trait says so; no opinion on others.

    It runs just before :class:`ModeledAsRetryableClassifier`, whose parser overrules the model. It also knows which
    operations may be sent again whatever their method, and which are long polls.

    :param models: models with their endpoints; the first one with an opinion decides.
    :raises TypeError: for a model without its endpoint.
    """

    name = "SmithyModelClassifier"
    priority: RetryClassifierPriority = RetryClassifierPriority.run_before(
        RetryClassifierPriority.modeled_as_retryable_classifier()
    )

    def __init__(self, models: Iterable[SmithyEndpoint]) -> None:
        self.models: tuple[SmithyEndpoint, ...] = tuple(models)
        for model in self.models:
            if not isinstance(model, SmithyEndpoint):
                raise TypeError(f"{safe_repr(model)} does not know its endpoint: give model.for_endpoint(url)")

    def vouch(self, request: PreparedRequest) -> Vouched | None:
        """Tell what the first model that knows the request's operation says of it."""
        method, url, headers = str(request.method).upper(), str(request.url), request.headers
        for endpoint in self.models:
            operation = endpoint.operation_for(method, url, headers, request.body)
            if operation is not None:
                return Vouched(operation.resendable_with(url, headers, request.body), operation.long_poll)
        return None

    def classify_retry(self, outcome: Outcome, previous: RetryAction) -> RetryAction:
        """Judge by the error's code in the model."""
        code = code_of(outcome)
        if code is not None and outcome.request is not None:
            for endpoint in self.models:
                if endpoint.speaks_for(str(outcome.request.url)):
                    verdict = endpoint.model.verdict_for(code, outcome.status)
                    if not isinstance(verdict, NoActionIndicated):
                        return verdict
        return NO_ACTION
