"""The retry layer for ``requests``: a mountable adapter with Smithy retry strategies.

Start with :func:`mount` or :class:`RetryAdapter`. The names are imported on first use, so that importing the package
costs next to nothing.
"""

from .version import __version__

TYPE_CHECKING = False  # as in typing, which would take longer to import than all of this
if TYPE_CHECKING:
    from .adapter import RetryAdapter
    from .classifiers.actions import (
        ErrorKind,
        NoActionIndicated,
        RetryAction,
        RetryForbidden,
        RetryIndicated,
        RetryReason,
    )
    from .classifiers.aws import AwsErrorCodeClassifier
    from .classifiers.context import ResponseError, RetryContext
    from .classifiers.fold import Classification, Vote, classify
    from .classifiers.in_body import ErrorInBodyClassifier
    from .classifiers.modeled import ModeledAsRetryableClassifier
    from .classifiers.outcome import ErrorRetryInfo, HasFault, Outcome
    from .classifiers.protocol import RetryClassifier, RetryClassifierPriority, classifier, with_priority
    from .classifiers.statuses import HttpStatusCodeClassifier, IdempotencyKeyClassifier
    from .classifiers.transport_faults import TransientErrorClassifier
    from .clock import Clock, SystemClock
    from .config.retry_config import RetryConfig
    from .config.retry_options import retry_options
    from .errors import RetryConfigError, RetryConfigWarning, RetryError, StopReason, TokenError
    from .mounting import install, mount, uninstall
    from .observing.events import (
        AfterAttempt,
        BeforeAttempt,
        BodyProgress,
        GaveUp,
        ObservedOperation,
        RetryScheduled,
        Succeeded,
        Throttled,
    )
    from .observing.history import AttemptRecord, RetryHistory, retry_history
    from .observing.listeners import RetryListener
    from .pacing.announced import RateLimitDialect
    from .pacing.backoff import ExponentialRetryBackoffStrategy, Jitter, RetryBackoffStrategy
    from .pacing.limiter_settings import RateLimiterSettings
    from .pacing.rate_limiter import ClientRateLimiter, PermitWait, RateLimiterSnapshot
    from .quotas.bucket import RetryQuota, TokenBucket, TokenBucketSnapshot
    from .quotas.payoff import PayoffTokenBucket
    from .smithy import SmithyEndpoint, SmithyModel, SmithyModelError
    from .smithy.model_classifier import SmithyModelClassifier
    from .strategies.adaptive import AdaptiveRetryStrategy
    from .strategies.default_classifiers import default_classifiers
    from .strategies.protocol import RetryStrategy, RetryToken, StandardRetryToken
    from .strategies.simple import SimpleRetryStrategy
    from .strategies.standard import StandardRetryStrategy
    from .wire.digests import DigestMismatch

__all__ = [
    "AdaptiveRetryStrategy",
    "AfterAttempt",
    "AttemptRecord",
    "AwsErrorCodeClassifier",
    "BeforeAttempt",
    "BodyProgress",
    "Classification",
    "ClientRateLimiter",
    "Clock",
    "DigestMismatch",
    "ErrorInBodyClassifier",
    "ErrorKind",
    "ErrorRetryInfo",
    "ExponentialRetryBackoffStrategy",
    "GaveUp",
    "HasFault",
    "HttpStatusCodeClassifier",
    "IdempotencyKeyClassifier",
    "Jitter",
    "ModeledAsRetryableClassifier",
    "NoActionIndicated",
    "ObservedOperation",
    "Outcome",
    "PayoffTokenBucket",
    "PermitWait",
    "RateLimitDialect",
    "RateLimiterSettings",
    "RateLimiterSnapshot",
    "ResponseError",
    "RetryAction",
    "RetryAdapter",
    "RetryBackoffStrategy",
    "RetryClassifier",
    "RetryClassifierPriority",
    "RetryConfig",
    "RetryConfigError",
    "RetryConfigWarning",
    "RetryContext",
    "RetryError",
    "RetryForbidden",
    "RetryHistory",
    "RetryIndicated",
    "RetryListener",
    "RetryQuota",
    "RetryReason",
    "RetryScheduled",
    "RetryStrategy",
    "RetryToken",
    "SimpleRetryStrategy",
    "SmithyEndpoint",
    "SmithyModel",
    "SmithyModelClassifier",
    "SmithyModelError",
    "StandardRetryStrategy",
    "StandardRetryToken",
    "StopReason",
    "Succeeded",
    "SystemClock",
    "Throttled",
    "TokenBucket",
    "TokenBucketSnapshot",
    "TokenError",
    "TransientErrorClassifier",
    "Vote",
    "__version__",
    "classifier",
    "classify",
    "default_classifiers",
    "install",
    "mount",
    "retry_history",
    "retry_options",
    "uninstall",
    "with_priority",
]

