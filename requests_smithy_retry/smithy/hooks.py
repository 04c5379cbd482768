"""What only the papers ask for, hung on the port: AWS error codes, Smithy models, the adaptive mode's permits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..classifiers.protocol import RetryClassifier
from ..clock import Clock
from ..core.port import Feature, Vouched
from .aws import AwsErrorCodeClassifier

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

    from ..classifiers.fold import Classification
    from ..classifiers.outcome import Outcome
    from ..config.retry_config import RetryConfig
    from ..core.driver import Call, Driver
    from ..core.scope import Scope
    from .adaptive import PermitGate


class Smithy(Feature):
    """The hooks in standard mode, without a model."""

    def classifiers(self, config: RetryConfig) -> tuple[RetryClassifier, ...]:
        """Return the classifier of AWS error codes, and that of the models."""
        if not config.models:
            return (AwsErrorCodeClassifier(),)
        from .model_classifier import SmithyModelClassifier  # few have models

        return AwsErrorCodeClassifier(), SmithyModelClassifier(config.models)


class Modeled(Smithy):
    """The hooks of a configuration with models."""

    def __init__(self, config: RetryConfig) -> None:
        self.models = tuple(config.models)

    def vouch(self, request: PreparedRequest) -> Vouched | None:
        """Tell what the first model that knows the request's operation says of it."""
        from .model_classifier import facts_of

        return Vouched(*facts_of(self.models, request))


class Adaptive(Smithy):
    """The hooks of the adaptive mode: a limiter measures how fast requests are sent, and gives permits once throttled."""

    def __init__(self, config: RetryConfig, clock: Clock) -> None:
        self.config = config
        self.clock = clock

    def gate(self, call: Call, scope: Scope) -> PermitGate | None:
        """Return the gate of a call, once the server has throttled."""
        from .adaptive import PermitGate, limiter_of

        limiter = limiter_of(scope, self.config, self.clock)
        if not limiter.enabled:
            return None
        deadline = None if call.limits is None else call.limits.at
        return PermitGate(limiter, self.config.max_permit_wait, deadline, scope.name)

    def received(self, driver: Driver, call: Call, request: PreparedRequest, response: Response, scope: Scope) -> None:  # noqa: ARG002
        """Count a success."""
        from .adaptive import limiter_of

        if response.status_code < 400:
            limiter_of(scope, self.config, self.clock).record_success()

    def judged(self, call: Call, scope: Scope, outcome: Outcome, verdict: Classification) -> None:  # noqa: ARG002
        """Count a failure, which may be throttling."""
        from .adaptive import limiter_of, record

        record(limiter_of(scope, self.config, self.clock), outcome, verdict)


class AdaptiveModeled(Adaptive, Modeled):
    """Both."""

    def __init__(self, config: RetryConfig, clock: Clock) -> None:
        Adaptive.__init__(self, config, clock)
        Modeled.__init__(self, config)


def feature(config: RetryConfig, clock: Clock) -> Feature:
    """Return the feature for a configuration."""
    if config.mode == "adaptive":
        return AdaptiveModeled(config, clock) if config.models else Adaptive(config, clock)
    return Modeled(config) if config.models else Smithy()
