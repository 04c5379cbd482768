"""The retry layer for ``requests``: a mountable adapter with Smithy retry strategies.

Start with :func:`mount` or :class:`RetryAdapter`. Everything here is handed on from the file that owns it; most of it
when it is first asked for, so that importing the package costs little.
"""

from typing import TYPE_CHECKING

from .classifier import RetryClassifier, classifier, with_priority
from .install import install, uninstall
from .mount import mount
from .version import __version__

if TYPE_CHECKING:
    from .actions import ErrorKind, NoActionIndicated, RetryAction, RetryForbidden, RetryIndicated, RetryReason
    from .adapter import RetryAdapter
    from .backoff import ExponentialRetryBackoffStrategy, Jitter, RetryBackoffStrategy
    from .classification import Classification, Vote, classify
    from .classifiers import (
        AwsErrorCodeClassifier,
        HttpStatusCodeClassifier,
        IdempotencyKeyClassifier,
        ModeledAsRetryableClassifier,
        SmithyModelClassifier,
        TransientErrorClassifier,
        default_classifiers,
    )
    from .clock import Clock, SystemClock
    from .config import RetryConfig
    from .error_info import ErrorRetryInfo, HasFault
    from .errors import RetryConfigError, RetryConfigWarning, RetryError, TokenError
    from .events import AfterAttempt, BeforeAttempt, GaveUp, RetryScheduled, Succeeded, Throttled
    from .history import AttemptRecord, RetryHistory, retry_history
    from .interfaces import RetryStrategy
    from .limiter_settings import RateLimiterSettings
    from .listeners import RetryListener
    from .observed import ObservedOperation
    from .operation_options import retry_options
    from .outcome import Outcome, ResponseError, RetryContext
    from .payoff_bucket import PayoffTokenBucket
    from .priority import RetryClassifierPriority
    from .quota import RetryQuota, TokenBucket, TokenBucketSnapshot
    from .rate_limiter import ClientRateLimiter, PermitWait, RateLimiterSnapshot
    from .smithy import SmithyEndpoint, SmithyModel, SmithyModelError
    from .stop_reason import StopReason
    from .strategies import SimpleRetryStrategy, StandardRetryStrategy
    from .strategies.adaptive import AdaptiveRetryStrategy
    from .tokens import RetryToken, StandardRetryToken

__all__ = [
    "AdaptiveRetryStrategy",
    "AfterAttempt",
    "AttemptRecord",
    "AwsErrorCodeClassifier",
    "BeforeAttempt",
    "Classification",
    "ClientRateLimiter",
    "Clock",
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
    "actions": ("ErrorKind", "NoActionIndicated", "RetryAction", "RetryForbidden", "RetryIndicated", "RetryReason"),
    "adapter": ("RetryAdapter",),
    "backoff": ("ExponentialRetryBackoffStrategy", "Jitter", "RetryBackoffStrategy"),
    "classification": ("Classification", "Vote", "classify"),
    "classifiers": (
        "AwsErrorCodeClassifier",
        "HttpStatusCodeClassifier",
        "IdempotencyKeyClassifier",
        "ModeledAsRetryableClassifier",
        "SmithyModelClassifier",
        "TransientErrorClassifier",
        "default_classifiers",
    ),
    "clock": ("Clock", "SystemClock"),
    "config": ("RetryConfig",),
    "error_info": ("ErrorRetryInfo", "HasFault"),
    "errors": ("RetryConfigError", "RetryConfigWarning", "RetryError", "TokenError"),
    "events": ("AfterAttempt", "BeforeAttempt", "GaveUp", "RetryScheduled", "Succeeded", "Throttled"),
    "history": ("AttemptRecord", "RetryHistory", "retry_history"),
    "interfaces": ("RetryStrategy",),
    "limiter_settings": ("RateLimiterSettings",),
    "listeners": ("RetryListener",),
    "observed": ("ObservedOperation",),
    "operation_options": ("retry_options",),
    "outcome": ("Outcome", "ResponseError", "RetryContext"),
    "payoff_bucket": ("PayoffTokenBucket",),
    "priority": ("RetryClassifierPriority",),
    "quota": ("RetryQuota", "TokenBucket", "TokenBucketSnapshot"),
    "rate_limiter": ("ClientRateLimiter", "PermitWait", "RateLimiterSnapshot"),
    "smithy": ("SmithyEndpoint", "SmithyModel", "SmithyModelError"),
    "stop_reason": ("StopReason",),
    "strategies": ("SimpleRetryStrategy", "StandardRetryStrategy"),
    "strategies.adaptive": ("AdaptiveRetryStrategy",),
    "tokens": ("RetryToken", "StandardRetryToken"),
}
"""The file of each name that is handed on when it is asked for."""

if not TYPE_CHECKING:  # pragma: no branch - a checker, which runs nothing, would take any name for one of ours

    def __getattr__(name: str) -> object:
        """Import the file of a name, and keep the name for the next time."""
        from importlib import import_module

        for home, names in _HOMES.items():
            if name in names:
                value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