_HOMES = {
    "adapter": ("RetryAdapter",),
    "classifiers.actions": (
        "ErrorKind",
        "NoActionIndicated",
        "RetryAction",
        "RetryForbidden",
        "RetryIndicated",
        "RetryReason",
    ),
    "classifiers.aws": ("AwsErrorCodeClassifier",),
    "classifiers.fold": ("Classification", "Vote", "classify"),
    "classifiers.in_body": ("ErrorInBodyClassifier",),
    "classifiers.modeled": ("ModeledAsRetryableClassifier",),
    "classifiers.context": ("ResponseError", "RetryContext"),
    "classifiers.outcome": ("ErrorRetryInfo", "HasFault", "Outcome"),
    "classifiers.protocol": ("RetryClassifier", "RetryClassifierPriority", "classifier", "with_priority"),
    "classifiers.statuses": ("HttpStatusCodeClassifier", "IdempotencyKeyClassifier"),
    "classifiers.transport_faults": ("TransientErrorClassifier",),
    "clock": ("Clock", "SystemClock"),
    "config.retry_config": ("RetryConfig",),
    "config.retry_options": ("retry_options",),
    "errors": ("RetryConfigError", "RetryConfigWarning", "RetryError", "StopReason", "TokenError"),
    "mounting": ("install", "mount", "uninstall"),
    "observing.events": (
        "AfterAttempt",
        "BeforeAttempt",
        "BodyProgress",
        "GaveUp",
        "ObservedOperation",
        "RetryScheduled",
        "Succeeded",
        "Throttled",
    ),
    "observing.history": ("AttemptRecord", "RetryHistory", "retry_history"),
    "observing.listeners": ("RetryListener",),
    "pacing.backoff": (
        "ExponentialRetryBackoffStrategy",
        "Jitter",
        "RetryBackoffStrategy",
    ),
    "pacing.announced": ("RateLimitDialect",),
    "pacing.limiter_settings": ("RateLimiterSettings",),
    "pacing.rate_limiter": (
        "ClientRateLimiter",
        "PermitWait",
        "RateLimiterSnapshot",
    ),
    "quotas.payoff": ("PayoffTokenBucket",),
    "quotas.bucket": (
        "RetryQuota",
        "TokenBucket",
        "TokenBucketSnapshot",
    ),
    "smithy": (
        "SmithyEndpoint",
        "SmithyModel",
        "SmithyModelError",
    ),
    "smithy.model_classifier": ("SmithyModelClassifier",),
    "strategies.adaptive": ("AdaptiveRetryStrategy",),
    "strategies.default_classifiers": ("default_classifiers",),
    "strategies.protocol": ("RetryStrategy", "RetryToken", "StandardRetryToken"),
    "strategies.simple": ("SimpleRetryStrategy",),
    "strategies.standard": ("StandardRetryStrategy",),
    "wire.digests": ("DigestMismatch",),
}
"""The module of each name that is imported on first use."""

if not TYPE_CHECKING:  # pragma: no branch - a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Import a name from its module, and keep it."""
        from importlib import import_module

        for home, names in _HOMES.items():
            if name in names:
                value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
